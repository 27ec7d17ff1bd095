//! The limit of polling: reqwest and typed serde_json in a loop, and nothing else. No samples, no store, no
//! counters, no limits, no metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::RootCertStore;
use tokio::time::Instant;

use crate::fixture::rivals::{Envelope, ResponseTime, Runs};
use crate::fixture::{THRESHOLDS, app, project};
use crate::http::tls;
use crate::process::cpu_of;

/// Paced requests begin in groups this far apart, as polls of the exporter do.
const GROUP: Duration = Duration::from_millis(100);

/// How the bare loop asks.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) apps: usize,
    pub(crate) requests: usize,
    pub(crate) concurrency: usize,
    pub(crate) http2: bool,
    /// Requests per second. Without a pace, each follows the one before at once.
    pub(crate) pace: Option<f64>,
}

/// Asks for the metrics of one app after the other, both ranges as a poll does, and prints the processor time used
/// in seconds.
pub(crate) async fn ask(base: &str, load: Load) {
    let builder =
        reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls(RootCertStore::empty()));
    let builder = if load.http2 { builder.http2_prior_knowledge() } else { builder.http1_only() };
    let client = builder.build().unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let base = Arc::new(base.to_owned());
    let (before, began) = (cpu_of(std::process::id()), Instant::now());
    let workers: Vec<_> = (0..load.concurrency)
        .map(|_| tokio::spawn(worker(client.clone(), Arc::clone(&base), Arc::clone(&next), began, load)))
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    println!("cpu {}", cpu_of(std::process::id()) - before);
}

async fn worker(
    client: reqwest::Client,
    base: Arc<String>,
    next: Arc<AtomicUsize>,
    began: Instant,
    load: Load,
) {
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= load.requests {
            return;
        }
        if let Some(pace) = load.pace {
            let groups = n as f64 / (pace * GROUP.as_secs_f64());
            tokio::time::sleep_until(began + GROUP * groups as u32).await;
        }
        let app_at = (n / 4) % load.apps;
        let of_app = format!("{base}/v2/projects/{}/apps/{}/metrics", project(app_at), app(app_at));
        let start = if n.is_multiple_of(2) { "2026-01-01T00:00:00Z" } else { "2026-01-01T00:04:00Z" };
        let range = format!("start={}&end=2026-01-01T00%3A05%3A00Z", start.replace(':', "%3A"));
        if n % 4 < 2 {
            let body = get(&client, format!("{of_app}/response-time?{range}")).await;
            let reply: Envelope<ResponseTime> = serde_json::from_slice(&body).unwrap();
            assert!(reply.status == "success" && reply.data.distribution.len() == THRESHOLDS.len());
        } else {
            let body = get(&client, format!("{of_app}/run-execution-time?{range}")).await;
            let reply: Envelope<Runs> = serde_json::from_slice(&body).unwrap();
            assert!(reply.status == "success" && reply.data.time_series.len() == 5);
        }
    }
}

async fn get(client: &reqwest::Client, url: String) -> bytes::Bytes {
    client.get(url).header("authorization", "Bearer a-token").send().await.unwrap().bytes().await.unwrap()
}
