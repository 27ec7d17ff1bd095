//! Killed at any moment, again and again: nothing that was scraped is ever taken back, and nothing is lost.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use pds_core::clock::Clock;
use pds_interface::TimeRange;
use pds_ledger::{Key, Ledger, state::StateFile};
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
    let mut labels = String::new();
    pds_exposition::encode::label(&mut labels, "project", project);
    pds_exposition::encode::label(&mut labels, "app", app);
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

/// `good` with damage of some kind: a bit turned over, some bytes or a sector overwritten, a page in the place of
/// another, a page of an older file, an end cut off.
fn damaged(good: &[u8], older: &[u8], numbers: &mut Rng) -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut bad = good.to_vec();
    let at = numbers.usize(..good.len());
    let pages = good.len() / PAGE;
    // The first page alone, as it was, is the file as it was before its last commits: nothing can tell.
    let page = (1 + numbers.usize(..pages - 1)) * PAGE;
    match numbers.usize(..6) {
        0 => bad[at] ^= 1 << numbers.u8(..8),
        1 => bad[at..].iter_mut().take(64).for_each(|byte| *byte = numbers.u8(..)),
        2 => bad[at / 512 * 512..].iter_mut().take(512).for_each(|byte| *byte = 0),
        3 => {
            let from = numbers.usize(..pages) * PAGE;
            bad.copy_within(from..from + PAGE, page);
        }
        4 if older.len() >= page + PAGE => bad[page..][..PAGE].copy_from_slice(&older[page..][..PAGE]),
        _ => bad.truncate(at),
    }
    bad
}

async fn ledgers(path: &Path) -> Result<Vec<(Key, Ledger)>, String> {
    StateFile::open(path).await.map(|(_, found)| found.sorted()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_left_by_a_kill_and_damaged_is_refused_or_has_every_count() {
    let (_world, folder, config) =
        rig::service(Settings { projects: 2, apps: 6, ..Settings::default() }).await;
    let (state, copy) = (folder.path().join("state.log"), folder.path().join("copy.log"));
    let state_path = state.display().to_string();
    let mut numbers = Rng::with_seed(7);
    let (mut older, mut refused, mut whole) = (Vec::new(), 0, 0);
    for life in 0..3 {
        let exporter = Exporter::start(&["--config.file", &config, "--state.path", &state_path]);
        until_page(&exporter, "every app is counted", |page| {
            let counts = ["pds_app_requests_total{", "pds_app_runs_total{"];
            series(page).filter(|(name, _)| counts.iter().any(|count| name.starts_with(count))).count() == 12
        })
        .await;
        tokio::time::sleep(Duration::from_millis(700 * life)).await;
        exporter.kill();
        std::fs::copy(&state, &copy).unwrap();
        let counted = ledgers(&copy).await.unwrap();
        // The start cuts off an entry that the kill may have torn.
        let good = std::fs::read(&copy).unwrap();
        assert_eq!(counted.len(), 12);
        for number in 0..100 {
            let bad = damaged(&good, &older, &mut numbers);
            std::fs::write(&copy, &bad).unwrap();
            match ledgers(&copy).await {
                Ok(found) => {
                    assert!(found == counted, "life {life}, damage {number}: other counters without a word");
                    whole += 1;
                }
                Err(said) => {
                    assert!(said.contains("copy.log") && said.contains("damaged"), "{said}");
                    assert!(std::fs::read(&copy).unwrap() == bad, "a file that is refused stays as it is");
                    refused += 1;
                }
            }
        }
        older = good;
    }
    assert!(refused > 50 && whole > 20, "{refused} refused, {whole} whole");
}
