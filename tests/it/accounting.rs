//! Whatever happens to the service, to the exporter and to the clocks: what is counted is what there was.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use pds_exporter::accounting::{self, Ledger, LedgerStore};
use pds_exporter::clock::Clock;
use pds_exporter::config::{Config, Shard};
use pds_exporter::interface::{Resource, TimeRange, response_time, run_execution_time};
use pds_exporter::poll::slots::PollSlots;
use pds_exporter::poll::transition_log::TransitionLog;
use pds_exporter::poll::{Context, Plan, execute};
use pds_exporter::simulator::{Fault, Kind, Quirks, Settings, World};
use pds_exporter::store::{Key, Owner};
use pds_exporter::telemetry::Telemetry;
use proptest::prelude::*;

use crate::rig::{self, Configuration};

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

fn status(status: u16) -> Kind {
    Kind::Status { status, retry_after: None }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let fault = prop_oneof![
        Just(status(500)),
        Just(status(404)),
        Just(Kind::Reset),
        Just(Kind::CutBody),
        Just(Kind::MalformedJson),
        Just(Kind::Nulls),
        Just(Kind::EnvelopeStatus { status: "error".to_owned() }),
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

/// What the test itself knows of one ledger.
#[derive(Clone, Debug, Default)]
struct Expected {
    first: i64,
    until: i64,
    total: u64,
    unaccounted: u64,
    accounted: u64,
}

/// An exporter that is polled by hand, beside the service that it asks.
struct Rig {
    world: World,
    /// Lines of `[accounting]`.
    accounting: &'static str,
    service_clock: Clock,
    clock: Clock,
    base_url: String,
    state: PathBuf,
    both: bool,
    shard: Shard,
    windows: &'static str,
    running: Option<(Context, Plan, accounting::ledger_store::Committer)>,
    expected: HashMap<Key, Expected>,
}

impl Rig {
    async fn start(folder: &std::path::Path) -> Self {
        let settings = Settings { seed: 7, projects: 1, apps: 2, ..Settings::default() };
        Self::of(folder, settings, "max_catch_up = \"2h\"").await
    }

    async fn of(folder: &std::path::Path, settings: Settings, accounting: &'static str) -> Self {
        // What has settled then ends on the hour: the first hour is whole.
        let start = "2026-03-01T12:00:27Z".parse().unwrap();
        let (service_clock, clock) = (Clock::standing_at(start), Clock::standing_at(start));
        let world = World::new(settings, service_clock.clone());
        let base_url = rig::serve(&world).await;
        let state = folder.join("state.redb");
        let mut rig = Self {
            world,
            accounting,
            service_clock,
            clock,
            base_url,
            state,
            both: true,
            shard: Shard::WHOLE,
            windows: "\"5m\"",
            running: None,
            expected: HashMap::new(),
        };
        rig.restart().await;
        rig
    }

    fn config(&self) -> Config {
        let tables = format!(
            "[poll]\nwindows = [{}]\nsettle = \"20s\"\n[accounting]\n{}",
            self.windows, self.accounting
        );
        let written = Configuration::new(&self.world, &self.base_url)
            .api("max_retries = 0\nmax_requests_per_second = 0\n")
            .tables(&tables)
            .first_apps(if self.both { 2 } else { 1 });
        written.load().shard(self.shard)
    }

    /// A new process on the old state file.
    async fn restart(&mut self) {
        if let Some((context, plan, committer)) = self.running.take() {
            drop((context, plan));
            committer.finished().await;
        }
        let telemetry = Telemetry::new(false).unwrap();
        let (ledgers, committer) =
            LedgerStore::open(Some(&self.state), telemetry.clone(), Duration::ZERO).await.unwrap();
        let context = rig::context(ledgers, telemetry, &self.clock);
        let plan = rig::plan(self.config(), &context, None);
        plan.tidy(&context.ledgers).await;
        self.running = Some((context, plan, committer));
    }

    fn reload(&mut self) {
        let (context, plan, committer) = self.running.take().unwrap();
        let plan = rig::plan(self.config(), &context, Some(&plan));
        self.running = Some((context, plan, committer));
    }

    /// Lets `seconds` pass and polls everything once.
    async fn pass(&self, seconds: i64) {
        self.service_clock.jump(SignedDuration::from_secs(seconds));
        self.clock.jump(SignedDuration::from_secs(seconds));
        let (context, plan, _) = self.running.as_ref().unwrap();
        for target in &plan.targets {
            execute::poll(context, plan, target, &TransitionLog::default(), PollSlots::default().enter())
                .await;
        }
    }

    fn ledger(&self, key: &Key) -> Arc<Ledger> {
        self.running.as_ref().unwrap().0.ledgers.ledger(key).unwrap()
    }

    /// Lets `seconds` pass and polls everything once; notes what each ledger should hold now.
    async fn poll(&mut self, seconds: i64) {
        self.service_clock.jump(SignedDuration::from_secs(seconds));
        self.clock.jump(SignedDuration::from_secs(seconds));
        let (context, plan, _) = self.running.as_ref().unwrap();
        for target in &plan.targets {
            execute::poll(context, plan, target, &TransitionLog::default(), PollSlots::default().enter())
                .await;
            let Some(ledger) = context.ledgers.ledger(&target.key).filter(|_| target.counter.is_some())
            else {
                continue;
            };
            let known = self.expected.entry(target.key.clone()).or_insert_with(|| Expected {
                first: ledger.until,
                until: ledger.until,
                ..Expected::default()
            });
            assert!(ledger.until >= known.until, "{}: the cursor went back", target.key);
            let given_up = i64::try_from(ledger.unaccounted - known.unaccounted).unwrap();
            let added = TimeRange { start: known.until + given_up, end: ledger.until };
            assert!(added.end >= added.start, "{}: given up what was accounted", target.key);
            assert!(ledger.until <= self.service_clock.unix_seconds(), "{}: counted the future", target.key);
            let truth = self.world.truth(&target.key.owner.project, &target.key.owner.app, added).unwrap();
            known.total +=
                if target.key.resource == response_time::RESOURCE { truth.requests } else { truth.runs };
            known.accounted += added.seconds();
            known.until = ledger.until;
            known.unaccounted = ledger.unaccounted;
            let exact = self.world.settings().quirks == Quirks::default();
            assert!(!exact || ledger.total == known.total, "{}: counted up to {}", target.key, ledger.until);
        }
    }

    async fn happen(&mut self, event: &Event) {
        match event {
            Event::Poll(seconds) => self.poll(*seconds).await,
            Event::Fault(kind) => self.world.faults().set([Fault::from(kind.clone())]),
            Event::FaultOf(resource, kind) => {
                self.world.faults().set([Fault::from(kind.clone()).on(*resource)]);
            }
            Event::Mended => self.world.faults().clear(),
            Event::Restart => self.restart().await,
            Event::ClockSet(seconds) => self.clock.jump(SignedDuration::from_secs(*seconds)),
            Event::ClockRight => {
                self.clock.jump(self.service_clock.now().duration_since(self.clock.now()));
            }
            Event::Reload(both, windows) => {
                (self.both, self.windows) = (*both, windows);
                self.reload();
            }
        }
    }

    /// Everything is well again: after a few polls each ledger has caught up, and holds exactly what there was.
    async fn settle(&mut self) {
        self.world.faults().clear();
        self.happen(&Event::ClockRight).await;
        self.happen(&Event::Reload(true, "\"5m\"")).await;
        for _ in 0..6 {
            self.poll(60).await;
        }
        let (context, plan, _) = self.running.as_ref().unwrap();
        for (key, expected) in &self.expected {
            let ledger = context.ledgers.ledger(key).unwrap();
            assert!(ledger.until > plan.watermark.settled_step() - 120, "{key}: has not caught up");
            let passed = u64::try_from(ledger.until - expected.first).unwrap();
            assert_eq!(
                passed,
                expected.accounted + ledger.unaccounted,
                "{key}: a second is lost or counted twice"
            );
            let buckets: Vec<u64> = ledger.buckets().map(|(_, count)| count).collect();
            assert!(
                buckets.is_sorted() && buckets.last().is_none_or(|last| *last <= ledger.total),
                "{key}: {buckets:?}"
            );
        }
    }
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
    fn what_is_counted_is_what_there_was(events in events()) {
        play(&events);
    }
}

#[test]
fn an_app_that_comes_back_to_a_shard_resumes_at_the_present_step_and_catches_up_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let mut rig = Rig::start(folder.path()).await;
        for _ in 0..4 {
            rig.pass(60).await;
        }
        let (project, apps) = rig.world.projects().remove(0);
        // The first count of shards that parts the two apps.
        let counts = (2..50).filter_map(std::num::NonZeroU32::new);
        let mut shards = counts.map(|count| Shard::new(0, count).unwrap());
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
        assert_eq!(
            (back.set_aside, back.total),
            (false, before.total),
            "another shard counted the time between"
        );
        assert_eq!(back.unaccounted, before.unaccounted);
        rig.pass(60).await;
        let on = rig.ledger(&key);
        let range = TimeRange { start: back.until, end: on.until };
        let truth = rig.world.truth(&project, moves, range).unwrap().requests;
        assert!(range.end > range.start);
        assert_eq!(on.total - back.total, truth);
    });
}

/// Events of a life in which no time is given up.
fn calm_events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        10 => (1i64..400).prop_map(Event::Poll),
        3 => (400i64..9_000).prop_map(Event::Poll),
        2 => Just(Event::Fault(status(500))),
        1 => Just(Event::FaultOf(response_time::RESOURCE, Kind::Reset)),
        3 => Just(Event::Mended),
        2 => Just(Event::Restart),
        1 => Just(Event::Reload(true, "\"1m\"")),
    ];
    prop::collection::vec(event, 1..12)
}

/// A service whose data comes up to five minutes late, and that counts a range's end in the next one too where
/// `inclusive`: the exporter is told that, lives through `events` and goes on until every hour was counted again.
/// Returns how many came late.
fn play_late(events: &[Event], inclusive: bool) -> u64 {
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
        let mut late = 0;
        for (key, expected) in &rig.expected {
            let ledger = context.ledgers.ledger(key).unwrap();
            assert_eq!(ledger.total, expected.total, "{key}: {ledger:?}");
            assert_eq!((ledger.unaccounted, ledger.overcounted), (0, 0), "{key}");
            assert!(ledger.rechecked_until > ledger.until - 3 * 3600, "{key}: {ledger:?}");
            let buckets: Vec<u64> = ledger.buckets().map(|(_, count)| count).collect();
            assert!(buckets.is_sorted() && buckets.last().is_none_or(|last| *last <= ledger.total), "{key}");
            late += ledger.late;
        }
        late
    })
}

#[test]
fn what_comes_late_is_told_apart() {
    let events = vec![Event::Poll(600); 12];
    assert!(play_late(&events, false) > 0, "a tenth of the last minutes of each range comes late");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, max_shrink_iters: 10, ..ProptestConfig::default() })]

    #[test]
    fn what_comes_late_is_counted_once_every_hour_was_counted_again(events in calm_events(), inclusive: bool) {
        let _ = play_late(&events, inclusive);
    }
}

#[test]
fn a_service_that_counts_the_end_of_a_range_twice_is_found_out() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            seed: 7,
            projects: 1,
            apps: 2,
            quirks: Quirks { inclusive_ends: true, ..Quirks::default() },
            ..Settings::default()
        };
        let mut rig = Rig::of(folder.path(), settings, "range_end = \"exclusive\"").await;
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
    });
}

#[test]
fn a_gap_longer_than_max_catch_up_is_given_up_and_counted_as_that() {
    let outage =
        [Event::Poll(120), Event::Fault(status(500)), Event::Poll(60), Event::Poll(30_000), Event::Mended];
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
