//! New counters and thresholds are on a page before they grow; only chosen thresholds are exposed.

use pds_interface::response_time;
use pds_simulator::{Fault, Settings};
use tracing::Level;

use crate::process::series;
use crate::rig::{FaultExt as _, Log};

use super::{Rig, one_app};

#[tokio::test(start_paused = true)]
async fn only_configured_thresholds_and_those_of_objectives_are_exposed_and_the_ratio_if_it_is_wanted() {
    let (log, _guard) = Log::start(Level::WARN);
    let objective = ", objective = { threshold = \"1s\", share = 0.99 }";
    let tables = |ratio: bool| {
        format!(
            "[poll]\nthresholds = [\"250ms\", \"10s\", \"7s\"]\nwithin_ratio = {ratio}\nsettle = \"20s\"\n"
        )
    };
    let mut rig = Rig::of(one_app(), &tables(true), objective, None).await;
    rig.minutes(5).await;
    let values = |page: &str, family: &str, label: &str| {
        let of_family = page.lines().filter(|line| line.starts_with(family));
        let value = of_family.filter_map(|line| line.split_once(&format!("{label}=\"")));
        value.map(|(_, rest)| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let ratio = "pds_app_response_time_within_ratio{";
    assert_eq!(values(&rig.page(), ratio, "threshold"), ["0.25", "1.0", "10.0"]);
    let buckets = values(&rig.page(), "pds_app_request_duration_seconds_bucket{", "le");
    assert_eq!(buckets, ["0.25", "1.0", "10.0", "+Inf"]);
    assert_eq!(log.lines_with("threshold=7s").len(), 1, "{}", log.text());

    rig.reload(&tables(false));
    rig.pass(60).await;
    assert_eq!(values(&rig.page(), ratio, "threshold"), [""; 0]);
    assert!(rig.page().contains("pds_app_response_time_seconds{"));
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_if_replies_have_no_exposed_threshold() {
    let (log, _guard) = Log::start(Level::WARN);
    let rig = Rig::of(one_app(), "[poll]\nthresholds = [\"7s\"]\nsettle = \"20s\"\n", "", None).await;
    rig.minutes(5).await;
    let page = rig.page();
    assert!(page.contains("pds_app_requests_total{"), "{page}");
    assert!(page.contains("resource=\"response_time\"} 1\n"), "{page}");
    let buckets = page.lines().filter(|line| line.starts_with("pds_app_request_duration_seconds_bucket{"));
    assert_eq!(buckets.filter(|line| !line.contains("+Inf")).count(), 0, "{page}");
    assert_eq!(log.lines_with("threshold=7s").len(), 1, "{}", log.text());
}

/// The total, the accounted seconds and the buckets of the page, and the cursor.
fn counted(rig: &Rig) -> (f64, f64, Vec<f64>, f64) {
    let page = rig.page();
    let values = |name: &str| -> Vec<f64> {
        let named = series(&page).filter(|(series, _)| series.starts_with(name));
        named.map(|(_, value)| value).collect()
    };
    let cursor = values("pds_app_accounted_until_timestamp_seconds{");
    let (total, seconds) =
        (values("pds_app_requests_total{")[0], values("pds_app_requests_accounted_seconds_total{")[0]);
    (total, seconds, values("pds_app_request_duration_seconds_bucket{"), cursor[0])
}

#[tokio::test(start_paused = true)]
async fn a_new_counter_is_served_at_its_start_until_a_page_was_read_for_two_polls_at_most() {
    for first_read in 0..4u32 {
        let rig = Rig::start(one_app(), "").await;
        rig.pass(0).await;
        let opened = rig.ledger().until;
        rig.minutes(first_read).await;
        let (total, seconds, buckets, cursor) = counted(&rig);
        assert!(buckets.len() > 20, "its thresholds are there from the first page");
        if first_read < 2 {
            assert_eq!((total, seconds, cursor), (0.0, 0.0, opened as f64), "{first_read}");
            assert_eq!(buckets.iter().sum::<f64>(), 0.0);
            assert_eq!(rig.problem(), (None, None), "it is not behind");
            rig.pass(60).await;
        }
        let ledger = rig.ledger();
        let (total, seconds, _, cursor) = counted(&rig);
        assert!(ledger.total > 0);
        assert_eq!((total, cursor), (ledger.total as f64, ledger.until as f64), "{first_read}");
        assert_eq!(seconds, (ledger.until - opened) as f64);
    }
}

/// Replaces the distribution in all replies.
fn distribute(rig: &Rig, text: &str) {
    rig.world.faults().set([Fault::value("distribution", text).on(response_time::RESOURCE)]);
}

#[tokio::test(start_paused = true)]
async fn a_new_threshold_is_on_a_page_before_it_counts() {
    let rig = Rig::start(one_app(), "").await;
    distribute(&rig, "{\"100ms\": 50, \"1s\": 100}");
    rig.minutes(4).await;
    let (total, _, before, cursor) = counted(&rig);
    distribute(&rig, "{\"100ms\": 50, \"500ms\": 75, \"1s\": 100}");
    rig.pass(60).await;
    let start = counted(&rig);
    assert_eq!((start.0, start.3), (total, cursor), "nothing else grows before it was seen");
    assert_eq!(start.2, [before[0], before[0], before[1], before[2]]);
    rig.pass(60).await;
    let (total, _, buckets, _) = counted(&rig);
    assert_eq!(total, rig.ledger().total as f64);
    let grown: Vec<f64> = buckets.iter().zip(&start.2).map(|(now, then)| now - then).collect();
    let more = total - start.0;
    assert!(more > 4.0 && (grown[1] - 0.75 * more).abs() <= 1.0 && grown[3] == more, "{grown:?} of {more}");
}

#[tokio::test(start_paused = true)]
async fn a_threshold_that_follows_another_new_one_is_on_a_page_before_it_counts_too() {
    let rig = Rig::start(one_app(), "").await;
    distribute(&rig, "{\"100ms\": 50, \"10s\": 100}");
    rig.minutes(4).await;
    counted(&rig);
    distribute(&rig, "{\"100ms\": 50, \"500ms\": 75, \"10s\": 100}");
    rig.pass(60).await;
    let (_, _, buckets, _) = counted(&rig);
    assert_eq!((buckets.len(), buckets[1]), (4, buckets[0]));
    let before = rig.ledger();
    distribute(&rig, "{\"100ms\": 50, \"500ms\": 75, \"1s\": 90, \"10s\": 100}");
    rig.pass(60).await;
    let start = counted(&rig);
    assert_eq!((start.0, start.3), (before.total as f64, before.until as f64));
    assert!(start.2[1] > start.2[0] && start.2[2] == start.2[1], "{:?}", start.2);
    rig.pass(60).await;
    let (total, _, buckets, _) = counted(&rig);
    assert_eq!(total, rig.ledger().total as f64);
    let grown: Vec<f64> = buckets.iter().zip(&start.2).map(|(now, then)| now - then).collect();
    assert!((grown[2] - 0.9 * (total - start.0)).abs() <= 1.0, "{grown:?} of {}", total - start.0);
}

#[tokio::test(start_paused = true)]
async fn a_threshold_that_appears_in_an_outage_is_on_a_page_before_it_counts_too() {
    let rig = Rig::start(one_app(), "").await;
    distribute(&rig, "{\"100ms\": 50, \"1s\": 100}");
    rig.minutes(4).await;
    let before = counted(&rig);
    rig.world.faults().set([Fault::status(500)]);
    rig.minutes(15).await;
    assert!(!rig.page().contains("pds_app_requests_total{"));
    distribute(&rig, "{\"100ms\": 50, \"500ms\": 75, \"1s\": 100}");
    let mut page = None;
    for _ in 0..20 {
        if page.is_none() {
            rig.pass(60).await;
            page = rig.page().contains("pds_app_requests_total{").then(|| counted(&rig));
        }
    }
    let (total, _, buckets, _) = page.unwrap();
    assert_eq!((total, buckets[1]), (before.0, buckets[0]), "nothing has grown before the page was read");
    rig.pass(60).await;
    let (grown, _, buckets, _) = counted(&rig);
    assert_eq!(grown, rig.ledger().total as f64);
    assert!(buckets[1] > buckets[0], "{buckets:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_app_has_no_thresholds_of_others() {
    let rig = Rig::start(Settings { apps: 2, ..Settings::default() }, "").await;
    let (_, apps) = rig.world.projects().remove(0);
    let distribution = |app: usize, text: &str| {
        Fault::value("distribution", text).on(response_time::RESOURCE).of_app(&apps[app])
    };
    rig.world.faults().set([distribution(0, "{\"137.2ms\": 50}"), Fault::status(500).of_app(&apps[1])]);
    rig.minutes(4).await;
    rig.world.faults().set([distribution(0, "{\"137.2ms\": 50}"), distribution(1, "{\"500ms\": 75}")]);
    rig.minutes(4).await;
    let thresholds = |app| rig.ledger_of(app).buckets().map(|(threshold, _)| threshold).collect::<Vec<_>>();
    assert_eq!([0, 1].map(thresholds), [[0.1372], [0.5]]);
}

#[tokio::test(start_paused = true)]
async fn a_configured_threshold_is_the_float_of_its_label() {
    let (log, _guard) = Log::start(Level::WARN);
    let objective = ", objective = { threshold = \"1140ms\", share = 0.99 }";
    let tables = "[poll]\nthresholds = [\"1140ms\"]\nsettle = \"20s\"\n";
    let rig = Rig::of(one_app(), tables, objective, None).await;
    distribute(&rig, "{\"1140ms\": 50, \"10s\": 100}");
    rig.minutes(5).await;
    let page = rig.page();
    let has =
        |family: &str, label: &str| page.lines().any(|line| line.starts_with(family) && line.contains(label));
    assert!(has("pds_app_request_duration_seconds_bucket{", "le=\"1.14\""), "{page}");
    assert!(has("pds_app_response_time_within_ratio{", "threshold=\"1.14\""), "{page}");
    assert!(has("pds_app_objective_ratio{", "threshold=\"1.14\""), "{page}");
    assert_eq!(log.lines_with("threshold="), [""; 0]);
    let status = rig.status();
    assert!(status.summary.reasons.iter().all(|reason| reason.code != "objective_unknown"));
}
