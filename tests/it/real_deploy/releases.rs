//! Eight releases in a real Prometheus and Alertmanager, with the rules of chart and overlay, each loaded twice: each team
//! is notified of what happens to its release, and of nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use pds_core::clock::Clock;
use pds_simulator::{Fault, Settings, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::server::{self, ok};
use crate::deploy::kubernetes::{kustomize, object};
use crate::deploy::rendered::{routing_of, rules_of};
use crate::deploy::{list, yaml};
use crate::golden::assert_golden;
use crate::process::{Exporter, http};
use crate::rig::{self, Configuration, FaultExt as _};
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server, free_port};

use super::fast::{CONFIG, FASTER, configuration, faster, minutes};

/// The namespaces of the releases, and what happens in them.
const TEAMS: [&str; 8] =
    ["failing", "healthy", "expiring", "outage", "sharded", "zero", "resharded", "deleted"];

/// All that is told.
const TOLD: [&str; 6] = [
    "PdsTokenRejected failing",
    "PdsTokenExpiresNow expiring",
    "PdsExporterDown outage",
    "PdsShardMissing sharded",
    "PdsExporterAbsent zero",
    "PdsAppGone deleted",
];

/// The addresses of all processes of a play.
type Addresses = Arc<Mutex<BTreeSet<String>>>;

/// Requests each process over and over. Returns when one, or this one, stands still for longer than alerts tolerate; sets
/// `is_slow` when one does not reply within a scrape.
async fn stands_still(pace: u64, addresses: Addresses, is_slow: Arc<AtomicBool>) {
    let (client, mut began) = (http(), Instant::now());
    while began.elapsed() < minutes(3, pace) {
        began = Instant::now();
        let urls: Vec<String> = addresses.lock().unwrap().iter().cloned().collect();
        let all = async {
            for address in urls {
                let asked = Instant::now();
                // One that has ended refuses at once.
                let _ = client.get(format!("http://{address}/-/healthy")).send().await;
                is_slow.fetch_or(asked.elapsed() > minutes(1, pace) / 2, Ordering::Relaxed);
            }
        };
        let _ = tokio::time::timeout(minutes(3, pace), all).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// `what` unless the condition holds within an hour of production.
async fn within(pace: u64, what: &str, mut condition: impl AsyncFnMut() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !condition().await {
        if began.elapsed() > minutes(60, pace) {
            return Err(format!("waited for: {what}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Restarts Prometheus; an error if that takes longer than alerts tolerate.
async fn restart(prometheus: &mut Server, pace: u64) -> Result<(), String> {
    let began = Instant::now();
    prometheus.restart().await;
    if began.elapsed() < minutes(4, pace) { Ok(()) } else { Err("a restart takes too long".to_owned()) }
}

/// A release of one or more shards.
struct Release {
    namespace: &'static str,
    world: World,
    service: String,
    folder: TempDir,
    addresses: Addresses,
    /// The address of each shard, and its process unless it is down.
    shards: Vec<(String, Option<Exporter>)>,
}

impl Release {
    async fn new(namespace: &'static str, seed: u64, addresses: &Addresses) -> Self {
        let settings = Settings { seed, projects: 1, apps: 2, ..Settings::default() };
        let world = World::new(settings, Clock::system());
        let (service, folder) = (rig::serve(&world).await, tempfile::tempdir().unwrap());
        let release =
            Self { namespace, world, service, folder, addresses: addresses.clone(), shards: Vec::new() };
        release.configure(|configuration| configuration);
        release
    }

    fn configure(&self, change: impl Fn(Configuration<'_>) -> Configuration<'_>) {
        let owned = "labels = { team = \"search\" }\nobjective = { threshold = \"1h\", share = 0.9 }\n";
        let config = CONFIG.replace("[poll]", "[poll]\nresources = [\"app\", \"response_time\"]");
        let configuration = configuration(&self.world, &self.service, &config).of_projects(owned);
        change(configuration).write(self.folder.path());
    }

    /// Starts those of `count` shards that are down.
    async fn start(&mut self, count: usize) {
        self.shards.resize_with(count, || (format!("127.0.0.1:{}", free_port()), None));
        for (index, (address, exporter)) in self.shards.iter_mut().enumerate() {
            if exporter.is_some() {
                continue;
            }
            let mut daemon = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
            daemon.arg(format!("--config.file={}/pds-exporter.toml", self.folder.path().display()));
            daemon.arg(format!("--web.listen-address={address}"));
            daemon.args([format!("--shard.count={count}"), format!("--shard.index={index}")]);
            let started = Exporter::of(daemon);
            self.addresses.lock().unwrap().insert(address.clone());
            started.wait_for("/-/ready").await;
            *exporter = Some(started);
        }
    }

    fn reload(&self) {
        self.shards[0].1.as_ref().unwrap().signal("HUP");
    }
}

/// The targets that a discovery would find: each shard, also one that is down.
fn targets(releases: &[Release]) -> Value {
    let targets = releases.iter().flat_map(|release| {
        let shards = release.shards.iter().enumerate();
        shards.map(move |(index, (address, _))| {
            let instance = if release.shards.len() > 1 { format!("pds-{index}") } else { "pds".to_owned() };
            json!({ "targets": [address], "labels": { "namespace": release.namespace, "instance": instance } })
        })
    });
    targets.collect()
}

/// The notification of an alert: the receiver, and the values of these labels.
fn name_of(receiver: &str, labels: &Value) -> String {
    // About an app or project, for its owner.
    let is_owned = labels.get("project").is_some();
    assert!(!is_owned || !["chat", "pager"].contains(&receiver), "{labels}");
    let told = ["alertname", "namespace", "instance", "token", "project", "app", "resource"];
    let told = told.iter().filter_map(|label| labels[label].as_str());
    format!("{receiver} {}", told.collect::<Vec<_>>().join(" "))
}

/// The notifications so far: which alerts are firing for whom after each.
fn notified(webhook: &server::Server) -> Vec<BTreeSet<String>> {
    let mut told = vec![BTreeSet::new()];
    for request in webhook.seen() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        for alert in body["alerts"].as_array().unwrap() {
            let name = name_of(request.target.trim_start_matches('/'), &alert["labels"]);
            let mut now = told.last().unwrap().clone();
            if alert["labels"]["alertname"] == "PdsWatchdog" {
                assert_eq!(request.target, "/watchdog");
            } else if alert["status"] == "firing" {
                now.insert(name);
            } else {
                now.remove(&name);
            }
            told.push(now);
        }
    }
    told
}

/// A Prometheus with the rules of two releases of the chart and of two overlays, which scrapes the targets of a file, and an
/// Alertmanager that notifies `webhook`.
async fn watch(program: &str, pace: u64, targets: &Path, webhook: &server::Server) -> (Server, Server) {
    let time = |count: u64| format!("{}ms", minutes(count, pace).as_millis());
    let half = format!("{}ms", minutes(1, pace).as_millis() / 2);
    let mut routing = yaml(&routing_of(&TEAMS)).remove(0);
    for receiver in routing["receivers"].as_array_mut().unwrap() {
        let url = format!("http://{}/{}", webhook.address, receiver["name"].as_str().unwrap());
        receiver["webhook_configs"] = json!([{ "url": url }]);
    }
    let routing = routing.to_string().replace("\"30s\"", &json!(half).to_string());
    let routing = routing.replace("\"5m\"", &json!(time(5)).to_string());
    let alertmanager = Server::alertmanager(&routing).await;
    let config = json!({
        "global": { "scrape_interval": half, "evaluation_interval": time(1) },
        "rule_files": ["rules/*.yml"],
        "alerting": { "alertmanagers": [{ "static_configs": [{ "targets": [alertmanager.address] }] }] },
        "scrape_configs": [{
            "job_name": "pds", "honor_labels": true, "file_sd_configs": [{ "files": [targets] }],
        }],
    });
    let overlay = object(&yaml(&kustomize("overlays/operator")), "PrometheusRule")["spec"].to_string();
    let rules = [rules_of("pds", "failing"), rules_of("pds", "outage"), overlay.clone(), overlay];
    let rules = rules.iter().zip(["chart-1", "chart-2", "overlay-1", "overlay-2"]);
    let rules = rules.map(|(text, name)| (format!("rules/{name}.yml"), faster(text, pace)));
    let mut files = vec![("prometheus.yml".to_owned(), config.to_string())];
    files.extend(rules);
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    // At any pace, Prometheus finds its targets within ten seconds of its start, and its Alertmanager within five. Until then
    // it looks back at samples from before its restart. Alerts of before are sent again after the last of these times.
    let lookback = (minutes(10, pace) + Duration::from_secs(10)).as_millis();
    let alerts =
        format!("--rules.alert.for-grace-period={} --rules.alert.resend-delay={}", time(10), time(5));
    let arguments = format!("--query.lookback-delta={lookback}ms {alerts}");
    (Server::prometheus(program, &files, &arguments).await, alertmanager)
}

/// Plays all events; the notifications of Alertmanager, a line each.
async fn play(program: &str, pace: u64, addresses: Addresses) -> Result<String, String> {
    let mut releases = Vec::new();
    for (seed, namespace) in (1..).zip(TEAMS) {
        releases.push(Release::new(namespace, seed, &addresses).await);
    }
    let [failing, expiring, outage, sharded, zero, resharded, deleted] = [0, 2, 3, 4, 5, 6, 7];
    for (team, release) in releases.iter_mut().enumerate() {
        if team == expiring {
            let soon = Timestamp::now() + minutes(3 * 24 * 60 + 10, pace);
            release.configure(|configuration| configuration.expiring(soon));
        }
        let is_sharded = [outage, sharded].contains(&team);
        release.start(1 + usize::from(is_sharded) + 2 * usize::from(team == resharded)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let discovered = folder.path().join("targets.json");
    let discover = |releases: &[Release]| {
        let new = folder.path().join("new");
        std::fs::write(&new, targets(releases).to_string()).unwrap();
        std::fs::rename(new, &discovered).unwrap();
    };
    discover(&releases);

    let webhook = server::Server::start(|_| ok("")).await;
    let (mut prometheus, alertmanager) = watch(program, pace, &discovered, &webhook).await;
    addresses.lock().unwrap().extend([prometheus.address.clone(), alertmanager.address.clone()]);
    let are_told = |names: &[&str], expected: bool| {
        let told = notified(&webhook);
        let told = told.last().unwrap();
        names.iter().all(|name| told.iter().any(|told| told.contains(name)) == expected)
    };

    // A first start is no news.
    within(pace, "every app is judged", async || {
        prometheus.query("pds_app:slo_errors:ratio_rate5m").await.len() == 2 * TEAMS.len()
    })
    .await?;
    releases[failing].world.faults().set([Fault::status(401)]);
    let (_, apps) = releases[deleted].world.projects().remove(0);
    releases[deleted].world.faults().set([Fault::status(404).of_app(&apps[1])]);
    releases[outage].shards[0].1 = None;
    releases[sharded].shards.truncate(1);
    releases[zero].shards.clear();
    releases[resharded].shards.clear();
    releases[resharded].start(2).await;
    discover(&releases);
    within(pace, "the outage is seen", async || {
        !prometheus.query("max_over_time(up{namespace=\"outage\"}[2s]) == 0").await.is_empty()
    })
    .await?;
    restart(&mut prometheus, pace).await?;
    within(pace, "all are told", async || are_told(&TOLD, true)).await?;
    restart(&mut prometheus, pace).await?;
    // A target has failed for long enough, too, and is not told: the refused token explains it.
    let expected: BTreeSet<_> =
        TOLD.into_iter().chain(["PdsTargetFailing failing"]).map(str::to_owned).collect();
    let mut firing = BTreeSet::new();
    within(pace, "the same alerts fire again", async || {
        let alerts = prometheus.get("/api/v1/alerts", &[]).await;
        let alerts = list(&alerts["data"]["alerts"]).iter().filter(|alert| alert["state"] == "firing");
        let loud = alerts.filter(|alert| alert["labels"]["alertname"] != "PdsWatchdog");
        let names = ["alertname", "namespace"];
        firing =
            loud.map(|alert| names.map(|name| alert["labels"][name].as_str().unwrap()).join(" ")).collect();
        firing.is_superset(&expected)
    })
    .await?;

    releases[failing].world.faults().clear();
    for (team, shards) in [(outage, 2), (sharded, 2), (zero, 1)] {
        releases[team].start(shards).await;
    }
    releases[expiring].configure(|configuration| configuration);
    releases[expiring].reload();
    releases[deleted].configure(|configuration| configuration.first_apps(1));
    releases[deleted].reload();
    discover(&releases);
    within(pace, "all are over", async || are_told(&TOLD, false)).await?;
    let watchdog = async || webhook.seen().iter().any(|request| request.target == "/watchdog");
    within(pace, "the watchdog is told", watchdog).await?;
    let told = notified(&webhook);
    #[expect(clippy::print_stdout, reason = "a failing test shows the order")]
    for pair in told.windows(2) {
        println!("told {:?}, resolved {:?}", &pair[1] - &pair[0], &pair[0] - &pair[1]);
    }
    Ok(lines_of(&told))
}

/// All that is told over time, a line each; it says so if one is told or resolved more than once.
fn lines_of(told: &[BTreeSet<String>]) -> String {
    let mut events: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
    for pair in told.windows(2) {
        pair[1].difference(&pair[0]).for_each(|told| events.entry(told).or_default().0 += 1);
        pair[0].difference(&pair[1]).for_each(|told| events.entry(told).or_default().1 += 1);
    }
    let line = |(told, (begun, ended)): (&String, (usize, usize))| match (begun, ended) {
        (1, 1) => format!("{told}\n"),
        _ => format!("{told}, told {begun} times and resolved {ended} times\n"),
    };
    events.into_iter().map(line).collect()
}

/// Plays the events. If a process stands still or is slow, or something is not told within an hour of production, they are
/// played again at half the pace.
async fn each_is_told_once(program: &str) {
    let path = Path::new("tests/it/real_deploy/notifications.txt");
    let mut told = Err("every process stands still".to_owned());
    for pace in [FASTER, FASTER / 2, FASTER / 4] {
        let (addresses, is_slow) = (Addresses::default(), Arc::new(AtomicBool::new(false)));
        let mut still = tokio::spawn(stands_still(pace, addresses.clone(), Arc::clone(&is_slow)));
        told = tokio::select! {
            told = play(program, pace, addresses) => told,
            _ = &mut still => continue,
        };
        let stood_still = tokio::time::timeout(Duration::from_millis(500), &mut still).await.is_ok();
        still.abort();
        let is_busy = stood_still || is_slow.load(Ordering::Relaxed);
        let is_over = |told: &String| !is_busy || std::fs::read_to_string(path).unwrap() == *told;
        if told.as_ref().is_ok_and(is_over) {
            break;
        }
    }
    assert_golden(path, &told.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_team_is_notified_once_of_what_happens_to_its_release() {
    each_is_told_once(PROMETHEUS_2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_prometheus_3_each_team_is_notified_once() {
    each_is_told_once(PROMETHEUS_3).await;
}
