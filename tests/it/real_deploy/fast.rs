//! Production 60 times faster: a simulated service, the exporter, Prometheus with the shipped rules, Alertmanager
//! with the shipped routing. Every minute of the configuration, the rules and the scrapes is a second here, so
//! what takes ten minutes there takes ten seconds.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_simulator::{Settings, World};
use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::{deploy, files, string, text, yaml};
use crate::process::Exporter;

use crate::rig::{self, Configuration};
use crate::server::{PROMETHEUS_2, Server};

/// How much faster.
pub(super) const FASTER: u64 = 60;

/// So many minutes of production.
pub(super) fn minutes(count: u64, pace: u64) -> Duration {
    Duration::from_secs(60 * count) / u32::try_from(pace).unwrap()
}

/// The configuration's defaults, 60 times faster.
pub(super) const CONFIG: &str = r#"
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
    pub(super) prometheus: Server,
    alertmanager: Server,
    _exporter: Exporter,
    _folder: TempDir,
}

impl Stage {
    pub(super) async fn set() -> Self {
        let world = World::new(Settings::default(), Clock::system());
        let service = rig::serve(&world).await;
        let folder = tempfile::tempdir().unwrap();
        // Every app has an objective that it meets.
        let objective = "objective = { threshold = \"1h\", share = 0.9 }\n";
        let config = configuration(&world, &service, CONFIG).of_projects(objective);
        let config = config.tokens_in(folder.path()).write(folder.path());
        let config = PathBuf::from(config);
        let (state, web) = (folder.path().join("state.log"), folder.path().join("web.yml"));
        fs::write(&web, "basic_auth_users: {}\n").unwrap();
        let files = [("--config.file", &config), ("--state.path", &state), ("--web.config.file", &web)];
        let flags: Vec<&str> =
            files.iter().flat_map(|(flag, path)| [*flag, path.to_str().unwrap()]).collect();
        let exporter = Exporter::start(&flags);

        let (prometheus, alertmanager) = watch(&exporter).await;
        Self { world, prometheus, alertmanager, _exporter: exporter, _folder: folder }
    }

    /// The alerts of this name that Alertmanager holds.
    pub(super) async fn alerts(&self, name: &str) -> Vec<Value> {
        let filter = format!("alertname=\"{name}\"");
        let alerts = self.alertmanager.get("/api/v2/alerts", &[("filter", &filter)]).await;
        alerts.as_array().unwrap().clone()
    }
}

/// A Prometheus with the shipped rules, 60 times faster, and an Alertmanager with the shipped routing.
pub(super) async fn watch(exporter: &Exporter) -> (Server, Server) {
    let routing = text("prometheus/alertmanager.yml").replace("group_wait: 30s", "group_wait: 0s");
    let alertmanager = Server::alertmanager(&routing).await;
    let scraped = exporter.url.trim_start_matches("http://").to_owned();
    let config = text("prometheus/prometheus.yml")
        .replace("scrape_interval: 30s", "scrape_interval: 500ms")
        .replace("evaluation_interval: 30s", "evaluation_interval: 500ms")
        // With target labels of the names of ours, as the discovery of Kubernetes may set them.
        .replace(
            "\"localhost:10090\"]",
            &format!("{scraped:?}]\n        labels: {{ app: exporter, project: infra }}"),
        )
        .replace("localhost:9093", &alertmanager.address);
    let rules = files("prometheus/rules", "yml").into_iter().map(|path| {
        let name = format!("rules/{}", path.file_name().unwrap().to_string_lossy());
        (name, faster(&fs::read_to_string(deploy("prometheus/rules").join(path)).unwrap(), FASTER))
    });
    let rules: Vec<(String, String)> = rules.collect();
    let mut given = vec![("prometheus.yml", config.as_str())];
    given.extend(rules.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    // Samples older than five minutes are stale, as elsewhere.
    let prometheus = Server::prometheus(PROMETHEUS_2, &given, "--query.lookback-delta=5s").await;
    (prometheus, alertmanager)
}

/// A configuration that polls everything in `world`.
pub(super) fn configuration<'a>(world: &'a World, base_url: &str, rhythm: &str) -> Configuration<'a> {
    // A year on, so that there is something to see but nothing to do.
    let expiry = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    Configuration::new(world, base_url).api("").tables(rhythm).expiring(expiry)
}

/// Rules with every duration divided: those of expressions, `for`, `keep_firing_for` and `interval`, and the seconds that
/// are compared with. A test needs a fifth of a window, where alerts want nine tenths, and a tenth of the requests.
pub(super) fn faster(rules: &str, pace: u64) -> String {
    let mut file = yaml(rules).remove(0);
    let shorten = |of: &mut Value, key: &str| {
        if let Some(time) = of[key].as_str() {
            of[key] = shorter(time, pace).into();
        }
    };
    for group in file["groups"].as_array_mut().unwrap() {
        shorten(group, "interval");
        for rule in group["rules"].as_array_mut().unwrap() {
            shorten(rule, "for");
            shorten(rule, "keep_firing_for");
            let eased =
                string(rule, "/expr").replace("0.9 * ", "0.2 * ").replace("100 * group", "10 * group");
            rule["expr"] = divided(&eased, pace).into();
            // A key that was not there.
            rule.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        }
        group.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    file.to_string()
}

/// An expression with its durations and ages divided: `5m`, and whole numbers of minutes from 300 on.
fn divided(expression: &str, pace: u64) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.:".contains(c);
    let mut text = String::new();
    let mut rest = expression;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let (other, next) = after.split_at(after.find(is_word).unwrap_or(after.len()));
        let is_duration = |part: &str| {
            part.len() > 1
                && part[..part.len() - 1].bytes().all(|byte| byte.is_ascii_digit())
                && part.ends_with(['m', 'h', 'd', 'w'])
        };
        match word.parse::<u64>() {
            Ok(seconds) if seconds >= 300 && seconds % 60 == 0 => text += &(seconds / pace).to_string(),
            _ if word.split(':').all(is_duration) && !word.is_empty() => {
                text += &word.split(':').map(|part| shorter(part, pace)).collect::<Vec<_>>().join(":");
            }
            _ => text += word,
        }
        text += other;
        rest = next;
    }
    text
}

/// A duration of Prometheus, divided.
fn shorter(duration: &str, pace: u64) -> String {
    format!("{}s", humantime::parse_duration(duration).unwrap().as_secs() / pace)
}
