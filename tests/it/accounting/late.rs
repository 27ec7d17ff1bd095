//! Hours counted again: data that comes late, and a service that counts the end of a range twice.

use pds_interface::response_time;
use pds_simulator::{Fault, Kind, Quirks, Settings};
use proptest::prelude::*;

use super::Event;
use super::rig::{Rig, assert_cumulative};
use super::service::{DONE, END, Exporter, IDEAL, Service, at, truth};
use crate::rig::FaultExt as _;

/// Events of a life in which no time is given up.
fn calm_events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        10 => (1i64..400).prop_map(Event::Poll),
        3 => (400i64..9_000).prop_map(Event::Poll),
        2 => Just(Event::Fault(Fault::status(500).kind)),
        1 => Just(Event::FaultOf(response_time::RESOURCE, Kind::Reset)),
        3 => Just(Event::Mended),
        2 => Just(Event::Restart),
        1 => Just(Event::Reload(true, "\"1m\"")),
    ];
    prop::collection::vec(event, 1..12)
}

/// A service whose data comes up to five minutes late, and that counts a range's end in the next one too where
/// `inclusive`: the exporter is told that, lives through `events` and goes on until every hour was counted again.
fn play_late(events: &[Event], inclusive: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let quirks =
            Quirks { late_share: 0.1, late_within: 300, inclusive_ends: inclusive, ..Quirks::default() };
        let settings = Settings { seed: 7, projects: 1, apps: 2, quirks, ..Settings::default() };
        let accounting = if inclusive { "range_end = \"inclusive\"" } else { "range_end = \"exclusive\"" };
        let mut rig = Rig::of(folder.path(), settings, accounting).await;
        rig.poll(1).await;
        for event in events {
            rig.happen(event).await;
        }
        rig.world.faults().clear();
        rig.world.end_late_data();
        for _ in 0..30 {
            rig.poll(600).await;
        }
        let (context, _, _) = rig.running.as_ref().unwrap();
        for (key, expected) in &rig.expected {
            let ledger = context.ledgers.ledger(key).unwrap();
            assert_eq!(ledger.total, expected.total, "{key}: {ledger:?}");
            assert_eq!((ledger.unaccounted, ledger.overcounted), (0, 0), "{key}");
            assert!(ledger.rechecked_until > ledger.until - 3 * 3600, "{key}: {ledger:?}");
            assert_cumulative(key, &ledger);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, max_shrink_iters: 10, ..ProptestConfig::default() })]

    #[test]
    fn late_data_is_complete_once_every_hour_was_rechecked(events in calm_events(), inclusive: bool) {
        play_late(&events, inclusive);
    }
}

#[tokio::test]
async fn a_service_that_counts_the_end_of_a_range_twice_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        seed: 7,
        projects: 1,
        apps: 2,
        quirks: Quirks { inclusive_ends: true, ..Quirks::default() },
        ..Settings::default()
    };
    let mut rig = Rig::of(folder.path(), settings, "range_end = \"exclusive\"\naudit = false").await;
    for _ in 0..60 {
        rig.poll(300).await;
    }
    let (context, _, _) = rig.running.as_ref().unwrap();
    let (key, expected) =
        rig.expected.iter().find(|(key, _)| key.resource == response_time::RESOURCE).unwrap();
    let ledger = context.ledgers.ledger(key).unwrap();
    let too_many = ledger.total - expected.total;
    assert!(too_many > 0 && ledger.late == 0, "{ledger:?}");
    // An hour in twelve ranges counts twelve seconds twice, and itself one of them.
    let hours = u64::try_from(ledger.rechecked_until - expected.first).unwrap() / 3600;
    assert!(hours >= 1 && ledger.overcounted > too_many * hours / 5 / 2, "{hours} hours: {ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn rechecks_that_cannot_be_counted_do_not_keep_others_from_theirs() {
    // Distributions are kept for two hours, totals for longer.
    let service = Service {
        knows: |now, second, _| second % 20 != 3 || now >= second + 600,
        distributed: |now, range| range.end >= now - 7200,
        ..IDEAL
    };
    let exporter = Exporter::polled(service, "audit = false\nrecheck_after = [\"15m\", \"3h\"]", DONE).await;
    assert_eq!(exporter.counts(), truth(END));
}

#[tokio::test(start_paused = true)]
async fn an_hour_with_more_than_a_counter_holds_is_requested_again_until_the_service_is_right() {
    let service = Service {
        knows: |now, second, _| second % 20 != 3 || now >= second + 600,
        total: |now, range, count| {
            if range.seconds() > 900 && now < at(13, 0) { 5_000_000_000_000_000 } else { count }
        },
        ..IDEAL
    };
    let exporter = Exporter::start(service, "audit = false\nrecheck_after = [\"15m\"]").await;
    exporter.poll_until(DONE, |_| ()).await;
    assert_eq!(exporter.counts(), truth(END));
}
