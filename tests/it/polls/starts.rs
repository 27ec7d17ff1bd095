//! The first polls of a process: what is too old is never added.

use std::time::Duration;

use jiff::SignedDuration;
use pds_interface::range::rfc3339;
use pds_interface::response_time;
use pds_simulator::{Fault, Kind, Quirks, Settings};
use tracing::Level;

use crate::rig::{FaultExt as _, Log};

use super::{Rig, one_app};

const DAY: i64 = 86_400;

fn undated() -> Settings {
    Settings { quirks: Quirks { undated: true, ..Quirks::default() }, ..one_app() }
}

/// Ten days after an exporter with a limit of a day was stopped, with these faults at its first poll.
async fn after_ten_days(faults: Vec<Fault>) {
    let folder = tempfile::tempdir().unwrap();
    let tables = "[accounting]\nmax_catch_up = \"24h\"\n";
    let mut rig = Rig::of(one_app(), tables, "", Some(folder.path().join("state.log"))).await;
    rig.minutes(5).await;
    let stopped = rig.ledger();
    let all = rig.truth(stopped.until - 4 * 60, stopped.until);
    assert_eq!(stopped.total, all);
    tokio::time::advance(Duration::from_secs(10 * 86_400)).await;
    rig.restart().await;
    rig.world.faults().set(faults);
    rig.pass(0).await;
    let added = |rig: &Rig| {
        let ledger = rig.ledger();
        let accounted = ledger.until - stopped.until - i64::try_from(ledger.unaccounted).unwrap();
        assert!(accounted >= 0);
        assert_eq!(ledger.total - stopped.total, rig.truth(ledger.until - accounted, ledger.until));
        accounted
    };
    assert!(added(&rig) <= DAY);
    rig.world.faults().clear();
    for _ in 0..8 {
        rig.pass(60).await;
        assert!(added(&rig) <= DAY + 8 * 60);
    }
    let (ledger, settled) = (rig.ledger(), rig.plan_in_force().watermark.settled_step());
    assert_eq!(ledger.until, settled, "and it has caught up");
    let unaccounted = i64::try_from(ledger.unaccounted).unwrap();
    assert!((9 * DAY - 60..=9 * DAY + 600).contains(&unaccounted), "{unaccounted}");
}

#[tokio::test(start_paused = true)]
async fn the_first_poll_after_ten_days_counts_no_more_than_max_catch_up() {
    after_ten_days(Vec::new()).await;
}

#[tokio::test(start_paused = true)]
async fn a_range_that_turns_out_too_old_when_it_is_answered_is_not_added() {
    // No window tells the time before the counted range is asked for.
    let windows = Fault::status(500).of_ranges_longer_than(290).times(2);
    after_ten_days(vec![windows.clone().on(response_time::RESOURCE)]).await;
    after_ten_days(vec![windows]).await;
}

#[tokio::test(start_paused = true)]
async fn the_log_names_all_of_the_first_time_that_is_given_up() {
    let (log, _guard) = Log::start(Level::WARN);
    let rig = Rig::start(one_app(), "[accounting]\nmax_catch_up = \"1h\"\n").await;
    rig.pass(0).await;
    let start = rfc3339(rig.ledger().until);
    // Another step becomes too old while the poll waits for its first reply.
    rig.world.faults().set([Kind::Latency { millis: 8_000 }.into()]);
    rig.pass(2 * 3_600 + 18).await;
    let gave_up = log.lines_with("gave up time");
    let starts: Vec<bool> = gave_up.iter().map(|line| line.contains(&format!("start=\"{start}\""))).collect();
    assert_eq!(starts, [true; 2], "requests and runs: {gave_up:?}");
    assert!(rig.ledger().pending() > 0, "most of it will be requested again: {:?}", rig.ledger());
    assert!(gave_up.iter().all(|line| line.contains("pds_app_pending_seconds")), "{gave_up:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_date_counting_begins_after_a_minute_of_a_steady_clock_and_is_exact() {
    let rig = Rig::start(undated(), "").await;
    rig.pass(0).await;
    rig.pass(30).await;
    assert!(!rig.page().contains("pds_app_requests_total"), "nobody vouches for our clock yet");
    rig.pass(30).await;
    let first = rig.ledger().until;
    assert_eq!(first, rig.plan_in_force().watermark.settled_step(), "it begins at the present step");
    for _ in 0..10 {
        rig.pass(60).await;
        let ledger = rig.ledger();
        assert_eq!(ledger.total, rig.truth(first, ledger.until));
    }
    assert!(rig.page().contains("pds_app_requests_total"));
    assert!(!rig.page().contains("pds_api_clock_skew_seconds"), "a missing fact is a missing series");
}

#[tokio::test(start_paused = true)]
async fn without_a_date_a_clock_ahead_of_the_services_misses_the_newest_until_it_is_counted_again() {
    let rig = Rig::start(undated(), "").await;
    // The service has not even had the last part of each range.
    rig.clock.jump(SignedDuration::from_secs(100));
    rig.pass(0).await;
    rig.pass(60).await;
    let first = rig.ledger().until;
    rig.pass(60).await;
    let early = rig.ledger();
    rig.minutes(4 * 60).await;
    assert!(early.total < rig.truth(first, early.until), "it asked too early");
    let ledger = rig.ledger();
    assert!(ledger.late > 0 && ledger.overcounted == 0 && ledger.unaccounted == 0, "{ledger:?}");
}
