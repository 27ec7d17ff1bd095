//! Whole processes side by side: the exporter, and the limit of each thing it does. Prints one table.
//!
//! `benches/run` calls it. Every figure is a ratio against a limit measured in the same run, the two in turns, and
//! shown as the median with the lowest and highest of its rounds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::type_complexity,
    reason = "a bench that can't go on ends"
)]

mod attacks;
mod bare;
mod constant;
mod contention;
mod daemon;
#[path = "../fixture/mod.rs"]
mod fixture;
mod growth;
mod http;
mod largest;
mod load;
mod pages;
mod peer;
mod polls;
mod process;
mod prometheus;
mod render;
mod restore;
mod scrape;
mod stalls;
mod status;
mod table;
mod upstream;
mod web;

use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |at: usize| arguments[at].parse::<usize>().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match arguments.first().map(String::as_str) {
        Some("upstream") => {
            runtime.block_on(upstream::serve(number(1), Duration::from_millis(number(2) as u64)));
        }
        Some("scrapers") => {
            scrape::ask(&arguments[1], arguments[2] == "gzip", Duration::from_millis(number(3) as u64));
        }
        Some("attacker") => runtime.block_on(attacks::attack(number(1), &arguments[2])),
        Some("constant") => runtime.block_on(constant::serve(&arguments[1])),
        Some("bare") => {
            let load = bare::Load {
                apps: number(2),
                requests: number(3),
                concurrency: number(4),
                http2: arguments.get(5).is_some_and(|word| word == "h2"),
                pace: arguments.get(6).map(|pace| pace.parse().unwrap()),
            };
            runtime.block_on(bare::ask(&arguments[1], load));
        }
        Some("prometheus") => runtime.block_on(prometheus::serve()),
        _ => measure(&arguments),
    }
}

/// `whole DAEMON [GROUP...]`: measures the daemon at that path.
fn measure(arguments: &[String]) {
    let daemon = arguments.first().expect("the path of pds-exporter");
    let groups: [(&str, fn(&str)); 13] = [
        ("polls", polls::cost),
        ("peer", peer::cost),
        ("latency", polls::latency),
        ("render", render::cost),
        ("pages", pages::throughput),
        ("contention", contention::cost),
        ("status", status::overview),
        ("memory", load::memory),
        ("steady", load::steady),
        ("paced", load::paced),
        ("attacks", attacks::latency),
        ("restore", restore::cost),
        ("largest", largest::cost),
    ];
    let wanted = &arguments[1..];
    table::head();
    for (name, run) in groups {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            run(daemon);
        }
    }
}
