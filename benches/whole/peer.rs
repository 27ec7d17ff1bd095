//! A peer that anyone can install: Python, aiohttp and prometheus_client.

use std::time::Duration;

use crate::fixture::{app, project};
use crate::process::{Core, Process, command, role};
use crate::scrape::Scraper;
use crate::table::{self, Figure, Target};

const APPS: usize = 1_000;

/// The cost of polls, and the time of a scrape. `PEER_PYTHON` names the interpreter that has its packages.
pub(crate) fn cost(_daemon: &str) {
    let Some(python) = std::env::var_os("PEER_PYTHON") else {
        eprintln!("no peer: PEER_PYTHON names no interpreter");
        return;
    };
    let mut upstream = role("upstream", Core::Last);
    upstream.args([&APPS.to_string(), "0"]);
    let upstream = Process::start(upstream);
    let apps: Vec<String> = (0..APPS).map(|n| format!("{}/{}\n", project(n), app(n))).collect();
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), apps.concat()).unwrap();
    let mut shell = command("sh", Core::First);
    shell.args(["-c", "exec \"$0\" benches/peers/exporter.py \"$1\" < \"$2\""]);
    shell.arg(python).arg(&upstream.url).arg(list.path());
    let peer = Process::start(shell);
    let served = || -> f64 {
        let body = Scraper::new(&format!("{}/served", upstream.url), false).body();
        String::from_utf8_lossy(&body).parse().unwrap()
    };
    std::thread::sleep(Duration::from_secs(10));
    let rounds = (0..3).map(|_| {
        let (cpu, before) = (peer.cpu(), served());
        std::thread::sleep(Duration::from_secs(3));
        (peer.cpu() - cpu) / (served() - before) * 1e6
    });
    let rounds = Figure::of(rounds.collect());
    table::row(
        "Python peer (aiohttp, prometheus_client)",
        rounds,
        0,
        Target::None,
        "ms of CPU per 1,000 requests",
    );
    let note = format!("RSS in MB, {APPS} apps");
    table::row("Python peer", peer.memory().0 as f64 / 1e6, 0, Target::None, &note);
}
