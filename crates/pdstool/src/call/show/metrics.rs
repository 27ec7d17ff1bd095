//! Response times and run execution times.

use jiff::Timestamp;

use crate::call::raw::Raw;
use crate::output::{self, Align, Block, Table};
use pds_core::units;
use pds_interface::Number;
use pds_interface::reader::Unexpected;
use pds_interface::response_time::ResponseTime;
use pds_interface::run_execution_time::{Datapoint, RunExecutionTime};

/// The fields of both payloads that are shown in a special form.
const SHOWN: [&str; 7] =
    ["percentiles", "distribution", "total_requests", "time_series", "total_runs", "start_date", "end_date"];

/// How many requests, how slow, and how they spread.
pub(super) fn response_time(reply: &ResponseTime, mut fields: Raw) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("Response time".to_owned()),
        Block::Facts(vec![
            ("range", range(&reply.start_date, &reply.end_date)),
            ("requests", counted(reply.total_requests, &fields.text("total_requests"))),
            ("percentiles", percentiles(reply)),
        ]),
    ];
    let shares = reply.shares(&mut Unexpected::default());
    if !shares.is_empty() {
        blocks.push(Block::Heading("Requests done within".to_owned()));
        let columns =
            output::columns([("THRESHOLD", Align::Right), ("SHARE", Align::Right), ("", Align::Left)]);
        let rows = shares.iter().map(|(threshold, share)| {
            vec![units::seconds(*threshold), units::percent(*share), output::bar(*share, 20)]
        });
        blocks.push(Block::Table(Table { columns, rows: rows.collect(), empty: "" }));
    }
    fields.without(&SHOWN).after(blocks)
}

fn percentiles(reply: &ResponseTime) -> String {
    let seconds = reply.seconds(&mut Unexpected::default()).into_iter();
    let texts = seconds.map(|(name, seconds)| format!("{name} {}", units::seconds(seconds)));
    texts.collect::<Vec<_>>().join("   ")
}

/// How many runs, and how slow over time.
pub(super) fn run_execution_time(reply: &RunExecutionTime, mut fields: Raw) -> Vec<Block> {
    let blocks = vec![
        Block::Heading("Run execution time".to_owned()),
        Block::Facts(vec![
            ("range", range(&reply.start_date, &reply.end_date)),
            ("runs", counted(reply.total_runs, &fields.text("total_runs"))),
        ]),
        Block::Heading("Percentiles over time".to_owned()),
        series(reply),
    ];
    fields.without(&SHOWN).after(blocks)
}

fn series(reply: &RunExecutionTime) -> Block {
    let columns = output::columns([
        ("TIME", Align::Left),
        ("P50", Align::Right),
        ("P90", Align::Right),
        ("P99", Align::Right),
        ("", Align::Left),
    ]);
    let slowest = reply.time_series.iter().filter_map(|point| point.p99.value()).fold(0.0, f64::max);
    let rows = reply.time_series.iter().map(|point| {
        let Datapoint { timestamp, p50, p90, p99 } = *point;
        let share = p99.value().filter(|_| slowest > 0.0).map_or(0.0, |p99| p99 / slowest);
        vec![moment(timestamp), lasting(p50), lasting(p90), lasting(p99), output::bar(share, 20)]
    });
    Block::Table(Table { columns, rows: rows.collect(), empty: "no datapoints in this range" })
}

fn range(start: &str, end: &str) -> String {
    match (start.parse::<Timestamp>(), end.parse::<Timestamp>()) {
        (Ok(start), Ok(end)) => format!("{} to {}", units::time(start), units::time(end)),
        _ => format!("{start} to {end}"),
    }
}

fn moment(number: Number) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a time beyond i64 is none, and shown as none")]
    let time = number.value().and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
    time.map_or_else(|| "?".to_owned(), units::time)
}

/// A count, which is exact if it was `written` as an integer.
fn counted(number: Number, written: &str) -> String {
    if let Ok(count) = written.trim().parse::<u64>() {
        return units::count(count);
    }
    number.value().map_or_else(|| "not said".to_owned(), units::rounded)
}

fn lasting(number: Number) -> String {
    number.value().map_or_else(|| "-".to_owned(), units::seconds)
}
