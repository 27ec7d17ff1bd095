//! Production 60 times faster: a simulated service, the exporter, Prometheus with the shipped rules, Alertmanager
//! with the shipped routing. Every minute of the configuration, the rules and the scrapes is a second here, so
//! what takes ten minutes there takes ten seconds.

use std::fs;
use std::path::PathBuf;

use pds_core::clock::Clock;
use pds_simulator::{Settings, World};
use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::{deploy, files, text};
use crate::process::Exporter;

use crate::rig::{self, Configuration};
use crate::server::{PROMETHEUS_2, Server};

/// How much faster.
const FASTER: u64 = 60;

/// The configuration's defaults, 60 times faster.
const CONFIG: &str = r#"
[poll]
interval = "1s"
settings_interval = "5s"
windows = ["5s", "3m"]
settle = "1s"
stale_after = "5s"

[accounting]
step = "1s"
"#;

/// All of it, running.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) exporter: Exporter,
    pub(super) prometheus: Server,
    pub(super) alertmanager: Server,
    _folder: TempDir,
}

impl Stage {
    pub(super) async fn set() -> Self {
        Self::set_with(PROMETHEUS_2).await
    }

    /// With this Prometheus.
    pub(super) async fn set_with(program: &str) -> Self {
        let world = World::new(Settings::default(), Clock::system());
        let service = rig::serve(&world).await;
        let folder = tempfile::tempdir().unwrap();
        let config = configuration(&world, &service, CONFIG).tokens_in(folder.path()).write(folder.path());
        let config = PathBuf::from(config);
        let (state, web) = (folder.path().join("state.log"), folder.path().join("web.yml"));
        fs::write(&web, "basic_auth_users: {}\n").unwrap();
        let files = [("--config.file", &config), ("--state.path", &state), ("--web.config.file", &web)];
        let flags: Vec<&str> =
            files.iter().flat_map(|(flag, path)| [*flag, path.to_str().unwrap()]).collect();
        let exporter = Exporter::start(&flags);

        let (prometheus, alertmanager) = watch(program, &exporter).await;
        Self { world, exporter, prometheus, alertmanager, _folder: folder }
    }

    /// The alerts of this name that Alertmanager holds.
    pub(super) async fn alerts(&self, name: &str) -> Vec<Value> {
        let filter = format!("alertname=\"{name}\"");
        let alerts = self.alertmanager.get("/api/v2/alerts", &[("filter", &filter)]).await;
        alerts.as_array().unwrap().clone()
    }
}

/// The Prometheus `program` with the shipped rules, 60 times faster, and an Alertmanager with the shipped routing.
pub(super) async fn watch(program: &str, exporter: &Exporter) -> (Server, Server) {
    let routing = text("prometheus/alertmanager.yml").replace("group_wait: 30s", "group_wait: 0s");
    let alertmanager = Server::alertmanager(&routing).await;
    let scraped = exporter.url.trim_start_matches("http://").to_owned();
    let config = text("prometheus/prometheus.yml")
        .replace("scrape_interval: 15s", "scrape_interval: 250ms")
        .replace("evaluation_interval: 30s", "evaluation_interval: 500ms")
        .replace("localhost:10090", &scraped)
        .replace("localhost:9093", &alertmanager.address);
    let rules = files("prometheus/rules", "yml").into_iter().map(|path| {
        let name = format!("rules/{}", path.file_name().unwrap().to_string_lossy());
        (name, faster(&fs::read_to_string(deploy("prometheus/rules").join(path)).unwrap()))
    });
    let rules: Vec<(String, String)> = rules.collect();
    let mut given = vec![("prometheus.yml", config.as_str())];
    given.extend(rules.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    // As with everything else, what is five minutes old is stale.
    let prometheus = Server::prometheus(program, &given, "--query.lookback-delta=5s").await;
    (prometheus, alertmanager)
}

/// A configuration that polls everything in `world`.
pub(super) fn configuration<'a>(world: &'a World, base_url: &str, rhythm: &str) -> Configuration<'a> {
    // A year on, so that there is something to see but nothing to do.
    let expiry = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    Configuration::new(world, base_url).api("").tables(rhythm).expiring(expiry)
}

/// Rules with every duration divided: those in brackets, after `for`, `keep_firing_for` and `interval`, the ages in seconds that
/// are compared with, and the seconds in which there are to be so many requests.
fn faster(rules: &str) -> String {
    let mut text = String::new();
    for line in rules.lines() {
        let timed = ["for: ", "keep_firing_for: ", "interval: "]
            .iter()
            .find(|key| line.trim_start().starts_with(**key));
        let line = match timed.and_then(|key| line.split_once(key).map(|(indent, time)| (indent, key, time)))
        {
            Some((indent, key, time)) => format!("{indent}{key}{}", shorter(time)),
            None => counts(&offsets(&ranges(line))),
        };
        text += &line.replace("> 900", "> 15").replace("> 300", "> 5");
        text.push('\n');
    }
    text
}

/// The line with the durations in its brackets divided.
fn ranges(line: &str) -> String {
    let mut parts = line.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let shortened = part
            .split_once(']')
            .filter(|(range, _)| range.starts_with(|c: char| c.is_ascii_digit()))
            .map(|(range, rest)| format!("[{}]{rest}", shorter(range)));
        text += &shortened.unwrap_or_else(|| format!("[{part}"));
    }
    text
}

/// The line with the durations after `offset` divided.
fn offsets(line: &str) -> String {
    let mut parts = line.split("offset ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let (time, rest) = part.split_at(end);
        text += &format!("offset {}{rest}", shorter(time));
    }
    text
}

/// The line with the seconds divided that a number of requests is divided by.
fn counts(line: &str) -> String {
    let Some((count, seconds)) = line.split_once(":count / ") else { return line.to_owned() };
    let end = seconds.find(|c: char| !c.is_ascii_digit()).unwrap_or(seconds.len());
    let (seconds, rest) = seconds.split_at(end);
    format!("{count}:count / {}{rest}", seconds.parse::<u64>().unwrap() / FASTER)
}

/// A duration of Prometheus, divided.
fn shorter(duration: &str) -> String {
    let (number, unit) = duration.split_at(duration.len() - 1);
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => panic!("{duration}: no unit known here"),
    };
    format!("{}s", number.parse::<u64>().unwrap() * seconds / FASTER)
}

#[test]
fn every_duration_of_a_rule_is_divided() {
    let rule = "    interval: 2m\n        expr: rate(x[5m]) > 900\n        for: 1h\n      y[1d] offset 1m) > a:count / 3600)";
    let expected = "    interval: 2s\n        expr: rate(x[5s]) > 15\n        for: 60s\n      y[1440s] offset 1s) > a:count / 60)\n";
    assert_eq!(faster(rule), expected);
}
