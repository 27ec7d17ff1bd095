//! Two releases of the chart in one Prometheus, which restarts in the middle of an outage.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pds_core::clock::Clock;
use pds_simulator::{Fault, Settings, World};
use serde_json::json;

use crate::deploy::rendered::{routing_of, rules_of};
use crate::golden::assert_golden;
use crate::process::{Exporter, until};
use crate::real_lifecycle::{names_of, teams::once};
use crate::rig;
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server, free_port};

use super::fast::{CONFIG, configuration, faster};

/// The namespaces of the releases.
const TEAMS: [&str; 2] = ["failing", "outage"];

/// The exporter of a team, whose service is `world`, at this address.
async fn exporter(world: &World, address: &str, folder: &Path) -> Exporter {
    let owned = "labels = { team = \"search\" }\nobjective = { threshold = \"1h\", share = 0.9 }\n";
    let service = rig::serve(world).await;
    let config = configuration(world, &service, CONFIG).of_projects(owned).write(folder);
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    daemon.arg(format!("--config.file={config}")).arg(format!("--web.listen-address={address}"));
    let exporter = Exporter::spawn(daemon).unwrap();
    exporter.wait_for("/-/ready").await;
    exporter
}

async fn each_is_told_once(program: &str) {
    let worlds = [1, 2].map(|seed| {
        World::new(Settings { seed, projects: 1, apps: 2, ..Settings::default() }, Clock::system())
    });
    let folders = TEAMS.map(|_| tempfile::tempdir().unwrap());
    let addresses = TEAMS.map(|_| format!("127.0.0.1:{}", free_port()));
    let failing = exporter(&worlds[0], &addresses[0], folders[0].path()).await;
    let outage = exporter(&worlds[1], &addresses[1], folders[1].path()).await;

    let routing = routing_of(&TEAMS).replace("group_wait: 30s", "group_wait: 0s");
    let alertmanager = Server::alertmanager(&routing).await;
    let targets = [0, 1].map(|team| {
        json!({ "targets": [addresses[team]], "labels": { "namespace": TEAMS[team], "instance": "pds" } })
    });
    let config = json!({
        "global": { "scrape_interval": "250ms", "evaluation_interval": "500ms" },
        "rule_files": ["rules/*.yml"],
        "alerting": { "alertmanagers": [{ "static_configs": [{ "targets": [alertmanager.address] }] }] },
        "scrape_configs": [{ "job_name": "pds", "honor_labels": true, "static_configs": targets }],
    });
    let [one, other] = TEAMS.map(|team| faster(&rules_of("pds", team)));
    let config = config.to_string();
    let files = [("prometheus.yml", config.as_str()), ("rules/one.yml", &one), ("rules/other.yml", &other)];
    let mut prometheus = Server::prometheus(program, &files, "--query.lookback-delta=5s").await;

    // The notifications of Alertmanager over time.
    let told = Arc::new(Mutex::new(vec![BTreeSet::new()]));
    let (url, told_now) = (Arc::new(alertmanager), Arc::clone(&told));
    let alertmanager = Arc::clone(&url);
    let watcher = tokio::spawn(async move {
        loop {
            let alerts = alertmanager.get("/api/v2/alerts", &[("inhibited", "false")]).await;
            let alerts: Vec<_> = alerts.as_array().unwrap().clone();
            let loud = alerts.into_iter().filter(|alert| alert["labels"]["alertname"] != "PdsWatchdog");
            told_now.lock().unwrap().push(names_of(&loud.collect()));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let is_told = |name: &str| told.lock().unwrap().last().unwrap().iter().any(|told| told.contains(name));

    // A first start is no news.
    until("an app is judged", async || prometheus.query("pds_app:slo_errors:ratio_rate5m").await.len() == 4)
        .await;
    worlds[0].faults().set([Fault::status(401)]);
    outage.kill();
    tokio::time::sleep(Duration::from_secs(3)).await;
    prometheus.restart().await;
    until("both are told", async || is_told("PdsTokenRejected") && is_told("PdsExporterDown")).await;
    prometheus.restart().await;
    // Targets of both apps fail long enough for an alert, which is not told: the refused token explains it.
    let filters = [("filter", "alertname=\"PdsTargetFailing\""), ("filter", "resource=\"response_time\"")];
    let failing_targets = async || url.get("/api/v2/alerts", &filters).await;
    until("targets fail", async || failing_targets().await.as_array().unwrap().len() == 2).await;

    worlds[0].faults().clear();
    let _outage = exporter(&worlds[1], &addresses[1], folders[1].path()).await;
    until("both are over", async || !is_told("PdsTokenRejected") && !is_told("PdsExporterDown")).await;
    watcher.abort();
    drop(failing);
    let told = told.lock().unwrap().clone();
    assert_golden(Path::new("tests/it/real_deploy/notifications.txt"), &once(&told));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_release_gets_its_own_alerts_once_although_prometheus_restarts() {
    each_is_told_once(PROMETHEUS_2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_prometheus_3_each_release_gets_its_own_alerts_once() {
    each_is_told_once(PROMETHEUS_3).await;
}
