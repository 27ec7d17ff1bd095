//! What it takes to read the counters of many apps back from Prometheus, beside a client that asks the same and does
//! nothing with what it gets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::daemon::{Exporter, Setting};
use crate::http::tls;
use crate::process::{Core, Process, number_of, role};
use crate::scrape::{Scraper, value};
use crate::table::{self, Figure, Target};

const APPS: usize = 10_000;
const ROUNDS: usize = 3;
/// Queries that the exporter has in flight, too.
const IN_FLIGHT: usize = 4;
const RESTORED: &str = "pds_exporter_state_last_restore_successful";
const SECONDS: &str = "seconds ";

/// Time, requests, bytes and memory.
pub(crate) fn cost(daemon: &str) {
    let (mut alone, mut to_read, mut to_decode, mut of_read, mut of_decode) =
        (vec![], vec![], vec![], vec![], vec![]);
    let (mut requests, mut bytes) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let prometheus = prometheus(APPS);
        let tables = tables(&prometheus);
        // A service this slow leaves the exporter to its reading: two replies tell the time.
        let slow = Setting { delay: 500, concurrency: 1, ..Setting::new(APPS, &tables) };
        let exporter = Exporter::start(daemon, slow);
        wait_until_restored(&exporter);
        let took = told(&prometheus, "/took");
        drop(exporter);
        (requests, bytes) = (told(&prometheus, "/requests"), told(&prometheus, "/bytes"));
        let read = bare(&prometheus, "read");
        let decoded = bare(&prometheus, "decode");
        alone.push(took);
        of_read.push(took / read);
        of_decode.push(took / decoded);
        to_read.push(read);
        to_decode.push(decoded);
    }
    let what = "10,000 apps read back from Prometheus";
    let note = format!("{requests} requests, {:.1} MB, 25 series an app", bytes / 1e6);
    table::row(&format!("{what}, s"), Figure::of(alone), 2, Target::AtMost(5.0), &note);
    let note = "the same requests, in turns";
    let ratio = format!("{what} / bare reqwest + typed serde_json");
    table::row(&ratio, Figure::of(of_decode), 2, Target::AtMost(2.0), note);
    table::row(&format!("{what} / bare reqwest"), Figure::of(of_read), 1, Target::None, note);
    table::row("the same, bare reqwest + typed serde_json, s", Figure::of(to_decode), 2, Target::None, "");
    table::row("the same, bare reqwest, s", Figure::of(to_read), 2, Target::None, "bytes are only read");
    at_a_start(daemon);
}

/// The same while the exporter polls everything for the first time, as it does at a start.
fn at_a_start(daemon: &str) {
    let (mut took, mut memory) = (vec![], vec![]);
    let mut note = String::new();
    for _ in 0..ROUNDS {
        let without = peak(&Exporter::start(daemon, Setting::new(APPS, "")).ready());
        let prometheus = prometheus(APPS);
        let exporter = Exporter::start(daemon, Setting::new(APPS, &tables(&prometheus)));
        wait_until_restored(&exporter);
        took.push(told(&prometheus, "/took"));
        let with = peak(&exporter.ready());
        memory.push(with / without);
        note = format!("{:.0} MB at peak, {:.0} MB without", with / 1e6, without / 1e6);
    }
    let what = "10,000 apps read back while all are polled, s";
    table::row(
        what,
        Figure::of(took),
        2,
        Target::AtMost(10.0),
        "from the first question to the last counter",
    );
    let what = "memory at a start with 10,000 apps read back / without";
    table::row(what, Figure::of(memory), 2, Target::AtMost(1.5), &note);
}

/// A Prometheus that has scraped so many apps.
pub(crate) fn prometheus(apps: usize) -> Process {
    let mut command = role("prometheus", Core::Last);
    command.arg(apps.to_string());
    Process::start(command)
}

/// The configuration that reads counters back from it.
pub(crate) fn tables(prometheus: &Process) -> String {
    format!("[state]\nprometheus_url = \"{}\"\n", prometheus.url)
}

pub(crate) fn wait_until_restored(exporter: &Exporter) {
    let began = Instant::now();
    let url = format!("{}?name[]={RESTORED}", exporter.metrics());
    loop {
        let page = String::from_utf8_lossy(&Scraper::new(&url, false).body()).into_owned();
        if value(&page, RESTORED) == Some(1.0) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "the counters are read back: {page}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Its memory at peak, some seconds after the first round.
fn peak(exporter: &Exporter) -> f64 {
    std::thread::sleep(Duration::from_secs(5));
    exporter.process.memory().1 as f64
}

/// A figure that it tells at `path`.
pub(crate) fn told(prometheus: &Process, path: &str) -> f64 {
    let body = Scraper::new(&format!("{}{path}", prometheus.url), false).body();
    String::from_utf8_lossy(&body).parse().unwrap()
}

fn bare(prometheus: &Process, what: &str) -> f64 {
    let mut command = role("reader", Core::First);
    command.args([&prometheus.url, what]);
    number_of(command, SECONDS)
}

/// A series as the exporter decodes it.
#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Reply {
    data: Data,
}

/// Asks what the exporter has asked, as many at once, and prints how long that took.
pub(crate) async fn read(base: &str, decode: bool) {
    let client = reqwest::Client::builder().no_proxy().http1_only();
    let client = client.tls_backend_preconfigured(tls(rustls::RootCertStore::empty())).build().unwrap();
    let asked = client.get(format!("{base}/asked")).send().await.unwrap().text().await.unwrap();
    let asked: Arc<Vec<String>> = Arc::new(asked.lines().map(str::to_owned).collect());
    let (next, url) = (Arc::new(AtomicUsize::new(0)), format!("{base}/api/v1/query"));
    let began = Instant::now();
    let workers: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (client, asked, next, url) =
                (client.clone(), Arc::clone(&asked), Arc::clone(&next), url.clone());
            tokio::spawn(async move {
                while let Some(form) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let body = client.post(&url).body(form.clone()).send().await.unwrap();
                    let body = body.bytes().await.unwrap();
                    if decode && !form.contains("time%28%29") {
                        let reply: Reply = serde_json::from_slice(&body).unwrap();
                        assert!(reply.data.result.iter().all(|series| !series.values.is_empty()));
                        assert!(reply.data.result.iter().all(|series| series.metric.len() > 4));
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    println!("{SECONDS}{}", began.elapsed().as_secs_f64());
}
