//! The contents of the pages: windows, texts of the service, counters that are behind.

use std::sync::Arc;
use std::time::Duration;

use pds_interface::{Cadence, get_app, list_domains, response_time};
use pds_simulator::{Fault, Quirks, Settings};
use tracing::Level;

use crate::process::series;
use crate::rig::{self, FaultExt as _, Log};

use super::{Rig, one_app};

#[tokio::test(start_paused = true)]
async fn a_window_that_a_reload_removes_leaves_the_page_at_once() {
    let mut rig = Rig::start(one_app(), "[poll]\nwindows = [\"5m\", \"1h\"]\n").await;
    rig.pass(0).await;
    let count = |rig: &Rig, window: &str| rig.page().matches(&format!("window=\"{window}\"")).count();
    assert!(count(&rig, "5m") > 4 && count(&rig, "1h") > 4);
    let before = count(&rig, "5m");
    let old = Arc::clone(rig.plan_in_force());
    rig.reload("[poll]\nwindows = [\"5m\"]\n");
    assert_eq!((count(&rig, "5m"), count(&rig, "1h")), (before, 0), "nothing was polled since");
    // A poll that the reload has overtaken brings nothing back.
    rig::poll(rig.context(), &old, |target| target.endpoint.cadence == Cadence::Metrics).await;
    assert_eq!((count(&rig, "5m"), count(&rig, "1h")), (before, 0));
}

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

#[tokio::test(start_paused = true)]
async fn an_objective_at_a_threshold_that_no_reply_has_is_a_reason() {
    for (threshold, is_reason) in [("1s", false), ("1000ms", false), ("7s", true)] {
        let objective = format!(", objective = {{ threshold = \"{threshold}\", share = 0.99 }}");
        let rig = Rig::of(one_app(), "[poll]\nsettle = \"20s\"\n", objective.leak(), None).await;
        rig.minutes(5).await;
        let reasons = &rig.status().summary.reasons;
        let reason = reasons.iter().find(|reason| reason.code == "objective_unknown");
        assert_eq!(reason.is_some(), is_reason, "{threshold}: {reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn zeros_of_all_busy_apps_are_a_reason_while_their_counters_wait() {
    let (log, _guard) = Log::start(Level::WARN);
    let rig = Rig::start(Settings { apps: 6, ..Settings::default() }, "").await;
    let reason = |rig: &Rig| {
        let reasons = &rig.status().summary.reasons;
        reasons.iter().find(|reason| reason.code == "no_requests").map(|reason| reason.text.clone())
    };
    for _ in 0..15 {
        rig.pass(60).await;
        assert_eq!(reason(&rig), None);
    }
    rig.world.faults().set([Fault::value("total_requests", "0")]);
    rig.minutes(3).await;
    let text = reason(&rig).unwrap_or_default();
    let begins = "Nearly all busy apps of a token suddenly have no requests: the counters of ";
    assert!(text.starts_with(begins) && text.ends_with(" apps wait"), "{text}");
    rig.world.faults().clear();
    rig.minutes(6).await;
    assert_eq!(reason(&rig), None);
    // The next one is news.
    rig.world.faults().set([Fault::value("total_requests", "0")]);
    rig.minutes(3).await;
    assert_eq!(log.lines_with("nearly all busy apps suddenly have no requests").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn shares_too_coarse_for_an_objective_are_on_the_apps_page_and_in_the_json_but_no_reason() {
    const NOTE: &str =
        "The service reports shares in steps of 1 %, coarser than the 0.4 % that the objective allows.";
    let fine = ", objective = { threshold = \"500ms\", share = 0.996 }";
    let coarse = ", objective = { threshold = \"500ms\", share = 0.99 }";
    for (whole_percent, objective, step, note) in [
        (true, fine, Some(0.01), Some(NOTE)),
        (true, coarse, Some(0.01), None),
        (true, "", None, None),
        (false, fine, None, None),
    ] {
        let quirks = Quirks { whole_percent, ..Quirks::default() };
        let rig = Rig::of(Settings { quirks, ..one_app() }, "", objective, None).await;
        rig.minutes(10).await;
        rig.poll(Cadence::Settings).await;
        let status = rig.status();
        let app = &status.apps[0];
        assert_eq!((app.share_step, app.share_note.as_deref()), (step, note), "{whole_percent} {objective}");
        assert!(status.summary.reasons.is_empty(), "{:?}", status.summary.reasons);
        let page = rig.web(&rig.of_app());
        assert_eq!(page.contains(NOTE), note.is_some(), "{whole_percent} {objective}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_apps_error_text_is_on_its_page_and_in_the_json_and_no_metric() {
    let rig = Rig::start(one_app(), "").await;
    let page = rig.of_app();
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
    assert!(!rig.web(&page).contains("error message:"));

    let token = rig.world.token(&rig.world.projects()[0].0).unwrap().expose().to_owned();
    let text = format!("OOM <b>\u{1b}[31m\nkilled\u{202e}; sent {token}; {}", "x".repeat(5000));
    let json = serde_json::Value::from(text).to_string();
    rig.world.faults().set([Fault::value("errorMessage", &json).on(get_app::RESOURCE)]);
    rig.poll(Cadence::Settings).await;
    let message = rig.status().apps[0].error_message.clone().unwrap();
    assert!(message.starts_with("OOM <b> [31m killed ; sent [redacted]; xxx"), "{message}");
    assert_eq!(message.chars().count(), 1000);
    let html = rig.web(&page);
    assert!(html.contains("OOM &lt;b&gt; [31m killed ; sent [redacted]; xxx"), "{html}");
    assert!(!html.contains(&token) && !rig.page().contains("OOM"));

    // A stale text is not shown, nor one that the service no longer sends.
    rig.world.faults().set([Fault::status(500)]);
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
    rig.world.faults().clear();
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
}

#[tokio::test(start_paused = true)]
async fn counters_that_nothing_polls_leave_the_page_within_stale_after_and_are_behind_from_that_moment() {
    let rig = Rig::start(one_app(), "").await;
    rig.minutes(5).await;
    let mut left = None;
    for seconds in 1..=400u64 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let page = rig.page();
        let behind = series(&page).find(|(name, _)| {
            name.starts_with("pds_app_accounting_behind_seconds") && name.contains("\"response_time\"")
        });
        assert_ne!(page.contains("pds_app_requests_total{"), behind.is_some(), "after {seconds} s");
        left = left.or(behind.map(|(_, behind)| (seconds, behind)));
    }
    let (seconds, behind) = left.unwrap();
    assert!(seconds <= 300 && behind == seconds as f64, "{behind} s behind after {seconds} s");
}

#[tokio::test(start_paused = true)]
async fn counters_that_are_behind_are_hidden_and_the_status_shows_how_far() {
    let rig = Rig::start(one_app(), "").await;
    rig.minutes(5).await;
    let counters = || rig.page().matches("pds_app_requests_total{").count();
    let gauge = "pds_app_accounting_behind_seconds";
    let of_ledger = ["_accounted_", "_unaccounted_", "_late_", "_overcounted_", "_rechecked_", "_duration_"];
    let others = || {
        let page = rig.page();
        of_ledger.iter().filter(|part| page.contains(&format!("pds_app{part}"))).count()
    };
    assert_eq!((counters(), rig.problem()), (1, (None, None)));
    assert!(!rig.page().contains(gauge) && rig.page().contains("pds_app_requests_accounted_seconds_total"));
    rig.world.faults().set([Fault::status(500).of_ranges_longer_than(0)]);
    let until = rig.ledger().until;
    for minute in 1..40u64 {
        rig.pass(60).await;
        let (problem, behind) = rig.problem();
        let hidden = counters() == 0;
        // The page leaves a counter out once it lacks a step that had settled two polls ago.
        assert_eq!(hidden, minute > 2, "after {minute} minutes");
        assert_eq!(behind, hidden.then_some(minute * 60));
        assert!(problem.is_some(), "it is failing");
        let status = rig.status();
        let texts: Vec<&str> = status.apps[0].problems.iter().map(|problem| &*problem.text).collect();
        // And nothing that follows from it.
        assert_eq!(texts, ["response time, run execution time: the service returns errors (500)"]);
        let resource = "resource=\"response_time\"";
        let behind = series(&rig.page())
            .find(|(name, _)| name.starts_with(gauge) && name.contains(resource))
            .map(|(_, seconds)| seconds);
        assert_eq!(behind, hidden.then_some((minute * 60) as f64), "it says how far");
        assert_eq!(others() == 0, hidden, "a page is of one moment");
    }
    rig.world.faults().clear();
    // Ranges that failed together did not fail because of their length, so few requests fetch the missing ones.
    let mut polls = 0;
    while counters() == 0 {
        rig.pass(60).await;
        polls += 1;
    }
    assert!(polls <= 3, "{polls} polls");
    rig.pass(60).await;
    assert_eq!(rig.problem(), (None, None));
    assert!(!rig.page().contains(gauge));
    assert_eq!(rig.ledger().until - until, (40 + polls) * 60);
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
    while page.is_none() {
        rig.pass(60).await;
        page = rig.page().contains("pds_app_requests_total{").then(|| counted(&rig));
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
async fn domains_without_a_validation_status_are_named_once_with_the_key_that_finds_it() {
    let (log, _guard) = Log::start(Level::INFO);
    let mut rig = Rig::start(one_app(), "").await;
    let by_status = |rig: &Rig| rig.page().matches("pds_project_custom_domains_by_status{").count();
    rig.world.faults().set([Fault::value("validationStatus", "null").on(list_domains::RESOURCE)]);
    for _ in 0..3 {
        rig.poll(Cadence::Settings).await;
    }
    assert_eq!(by_status(&rig), 0);
    let told = log.lines_with("api.domain_status_field");
    assert_eq!(told.len(), 1, "{told:#?}");
    // Tables follow those of [api].
    rig.reload("domain_status_field = \"region\"\n");
    rig.poll(Cadence::Settings).await;
    assert_eq!(by_status(&rig), 5, "the words in the interface, and two regions");
}
