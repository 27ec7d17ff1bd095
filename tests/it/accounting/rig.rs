//! An exporter that is polled by hand, and what the test itself knows of each ledger.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;
use pds_client::Turn;
use pds_config::{Config, Shard};
use pds_core::clock::Clock;
use pds_exporter::poll::{Context, Plan, execute};
use pds_interface::TimeRange;
use pds_ledger::{Key, Ledger};
use pds_simulator::{Fault, Quirks, Settings, World};

use crate::rig::{self, Configuration, FaultExt as _};

use super::Event;

/// The test's own record of one ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    pub(super) first: i64,
    until: i64,
    pub(super) total: u64,
    unaccounted: u64,
    accounted: u64,
}

/// No bucket holds less than a smaller one, or more than there were.
pub(super) fn assert_cumulative(key: &Key, ledger: &Ledger) {
    let counts: Vec<u64> = ledger.buckets().map(|(_, count)| count).chain([ledger.total]).collect();
    assert!(counts.is_sorted(), "{key}: {counts:?}");
}

/// An exporter that is polled by hand, beside the service that it asks.
pub(super) struct Rig {
    pub(super) world: World,
    /// Lines of `[accounting]`.
    accounting: &'static str,
    service_clock: Clock,
    clock: Clock,
    base_url: String,
    state: PathBuf,
    both: bool,
    pub(super) shard: Shard,
    windows: &'static str,
    pub(super) running: Option<(Context, Plan, pds_ledger::Committer)>,
    pub(super) expected: HashMap<Key, Expected>,
}

impl Rig {
    pub(super) async fn start(folder: &std::path::Path) -> Self {
        let settings = Settings { seed: 7, projects: 1, apps: 2, ..Settings::default() };
        Self::of(folder, settings, "max_catch_up = \"2h\"").await
    }

    pub(super) async fn of(folder: &std::path::Path, settings: Settings, accounting: &'static str) -> Self {
        // The settled time then ends on the hour: the first hour is whole.
        let start = "2026-03-01T12:00:27Z".parse().unwrap();
        let (service_clock, clock) = (Clock::standing_at(start), Clock::standing_at(start));
        let world = World::new(settings, service_clock.clone());
        let base_url = rig::serve(&world).await;
        let state = folder.join("state.log");
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
    pub(super) async fn restart(&mut self) {
        if let Some((context, plan, committer)) = self.running.take() {
            drop((context, plan));
            committer.finished().await;
        }
        let (context, committer) = rig::open(Some(&self.state), &self.clock).await;
        let plan = rig::plan(self.config(), &context, None);
        plan.tidy(&context.ledgers).await;
        self.running = Some((context, plan, committer));
    }

    fn reload(&mut self) {
        let (context, plan, committer) = self.running.take().unwrap();
        let plan = rig::plan(self.config(), &context, Some(&plan));
        self.running = Some((context, plan, committer));
    }

    /// Lets `seconds` pass by both clocks.
    fn wait(&self, seconds: i64) {
        self.service_clock.jump(SignedDuration::from_secs(seconds));
        self.clock.jump(SignedDuration::from_secs(seconds));
    }

    /// Lets `seconds` pass and polls everything once.
    pub(super) async fn pass(&self, seconds: i64) {
        self.wait(seconds);
        let (context, plan, _) = self.running.as_ref().unwrap();
        rig::poll(context, plan, |_| true).await;
    }

    pub(super) fn ledger(&self, key: &Key) -> Arc<Ledger> {
        self.running.as_ref().unwrap().0.ledgers.ledger(key).unwrap()
    }

    /// Lets `seconds` pass and polls everything once; notes what each ledger should hold now.
    pub(super) async fn poll(&mut self, seconds: i64) {
        self.wait(seconds);
        let (context, plan, _) = self.running.as_ref().unwrap();
        for target in &plan.targets {
            execute::poll(context, plan, target, Turn::new(&target.account)).await;
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
            known.total += rig::truth(&self.world, &target.key, added);
            known.accounted += added.seconds();
            known.until = ledger.until;
            known.unaccounted = ledger.unaccounted;
            let exact = self.world.settings().quirks == Quirks::default();
            assert!(!exact || ledger.total == known.total, "{}: counted up to {}", target.key, ledger.until);
        }
    }

    pub(super) async fn happen(&mut self, event: &Event) {
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
    pub(super) async fn settle(&mut self) {
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
            let counted = expected.accounted + ledger.unaccounted;
            assert_eq!(passed, counted, "{key}: a second is lost or counted twice");
            assert_cumulative(key, &ledger);
        }
    }
}
