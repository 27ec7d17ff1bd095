//! A guard that noise cannot break: how many instructions the hot parts take, counted by valgrind and compared with
//! `benches/counts.txt`.
//!
//! `benches/count` fails where a part takes more than a twentieth more than is written there, and says so
//! where it takes that much less; `benches/count --write` writes what is counted.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a bench that can't go on ends")]

#[path = "fixture/mod.rs"]
mod fixture;

use std::process::{Command, ExitCode};

use fixture::store::{Filled, reply};
use pds_exporter::catalogue::Format;
use pds_exporter::interface::{Resource, get_app, response_time, run_execution_time};
use pds_exporter::store::{Coding, Pages};
use pds_exporter::telemetry::Telemetry;

/// What is compared with.
const COUNTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts.txt");
/// A change of this share is no accident of the compiler.
const TOLERANCE: f64 = 0.05;
/// Apps in the store.
const APPS: usize = 50;

/// Name, and what to do so many times.
type Part = (&'static str, fn(&Filled, u32));

const PARTS: [Part; 6] = [
    ("poll_app", |filled, times| poll(filled, get_app::RESOURCE, times)),
    ("poll_response_time", |filled, times| poll(filled, response_time::RESOURCE, times)),
    ("poll_run_execution_time", |filled, times| poll(filled, run_execution_time::RESOURCE, times)),
    ("render", |filled, times| {
        let mut page = Vec::new();
        (0..times).for_each(|_| filled.render(Format::Text, &mut page));
    }),
    ("page_plain", |filled, times| page(filled, Coding::Identity, times)),
    ("page_gzip", |filled, times| page(filled, Coding::Gzip, times)),
];

fn poll(filled: &Filled, resource: Resource, times: u32) {
    let target = filled.plan.targets.iter().find(|target| target.key.resource == resource).unwrap();
    let reply = reply(target, APPS);
    (0..times).for_each(|_| filled.poll(target, &reply));
}

fn page(filled: &Filled, coding: Coding, times: u32) {
    // The process's own metrics are read from the system, whose answers differ.
    let pages = Pages::new(filled.store.clone(), Telemetry::new(false).unwrap());
    let runtime = runtime();
    (0..times).for_each(|_| drop(runtime.block_on(filled.page(&pages, coding))));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", part, times] => {
            let (_, run) = PARTS.iter().find(|(name, _)| *name == part).unwrap();
            run(&runtime().block_on(Filled::new(APPS)), times.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["--write"] => {
            let counts: Vec<String> =
                PARTS.iter().map(|(name, _)| format!("{name} {}\n", count(name))).collect();
            std::fs::write(COUNTS, counts.concat()).unwrap();
            ExitCode::SUCCESS
        }
        _ => compare(),
    }
}

fn compare() -> ExitCode {
    let written = std::fs::read_to_string(COUNTS).unwrap();
    let before = |name: &str| {
        let line = written.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.parse::<f64>().ok())
    };
    let mut good = true;
    for (name, _) in PARTS {
        let now = count(name);
        let change = before(name).map_or(f64::INFINITY, |before| now as f64 / before - 1.0);
        let verdict = match change {
            change if change > TOLERANCE => "TOO MANY",
            change if change < -TOLERANCE => "fewer: write them down",
            _ => "good",
        };
        good &= change <= TOLERANCE;
        println!("{name}: {now} instructions, {:+.1} %: {verdict}", change * 100.0);
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Instructions of one repetition: what forty take more than twenty.
fn count(part: &str) -> u64 {
    let of = |times: u64| {
        let program = std::env::current_exe().unwrap();
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["run", part, &times.to_string()])
            .output()
            .unwrap_or_else(|error| panic!("valgrind can't be run: {error}; tests/run installs it"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let count =
            said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("valgrind counted nothing:\n{said}"))
    };
    (of(40) - of(20)) / 20
}
