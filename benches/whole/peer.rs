//! Peers: the exporters that people write in an afternoon with what package registries offer, over the same service.

use std::time::Duration;

use crate::contention::latencies;
use crate::daemon::{Exporter, Setting, served};
use crate::fixture::{app, project};
use crate::process::{Core, Process, command, role};
use crate::scrape::Scraper;
use crate::table::{self, Figure, Target};

const APPS: usize = 1_000;
/// Each app is polled every so many seconds.
const SECONDS: &str = "2";

/// Name and command line of each peer, as `benches/run` installs them.
const PEERS: [(&str, &[&str]); 4] = [
    ("Rust (axum, reqwest, prometheus-client)", &["target/peers/release/peer"]),
    ("Go (net/http, client_golang of Debian 12)", &["target/tools/peers/go"]),
    ("Node.js (fetch, prom-client)", &["node", "target/tools/peers/node/exporter.mjs"]),
    (
        "Python (aiohttp, prometheus_client)",
        &["target/tools/peers/python/bin/python", "benches/peers/python/exporter.py"],
    ),
];

/// Processor time of a request, memory, and scrapes beside polls: of the exporter and of each peer, one after the other.
pub(crate) fn cost(daemon: &str) {
    let tables = format!(
        "[poll]\ninterval = \"{SECONDS}s\"\nsettings_interval = \"10s\"\n[accounting]\nstep = \"1s\"\n"
    );
    let exporter = Exporter::start(daemon, Setting::new(APPS, &tables)).ready();
    measure("pds-exporter", &exporter.process, &exporter.upstream);
    drop(exporter);

    let apps: Vec<String> = (0..APPS).map(|n| format!("{}/{}\n", project(n), app(n))).collect();
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), apps.concat()).unwrap();
    let mut upstream = role("upstream", Core::Last);
    upstream.args([&APPS.to_string(), "0"]);
    let upstream = Process::start(upstream);
    for (name, line) in PEERS {
        let mut shell = command("sh", Core::First);
        shell.args(["-c", "list=$0; exec \"$@\" < \"$list\""]).arg(list.path()).args(line);
        shell.args([&upstream.url, SECONDS]);
        let peer = Process::start(shell);
        measure(name, &peer, &upstream);
    }
}

fn measure(name: &str, exporter: &Process, upstream: &Process) {
    // Until it has polled every app, and what starting allocated is in use or returned.
    std::thread::sleep(Duration::from_secs(10));
    let rounds = (0..3).map(|_| {
        let (cpu, before) = (exporter.cpu(), served(upstream));
        std::thread::sleep(Duration::from_secs(4));
        (exporter.cpu() - cpu) / (served(upstream) - before) * 1e6
    });
    let rounds = Figure::of(rounds.collect());
    table::row(&format!("{name}: poll"), rounds, 1, Target::None, "ms of CPU per 1,000 requests");

    let mut scraper = Scraper::new(&format!("{}/metrics", exporter.url), false);
    let page = String::from_utf8_lossy(&scraper.body()).into_owned();
    let series = page.lines().filter(|line| !line.starts_with('#') && line.contains('{')).count();
    let (mut ordinary, mut slowest) = (vec![], vec![]);
    for _ in 0..3 {
        let (p50, p99) = latencies(50, || {
            scraper.get(|_| ());
        });
        ordinary.push(p50 / series as f64 * 1e5);
        slowest.push(p99 / series as f64 * 1e5);
    }
    let note = format!("ms for 100k series beside its polls; {series} series");
    table::row(&format!("{name}: scrape, p50"), Figure::of(ordinary), 1, Target::None, &note);
    table::row(&format!("{name}: scrape, p99"), Figure::of(slowest), 1, Target::None, &note);
    let memory = exporter.memory().0 as f64 / 1e6;
    table::row(&format!("{name}: RSS in MB"), memory, 0, Target::None, &format!("{APPS} apps"));
}
