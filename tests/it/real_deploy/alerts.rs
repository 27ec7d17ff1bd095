//! From a fault of the service to the alert at Alertmanager.

use std::time::{Duration, Instant};

use pds_interface::{get_app, response_time};
use pds_simulator::{Fault, Kind};

use crate::process::{Exporter, until};
use crate::rig::FaultExt as _;

use super::fast::{Stage, watch};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_cannot_be_polled_is_named_and_silences_its_consequences_only() {
    let stage = Stage::set().await;
    until("a request was counted", async || {
        !stage.prometheus.query("pds_app_requests_total > 0").await.is_empty()
    })
    .await;
    let (project, apps) = stage.world.projects().remove(0);
    let forbidden = || Fault::from(Kind::Status { status: 403, retry_after: None });
    let server_error = Fault::from(Kind::Status { status: 500, retry_after: None });
    stage.world.faults().set([
        forbidden().on(response_time::RESOURCE).of_app(&apps[0]),
        server_error.on(get_app::RESOURCE).of_app(&apps[1]),
    ]);
    let mut alerts = Vec::new();
    until("exactly both targets are told", async || {
        alerts = stage.alerts("PdsTargetFailing").await;
        alerts.len() == 2 && alerts.iter().all(|alert| alert["status"]["state"] == "active")
    })
    .await;
    for alert in alerts {
        let place = usize::from(alert["labels"]["resource"] == "app");
        let named = ["project", "app"].map(|label| alert["labels"][label].as_str().unwrap());
        assert_eq!(named, [&*project, &*apps[place]], "{alert}");
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
    let (prometheus, _alertmanager) = watch(&exporter).await;
    let judged = "count(pds_app:slo_errors:ratio_rate1h) > 0";
    until("an app with an objective is judged", async || !prometheus.query(judged).await.is_empty()).await;
    // The longest `for` of a critical alert is 15 minutes: 15 seconds here.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        // A busy machine may fail every scrape of five seconds.
        let firing = "ALERTS{severity=\"critical\", alertstate=\"firing\", alertname!~\"PdsExporter.*\"}";
        let critical = prometheus.query(firing).await;
        assert!(critical.is_empty(), "{critical:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
