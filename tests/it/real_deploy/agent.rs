//! Beyond one Prometheus: the shipped agent configuration, and a receiver.

use crate::deploy::text;
use crate::process::{Exporter, until};

use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_sends_everything_on() {
    sends_everything_on(PROMETHEUS_2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_prometheus_3_does_the_same() {
    sends_everything_on(PROMETHEUS_3).await;
}

async fn sends_everything_on(program: &str) {
    let exporter = Exporter::start(&["--demo"]);
    let nothing = [("prometheus.yml", "scrape_configs: []")];
    let receiver = Server::prometheus(program, &nothing, "--web.enable-remote-write-receiver").await;
    let config = text("prometheus/agent.yml")
        .replace("scrape_interval: 30s", "scrape_interval: 1s")
        .replace("localhost:10090", exporter.url.trim_start_matches("http://"))
        .replace("localhost:9090", &receiver.address);
    let _agent = Server::agent(program, &config).await;

    until("requests arrive", async || !receiver.query("pds_app_requests_total").await.is_empty()).await;
    until("the scrapes themselves arrive", async || !receiver.query("up == 1").await.is_empty()).await;
    let up = receiver.query("up").await.remove(0);
    assert_eq!((&up["metric"]["job"], &up["metric"]["cluster"]), (&"pds-exporter".into(), &"example".into()));
    // PdsInstanceShared reads it.
    assert!(!receiver.query("process_start_time_seconds").await.is_empty());
}
