//! Killed at any moment, again and again: nothing that was scraped is ever taken back, and nothing is lost.

use std::collections::HashMap;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_interface::TimeRange;
use pds_simulator::{Fault, Settings, World};

use crate::process::{Exporter, series, until_page};
use crate::rig::{self, FaultExt as _};

const KILLS: u64 = 34;

/// The counters on the page, and the times up to which they count.
pub(crate) fn counters(page: &str) -> HashMap<String, f64> {
    let counted = [
        "pds_app_requests_total",
        "pds_app_runs_total",
        "pds_app_request_duration_seconds_bucket",
        "pds_app_unaccounted_seconds_total",
        "pds_app_accounted_until",
    ];
    series(page)
        .filter(|(name, _)| counted.iter().any(|counter| name.starts_with(counter)))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Fails where anything on the page is less than it was.
fn assert_not_taken_back(page: &str, most: &mut HashMap<String, f64>, log: &str) {
    for (name, value) in counters(page) {
        let before = most.entry(name.clone()).or_insert(value);
        assert!(value >= *before, "{name} went back from {before} to {value}\n{log}");
        *before = value;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_kill_takes_a_count_back_or_loses_one() {
    let (world, folder, config) =
        rig::service(Settings { projects: 2, apps: 6, ..Settings::default() }).await;
    world.faults().set([
        Fault::status(500).with_probability(0.1),
        Fault::from(pds_simulator::Kind::Reset).with_probability(0.05),
        Fault::from(pds_simulator::Kind::CutBody).with_probability(0.05),
    ]);
    let state = folder.path().join("state.log").display().to_string();
    let args = ["--config.file", &config, "--state.path", &state];

    let mut most: HashMap<String, f64> = HashMap::new();
    let mut first: HashMap<String, f64> = HashMap::new();
    for life in 0..KILLS {
        let exporter = Exporter::start(&args);
        // Between a moment and two commits after the start; which ones is the same in every run.
        let lives = Duration::from_millis(50 + life * 7919 % 900);
        let end = tokio::time::Instant::now() + lives;
        while tokio::time::Instant::now() < end {
            let page = exporter.get("/metrics").await;
            for (name, value) in counters(&page) {
                first.entry(name).or_insert(value);
            }
            assert_not_taken_back(&page, &mut most, &exporter.log());
        }
        exporter.kill();
    }

    world.faults().clear();
    let exporter = Exporter::start(&args);
    let caught_up_to = Clock::system().unix_seconds() as f64;
    until_page(&exporter, "everything is counted up to now", |page| {
        assert_not_taken_back(page, &mut most, &exporter.log());
        let untils = series(page).filter(|(name, _)| name.starts_with("pds_app_accounted_until"));
        let reached = untils.filter(|(_, until)| *until >= caught_up_to).count();
        reached == 12 && page.contains("pds_app_requests_total{")
    })
    .await;
    let page = counters(&exporter.get("/metrics").await);
    let mut counted = 0.0;
    for (project, apps) in world.projects() {
        for app in apps {
            counted += counted_exactly(&world, (&project, &app), &first, &page);
        }
    }
    assert!(counted > 0.0, "nothing happened at all");
}

/// Fails unless the counters of the app rose between the two pages by what really happened; by how much they rose.
pub(crate) fn counted_exactly(
    world: &World,
    (project, app): (&str, &str),
    first: &HashMap<String, f64>,
    last: &HashMap<String, f64>,
) -> f64 {
    let labels = pds_exposition::encode::labels([("project", project), ("app", app)]);
    let mut counted = 0.0;
    for (counter, resource) in
        [("pds_app_requests_total", "response_time"), ("pds_app_runs_total", "run_execution_time")]
    {
        let selector = |family: &str| format!("{family}{{{labels},resource=\"{resource}\"}}");
        assert_eq!(last[&selector("pds_app_unaccounted_seconds_total")], 0.0);
        let until = selector("pds_app_accounted_until_timestamp_seconds");
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
        let range = TimeRange { start: first[&until] as i64, end: last[&until] as i64 };
        let truth = world.truth(project, app, range).unwrap();
        let truth = if resource == "response_time" { truth.requests } else { truth.runs };
        let counter = format!("{counter}{{{labels}}}");
        let total = last[&counter] - first[&counter];
        assert!(total == truth as f64, "{counter} of {app}: {total}, and there were {truth} in {range:?}");
        counted += total;
    }
    counted
}
