//! Nothing is counted without evidence of this process: neither after a restart, nor at a cursor, nor from default totals.

use std::collections::BTreeSet;
use std::time::Duration;

use pds_interface::{TimeRange, response_time};
use pds_ledger::{Hold, Ledger};
use pds_simulator::{Fault, Quirks, Settings};

use crate::rig::FaultExt as _;

use super::audit::{assert_exact, found, settings, unnamed};
use super::{Rig, one_app};

#[tokio::test(start_paused = true)]
async fn default_totals_that_move_are_not_taken_for_estimates() {
    let mut rig = Rig::start(settings(unnamed()), "").await;
    let total = |json| Fault::value("total_requests", json).on(response_time::RESOURCE);
    let steps = total("59900");
    let (parts, whole) =
        (total("59950").of_ranges_longer_than(90), total("60000").of_ranges_longer_than(3599));
    rig.world.faults().set([steps, parts, whole]);
    rig.minutes(5).await;
    assert_eq!(rig.ledger().total, 0);
    assert!(remedy_of_requests(&rig).starts_with("set api.query_names.start and"), "{:?}", found(&rig));
    // Estimates that do not add up are no default totals.
    rig.restart().await;
    rig.world.faults().set([total("10"), total("20").of_ranges_longer_than(90)]);
    rig.minutes(5).await;
    assert!(remedy_of_requests(&rig).starts_with("compare such ranges"), "{:?}", found(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_from_prometheus_proves_nothing() {
    let rig = Rig::start(settings(Quirks { ignores_range: true, ..unnamed() }), "").await;
    let until = rig.clock.unix_seconds() / 60 * 60 - 300;
    for app in 0..3 {
        let (ledgers, key) = (&rig.context().ledgers, rig.key(app));
        ledgers.commit(&key, Ledger::open(until)).await.unwrap();
        ledgers.set_hold(&key, Hold::Begun { until, pending: 0 });
    }
    rig.minutes(6).await;
    let counted = |app| (rig.ledger_of(app).total, rig.ledger_of(app).until);
    assert_eq!([0, 1, 2].map(counted), [(0, until); 3]);
    assert!(remedy_of_requests(&rig).starts_with("set api.query_names.start and"), "{:?}", found(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_check_is_about_the_range_with_traffic() {
    let rig = Rig::start(one_app(), "").await;
    let (until, key) = (rig.clock.unix_seconds() / 3600 * 3600 - 7200, rig.key(0));
    rig.context().ledgers.commit(&key, Ledger::open(until)).await.unwrap();
    rig.context().ledgers.set_hold(&key, Hold::Begun { until, pending: 0 });
    let counted = TimeRange { start: until, end: until + 3600 };
    let ranges = rig.pass(60).await;
    assert_eq!(ranges.iter().filter(|range| **range == counted).count(), 2, "{ranges:?}");
    rig.minutes(5).await;
    assert_exact(&rig, until);
}

#[tokio::test(start_paused = true)]
async fn rounded_buckets_are_not_counted_whenever_counting_begins() {
    let quirks = Quirks { round_to: 300, longest_range: 1800, ..unnamed() };
    for minutes in 0..5 {
        let rig = Rig::start(settings(quirks), "").await;
        tokio::time::advance(Duration::from_secs(minutes * 60)).await;
        rig.minutes(12).await;
        assert_eq!(rig.ledger().total, 0, "{minutes}");
        assert_eq!(remedy_of_requests(&rig), "set accounting.step to the length that the service rounds to");
        assert!(rig.page().contains("pds_app_window_requests{"), "{minutes}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_steps_are_checked_like_short_ones() {
    let of = |step| format!("[poll]\ninterval = \"5m\"\n[accounting]\nstep = \"{step}\"\n");
    let hours = async |rig: &Rig, hours: u32| {
        for _ in 0..hours * 12 {
            rig.pass(300).await;
        }
    };
    for (step, round_to) in [("15m", 1800), ("30m", 3600), ("1h", 7200)] {
        let rig = Rig::start(settings(Quirks { round_to, ..unnamed() }), &of(step)).await;
        hours(&rig, 12).await;
        assert_eq!(rig.ledger().total, 0, "{step}");
        let rig = Rig::start(settings(Quirks { ignores_range: true, ..unnamed() }), &of(step)).await;
        hours(&rig, 12).await;
        assert_eq!(rig.ledger().total, 0, "{step}");
        assert!(remedy_of_requests(&rig).starts_with("set api.query_names.start and"), "{step}");
        let rig = Rig::start(settings(unnamed()), &of(step)).await;
        rig.pass(300).await;
        let first = rig.ledger().until;
        hours(&rig, 4).await;
        assert!(rig.ledger().until > first, "{step}");
        assert_exact(&rig, first);
    }
}

#[tokio::test(start_paused = true)]
async fn bursts_between_two_steps_are_not_taken_for_ignored_ranges() {
    // The range of a check has two steps, and its only burst is counted at the end of one and in the other.
    let quirks = Quirks { inclusive_ends: true, bursts_every: 3600, longest_range: 3600, ..unnamed() };
    let rig = Rig::start(settings(quirks), "[poll]\ninterval = \"5m\"\n[accounting]\nstep = \"30m\"\n").await;
    for _ in 0..10 {
        rig.pass(300).await;
    }
    let audit = found(&rig);
    let remedies: BTreeSet<&str> = audit.differences.values().map(|difference| &*difference.remedy).collect();
    assert_eq!(Vec::from_iter(remedies), ["set accounting.range_end = \"inclusive\""], "{audit:?}");
    // With a margin at the end of ranges, an instant would end before it begins.
    let tables =
        "[poll]\ninterval = \"5m\"\n[accounting]\nstep = \"30m\"\nrange_end = \"inclusive-second\"\n";
    let rig = Rig::start(settings(Quirks { longest_range: 3600, ..unnamed() }), tables).await;
    for _ in 0..10 {
        rig.pass(300).await;
    }
    assert_eq!(remedy_of_requests(&rig), "set accounting.range_end = \"exclusive\"");
}

#[tokio::test(start_paused = true)]
async fn idle_apps_keep_up_without_a_check() {
    for tables in ["", "[accounting]\naudit = false\n"] {
        let folder = tempfile::tempdir().unwrap();
        let state = Some(folder.path().join("ledgers"));
        let mut rig = Rig::of(settings(unnamed()), tables, "", state).await;
        let apps = rig.world.projects()[0].1.clone();
        let keeps_up = |rig: &Rig| {
            assert_eq!((rig.ledger().total, rig.ledger().until), (0, settled_step(rig)), "{tables}");
            assert!(!rig.page().contains("pds_app_accounting_behind_seconds{"), "{}", rig.page());
        };
        // All of them, then one beside others.
        let idle = ["total_requests", "total_runs"].map(|field| Fault::value(field, "0"));
        rig.world.faults().set(idle.clone());
        rig.minutes(10).await;
        keeps_up(&rig);
        let audit = found(&rig);
        assert_eq!((audit.equal, audit.different, audit.unanswered), (0, 0, 0), "they prove nothing");
        rig.world.faults().set(idle.map(|fault| fault.of_app(&apps[0])));
        rig.minutes(5).await;
        keeps_up(&rig);
        rig.restart().await;
        rig.minutes(5).await;
        keeps_up(&rig);
    }
}

#[tokio::test(start_paused = true)]
async fn an_audit_with_long_steps_finds_ignored_ranges() {
    let tables = "[poll]\ninterval = \"5m\"\n[accounting]\nstep = \"15m\"\nrecheck_after = []\n";
    let rig = Rig::start(settings(unnamed()), tables).await;
    let hours = async |hours: u32| {
        for _ in 0..hours * 12 {
            rig.pass(300).await;
        }
    };
    hours(3).await;
    assert!(rig.ledger().total > 0);
    rig.world.faults().set([Fault::value("total_requests", "5000").on(response_time::RESOURCE)]);
    hours(12).await;
    assert!(remedy_of_requests(&rig).starts_with("set api.query_names.start and"), "{:?}", found(&rig));
    let stands = (rig.ledger().total, rig.ledger().until);
    hours(1).await;
    assert_eq!((rig.ledger().total, rig.ledger().until), stands);
}

#[tokio::test(start_paused = true)]
async fn an_hour_is_rechecked_after_a_restart_although_nothing_is_to_be_counted() {
    let folder = tempfile::tempdir().unwrap();
    let one = Settings { apps: 1, ..settings(unnamed()) };
    let state = Some(folder.path().join("ledgers"));
    let mut rig = Rig::of(one, "[accounting]\nrecheck_after = [\"6h\"]\n", "", state).await;
    rig.minutes(190).await;
    let counted = rig.ledger();
    assert!(counted.total > 0 && counted.rechecked_until == 0, "{counted:?}");
    assert_eq!(rig.resource(0).rechecked_until, None);
    rig.tables = "[accounting]\nrecheck_after = [\"1h\"]\n".to_owned();
    rig.restart().await;
    rig.pass(0).await;
    let ledger = rig.ledger();
    assert_eq!((ledger.until, ledger.total), (counted.until, counted.total), "nothing has settled");
    assert!(ledger.rechecked_until > 0, "{ledger:?}");
    let shown = rig.resource(0).rechecked_until.map(|until| until.as_second());
    assert_eq!(shown, Some(ledger.rechecked_until));
}

#[tokio::test(start_paused = true)]
async fn a_range_that_proves_nothing_is_counted_after_a_check_of_the_newest() {
    // Each longer range that ends at 11:00 is refused.
    let until = 1_772_366_400 - 3600 - 60;
    let refused_seconds = [until - 43, 0, 0, 0, 0, 0, 0, 0];
    let quirks = Quirks { refused_seconds, ..unnamed() };
    let rig = Rig::start(Settings { apps: 1, ..settings(quirks) }, "").await;
    rig.context().ledgers.commit(&rig.key(0), Ledger::open(until)).await.unwrap();
    rig.minutes(5).await;
    assert_exact(&rig, until);
}

#[tokio::test(start_paused = true)]
async fn another_token_is_checked_anew() {
    let tables = "[accounting]\nrecheck_after = []\n";
    let mut rig = Rig::start(settings(unnamed()), tables).await;
    rig.minutes(5).await;
    let stands = rig.ledger().total;
    assert!(stands > 0);
    rig.world.faults().set([Fault::value("total_requests", "5000").on(response_time::RESOURCE)]);
    rig.expiry = Some("2027-01-01T00:00:00Z".parse().unwrap());
    rig.reload(tables);
    rig.minutes(3).await;
    assert_eq!(rig.ledger().total, stands);
    assert!(remedy_of_requests(&rig).starts_with("set api.query_names.start and"), "{:?}", found(&rig));
}

fn settled_step(rig: &Rig) -> i64 {
    rig.plan_in_force().watermark.settled_step()
}

/// The remedy of the difference in the requests of the project's account.
fn remedy_of_requests(rig: &Rig) -> String {
    let audit = found(rig);
    let of_requests =
        audit.differences.iter().find(|((_, call), _)| *call == response_time::RESOURCE.as_str());
    of_requests.map(|(_, difference)| difference.remedy.to_string()).unwrap_or_default()
}
