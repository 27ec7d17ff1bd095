//! Hours counted again: what is said of them, and a service that counts the end of a range twice.

use pds_core::units::count;
use pds_interface::{Cadence, TimeRange, get_app, response_time};
use pds_simulator::{Fault, Quirks, Settings};
use tracing::Level;

use crate::rig::{FaultExt as _, Log};

use super::{Rig, lengths, one_app};

/// Polls every five minutes.
const RARE: &str = "[poll]\ninterval = \"5m\"\nstale_after = \"20m\"\n";

fn with(quirks: Quirks) -> Settings {
    Settings { apps: 1, quirks, ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn pages_show_what_the_service_no_longer_has_and_why_that_is() {
    let quirks = Quirks { forgets_after: 3600, ..Quirks::default() };
    let rig = Rig::start(Settings { apps: 2, quirks, ..Settings::default() }, "").await;
    hours(&rig, 6).await;
    let lacks = |app: usize| rig.resource(app).disputed.unwrap().lacks;
    let said = format!("no longer has {} requests of 2 apps between ", count(lacks(0) + lacks(1)));
    let page = rig.web("/");
    assert!(page.contains(&said) && page.contains("or the token belongs to another account"), "{page}");
    let of_app = rig.of_app();
    let said = format!("no longer has {} requests between ", count(lacks(0)));
    assert!(rig.web(&of_app).contains(&said));
    let anew = Fault::value("createdAt", "\"2026-03-01T17:00:00Z\"");
    rig.world.faults().set([anew.on(get_app::RESOURCE)]);
    rig.poll(Cadence::Settings).await;
    assert!(rig.web(&of_app).contains("The app was recreated "), "{}", rig.web(&of_app));
}

/// Polls for so many hours, every five minutes.
async fn hours(rig: &Rig, hours: u32) {
    for _ in 0..12 * hours {
        rig.pass(300).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_includes_the_end_of_ranges_is_reported_once_with_the_key_to_set() {
    let inclusive = || with(Quirks { inclusive_ends: true, ..Quirks::default() });
    let (log, _guard) = Log::start(Level::INFO);
    let rig = Rig::start(inclusive(), RARE).await;
    hours(&rig, 14).await;
    let told = log.lines_with("an audit found a difference");
    assert_eq!(told.len(), 2, "once for each call: {told:#?}");
    let remedy = "set accounting.range_end = \"inclusive\"";
    assert!(told.iter().all(|line| line.contains("WARN") && line.contains(remedy)), "{told:?}");
    assert_eq!(rig.ledger().total, 0, "nothing is counted that a check has found to be wrong");

    let (log, _guard) = Log::start(Level::INFO);
    let tables = format!("{RARE}[accounting]\nrange_end = \"inclusive\"\n");
    let rig = Rig::start(inclusive(), &tables).await;
    hours(&rig, 14).await;
    assert_eq!(log.lines_with("accounting.range_end"), [""; 0], "it is set right");
    assert_eq!(rig.ledger().overcounted, 0);
}

#[tokio::test(start_paused = true)]
async fn without_rechecks_there_is_no_series_of_their_time() {
    const FAMILY: &str = "pds_app_rechecked_until_timestamp_seconds{";
    for (recheck_after, shown) in [("[\"1h\"]", true), ("[]", false)] {
        let tables = format!("{RARE}[accounting]\nrecheck_after = {recheck_after}\n");
        let rig = Rig::start(with(Quirks::default()), &tables).await;
        hours(&rig, 4).await;
        let page = rig.page();
        assert!(page.contains("pds_app_requests_total{"), "{page}");
        assert_eq!(page.contains(FAMILY), shown, "recheck_after = {recheck_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_a_day_shows_how_much_came_too_late_to_be_counted() {
    let completeness = |rig: &Rig| {
        let page = crate::rig::whole_page(rig.context());
        let ratios = page.lines().filter_map(|line| line.strip_prefix("pds_audit_completeness_ratio{age=\""));
        let ratios = ratios.map(|line| (line.split_once('"').unwrap().0, line.rsplit_once(' ').unwrap().1));
        ratios.map(|(age, ratio)| (age.to_owned(), ratio.parse::<f64>().unwrap())).collect::<Vec<_>>()
    };
    let (log, _guard) = Log::start(Level::INFO);
    let quirks = Quirks { late_share: 0.2, late_within: 20 * 3600, ..Quirks::default() };
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.log");
    let mut rig = Rig::of(with(quirks), RARE, "", Some(state)).await;
    hours(&rig, 8).await;
    let of_hours = completeness(&rig);
    let [(age, early)] = &*of_hours else { panic!("{of_hours:?}") };
    assert!(age == "3h" && (0.9..0.99).contains(early), "{age} {early}");
    let told = log.lines_with("an audit found a difference");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("add \"3h\" to accounting.recheck_after"), "{told:?}");
    // A recheck at that age ends it.
    rig.reload(&format!("{RARE}[accounting]\nrecheck_after = [\"1h\", \"3h\"]\n"));
    assert_eq!(completeness(&rig), []);
    assert!(rig.context().telemetry.snapshot().audit.differences.is_empty());
    rig.reload(RARE);
    let found = || log.lines_with("an audit found a difference");
    for restarts in 0..2 {
        rig.pass(0).await;
        assert_eq!(completeness(&rig), of_hours);
        assert_eq!(found().len(), 2 + restarts);
        assert!(found()[1 + restarts].contains("add \"3h\" to accounting.recheck_after"), "{:?}", found());
        // The state file has the sample and what was found.
        rig.restart().await;
    }
    rig.pass(0).await;
    hours(&rig, 22).await;
    let of_day = completeness(&rig).into_iter().find(|(age, _)| age == "24h");
    assert!(of_day.as_ref().is_some_and(|(_, later)| later < early), "{of_day:?} {early}");
    assert!(found()[4].contains("add \"24h\" to accounting.recheck_after"), "{:?}", found());
    let before = completeness(&rig);
    rig.restart().await;
    rig.pass(0).await;
    assert_eq!(completeness(&rig), before);
    // Other settings: nothing is known of them.
    rig.tables = format!("{RARE}[accounting]\nstep = \"120s\"\n");
    rig.restart().await;
    hours(&rig, 1).await;
    rig.restart().await;
    rig.pass(0).await;
    assert_eq!(completeness(&rig), []);

    let quirks = Quirks { late_share: 0.2, late_within: 300, ..Quirks::default() };
    let rig = Rig::start(with(quirks), RARE).await;
    hours(&rig, 8).await;
    assert_eq!(completeness(&rig), [("3h".to_owned(), 1.0)]);
}

#[tokio::test(start_paused = true)]
async fn samples_are_a_hundredth_of_the_requests_however_rare_polls_are() {
    for (interval, days) in [(300, 1), (3600, 14)] {
        let tables = format!(
            "[poll]\nresources = [\"response_time\"]\nwindows = [\"1m\"]\ninterval = \"{interval}s\"\n"
        );
        let rig = Rig::start(with(Quirks::default()), &tables).await;
        let (mut samples, mut all) = (0, 0);
        for _ in 0..days * 86_400 / interval {
            let ranges = rig.pass(interval).await;
            let is_sample = |range: &&TimeRange| {
                range.seconds() == 3600 && range.end <= rig.clock.unix_seconds() - 3 * 3600
            };
            samples += ranges.iter().filter(is_sample).count();
            all += ranges.len();
        }
        assert!(samples > 0 && samples * 100 <= all - samples, "{samples} of {all} every {interval} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_poll_ends_no_recheck() {
    let quirks = Quirks { late_share: 0.2, late_within: 1800, ..Quirks::default() };
    let tables = "[poll]\ninterval = \"15s\"\n[accounting]\nrecheck_after = [\"1h\"]\n";
    let rig = Rig::start(with(quirks), tables).await;
    for poll in 0..3 * 240 {
        // The poll that follows the one that counts.
        let fails = poll % 4 == 2;
        rig.world.faults().set(fails.then(|| Fault::status(404)));
        rig.pass(15).await;
    }
    assert!(rig.ledger().late > 0, "{:?}", rig.ledger());
}

#[tokio::test(start_paused = true)]
async fn an_hour_whose_late_data_lacks_a_distribution_is_requested_once_at_each_age() {
    let rig = Rig::start(one_app(), "[accounting]\naudit = false\n").await;
    let reply = |field, json| Fault::value(field, json).on(response_time::RESOURCE);
    let late = [("total_requests", "7"), ("distribution", "{}")];
    let late = late.map(|(field, json)| reply(field, json).of_ranges_longer_than(3599));
    rig.world.faults().set([reply("total_requests", "0")].into_iter().chain(late));
    let mut hours = 0;
    for _ in 0..5 * 60 {
        hours += lengths(&rig.pass(60).await).into_iter().filter(|seconds| *seconds == 3600).count();
    }
    assert_eq!(hours, 3, "12:00 to 15:00");
}
