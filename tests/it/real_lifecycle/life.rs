//! An exporter's life in paused time: what Prometheus would have scraped of it, and what the rules make of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use pds_config::Config;
use pds_core::clock::Clock;
use pds_exporter::app::daemon::{Daemon, Handle};
use pds_interface::TimeRange;
use pds_simulator::{Settings, World};
use pds_telemetry::Telemetry;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::deploy::{command, files, string, yaml};
use crate::process::series;
use crate::real_queries::Counted;
use crate::rig::{self, Configuration};

/// Between two looks at the alerts, in seconds; each is a little off the evaluations.
const LOOK: usize = 60;

/// A running exporter.
struct Running {
    handle: Handle,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

/// A service, the exporters that ask it, and what was scraped of them.
pub(crate) struct Life {
    pub(crate) world: World,
    pub(crate) folder: tempfile::TempDir,
    clock: Clock,
    service: String,
    /// When it began, in Unix seconds.
    pub(crate) begun: i64,
    running: BTreeMap<&'static str, Running>,
    /// Between two scrapes, in seconds.
    scrape: u64,
    scrapes: usize,
    /// By series, the values by scrape.
    scraped: BTreeMap<String, Vec<Option<f64>>>,
}

impl Life {
    /// A service of four apps in two projects, at this time.
    pub(crate) async fn at(start: &str) -> Self {
        Self::of(Self::small(), 15, start).await
    }

    /// Four apps in two projects.
    pub(crate) fn small() -> Settings {
        Settings { projects: 2, apps: 4, ..Settings::default() }
    }

    /// A service with these settings whose exporters are scraped every so many seconds.
    pub(crate) async fn of(settings: Settings, scrape: u64, start: &str) -> Self {
        let clock = Clock::starting_at(start.parse().unwrap());
        let world = World::new(settings, clock.clone());
        let service = rig::serve(&world).await;
        let (folder, begun) = (tempfile::tempdir().unwrap(), clock.unix_seconds());
        let (running, scraped) = (BTreeMap::new(), BTreeMap::new());
        Self { world, folder, clock, service, begun, running, scrape, scrapes: 0, scraped }
    }

    /// The configuration's defaults with objectives that these apps meet.
    pub(crate) fn config(&self) -> Configuration<'_> {
        let owned = "labels = { team = \"search\" }\nobjective = { threshold = \"1h\", share = 0.9 }\n";
        Configuration::new(&self.world, &self.service).of_projects(owned)
    }

    /// The same, loaded.
    pub(crate) fn defaults(&self) -> Config {
        self.config().load()
    }

    /// Starts the exporter that Prometheus knows by this instance.
    pub(crate) async fn start(&mut self, instance: &'static str, config: Config) {
        let telemetry = Telemetry::new(false).unwrap();
        telemetry.shard(config.shard.index, config.shard.count.get());
        let daemon = Daemon::build(config, self.clock.clone(), telemetry).await.unwrap();
        let handle = daemon.handle.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(daemon.run(async {
            let _ = stopped.await;
        }));
        self.running.insert(instance, Running { handle, stop, ended });
    }

    pub(crate) async fn stop(&mut self, instance: &str) {
        let Running { stop, ended, .. } = self.running.remove(instance).unwrap();
        stop.send(()).unwrap();
        ended.await.unwrap();
    }

    pub(crate) async fn reload(&self, instance: &str, config: Config) {
        self.running[instance].handle.reconfigure(config).await.unwrap();
    }

    /// Lets minutes pass, with their scrapes.
    pub(crate) async fn pass(&mut self, minutes: u64) {
        for _ in 0..minutes * 60 / self.scrape {
            tokio::time::sleep(Duration::from_secs(self.scrape)).await;
            for (instance, running) in &self.running {
                let release = format!("job=\"pds-exporter\",instance=\"{instance}\"");
                let page = rig::whole_page(&running.handle.context);
                let up = [("up", 1.0)];
                for (name, value) in series(&page).chain(up) {
                    let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
                    let comma = if labels == "}" { "" } else { "," };
                    // The rules' time begins at 0.
                    let since = if name.ends_with("_timestamp_seconds") { self.begun as f64 } else { 0.0 };
                    let selector = format!("{name}{{{release}{comma}{labels}");
                    let values = self.scraped.entry(selector).or_default();
                    values.resize(self.scrapes, None);
                    values.push(Some(value - since));
                }
            }
            self.scrapes += 1;
        }
    }

    /// The present, in Unix seconds.
    pub(crate) fn now(&self) -> i64 {
        self.clock.unix_seconds()
    }

    /// When scrape number `place` was, in seconds since the beginning.
    fn second(&self, place: usize) -> i64 {
        (place as i64 + 1) * self.scrape as i64
    }

    /// The scraped samples of a series, as seconds and values.
    fn samples_of<'a>(&'a self, series: &str, values: &'a [Option<f64>]) -> impl Iterator<Item = (i64, f64)> {
        let family = series.split('{').next().unwrap();
        let since = if family.ends_with("_timestamp_seconds") { self.begun as f64 } else { 0.0 };
        let sample = move |(place, value): (_, &Option<f64>)| {
            Some((self.begun + self.second(place), (*value)? + since))
        };
        values.iter().enumerate().filter_map(sample)
    }

    /// Those of the first series of the family that has this part among its labels.
    pub(crate) fn samples(&self, family: &str, part: &str) -> Vec<(i64, f64)> {
        let mut of_family = self.scraped.iter().filter(|(name, _)| name.starts_with(&format!("{family}{{")));
        let (name, values) = of_family.find(|(name, _)| name.contains(part)).unwrap();
        self.samples_of(name, values).collect()
    }

    /// The scraped samples, as Prometheus' backfill and VictoriaMetrics read them.
    pub(crate) fn openmetrics(&self) -> String {
        let mut text = String::new();
        for (name, values) in &self.scraped {
            for (second, value) in self.samples_of(name, values) {
                writeln!(text, "{name} {value} {second}").unwrap();
            }
        }
        text + "# EOF\n"
    }

    /// The counters of a resource of all apps: by instance, seconds and cursors where the counter was shown; and what
    /// there was in each minute.
    pub(crate) fn counted(&self, resource: &str) -> Vec<Counted> {
        let counter =
            if resource == "response_time" { "pds_app_requests_total" } else { "pds_app_runs_total" };
        let mut counted = Vec::new();
        for (project, app) in self
            .world
            .projects()
            .into_iter()
            .flat_map(|(project, apps)| apps.into_iter().map(move |app| (project.clone(), app)))
        {
            let of_app = format!("project=\"{project}\",app=\"{app}\"");
            let mut samples = Vec::new();
            for (name, totals) in
                self.scraped.iter().filter(|(name, _)| name.starts_with(counter) && name.contains(&of_app))
            {
                let cursor = name
                    .replace(counter, "pds_app_accounted_until_timestamp_seconds")
                    .replace('}', &format!(",resource=\"{resource}\"}}"));
                let cursors = &self.scraped[&cursor];
                let points = totals.iter().zip(cursors).enumerate().filter_map(|(place, pair)| match pair {
                    (Some(_), Some(until)) => {
                        Some((self.begun + self.second(place), self.begun + *until as i64))
                    }
                    _ => None,
                });
                samples.push(points.collect());
            }
            let minutes = (self.begun / 60 - 60..self.now() / 60).map(|minute| {
                let range = TimeRange { start: minute * 60, end: minute * 60 + 60 };
                (range.start, self.world.truth(&project, &app, range).unwrap())
            });
            counted.push(Counted {
                project: project.to_string(),
                app: app.to_string(),
                samples,
                truth: minutes.collect(),
            });
        }
        counted
    }

    /// The alerts that fire, minute by minute, as the shipped rules have it in a real Prometheus.
    pub(crate) fn firing(self) -> Vec<BTreeSet<String>> {
        let rules = files("prometheus/rules", "yml");
        let texts: Vec<String> = rules.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let order = texts.iter().flat_map(|text| {
            let groups = yaml(text).remove(0)["groups"].as_array().unwrap().clone();
            groups.into_iter().map(|group| string(&group, "/name").to_owned())
        });
        let first = "pds-objectives pds-owners pds-rates pds-increases pds-tokens pds-slo pds-slo-budget pds-slo-long";
        let first: Vec<&str> = first.split(' ').collect();
        let rest = order.filter(|name| !first.contains(&&**name)).collect::<BTreeSet<_>>();
        let order: Vec<&str> = first.into_iter().chain(rest.iter().map(String::as_str)).collect();
        let read = self.scraped.iter().filter(|(name, _)| {
            let family = name.split('{').next().unwrap();
            family == "up" || texts.iter().any(|text| text.contains(family.trim_end_matches("_bucket")))
        });
        let line = |(name, values): (&String, &Vec<_>)| json!({ "series": name, "values": notation(values, self.scrapes) });
        let firing = "ALERTS{alertstate=\"firing\",alertname!=\"PdsWatchdog\"}";
        let looks = self.scrapes * self.scrape as usize / LOOK;
        let looked =
            (1..looks).map(|look| json!({ "expr": firing, "eval_time": format!("{}s", look * LOOK + 7) }));
        let test = json!({
            "interval": format!("{}s", self.scrape),
            "input_series": read.map(line).collect::<Vec<_>>(),
            "promql_expr_test": looked.collect::<Vec<_>>(),
        });
        let test = json!({
            "rule_files": rules, "group_eval_order": order, "evaluation_interval": "30s", "tests": [test],
        });
        let file = self.folder.path().join("test.yml");
        std::fs::write(&file, test.to_string()).unwrap();
        // It fails wherever something fires, and says what.
        let output = command("promtool", ["test", "rules"]).arg(&file).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let mut firing = vec![BTreeSet::new(); looks];
        for part in said.split("    expr: ").skip(1) {
            let (_, time) = part.split_once("time: ").unwrap_or_else(|| panic!("{part}"));
            let time: jiff::SignedDuration = time.split_once(',').unwrap().0.parse().unwrap();
            let alerts = part.split("{__name__=\"ALERTS\", ").skip(1);
            let alerts = alerts.map(|alert| alert.split('}').next().unwrap().to_owned());
            firing[time.as_secs() as usize / LOOK].extend(alerts);
        }
        assert!(output.status.success() || firing.iter().any(|alerts| !alerts.is_empty()), "{said}");
        firing
    }
}

/// The values as promtool reads them.
fn notation(values: &[Option<f64>], scrapes: usize) -> String {
    let mut text = String::new();
    let mut place = 0;
    let at = |place: usize| values.get(place).copied().flatten();
    let mut before = None;
    while place < scrapes {
        let value = at(place);
        let same = (place..scrapes).take_while(|next| at(*next) == value).count();
        match (value, before) {
            (Some(value), _) => write!(text, "{value}x{} ", same - 1).unwrap(),
            (None, None) => write!(text, "_x{} ", same - 1).unwrap(),
            // A series that leaves is stale at once.
            (None, Some(_)) if same == 1 => text += "stale ",
            (None, Some(_)) => write!(text, "stale _x{} ", same - 2).unwrap(),
        }
        before = value;
        place += same;
    }
    text
}
