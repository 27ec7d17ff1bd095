//! The exporter that a Rust programmer would write: reqwest sends requests, prometheus-client holds and encodes, axum
//! serves. For comparison only.
//!
//! usage: peer BASE_URL SECONDS < APPS, one `project/app` a line; each app is polled every so many seconds

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures_util::StreamExt as _;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde::de::DeserializeOwned;

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

#[derive(Clone, Default)]
struct Metrics {
    percentile: Gauges,
    within: Gauges,
    requests: Gauges,
    run: Gauges,
    runs: Gauges,
    requests_total: Family<Labels, Counter>,
    buckets: Family<Labels, Counter>,
    runs_total: Family<Labels, Counter>,
}

#[derive(Deserialize)]
struct Reply<T> {
    data: T,
}

#[derive(Deserialize)]
struct ResponseTime {
    percentiles: BTreeMap<String, f64>,
    distribution: BTreeMap<String, f64>,
    total_requests: u64,
}

#[derive(Deserialize)]
struct Runs {
    time_series: Vec<Point>,
    total_runs: u64,
}

#[derive(Deserialize)]
struct Point {
    p50: f64,
    p90: f64,
    p99: f64,
}

struct Service {
    client: reqwest::Client,
    base: String,
}

const WINDOW: [(&str, &str); 2] = [("start", "2026-01-01T00:00:00Z"), ("end", "2026-01-01T00:05:00Z")];
const STEP: [(&str, &str); 2] = [("start", "2026-01-01T00:04:00Z"), ("end", "2026-01-01T00:05:00Z")];

impl Service {
    async fn get<T: DeserializeOwned>(&self, path: &str, range: &[(&str, &str)]) -> reqwest::Result<T> {
        let request = self.client.get(format!("{}{path}", self.base)).query(range).bearer_auth("a-token");
        Ok(request.send().await?.error_for_status()?.json::<Reply<T>>().await?.data)
    }

    async fn poll(&self, metrics: &Metrics, project: &str, app: &str) -> reqwest::Result<()> {
        let labels = || vec![("project", project.to_owned()), ("app", app.to_owned())];
        let with = |name, value: &str| [labels(), vec![(name, value.to_owned())]].concat();
        let window = || with("window", "5m");
        let window_with = |name, value: String| [window(), vec![(name, value)]].concat();
        let path = format!("/v2/projects/{project}/apps/{app}/metrics/response-time");
        let data: ResponseTime = self.get(&path, &WINDOW).await?;
        for (percentile, millis) in data.percentiles {
            metrics.percentile.get_or_create(&window_with("percentile", percentile)).set(millis / 1e3);
        }
        for (threshold, share) in data.distribution {
            metrics.within.get_or_create(&window_with("threshold", threshold)).set(share / 100.0);
        }
        metrics.requests.get_or_create(&window()).set(data.total_requests as f64);
        let data: ResponseTime = self.get(&path, &STEP).await?;
        metrics.requests_total.get_or_create(&labels()).inc_by(data.total_requests);
        for (threshold, share) in data.distribution {
            let within = (share / 100.0 * data.total_requests as f64).round() as u64;
            metrics.buckets.get_or_create(&with("le", &threshold)).inc_by(within);
        }
        let path = format!("/v2/projects/{project}/apps/{app}/metrics/run-execution-time");
        let data: Runs = self.get(&path, &WINDOW).await?;
        if let Some(Point { p50, p90, p99 }) = data.time_series.last() {
            for (percentile, seconds) in [("p50", p50), ("p90", p90), ("p99", p99)] {
                metrics.run.get_or_create(&with("percentile", percentile)).set(*seconds);
            }
        }
        metrics.runs.get_or_create(&window()).set(data.total_runs as f64);
        let data: Runs = self.get(&path, &STEP).await?;
        metrics.runs_total.get_or_create(&labels()).inc_by(data.total_runs);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let service = Service { client: reqwest::Client::new(), base: arguments[1].clone() };
    let interval = Duration::from_secs(arguments[2].parse().expect("seconds"));
    let apps: Vec<String> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    registry.register("pds_app_response_time_seconds", "h", metrics.percentile.clone());
    registry.register("pds_app_response_time_within_ratio", "h", metrics.within.clone());
    registry.register("pds_app_window_requests", "h", metrics.requests.clone());
    registry.register("pds_app_run_execution_time_seconds", "h", metrics.run.clone());
    registry.register("pds_app_window_runs", "h", metrics.runs.clone());
    registry.register("pds_app_requests", "h", metrics.requests_total.clone());
    registry.register("pds_app_request_duration_seconds_bucket", "h", metrics.buckets.clone());
    registry.register("pds_app_runs", "h", metrics.runs_total.clone());
    let registry = Arc::new(registry);
    let page = get(async move || {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).expect("a string takes all");
        page
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("listening {}", listener.local_addr().expect("an address"));
    tokio::spawn(async { axum::serve(listener, Router::new().route("/metrics", page)).await });
    let mut rounds = tokio::time::interval(interval);
    loop {
        rounds.tick().await;
        let polls = futures_util::stream::iter(&apps).for_each_concurrent(32, async |line| {
            let (project, app) = line.split_once('/').expect("project/app");
            service.poll(&metrics, project, app).await.expect("the service answers");
        });
        polls.await;
    }
}
