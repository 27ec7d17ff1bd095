//! Faults of the service, the exporter and the clocks: the counters still equal the truth.

mod bounds;
mod late;
mod rig;
mod service;
mod services;

use std::sync::Arc;

use pds_config::Shard;
use pds_interface::{Resource, TimeRange, response_time, run_execution_time};
use pds_ledger::{Key, Owner};
use pds_simulator::{Fault, Kind};
use proptest::prelude::*;

use crate::rig::FaultExt as _;
use rig::Rig;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, and everything is polled once.
    Poll(i64),
    /// The service answers so from now on.
    Fault(Kind),
    /// Only of this resource.
    FaultOf(Resource, Kind),
    /// The service answers properly again.
    Mended,
    /// The exporter is started anew from its state file.
    Restart,
    /// Our clock is set by so many seconds; the service's is not.
    ClockSet(i64),
    /// Our clock is right again.
    ClockRight,
    /// The configuration is loaded anew, with the second app or without it, and with these windows.
    Reload(bool, &'static str),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let fault = prop_oneof![
        Just(Fault::status(500).kind),
        Just(Fault::status(404).kind),
        Just(Kind::Reset),
        Just(Kind::CutBody),
        Just(Kind::MalformedJson),
        Just(Kind::Nulls),
        Just(Fault::value("status", "\"error\"").kind),
    ];
    let resource = prop_oneof![Just(response_time::RESOURCE), Just(run_execution_time::RESOURCE)];
    let event = prop_oneof![
        10 => (1i64..200).prop_map(Event::Poll),
        2 => (200i64..20_000).prop_map(Event::Poll),
        2 => fault.clone().prop_map(Event::Fault),
        2 => (resource, fault).prop_map(|(resource, fault)| Event::FaultOf(resource, fault)),
        3 => Just(Event::Mended),
        2 => Just(Event::Restart),
        1 => (-9_000i64..9_000).prop_map(Event::ClockSet),
        1 => (100_000i64..900_000).prop_map(Event::ClockSet),
        2 => Just(Event::ClockRight),
        1 => (any::<bool>(), prop_oneof![Just("\"5m\""), Just("\"1m\""), Just("\"1m\", \"1h\"")])
            .prop_map(|(both, windows)| Event::Reload(both, windows)),
    ];
    prop::collection::vec(event, 1..60)
}

fn play(events: &[Event]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let mut rig = Rig::start(folder.path()).await;
        rig.poll(1).await;
        for event in events {
            rig.happen(event).await;
        }
        rig.settle().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_counts_are_the_truth(events in events()) {
        play(&events);
    }
}

#[tokio::test]
async fn an_app_that_returns_to_a_shard_resumes_at_the_current_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(folder.path()).await;
    for _ in 0..4 {
        rig.pass(60).await;
    }
    let (project, apps) = rig.world.projects().remove(0);
    // The first count of shards that parts the two apps.
    let counts = (2..50).filter_map(std::num::NonZeroU32::new);
    let mut shards = counts.map(|count| Shard { index: 0, count });
    let owned = |shard: &Shard| apps.iter().filter(|app| shard.owns_app(&project, app)).count();
    rig.shard = shards.find(|shard| owned(shard) == 1).unwrap();
    let moves = apps.iter().find(|app| !rig.shard.owns_app(&project, app)).unwrap();
    let owner = Owner::new(Arc::clone(&project), Arc::clone(moves));
    let key = Key { owner, resource: response_time::RESOURCE };
    let before = rig.ledger(&key);
    assert!(before.total > 0 && !before.set_aside);

    rig.restart().await;
    rig.pass(600).await;
    let aside = rig.ledger(&key);
    assert_eq!((aside.set_aside, aside.total, aside.until), (true, before.total, before.until));

    rig.shard = Shard::WHOLE;
    rig.restart().await;
    rig.pass(60).await;
    let back = rig.ledger(&key);
    assert_eq!((back.set_aside, back.total), (false, before.total), "another shard counted the time between");
    assert_eq!(back.unaccounted, before.unaccounted);
    rig.pass(60).await;
    let on = rig.ledger(&key);
    let range = TimeRange { start: back.until, end: on.until };
    let truth = rig.world.truth(&project, moves, range).unwrap().requests;
    assert!(range.end > range.start);
    assert_eq!(on.total - back.total, truth);
}

#[test]
fn a_gap_longer_than_max_catch_up_is_given_up_and_counted_as_that() {
    let outage = [
        Event::Poll(120),
        Event::Fault(Fault::status(500).kind),
        Event::Poll(60),
        Event::Poll(30_000),
        Event::Mended,
    ];
    play(&outage);
}

#[test]
fn a_clock_far_ahead_loses_nothing_even_over_a_restart() {
    play(&[
        Event::Poll(120),
        Event::ClockSet(500_000),
        Event::Restart,
        Event::Poll(60),
        Event::Poll(60),
        Event::ClockRight,
    ]);
}
