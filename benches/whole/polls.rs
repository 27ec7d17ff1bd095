//! The cost of polls, and how close it comes to the upstream's own pace.

use std::time::Duration;

use crate::daemon::{Exporter, FOR_A_CORE, Setting, WITHOUT_PAUSE};
use crate::process::{Core, Process, number_of, role};
use crate::table::{self, Figure, Target};

/// Requests of one round of the bare loop.
const REQUESTS: usize = 60_000;
const ROUNDS: usize = 5;

/// Processor time of polled requests, everything included, against a loop that only asks and decodes.
pub(crate) fn cost(daemon: &str) {
    let exporter = Exporter::start(daemon, Setting::new(FOR_A_CORE, WITHOUT_PAUSE)).ready();
    let (mut of_exporter, mut of_bare, mut of_http2, mut ratio) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (cpu, served) = (exporter.process.cpu(), exporter.served());
        std::thread::sleep(Duration::from_secs(3));
        let cost = (exporter.process.cpu() - cpu) / (exporter.served() - served) * 1e6;
        stop(&exporter.process);
        let bare = bare(&exporter.upstream, "h1");
        of_http2.push(self::bare(&exporter.upstream, "h2"));
        go_on(&exporter.process);
        of_exporter.push(cost);
        of_bare.push(bare);
        ratio.push(cost / bare);
    }
    let made_of = "ms of CPU per 1,000 requests";
    table::row(
        "poll / bare reqwest + typed serde_json",
        Figure::of(ratio),
        2,
        Target::AtMost(1.25),
        "same run, in turns",
    );
    table::row("poll, everything included", Figure::of(of_exporter), 1, Target::None, made_of);
    table::row("bare loop, HTTP/1.1", Figure::of(of_bare), 1, Target::None, made_of);
    table::row("bare loop, HTTP/2", Figure::of(of_http2), 1, Target::None, made_of);
}

fn bare(upstream: &Process, http: &str) -> f64 {
    let mut command = role("bare", Core::First);
    command.args([&upstream.url, &FOR_A_CORE.to_string(), &REQUESTS.to_string(), "32", http]);
    number_of(command, "cpu ") / REQUESTS as f64 * 1e6
}

/// A stopped exporter takes nothing from what is measured beside it.
pub(crate) fn stop(process: &Process) {
    signal(process, "STOP");
}

fn go_on(process: &Process) {
    signal(process, "CONT");
    // Entries gathered meanwhile are no part of the next round.
    std::thread::sleep(Duration::from_secs(1));
}

fn signal(process: &Process, name: &str) {
    let sent =
        std::process::Command::new("kill").args([&format!("-{name}"), &process.pid().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Requests a second against what an upstream that takes 20 ms allows.
pub(crate) fn latency(daemon: &str) {
    for concurrency in [16, 64] {
        let setting = Setting { delay: 20, concurrency, ..Setting::new(2_000, WITHOUT_PAUSE) };
        let exporter = Exporter::start(daemon, setting).ready();
        let ideal = concurrency as f64 / 0.020;
        let rounds = (0..3).map(|_| {
            let served = exporter.served();
            std::thread::sleep(Duration::from_secs(4));
            ideal * 4.0 / (exporter.served() - served)
        });
        let rounds = Figure::of(rounds.collect());
        let what = format!("round at 20 ms, concurrency {concurrency}, / ideal");
        table::row(&what, rounds, 2, Target::AtMost(1.3), "GETs x 20 ms / concurrency");
    }
}
