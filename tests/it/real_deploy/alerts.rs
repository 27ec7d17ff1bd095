//! From a fault of the service to the alert at Alertmanager, and back.

use std::time::{Duration, Instant};

use pds_interface::{get_app, response_time};
use pds_simulator::{Fault, Kind};

use crate::process::{Exporter, until};

use super::fast::{Stage, watch};
use crate::server::{PROMETHEUS_2, PROMETHEUS_3};

/// Scrape, evaluation, and a loaded machine; beside the time that a rule states.
const SLACK: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_raises_its_alert_silences_its_consequences_and_resolves() {
    a_refused_token_is_told(PROMETHEUS_2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_prometheus_3_a_refused_token_does_the_same() {
    a_refused_token_is_told(PROMETHEUS_3).await;
}

async fn a_refused_token_is_told(program: &str) {
    let stage = Stage::set_with(program).await;
    until("a request was counted", async || {
        !stage.prometheus.query("pds_app_requests_total > 0").await.is_empty()
    })
    .await;
    assert!(stage.alerts("PdsTokenRejected").await.is_empty());
    assert!(stage.alerts("PdsSloThresholdHasNoBucket").await.is_empty());

    let begun = Instant::now();
    let (refused, _) = stage.world.projects().remove(0);
    let unauthorized = Kind::Status { status: 401, retry_after: None };
    stage.world.faults().set([Fault::from(unauthorized).of_project(&refused)]);
    until("the refused token is told", async || !stage.alerts("PdsTokenRejected").await.is_empty()).await;
    // The next poll is refused, and one minute more: two seconds here.
    let after = begun.elapsed();
    assert!(after < Duration::from_secs(2) + SLACK, "fired after {after:?}");
    let [alert] = &*stage.alerts("PdsTokenRejected").await else { panic!("one token is refused") };
    assert_eq!(alert["labels"]["severity"], "critical");
    assert_eq!(alert["labels"]["job"], "pds-exporter");
    assert_eq!(alert["labels"]["token"], *refused);
    assert!(alert["annotations"]["runbook_url"].as_str().unwrap().ends_with("/PdsTokenRejected.md"));

    until("the failing targets are held back", async || {
        let failing = stage.alerts("PdsTargetFailing").await;
        let held = |alert: &serde_json::Value| alert["status"]["state"] == "suppressed";
        let of_refused = |alert: &serde_json::Value| alert["labels"]["project"] == *refused;
        assert!(failing.iter().all(of_refused), "{failing:?}");
        !failing.is_empty() && failing.iter().all(held)
    })
    .await;
    assert!(stage.alerts("PdsMostTargetsFailing").await.is_empty(), "the token explains it");

    stage.world.faults().clear();
    let mended = Instant::now();
    until("all is well again", async || {
        stage.alerts("PdsTokenRejected").await.is_empty() && stage.alerts("PdsTargetFailing").await.is_empty()
    })
    .await;
    // The token is tried again after settings_interval, five seconds here, and the alert outlasts what it silences.
    assert!(mended.elapsed() < Duration::from_secs(5 + 15) + SLACK, "resolved after {:?}", mended.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_app_is_no_refused_token_and_silences_its_consequences_only() {
    let stage = Stage::set().await;
    until("a request was counted", async || {
        !stage.prometheus.query("pds_app_requests_total > 0").await.is_empty()
    })
    .await;
    let (_, apps) = stage.world.projects().remove(0);
    let forbidden = || Fault::from(Kind::Status { status: 403, retry_after: None });
    let server_error = Fault::from(Kind::Status { status: 500, retry_after: None });
    stage.world.faults().set([
        forbidden().on(response_time::RESOURCE).of_app(&apps[0]),
        server_error.on(get_app::RESOURCE).of_app(&apps[1]),
    ]);
    until("both targets are told", async || stage.alerts("PdsTargetFailing").await.len() == 2).await;
    for alert in stage.alerts("PdsTargetFailing").await {
        assert_eq!(alert["status"]["state"], "active", "{alert}");
    }
    until("counters that are behind are held back", async || {
        let alerts = stage.alerts("PdsAccountingBehind").await;
        !alerts.is_empty() && alerts.iter().all(|alert| alert["status"]["state"] == "suppressed")
    })
    .await;
    assert!(stage.alerts("PdsTokenRejected").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_raises_no_critical_alert() {
    let exporter = Exporter::start(&["--demo"]);
    let (prometheus, _alertmanager) = watch(PROMETHEUS_2, &exporter).await;
    let judged = "count(pds_app:slo_errors:ratio_rate1h) > 0";
    // At midnight, when the demo has least traffic, it takes long to have so many requests.
    until("an app with an objective is judged", async || !prometheus.query(judged).await.is_empty()).await;
    // The longest `for` of a critical alert is 15 minutes: 15 seconds here.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let critical = prometheus.query("ALERTS{severity=\"critical\", alertstate=\"firing\"}").await;
        assert!(critical.is_empty(), "{critical:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_cannot_be_polled_is_named() {
    let stage = Stage::set().await;
    let (project, apps) = stage.world.projects().remove(0);
    let fault = Fault::from(Kind::Status { status: 500, retry_after: None });
    stage.world.faults().set([fault.on(get_app::RESOURCE).of_app(&apps[0])]);
    until("the failing target is told", async || !stage.alerts("PdsTargetFailing").await.is_empty()).await;
    for alert in stage.alerts("PdsTargetFailing").await {
        let label = |name: &str| alert["labels"][name].as_str().unwrap().to_owned();
        assert_eq!((label("project"), label("app")), (project.to_string(), apps[0].to_string()));
        assert_eq!(label("resource"), "app");
    }
    assert!(stage.alerts("PdsMostTargetsFailing").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_exporter_fires_an_alert() {
    let stage = Stage::set().await;
    until("it was scraped", async || !stage.prometheus.query("pds_up == 1").await.is_empty()).await;
    let Stage { exporter, prometheus, alertmanager, .. } = stage;
    exporter.kill();
    until("its end is told", async || {
        let alerts = alertmanager.get("/api/v2/alerts", &[("filter", "alertname=PdsExporterDown")]).await;
        !alerts.as_array().unwrap().is_empty()
    })
    .await;
    assert!(prometheus.query("pds_up").await.is_empty(), "what nobody tells any more is gone");
}
