//! Exact without a disk: exporters that are killed at any moment, each time with nothing left, and shards that come and
//! go. The `increase` of all of them together is the truth.

mod engine;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_interface::TimeRange;
use pds_simulator::{Fault, Quirks, Settings, World};
use serde_json::Value;

use crate::process::{Exporter, edit};
use crate::rig::{self, FaultExt as _};

use engine::{Engine, Kind, SELECTOR};

/// How often an exporter is killed before a pair of servers.
const KILLS: u64 = 24;
/// The same before one server.
const FEW_KILLS: u64 = 6;
/// The longest life of one that is killed: it may know its cursor by then, and stand at 0.
const MAX_LIFE: Duration = Duration::from_secs(12);
/// After that, one that is let live may have left 0.
const LONG_LIFE: Duration = Duration::from_secs(66);
/// The longest wait until all counters have left 0 and caught up.
const MAX_CATCH_UP: Duration = Duration::from_secs(300);
/// Addresses that exporters run at, one after the other: an exporter is a new instance, or one of long ago.
const ADDRESSES: u8 = 12;
/// All that is scraped in a test, as a range.
const RUN: &str = "[40m]";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_count_is_lost_with_prometheus_2() {
    Cast::gather(Kind::Prometheus("prometheus")).await.play(FEW_KILLS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_count_is_lost_with_prometheus_3() {
    Cast::gather(Kind::Prometheus("prometheus-3")).await.play(FEW_KILLS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_count_is_lost_with_victoria_metrics() {
    Cast::gather(Kind::VictoriaMetrics).await.play(FEW_KILLS).await;
}

/// Some requests are known only after their range was counted, and lost; some apps have few or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_count_is_lost_but_a_scrape_gap_in_either_of_two_replicas_behind_one_store() {
    let quirks = Quirks { late_share: 0.03, late_within: 20, ..Quirks::default() };
    let settings = Settings { projects: 2, apps: 8, quirks, ..Settings::default() };
    Cast::gather_with(Kind::Pair, settings).await.play(KILLS).await;
}

/// The service, the engine, and what exporters are started with.
struct Cast {
    world: World,
    engine: Engine,
    config: PathBuf,
    addresses: Vec<String>,
    /// The most seconds between the last cursor that a server has scraped and the one that the next process begins at.
    max_gap: i64,
    started: usize,
    _folder: tempfile::TempDir,
}

/// One of the two counters of an app.
type Counter = (&'static str, String, String);

impl Cast {
    async fn gather(kind: Kind) -> Self {
        Self::gather_with(kind, Settings { projects: 2, apps: 6, ..Settings::default() }).await
    }

    async fn gather_with(kind: Kind, settings: Settings) -> Self {
        let (world, folder, config) = rig::service(settings).await;
        let network = network();
        // Not the usual port: beside this, another test asks whether it is free.
        let addresses: Vec<_> = (1..=ADDRESSES).map(|host| format!("{network}.{host}:10190")).collect();
        let engine = Engine::start(kind, &format!("{network}.100"), &addresses).await;
        let config = PathBuf::from(config);
        let url = format!("prometheus_url = \"{}\"", engine.url);
        edit(&config, |text| format!("{text}[state]\n{url}\nprometheus_selector = '{SELECTOR}'\n"));
        // One server of a pair scrapes every two seconds, and may not have seen the last step.
        let max_gap = if matches!(kind, Kind::Pair) { 4 } else { 0 };
        Self { world, engine, config, addresses, max_gap, started: 0, _folder: folder }
    }

    /// An exporter without a disk at the next address.
    fn start(&mut self, arguments: &[&str]) -> Exporter {
        let address = &self.addresses[self.started % self.addresses.len()];
        self.started += 1;
        let mut command = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
        command
            .arg("--config.file")
            .arg(&self.config)
            .args(["--web.listen-address", address])
            .args(arguments);
        Exporter::of(command)
    }

    /// The shards of `count`.
    fn shards(&mut self, count: usize) -> Vec<Exporter> {
        let count_of = count.to_string();
        let start =
            |index: usize| self.start(&["--shard.count", &count_of, "--shard.index", &index.to_string()]);
        (0..count).map(start).collect()
    }

    /// Kills, shards, and the sum of it all.
    async fn play(mut self, kills: u64) {
        let exporter = self.start(&[]);
        self.counted_up_to_now(&[exporter]).await;
        self.world.faults().set([
            Fault::status(500).with_probability(0.1),
            Fault::from(pds_simulator::Kind::Reset).with_probability(0.05),
        ]);
        // Moments, the same in every run but for `SEED`.
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(16);
        let mut random = fastrand::Rng::with_seed(seed);
        for kill in 0..kills {
            let exporter = self.start(&[]);
            // The moment is what is tested.
            let least = if kill % 12 == 5 { LONG_LIFE } else { Duration::ZERO };
            tokio::time::sleep(least + MAX_LIFE.mul_f64(random.f64())).await;
            exporter.kill();
        }
        self.world.faults().clear();
        for count in [3, 2] {
            let shards = self.shards(count);
            self.counted_up_to_now(&shards).await;
            for shard in shards {
                tokio::time::sleep((MAX_LIFE / 4).mul_f64(random.f64())).await;
                shard.kill();
            }
        }
        let exporter = self.start(&[]);
        self.counted_up_to_now(&[exporter]).await;
        self.assert_exact().await;
    }

    /// All counters of the world.
    fn counters(&self) -> Vec<Counter> {
        let mut counters = Vec::new();
        for (project, apps) in self.world.projects() {
            for app in apps {
                for resource in ["response_time", "run_execution_time"] {
                    counters.push((resource, project.to_string(), app.to_string()));
                }
            }
        }
        counters
    }

    /// Waits until the engine has seen every counter as of a time after now; takes and drops no exporter.
    async fn counted_up_to_now(&self, exporters: &[Exporter]) {
        let now = Clock::system().unix_seconds() as f64;
        let all = self.counters().len();
        let caught_up = |counter: &str, resource: &str| {
            let cursor = format!("pds_app_accounted_until_timestamp_seconds{{resource=\"{resource}\"}}");
            format!("max by (project, app, resource) ({cursor} and ignoring (resource) {counter}) > {now}")
        };
        let (requests, runs) = (
            caught_up("pds_app_requests_total", "response_time"),
            caught_up("pds_app_runs_total", "run_execution_time"),
        );
        let expression = format!("({requests}) or ({runs})");
        let logs = || exporters.iter().map(Exporter::log).collect::<Vec<_>>().join("\n");
        let began = std::time::Instant::now();
        loop {
            let seen = self.engine.query(&expression).await.len();
            if seen == all {
                return;
            }
            assert!(
                began.elapsed() < MAX_CATCH_UP,
                "{seen} of {all} counters are known\n{}\n{}",
                logs(),
                self.engine.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asserts that the increase on each server is the truth, less the requests between its last scrape of one process
    /// and the cursor at which the next one began, and less late data: no hour is counted again here.
    async fn assert_exact(&self) {
        let mut counted = 0.0;
        for (resource, name) in [("response_time", "requests_total"), ("run_execution_time", "runs_total")] {
            let scraped = self.scraped(resource, &format!("pds_app_{name}")).await;
            for ((app, server), samples) in &scraped {
                let truth = |start: i64, end: i64| {
                    let range = TimeRange { start: start.min(end), end: start.max(end) };
                    let truth = self.world.truth(&app.0, &app.1, range).unwrap();
                    let truth = if name == "requests_total" { truth.requests } else { truth.runs };
                    truth as f64 * if start <= end { 1.0 } else { -1.0 }
                };
                // The last cursor that any server had scraped of the processes before.
                let last_before = |sample: &Counted| {
                    let of_app = scraped.iter().filter(|((other, _), _)| other == app);
                    let before = of_app.flat_map(|(_, samples)| samples).filter(|of| of.time < sample.time);
                    before.filter(|of| of.instance != sample.instance).map(|of| of.until).max()
                };
                let (mut increase, mut missed) = (0.0, 0.0);
                for pair in samples.windows(2) {
                    let (before, after) = (&pair[0], &pair[1]);
                    if before.instance == after.instance && before.total <= after.total {
                        increase += after.total - before.total;
                        continue;
                    }
                    assert_eq!(after.total, 0.0, "{name} of {app:?} begins at 0: {before:?} {after:?}");
                    let gap = after.until - before.until;
                    // A server may miss the one scrape that shows what was counted while the counters stood at 0.
                    let missed_a_scrape = self.max_gap > 0 && before.total == 0.0;
                    let other_has_seen = gap > 0 && last_before(after) >= Some(after.until);
                    assert!(
                        gap.abs() <= self.max_gap || missed_a_scrape || other_has_seen,
                        "{name} of {app:?} in {server}: {before:?} {after:?}"
                    );
                    missed += truth(before.until, after.until);
                }
                let all = truth(samples[0].until, samples.last().unwrap().until);
                let late = all - increase - missed;
                let most = rig::most_late(self.world.settings().quirks.late_share * all);
                assert!(
                    (0.0..=most).contains(&late),
                    "{name} of {app:?} in {server}: {late} of {all}, {missed} missed"
                );
                counted += increase;
            }
        }
        assert!(counted > 0.0, "nothing happened at all");
    }

    /// All samples of a counter by app and server, whichever exporters they are of, in the order of time.
    async fn scraped(&self, resource: &str, counter: &str) -> BTreeMap<(App, String), Vec<Counted>> {
        let cursor =
            format!("pds_app_accounted_until_timestamp_seconds{{{SELECTOR},resource=\"{resource}\"}}");
        let label = |row: &Value, name: &str| row["metric"][name].as_str().unwrap_or_default().to_owned();
        // Scrapes go on. The cursors are asked for last, so that each total has its own.
        let totals = self.engine.query(&format!("{counter}{{{SELECTOR}}}{RUN}")).await;
        let place = |row: &Value| ["instance", "replica", "app"].map(|name| label(row, name));
        let mut untils: HashMap<([String; 3], u64), i64> = HashMap::new();
        for row in self.engine.query(&format!("{cursor}{RUN}")).await {
            for (time, until) in points_of(&row) {
                untils.insert((place(&row), time.to_bits()), until as i64);
            }
        }
        let mut samples: BTreeMap<(App, String), Vec<Counted>> = BTreeMap::new();
        for row in totals {
            let app = (label(&row, "project"), label(&row, "app"));
            let of_app = samples.entry((app, label(&row, "replica"))).or_default();
            // A cursor may arrive after its total.
            of_app.extend(points_of(&row).filter_map(|(time, total)| {
                let until = *untils.get(&(place(&row), time.to_bits()))?;
                Some(Counted { time, total, until, instance: label(&row, "instance") })
            }));
        }
        let servers = if self.max_gap > 0 { 2 } else { 1 };
        assert_eq!(samples.len(), self.counters().len() / 2 * servers, "{counter}");
        samples.values_mut().for_each(|samples| samples.sort_by(|a, b| a.partial_cmp(b).unwrap()));
        samples
    }
}

/// Project and app.
type App = (String, String);

/// A time in seconds and a value.
type Point = (f64, f64);

/// A sample of a counter, with the time up to which it has counted.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
struct Counted {
    time: f64,
    total: f64,
    until: i64,
    instance: String,
}

fn points_of(row: &Value) -> impl Iterator<Item = Point> {
    let values = row["values"].as_array().unwrap().iter();
    let points =
        values.map(|point| (point[0].as_f64().unwrap(), point[1].as_str().unwrap().parse::<f64>().unwrap()));
    // VictoriaMetrics shows where a series ended.
    points.filter(|(_, value)| !value.is_nan())
}

/// Three bytes of loopback addresses that no other test at this time uses.
fn network() -> String {
    let id = std::process::id() % (200 * 250);
    format!("127.{}.{}", 50 + id / 250, 1 + id % 250)
}
