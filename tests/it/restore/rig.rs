//! Exporters polled by hand, beside the service that they ask and the Prometheus that scrapes them.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use pds_config::{Config, Shard};
use pds_core::clock::Clock;
use pds_exporter::app::daemon::{Daemon, Handle};
use pds_exporter::poll::plan::Target;
use pds_exporter::status;
use pds_interface::{Resource, TimeRange, response_time, run_execution_time};
use pds_ledger::{HOUR, Key};
use pds_simulator::{Settings, World};
use pds_telemetry::Telemetry;
use tempfile::TempDir;

use crate::process::{series, value};
use crate::rig::{self, Configuration};

use super::prometheus::Prometheus;

/// Whether the last attempt has left nothing hidden.
pub(super) const RESTORED: &str = "pds_exporter_state_last_restore_successful";

/// After so many seconds a sample is believed to be there with all earlier ones.
pub(super) const ARRIVES: i64 = 5;

/// The counters of an app, with their resources.
const COUNTERS: [(Resource, &str); 2] = [
    (response_time::RESOURCE, "pds_app_requests_total"),
    (run_execution_time::RESOURCE, "pds_app_runs_total"),
];

pub(super) struct Rig {
    pub(super) world: World,
    pub(super) clock: Clock,
    pub(super) prometheus: Prometheus,
    pub(super) folder: TempDir,
    base_url: String,
}

/// A process: it is killed by being dropped.
pub(super) struct Exporter {
    pub(super) handle: Handle,
    pub(super) instance: String,
    daemon: Daemon,
}

impl Rig {
    /// A service with one project of so many apps.
    pub(super) async fn start(apps: usize) -> Self {
        Self::of(Settings { seed: 7, projects: 1, apps, ..Settings::default() }).await
    }

    /// The same after an exporter of them, which has counted for a while and was scraped last just now.
    pub(super) async fn after_one(apps: usize) -> Self {
        let rig = Self::start(apps).await;
        let exporter = rig.started("a").await;
        rig.run(&exporter, 6).await;
        assert_eq!(exporter.shown(), apps);
        rig
    }

    pub(super) async fn of(settings: Settings) -> Self {
        crate::process::let_clients_be_built();
        // The settled time then ends on the hour.
        let clock = Clock::standing_at("2026-03-01T12:00:27Z".parse().unwrap());
        let world = World::new(settings, clock.clone());
        let base_url = rig::serve(&world).await;
        let prometheus = Prometheus::start(clock.clone()).await;
        Self { world, clock, prometheus, folder: tempfile::tempdir().unwrap(), base_url }
    }

    pub(super) fn project(&self) -> Arc<str> {
        self.world.projects()[0].0.clone()
    }

    pub(super) fn apps(&self) -> Vec<Arc<str>> {
        self.world.projects()[0].1.clone()
    }

    /// The configuration of the first `apps` apps, with `more` lines in `[state]`.
    pub(super) fn config(&self, apps: usize, more: &str) -> Config {
        let state = format!(
            "[state]\nprometheus_url = \"http://{}\"\nlookback = \"10d\"\n{more}",
            self.prometheus.address
        );
        let polls = "[poll]\nsettle = \"20s\"\n[accounting]\nmax_catch_up = \"10d\"";
        Configuration::new(&self.world, &self.base_url)
            .api("max_retries = 0\nmax_requests_per_second = 0\n")
            .tables(&format!("{polls}\n{state}"))
            .first_apps(apps)
            .load()
    }

    /// A new process.
    pub(super) async fn exporter(&self, config: Config, instance: &str) -> Exporter {
        // No two processes load their configuration at the same time.
        self.pass(1).await;
        let telemetry = Telemetry::new(false).unwrap();
        let daemon = Daemon::build(config, self.clock.clone(), telemetry).await.unwrap();
        Exporter { handle: daemon.handle.clone(), instance: instance.to_owned(), daemon }
    }

    /// An exporter of all apps, polled, scraped and asked for what it misses once.
    pub(super) async fn started(&self, instance: &str) -> Exporter {
        self.started_with(self.config(self.apps().len(), ""), instance).await
    }

    pub(super) async fn started_with(&self, config: Config, instance: &str) -> Exporter {
        let exporter = self.exporter(config, instance).await;
        exporter.poll().await;
        self.scrape(&exporter);
        self.pass(ARRIVES).await;
        exporter.handle.restorer.restore().await;
        exporter
    }

    /// Time passes, by all clocks.
    pub(super) async fn pass(&self, seconds: i64) {
        self.suspend(seconds);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds.unsigned_abs())).await;
        tokio::time::resume();
    }

    /// Time passes while the machine is suspended: the monotonic clock stands still.
    pub(super) fn suspend(&self, seconds: i64) {
        self.clock.jump(SignedDuration::from_secs(seconds));
    }

    pub(super) fn scrape(&self, exporter: &Exporter) {
        self.prometheus.scrape(&exporter.page(), &[("job", "pds"), ("instance", &exporter.instance)]);
    }

    /// Some minutes of polls and scrapes.
    pub(super) async fn run(&self, exporter: &Exporter, minutes: usize) {
        self.run_all(std::slice::from_ref(exporter), minutes, 60).await;
    }

    /// So many polls and scrapes of several, with so many seconds between.
    pub(super) async fn run_all(&self, exporters: &[Exporter], polls: usize, seconds: i64) {
        for _ in 0..polls {
            self.pass(seconds).await;
            for exporter in exporters {
                exporter.poll().await;
                self.scrape(exporter);
                exporter.handle.restorer.restore().await;
            }
        }
    }

    /// How many there were.
    pub(super) fn truth(&self, app: &str, resource: Resource, start: i64, end: i64) -> u64 {
        let truth = self.world.truth(&self.project(), app, TimeRange { start, end }).unwrap();
        if resource == response_time::RESOURCE { truth.requests } else { truth.runs }
    }

    /// The scraped increase equals the truth from the first scraped cursor to the last.
    pub(super) fn assert_exact(&self) {
        self.assert_exact_less_late(&[]);
    }

    /// The same, less at most the late data of the `unchecked` ranges.
    pub(super) fn assert_exact_less_late(&self, unchecked: &[Unchecked]) {
        let share = self.world.settings().quirks.late_share;
        for app in self.apps() {
            for (resource, name) in COUNTERS {
                let cursors = self.prometheus.of("pds_app_accounted_until_timestamp_seconds").into_iter();
                let of_app = cursors
                    .filter(|(labels, _)| labels["app"] == *app && labels["resource"] == resource.as_str());
                let cursors: Vec<i64> =
                    of_app.flat_map(|(_, samples)| samples).map(|(_, until)| until as i64).collect();
                let (first, last) = (*cursors.iter().min().unwrap(), *cursors.iter().max().unwrap());
                let truth = self.truth(&app, resource, first, last) as f64;
                let of_counter =
                    unchecked.iter().filter(|(key, _)| *key.owner.app == *app && key.resource == resource);
                let all = of_counter.map(|(_, of)| self.truth(&app, resource, of.start, of.end)).sum::<u64>();
                let late = rig::most_late(share * all as f64);
                let lost = truth - self.prometheus.increase(name, &app);
                assert!((0.0..=late).contains(&lost), "{name} of {app}, {first} to {last}: {lost} lost");
            }
        }
    }
}

/// A counter, and a range of which late data may not be counted.
pub(super) type Unchecked = (Key, TimeRange);

impl Exporter {
    /// The ranges whose late data is lost if it is killed now: they were not counted again, or of the last so many seconds
    /// that were, and what was found is still being added.
    pub(super) async fn unchecked(&self, adding: i64) -> Vec<Unchecked> {
        let plan = self.handle.plan().await;
        let counted = plan.targets.iter().filter(|target| target.counter.is_some());
        let unchecked = |target: &Arc<Target>| {
            let ledger = self.handle.context.ledgers.ledger(&target.key)?;
            let seconds = i64::try_from(ledger.accounted + ledger.unaccounted).unwrap();
            let start = (ledger.until - seconds).max(ledger.rechecked_until - adding);
            Some((target.key.clone(), TimeRange { start, end: (ledger.until / HOUR + 1) * HOUR }))
        };
        counted.filter_map(unchecked).collect()
    }

    /// Has it poll and read back by itself, for as long as the test runs.
    pub(super) fn run(self) -> Handle {
        tokio::spawn(self.daemon.run(std::future::pending()));
        self.handle
    }

    /// Polls everything once.
    pub(super) async fn poll(&self) {
        let plan = self.handle.plan().await;
        rig::poll(&self.handle.context, &plan, |_| true).await;
    }

    pub(super) fn page(&self) -> String {
        rig::whole_page(&self.handle.context)
    }

    pub(super) fn metric(&self, series: &str) -> Option<f64> {
        value(&self.page(), series)
    }

    /// How many counters of requests are on the page.
    pub(super) fn shown(&self) -> usize {
        series(&self.page()).filter(|(name, _)| name.starts_with("pds_app_requests_total{")).count()
    }

    /// The status as of now, with the texts of its reasons.
    pub(super) async fn status(&self) -> (Arc<status::Status>, Vec<String>) {
        let plan = self.handle.plan().await;
        let status = status::Source::new(self.handle.context.clone(), plan, Vec::new()).status();
        let reasons = status.summary.reasons.iter();
        let reasons = reasons.map(|reason| format!("{}: {}", reason.code, reason.text)).collect();
        (status, reasons)
    }

    /// Why counters are hidden.
    pub(super) async fn obstacle(&self) -> String {
        let restoring = self.status().await.0.exporter.restoring.clone().unwrap();
        restoring.obstacle.as_deref().unwrap_or("none").to_owned()
    }
}

/// The configuration as one of several shards.
pub(super) fn sharded(config: Config, index: u32, count: u32) -> Config {
    config.shard(Shard { index, count: count.try_into().unwrap() })
}
