//! A hundred thousand apps in one process: ten million series.

use std::time::{Duration, Instant};

use pds_ledger::recheck::Ages;
use pds_simulator::THRESHOLDS;

use crate::daemon::{Exporter, Setting};
use crate::process::Core;
use crate::restore;
use crate::scrape::{Scraper, value};
use crate::table::{self, Figure, Target};

const APPS: usize = 100_000;
const MINUTES: usize = 3;
const STATE: &str = "[state]\npath = \"FOLDER/state.log\"\n";

fn setting(tables: &str) -> Setting<'_> {
    Setting { concurrency: 64, core: Core::Any, ..Setting::new(APPS, tables) }
}

/// Time to start, processor, memory, disk, scrapes, polls beside scrapes, status pages, and counters read back.
pub(crate) fn cost(daemon: &str) {
    let row = |what: &str, figure: Figure, digits, target, note: &str| {
        table::row(&format!("{APPS} apps{what}"), figure, digits, target, note);
    };
    let exporter = Exporter::start(daemon, setting(STATE));
    let listening = exporter.since_start();
    let mut exporter = exporter.ready();
    let note = format!("every target polled once; it listens after {listening:.1} s");
    row(": start, s", exporter.since_start().into(), 1, Target::AtMost(10.0), &note);
    // The first round comes out of turn.
    std::thread::sleep(Duration::from_secs(60));
    let (served, written, began) = (exporter.served(), exporter.process.written(), Instant::now());
    let (quiet, _, quiet_lag) = minutes(&exporter, 0);
    let (scraped, scrapes, lag) = minutes(&exporter, 2);
    let seconds = began.elapsed().as_secs_f64();
    let requests = (exporter.served() - served) / seconds;
    let written = (exporter.process.written() - written) as f64 / seconds / 1e3;
    let note = format!("{requests:.0} requests/s, 2 scrapes a minute");
    row(" each minute: % of a core", scraped, 1, Target::AtMost(50.0), &note);
    row(" each minute, but for how late polls start not scraped: % of a core", quiet, 1, Target::None, "");
    row(": scrape with gzip, s", Figure::of(scrapes), 2, Target::AtMost(3.0), "10 million series");
    row(
        ": p99 of how late polls start, ms",
        lag,
        1,
        Target::None,
        "2 scrapes a minute; polls start in groups of 100 ms",
    );
    row(": p99 of how late polls start, not scraped, ms", quiet_lag, 1, Target::None, "");
    let (now, most) = exporter.process.memory();
    let note = format!("at peak; {:.0} MB now", now as f64 / 1e6);
    row(": RSS in MB", (most as f64 / 1e6).into(), 0, Target::AtMost(700.0), &note);
    let note = format!("state file {:.0} MB", exporter.state_size() as f64 / 1e6);
    row(": state written, kB/s", written.into(), 0, Target::None, &note);
    let pages = (0..9).map(|_| {
        // A page is kept for a second.
        std::thread::sleep(Duration::from_secs(2));
        timed(&mut Scraper::new(&format!("{}/", exporter.process.url), true)) * 1e3
    });
    row(": status page, ms", Figure::of(pages.collect()), 0, Target::AtMost(200.0), "made anew");
    let size = exporter.state_size() as f64 / 1e6;
    row(": state file, MB", size.into(), 0, Target::AtMost(200.0), "80 when it is written anew");
    for (age, hours) in [("24h", 24), ("3d", 72)] {
        let ages = Ages::new([hours * 3600]);
        let bytes = APPS * (ages.kept_bytes(THRESHOLDS.len()) + ages.kept_bytes(0));
        let what = format!(": hours kept for recheck_after = [\"{age}\"], MB");
        row(&what, (bytes as f64 / 1e6).into(), 0, Target::None, "computed; in memory and in the file");
    }
    let opened = exporter.again(daemon, setting(STATE).core).as_secs_f64();
    row(": start over that file, s until it listens", opened.into(), 2, Target::AtMost(2.0), "");
    drop(exporter);
    let prometheus = restore::prometheus();
    let tables = restore::tables(&prometheus);
    let exporter = Exporter::start(daemon, setting(&tables));
    let took = restore::restored(&exporter, &prometheus).as_secs_f64();
    let note = format!("{}; everything is polled meanwhile", restore::cost_of(&prometheus));
    let what = ": cursors read from Prometheus, s after the first scrape";
    row(what, took.into(), 1, Target::AtMost(11.0), &note);
}

/// Some minutes: percent of a core in each, seconds of each scrape, and the p99 of how late polls start in each.
fn minutes(exporter: &Exporter, scrapes_a_minute: u32) -> (Figure, Vec<f64>, Figure) {
    let mut lag_of = Scraper::new(&format!("{}?name[]={LAG}", exporter.metrics()), false);
    let (mut cpus, mut late, mut scrapes) = (vec![], vec![], vec![]);
    for _ in 0..MINUTES {
        let (cpu, began, mut lags) = (exporter.process.cpu(), Instant::now(), vec![]);
        std::thread::scope(|scope| {
            let scraping = scope.spawn(|| {
                let scrape = |n| {
                    wait_until(
                        began + Duration::from_secs(60) * n / scrapes_a_minute + Duration::from_secs(5),
                    );
                    timed(&mut exporter.scraper(true))
                };
                (0..scrapes_a_minute).map(scrape).collect::<Vec<_>>()
            });
            for tick in 0..600_u32 {
                wait_until(began + Duration::from_millis(100) * (tick + 1));
                let page = String::from_utf8_lossy(&lag_of.body()).into_owned();
                lags.extend(value(&page, LAG).map(|seconds| seconds * 1e3));
            }
            scrapes.extend(scraping.join().unwrap());
        });
        cpus.push((exporter.process.cpu() - cpu) / began.elapsed().as_secs_f64() * 100.0);
        lags.sort_by(f64::total_cmp);
        late.push(lags[lags.len() * 99 / 100]);
    }
    (Figure::of(cpus), scrapes, Figure::of(late))
}

fn wait_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}

const LAG: &str = "pds_exporter_poll_lag_seconds";

/// Seconds until the reply is read.
fn timed(scraper: &mut Scraper) -> f64 {
    let began = Instant::now();
    scraper.get(|_| ());
    began.elapsed().as_secs_f64()
}
