//! Events of an exporter, from its real pages through the shipped rules and routing to the notifications: the expected
//! ones, and no others.

pub(crate) mod life;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pds_config::Config;
use pds_simulator::{Fault, Kind, Settings};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::deploy::{list, string, text};
use crate::process::{http, until};
use crate::rig::FaultExt as _;
use crate::server::Server;

use life::Life;

const NOON: &str = "2026-03-01T11:30:20Z";
/// The only exporter.
const ONE: &str = "pds";

/// The alerts that Alertmanager does not hold back. It takes them in one after the other, so this asks until ten answers in
/// a row are the same.
async fn not_held_back(alertmanager: &Server) -> Value {
    let (mut alerts, mut same) = (Value::Null, 0);
    until("Alertmanager gives the same answer", async || {
        let now = alertmanager.get("/api/v2/alerts", &[("inhibited", "false")]).await;
        same = if now == alerts { same + 1 } else { 1 };
        alerts = now;
        same == 10
    })
    .await;
    alerts
}

/// The names of the alerts that Alertmanager notifies of with the shipped routing, minute by minute.
async fn notified(firing: Vec<BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    tokio::time::resume();
    let alertmanager = Server::alertmanager(&text("prometheus/alertmanager.yml")).await;
    let url = format!("http://{}/api/v2/alerts", alertmanager.address);
    let mut told: Vec<BTreeSet<String>> = Vec::new();
    let (mut before, mut posted) = (BTreeSet::new(), Timestamp::now());
    for alerts in firing {
        if alerts == before {
            told.push(told.last().cloned().unwrap_or_default());
            continue;
        }
        let alert = |labels: &String, ends: Timestamp| {
            let labels: serde_json::Map<String, Value> = labels
                .split("\", ")
                .map(|label| label.split_once("=\"").unwrap())
                .filter(|(name, _)| *name != "alertstate")
                .map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').into()))
                .collect();
            json!({ "labels": labels, "startsAt": posted.to_string(), "endsAt": ends.to_string() })
        };
        let (ended, lasts) = (Timestamp::now(), Timestamp::now() + SignedDuration::from_hours(1));
        let gone = before.difference(&alerts).map(|labels| alert(labels, ended));
        let body: Vec<Value> = alerts.iter().map(|labels| alert(labels, lasts)).chain(gone).collect();
        let body = Value::from(body).to_string();
        let reply =
            http().post(&url).header("content-type", "application/json").body(body).send().await.unwrap();
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap());
        (before, posted) = (alerts, ended);
        let loud = not_held_back(&alertmanager).await;
        told.push(list(&loud).iter().map(|alert| string(alert, "/labels/alertname").to_owned()).collect());
    }
    told
}

/// That exactly these alerts are notified of, each once: none comes, goes and comes again.
async fn expect(life: Life, expected: &[&str]) {
    let told = notified(life.firing()).await;
    let mut begun: Vec<(usize, String)> = Vec::new();
    for (minute, pair) in told.windows(2).enumerate() {
        begun.extend(pair[1].difference(&pair[0]).map(|name| (minute + 1, name.clone())));
    }
    let mut names: Vec<&str> = begun.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, expected, "minutes and alerts: {begun:?}");
}

/// An exporter that has run for an hour, with its counters in a file.
async fn settled() -> Life {
    let mut life = Life::at(NOON).await;
    life.start(ONE, with_state(&life)).await;
    life.pass(60).await;
    life
}

fn with_state(life: &Life) -> Config {
    let state = life.folder.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    life.config().tables(&format!("[state]\npath = {}", json!(state.join("ledgers")))).load()
}

async fn failing(fault: Fault, minutes: u64) -> Life {
    let mut life = settled().await;
    life.world.faults().set([fault]);
    life.pass(minutes).await;
    life.world.faults().clear();
    life.pass(60).await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_first_start_and_a_new_app_raise_no_alert() {
    let mut life = Life::at(NOON).await;
    let config = life.config().first_apps(1).load();
    life.start(ONE, config).await;
    life.pass(45).await;
    life.reload(ONE, life.defaults()).await;
    life.pass(75).await;
    expect(life, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn restarts_with_and_without_state_raise_no_alert() {
    let mut life = settled().await;
    life.stop(ONE).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    life.start(ONE, with_state(&life)).await;
    life.pass(30).await;
    life.stop(ONE).await;
    life.pass(1).await;
    life.start(ONE, life.defaults()).await;
    life.pass(60).await;
    expect(life, &[]).await;
}

/// A sidecar keeps the `instance` of its pod, so another pod is another instance; the others' does not change.
#[tokio::test(start_paused = true)]
async fn a_pod_with_another_name_raises_no_alert() {
    let mut life = settled().await;
    life.stop(ONE).await;
    life.pass(1).await;
    life.start("pds-of-another-pod", with_state(&life)).await;
    life.pass(75).await;
    expect(life, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_alerts_and_counters_that_stand_still_do_not() {
    let mut life = settled().await;
    // A write beyond the limit is an error, as on a full disk, where this signal is taken. Each test is a process.
    let _taken = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).unwrap();
    let limit = |current| setrlimit(Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    limit(Some(0));
    life.pass(40).await;
    limit(None);
    life.pass(60).await;
    expect(life, &["PdsStateCommitFailed"]).await;
}

/// Its requests are all slower than the threshold, but too few to be told of; its build has failed for good.
#[tokio::test(start_paused = true)]
async fn an_app_with_a_run_a_minute_and_a_request_in_three_raises_no_alert() {
    let settings = Settings { projects: 1, apps: 7, ..Settings::default() };
    let mut life = Life::of(settings, 15, NOON).await;
    let slow = |app: &str| {
        let threshold = if app.ends_with("-trainer") { "1s" } else { "1h" };
        format!("{{ id = \"{app}\", objective = {{ threshold = \"{threshold}\", share = 0.9 }} }}")
    };
    let config = life.config().of_app(slow).load();
    life.start(ONE, config).await;
    life.pass(180).await;
    expect(life, &["PdsBuildFailed"]).await;
}

#[tokio::test(start_paused = true)]
async fn ignored_ranges_alert_and_their_consequences_do_not() {
    let names = ["start", "end"].map(|name| (name.to_owned(), format!("{name}_time")));
    let settings = Settings { names: names.into(), ..Life::small() };
    let mut life = Life::of(settings, 15, NOON).await;
    life.start(ONE, life.defaults()).await;
    life.pass(60).await;
    let named = "[api.query_names]\nstart = \"start_time\"\nend = \"end_time\"";
    life.reload(ONE, life.config().tables(named).load()).await;
    life.pass(60).await;
    expect(life, &["PdsRangesIgnored"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_night_is_quiet() {
    let mut life = Life::at("2026-03-01T21:00:20Z").await;
    life.start(ONE, life.defaults()).await;
    life.pass(360).await;
    expect(life, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_3_minutes_raises_no_alert() {
    expect(failing(Fault::status(500), 3).await, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_40_minutes_alerts_once_without_its_consequences() {
    expect(failing(Fault::status(500), 40).await, &["PdsMostTargetsFailing"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_7_hours_alerts_once_without_its_consequences() {
    expect(failing(Fault::status(500), 420).await, &["PdsMostTargetsFailing"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_429_alerts_as_throttling() {
    let throttled = Fault::from(Kind::Status { status: 429, retry_after: None });
    expect(failing(throttled, 40).await, &["PdsApiThrottled", "PdsMostTargetsFailing"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_incident_stays_one_over_a_restart() {
    let mut life = Life::at(NOON).await;
    let strict = "labels = { team = \"search\" }\nobjective = { threshold = \"10ms\", share = 0.99 }\n";
    let state = life.folder.path().join("ledgers");
    let tables = format!("[state]\npath = {}", json!(state));
    for minutes in [70, 70] {
        let config = life.config().of_projects(strict).first_apps(1).tables(&tables).load();
        life.start(ONE, config).await;
        life.pass(minutes).await;
        life.stop(ONE).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    // Those that come later are held back by the first.
    expect(life, &["PdsSloBurnsFast"]).await;
}
