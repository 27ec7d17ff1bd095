//! The README is true: the sample of the metrics page is what the demo serves. [`crate::docs`] checks what is common to
//! all pages.

use std::collections::BTreeSet;

use crate::golden::{assert_current, between};
use crate::process::{Exporter, until_page};

const README: &str = "README.md";

/// The series of the sample: family, and labels that identify it beside the app.
const SAMPLE: &[(&str, &[&str])] = &[
    ("pds_app_requests_total", &[]),
    ("pds_app_request_duration_seconds_bucket", &["le=\"0.05\""]),
    ("pds_app_accounted_until_timestamp_seconds", &["resource=\"response_time\""]),
    ("pds_app_response_time_seconds", &["window=\"5m\"", "percentile=\"p95\""]),
    ("pds_app_window_requests", &["window=\"5m\""]),
    ("pds_app_status", &[]),
    ("pds_app_cpu_cores", &[]),
    ("pds_app_memory_bytes", &[]),
    ("pds_app_max_replicas", &[]),
    ("pds_up", &["resource=\"response_time\""]),
];

/// The app of the sample; the demo's service is the same each time.
const APP: &str = "-gateway\"";

/// Family and labels of each line, labels in no particular order; values differ from run to run.
fn series(page: &str) -> Vec<BTreeSet<&str>> {
    let lines = page.lines().filter_map(|line| line.rsplit_once("} "));
    lines.map(|(series, _)| series.split(['{', ',']).collect()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_demo_serves_the_sample() {
    let exporter = Exporter::start(&["--demo"]);
    let mut sample = String::new();
    until_page(&exporter, "all of the sample is on the page", |page| {
        let line = |(family, labels): &(&str, &[&str])| {
            page.lines().find(|line| {
                line.starts_with(&format!("{family}{{"))
                    && line.contains(APP)
                    && labels.iter().all(|label| line.contains(label))
                    && !line.ends_with(" 0")
            })
        };
        let lines: Vec<&str> = SAMPLE.iter().filter_map(line).collect();
        sample = format!("```\n{}\n```\n", lines.join("\n"));
        lines.len() == SAMPLE.len()
    })
    .await;
    let readme = std::fs::read_to_string(README).unwrap();
    let (_, shown, _) = between(&readme, "sample");
    if series(shown) != series(&sample) {
        assert_current(README, "sample", &sample);
    }
}

#[test]
fn the_readme_is_short() {
    let length = std::fs::read_to_string(README).unwrap().len();
    assert!(length <= 12_000, "{length} bytes: what only some readers need goes to docs/");
}
