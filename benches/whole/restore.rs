//! The cost of reading the cursors of many apps from Prometheus.

use std::time::{Duration, Instant};

use crate::daemon::{Exporter, Setting};
use crate::process::{Core, Process, role};
use crate::scrape::{Scraper, value};
use crate::table::{self, Figure, Target};

const APPS: usize = 10_000;
const ROUNDS: usize = 3;
const RESTORED: &str = "pds_exporter_state_last_restore_successful";
const LOADED: &str = "pds_exporter_config_last_reload_success_timestamp_seconds";

/// Time, requests, bytes and memory while the exporter polls everything for the first time.
pub(crate) fn cost(daemon: &str) {
    let (mut took, mut memory) = (vec![], vec![]);
    let (mut note, mut note_of_memory) = (String::new(), String::new());
    for _ in 0..ROUNDS {
        let without = peak(&Exporter::start(daemon, Setting::new(APPS, "")).ready());
        let prometheus = prometheus();
        let exporter = Exporter::start(daemon, Setting::new(APPS, &tables(&prometheus)));
        took.push(restored(&exporter, &prometheus).as_secs_f64());
        note = cost_of(&prometheus);
        let with = peak(&exporter.ready());
        memory.push(with / without);
        note_of_memory = format!("{:.0} MB at peak, {:.0} MB without", with / 1e6, without / 1e6);
    }
    let what = "10,000 apps: cursors read from Prometheus, s after the first scrape";
    table::row(what, Figure::of(took), 2, Target::AtMost(5.0), &note);
    let what = "memory at a start with cursors of 10,000 apps / without";
    table::row(what, Figure::of(memory), 2, Target::AtMost(1.5), &note_of_memory);
}

/// A Prometheus that holds the cursors of all apps.
pub(crate) fn prometheus() -> Process {
    Process::start(role("prometheus", Core::Last))
}

/// The configuration that reads cursors from it.
pub(crate) fn tables(prometheus: &Process) -> String {
    format!("[state]\nprometheus_url = \"{}\"\n", prometheus.url)
}

/// Has it scrape the exporter. Returns how long after that all cursors are known.
pub(crate) fn restored(exporter: &Exporter, prometheus: &Process) -> Duration {
    let page = |name: &str| {
        let url = format!("{}?name[]={name}", exporter.metrics());
        String::from_utf8_lossy(&Scraper::new(&url, false).body()).into_owned()
    };
    let page_with = page(LOADED);
    let loaded = page_with.lines().find_map(|line| line.strip_prefix(LOADED)).unwrap().trim();
    Scraper::new(&format!("{}/scraped/{loaded}", prometheus.url), false).body();
    let began = Instant::now();
    while value(&page(RESTORED), RESTORED) != Some(1.0) {
        assert!(began.elapsed() < Duration::from_secs(120), "the cursors are known: {}", page(RESTORED));
        std::thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}

/// The requests that it received since it scraped the exporter.
pub(crate) fn cost_of(prometheus: &Process) -> String {
    let told = |path: &str| -> f64 {
        let body = Scraper::new(&format!("{}{path}", prometheus.url), false).body();
        String::from_utf8_lossy(&body).parse().unwrap()
    };
    format!("{} requests, {:.1} MB", told("/requests"), told("/bytes") / 1e6)
}

/// Its memory at peak, some seconds after the first round.
fn peak(exporter: &Exporter) -> f64 {
    std::thread::sleep(Duration::from_secs(5));
    exporter.process.memory().1 as f64
}
