//! The order of the ranges of one poll, and who stops whom.

use pds_interface::response_time;
use pds_simulator::{Fault, Kind};

use crate::rig::FaultExt as _;

use super::{Rig, lengths, one_app};

const WINDOWS: &str = "[poll]\nwindows = [\"2m\", \"5m\", \"1h\"]\n[accounting]\naudit = false\n";

#[tokio::test(start_paused = true)]
async fn a_poll_starts_with_the_window_its_predecessor_did_not_reach() {
    let rig = Rig::start(one_app(), WINDOWS).await;
    assert_eq!(lengths(&rig.pass(0).await), [120, 300, 3600]);
    rig.world.faults().set([Fault::status(504).of_ranges_longer_than(200)]);
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(lengths(&rig.pass(60).await));
    }
    // Each poll ends with the range to be counted, a minute long. A window that fails ends the windows of its poll.
    let expected: [&[u64]; 5] = [&[120, 300, 60], &[3600, 60], &[120, 300, 60], &[3600, 60], &[120, 300, 60]];
    assert_eq!(asked, expected);
    rig.world.faults().clear();
    assert_eq!(lengths(&rig.pass(60).await), [3600, 120, 300, 60]);
    assert_eq!(lengths(&rig.pass(60).await), [120, 300, 3600, 60], "in order again");
}

#[tokio::test(start_paused = true)]
async fn windows_that_all_fail_take_turns() {
    let rig = Rig::start(one_app(), WINDOWS).await;
    rig.pass(0).await;
    rig.world.faults().set([Fault::status(500).of_ranges_longer_than(90)]);
    let mut first = Vec::new();
    for poll in 0..6 {
        let asked = lengths(&rig.pass(60).await);
        assert_eq!(asked.len(), 2, "a window and the counted range");
        assert_eq!(asked[1], 60, "poll {poll}: counted whatever the windows do");
        first.push(asked[0]);
    }
    assert_eq!(first, [120, 300, 3600, 120, 300, 3600]);
    let ledger = rig.ledger();
    assert_eq!(ledger.unaccounted, 0);
    assert_eq!(ledger.until, rig.plan_in_force().watermark.settled_step());
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_ends_a_poll_lets_the_next_one_begin_with_the_counted_range() {
    let rig = Rig::start(one_app(), WINDOWS).await;
    rig.pass(0).await;
    rig.pass(60).await;
    // The service throttles: nothing else is asked for in this poll.
    rig.world.faults().set([Fault::status(429).on(response_time::RESOURCE).times(1)]);
    assert_eq!(lengths(&rig.pass(60).await), [120]);
    let next = lengths(&rig.pass(600).await);
    assert_eq!(next, [660, 300, 3600, 120], "the counted range first, then the window that was not reached");
}

#[tokio::test(start_paused = true)]
async fn a_window_of_a_day_that_times_out_keeps_nothing_from_being_counted() {
    for fault in
        [Kind::Latency { millis: 60_000 }, Kind::Status { status: 504, retry_after: None }, Kind::Reset]
    {
        let rig = Rig::start(one_app(), "[poll]\nwindows = [\"45s\", \"24h\"]\n").await;
        rig.pass(0).await;
        let first = rig.ledger().until;
        rig.world.faults().set([Fault::from(fault.clone()).of_ranges_longer_than(3600)]);
        for _ in 0..30 {
            rig.pass(60).await;
            let ledger = rig.ledger();
            assert_eq!(ledger.total, rig.truth(first, ledger.until), "{fault:?}");
        }
        let (ledger, page) = (rig.ledger(), rig.page());
        assert!(rig.plan_in_force().watermark.settled_step() - ledger.until <= 60, "{fault:?}");
        assert_eq!(ledger.unaccounted, 0, "{fault:?}");
        assert!(page.contains("pds_app_requests_total{"), "{fault:?}: {page}");
        assert!(page.contains("pds_app_window_requests") && page.contains("window=\"45s\""), "{fault:?}");
        assert!(!page.contains("window=\"1day\""), "{fault:?}: {page}");
        // Rechecks and audits follow.
        let audits = || rig.context().telemetry.snapshot().audit.equal;
        let before = audits();
        rig.minutes(150).await;
        assert!(rig.ledger().rechecked_until > first && audits() > before, "{fault:?}");
    }
}
