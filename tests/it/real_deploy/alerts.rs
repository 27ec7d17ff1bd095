//! From a fault of the service to the alert at Alertmanager, and back.

use std::time::{Duration, Instant};

use pds_exporter::interface::get_app;
use pds_exporter::simulator::{Fault, Kind};

use crate::process::until;

use super::fast::Stage;

/// Scrape, evaluation, and a loaded machine; beside the time that a rule states.
const SLACK: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_raises_its_alert_silences_its_consequences_and_resolves() {
    let stage = Stage::set().await;
    until("a request was counted", async || {
        !stage.prometheus.query("pds_app_requests_total > 0").await.is_empty()
    })
    .await;
    assert!(stage.alerts("PdsTokenRejected").await.is_empty());
    assert!(stage.alerts("PdsSloThresholdHasNoBucket").await.is_empty());

    let begun = Instant::now();
    stage.world.faults().set([Fault::from(Kind::Status { status: 401, retry_after: None })]);
    until("the refused token is told", async || !stage.alerts("PdsTokenRejected").await.is_empty()).await;
    // Refused three times, five minutes from each other, and one minute more: eleven seconds here.
    let after = begun.elapsed();
    assert!(after < Duration::from_secs(11) + SLACK, "fired after {after:?}");
    let alert = stage.alerts("PdsTokenRejected").await.remove(0);
    assert_eq!(alert["labels"]["severity"], "critical");
    assert_eq!(alert["labels"]["job"], "pds-exporter");
    assert_eq!(alert["annotations"]["runbook_url"], "deploy/prometheus/runbooks/PdsTokenRejected.md");

    until("the failing targets are held back", async || {
        let failing = stage.alerts("PdsTargetFailing").await;
        let held = |alert: &serde_json::Value| alert["status"]["state"] == "suppressed";
        !failing.is_empty() && failing.iter().all(held)
    })
    .await;

    stage.world.faults().clear();
    let mended = Instant::now();
    until("all is well again", async || {
        stage.alerts("PdsTokenRejected").await.is_empty() && stage.alerts("PdsTargetFailing").await.is_empty()
    })
    .await;
    // It looks back 15m, which are fifteen seconds here.
    assert!(mended.elapsed() < Duration::from_secs(15) + SLACK, "resolved after {:?}", mended.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_app_that_can_not_be_asked_is_named() {
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
async fn an_exporter_that_dies_is_told() {
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
