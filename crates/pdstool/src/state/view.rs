//! Tables of ledgers: a row per counter, and a column per row of the constants here.

use std::io;

use jiff::Timestamp;

use crate::console::Console;
use crate::options::OutputFormat;
use crate::output::{self, Align, Block, Table};
use pds_ledger::Ledger;

use super::read::Row;

/// A column of a table: its name, its alignment, whether the narrow table shows it, too, and its value.
pub(super) type Column = (&'static str, Align, bool, fn(&Row) -> String);

/// Prints the rows in these columns, or `empty` if there are none.
pub(super) fn print(
    console: &mut Console,
    format: OutputFormat,
    columns: &[Column],
    rows: &[Row],
    empty: &'static str,
) -> io::Result<()> {
    let is_shown = |column: &&Column| column.2 || format != OutputFormat::Table;
    let columns: Vec<_> = columns.iter().filter(is_shown).collect();
    let cells = |row: &Row| columns.iter().map(|(.., value)| value(row)).collect();
    let table = Table {
        columns: columns.iter().map(|(name, align, ..)| ((*name).into(), *align)).collect(),
        rows: rows.iter().map(cells).collect(),
        empty,
    };
    output::print_as(console, format, &[Block::Table(table)])
}

const APP: Column = ("APP", Align::Left, true, |row| row.key.owner.app.to_string());
const PROJECT: Column = ("PROJECT", Align::Left, false, |row| row.key.owner.project.to_string());
const RESOURCE: Column = ("RESOURCE", Align::Left, true, |row| row.key.resource.as_str().to_owned());

/// Ledgers of one source.
pub(super) const LEDGERS: &[Column] = &[
    APP,
    PROJECT,
    RESOURCE,
    ("ACCOUNTED UNTIL", Align::Left, true, |row| time(file_until(row).or(row.prometheus))),
    ("TOTAL", Align::Right, true, |row| of(row, |ledger| ledger.total.to_string())),
    ("UNACCOUNTED S", Align::Right, false, |row| of(row, |ledger| ledger.unaccounted.to_string())),
    ("LATE", Align::Right, false, |row| of(row, |ledger| ledger.late.to_string())),
    ("OVERCOUNTED", Align::Right, false, |row| of(row, |ledger| ledger.overcounted.to_string())),
    ("RECHECKED UNTIL", Align::Left, false, |row| of(row, |ledger| time(Some(ledger.rechecked_until)))),
    ("BUCKETS", Align::Left, false, |row| of(row, buckets)),
    ("NOTE", Align::Left, true, |row| if row.is_set_aside() { SET_ASIDE } else { "" }.to_owned()),
];

/// Differences: positive if Prometheus is ahead, negative if the file is.
pub(super) const DIFFERENCES: &[Column] = &[
    APP,
    PROJECT,
    RESOURCE,
    ("FILE UNTIL", Align::Left, true, |row| time(file_until(row))),
    ("PROMETHEUS UNTIL", Align::Left, true, |row| time(row.prometheus)),
    ("AHEAD S", Align::Right, true, ahead),
    ("CONTINUES FROM", Align::Left, true, |row| row.continues_from().to_owned()),
    ("NOTE", Align::Left, true, note),
];

const SET_ASIDE: &str = "another shard counts it";

/// Each bucket as `le:count`.
fn buckets(ledger: &Ledger) -> String {
    let buckets = ledger.buckets().map(|(le, count)| format!("{le}:{count}"));
    buckets.collect::<Vec<_>>().join(" ")
}

/// A value of the ledger, if there is one.
fn of(row: &Row, value: fn(&Ledger) -> String) -> String {
    row.file.as_ref().map(value).unwrap_or_default()
}

fn file_until(row: &Row) -> Option<i64> {
    row.file.as_ref().map(|ledger| ledger.until)
}

fn ahead(row: &Row) -> String {
    let pair = row.prometheus.zip(file_until(row));
    pair.map(|(prometheus, file)| format!("{:+}", prometheus - file)).unwrap_or_default()
}

fn note(row: &Row) -> String {
    let note = match (&row.file, row.prometheus) {
        (Some(_), None) => "not configured, or not in Prometheus",
        (None, _) => "not in the file",
        _ if row.is_set_aside() => SET_ASIDE,
        _ => "",
    };
    note.to_owned()
}

/// A time in seconds; nothing for 0, which means never.
fn time(seconds: Option<i64>) -> String {
    let time =
        seconds.filter(|seconds| *seconds != 0).and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map(|time| time.to_string()).unwrap_or_default()
}
