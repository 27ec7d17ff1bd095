//! A real Prometheus scrapes the demo: its quantiles are the simulator's truth, and strict parsers read its page. Counts in
//! Prometheus are compared with the truth by `real_restore`, `real_readme` and `real_queries`.

use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use serde_json::Value;

use crate::deploy::{text, yaml};
use crate::process::{Exporter, get, http, series, until, until_page, value};
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server};
use crate::tools::tool;

/// The address of the demo's simulated service, from its log.
fn service(exporter: &Exporter) -> String {
    let log = exporter.log();
    let rest = log.split_once("service=").unwrap_or_else(|| panic!("no service in:\n{log}")).1;
    rest.split([' ', '\n']).next().unwrap().trim_end_matches('/').to_owned()
}

/// The truth about an app between two Unix seconds.
async fn truth(service: &str, project: &str, app: &str, start: f64, end: f64) -> Value {
    let query = [
        ("project", project),
        ("app", app),
        ("start", &format!("{start:.0}")),
        ("end", &format!("{end:.0}")),
    ];
    let url = url::Url::parse_with_params(&format!("{service}/simulator/truth"), query).unwrap();
    serde_json::from_str(&get(url.as_str()).await.unwrap().text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn quantiles_across_apps_agree_with_the_truth_within_one_bucket() {
    let exporter = Exporter::demo().await;
    let prometheus = Server::scraping(PROMETHEUS_2, &exporter.url).await;
    let page = exporter.get("/metrics").await;
    let started: f64 = series(&page)
        .filter(|(name, _)| name.starts_with("pds_app_accounted_until_timestamp_seconds"))
        .map(|(_, until)| until)
        .fold(f64::MAX, f64::min);
    let service = service(&exporter);
    let expression =
        "histogram_quantile(0.95, sum by (le) (rate(pds_app_request_duration_seconds_bucket[1m])))";
    let increase = "sum(increase(pds_app_requests_total[1m]))";
    until_page(&exporter, "thirty seconds were counted", |page| {
        series(page)
            .filter(|(name, _)| name.starts_with("pds_app_accounted_until"))
            .all(|(_, until)| until >= started + 30.0)
    })
    .await;
    // rate() is about what lies between the first and the last sample in its range, the same scrapes for all series.
    let now = Timestamp::now();
    let until = "pds_app_accounted_until_timestamp_seconds{resource=\"response_time\"}[1m]";
    let first = prometheus.by_app(&format!("min_over_time({until})"), now).await;
    let last = prometheus.by_app(&format!("max_over_time({until})"), now).await;
    let (mut requests, mut within) = (0.0, std::collections::BTreeMap::<String, f64>::new());
    for ((project, app, start), (.., end)) in first.iter().zip(&last) {
        let truth = truth(&service, project, app, *start, *end).await;
        requests += truth["requests"].as_f64().unwrap();
        for (label, count) in truth["within"].as_object().unwrap() {
            *within.entry(label.clone()).or_default() += count.as_f64().unwrap();
        }
    }
    let mut bounds: Vec<(f64, f64)> = within
        .iter()
        .map(|(label, count)| (pds_interface::response_time::threshold_seconds(label).unwrap(), *count))
        .collect();
    bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let place = bounds.iter().position(|(_, count)| *count >= 0.95 * requests).unwrap();
    let low = place.checked_sub(2).map_or(0.0, |below| bounds[below].0);
    let high = bounds.get(place + 1).map_or(f64::INFINITY, |above| above.0);
    let answer = prometheus.by_app(expression, now).await[0].2;
    assert!((low..=high).contains(&answer), "p95 {answer} is not within {low}..{high}: {bounds:?}");
    // increase() extrapolates to the ends of its range, by no more than it has seen.
    let seen = prometheus.by_app(increase, now).await[0].2;
    assert!(
        seen >= requests && seen <= 2.5 * requests,
        "increase gives {seen} requests, there were {requests}"
    );
}

/// Runs a checker on the page, with what it says when it has complaints.
fn check(command: &mut Command, page: &Path) -> Result<(), String> {
    let input = std::fs::File::open(page).unwrap();
    let output = command.stdin(input).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() && said.trim().is_empty() { Ok(()) } else { Err(said) }
}

#[tokio::test]
async fn strict_parsers_read_the_demos_page() {
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::demo().await;
    let fetch = async |accept: &str, name: &str| -> (PathBuf, String) {
        let client = http();
        let reply =
            client.get(format!("{}/metrics", exporter.url)).header("accept", accept).send().await.unwrap();
        let (path, text) = (folder.path().join(name), reply.text().await.unwrap());
        std::fs::write(&path, &text).unwrap();
        (path, text)
    };
    let (plain, text) = fetch("text/plain;version=0.0.4", "text").await;
    let (open, openmetrics) = fetch("application/openmetrics-text;version=1.0.0", "openmetrics").await;

    // Hours are what is counted, not a unit; the name is part of the contract.
    let hours = "pds_app_disputed_hours_total use base unit \"seconds\" instead of \"hours\"\n";
    match check(Command::new(tool("promtool")).args(["check", "metrics"]), &plain) {
        Ok(_) => {}
        Err(complaints) => assert_eq!(complaints, hours),
    }
    let python = |parser: &str| {
        let script = format!(
            "import sys\nfrom {parser} import text_string_to_metric_families as read\nlist(read(sys.stdin.read()))"
        );
        let mut command = Command::new(tool("python3"));
        command.args(["-c", &script]);
        command
    };
    check(&mut python("prometheus_client.parser"), &plain).unwrap();
    check(&mut python("prometheus_client.openmetrics.parser"), &open).unwrap();
    // OpenMetrics has no count without a sum.
    let has_sum = |line: &str| {
        let name = line.split(['{', ' ']).next().unwrap().strip_suffix("_count");
        name.is_none_or(|name| line.starts_with('#') || text.contains(&format!("\n{name}_sum")))
    };
    let text: String = text.split_inclusive('\n').filter(|line| has_sum(line)).collect();
    // Both formats show the same series.
    let names = |page: &str| series(page).map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&text), names(&openmetrics));
    assert!(value(&text, "pds_exporter_config_last_reload_successful").is_some_and(|good| good > 0.0));
}

#[tokio::test]
async fn prometheus_3_makes_whole_custom_buckets_of_the_text() {
    let exporter = Exporter::demo().await;
    let target = exporter.url.trim_start_matches("http://");
    // As the shipped configuration of a Collector scrapes.
    let collector = yaml(&text("prometheus/collector.yml")).remove(0);
    let mut config = collector["receivers"]["prometheus"]["config"].clone();
    let scrape = &mut config["scrape_configs"][0];
    scrape["scrape_interval"] = "1s".into();
    scrape["convert_classic_histograms_to_nhcb"] = true.into();
    scrape["static_configs"][0]["targets"][0] = target.into();
    let text = config.to_string();
    let files = [("prometheus.yml", &*text)];
    let prometheus = Server::prometheus(PROMETHEUS_3, &files, "--enable-feature=native-histograms").await;
    let whole =
        "histogram_count(pds_app_request_duration_seconds) == on (project, app) pds_app_requests_total > 0";
    until("every app with requests has a histogram of them", async || {
        let busy = prometheus.by_app("pds_app_requests_total > 0", Timestamp::now()).await.len();
        busy > 3 && prometheus.by_app(whole, Timestamp::now()).await.len() == busy
    })
    .await;
}
