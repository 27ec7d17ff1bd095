//! Tables of ledgers: a row per counter, and a column per row of the constants here.

use std::io;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::console::Console;
use crate::options::OutputFormat;
use crate::page::{self, Align, Block, Table};
use pds_ledger::Ledger;

use super::read::Row;

/// A column of a table.
struct Column {
    name: &'static str,
    align: Align,
    /// Whether the narrow table shows it, too.
    narrow: bool,
    value: fn(&Row) -> String,
}

const fn column(name: &'static str, align: Align, narrow: bool, value: fn(&Row) -> String) -> Column {
    Column { name, align, narrow, value }
}

/// How rows are printed.
pub(super) struct View {
    columns: &'static [Column],
    json: fn(&Row) -> Value,
    empty: &'static str,
}

impl View {
    /// Prints the rows.
    pub(super) fn print(&self, console: &mut Console, format: OutputFormat, rows: &[Row]) -> io::Result<()> {
        if format == OutputFormat::Json {
            return page::print_json(console, &rows.iter().map(self.json).collect());
        }
        let is_shown = |column: &&Column| column.narrow || format != OutputFormat::Table;
        let columns: Vec<_> = self.columns.iter().filter(is_shown).collect();
        let cells = |row: &Row| columns.iter().map(|column| (column.value)(row)).collect();
        let table = Table {
            columns: columns.iter().map(|column| (column.name.into(), column.align)).collect(),
            rows: rows.iter().map(cells).collect(),
            empty: self.empty,
        };
        page::print_as(console, format, &[Block::Table(table)])
    }
}

/// Ledgers of one source; in JSON with their buckets.
pub(super) const LEDGERS: View = View { columns: LEDGER_COLUMNS, json: one, empty: "No ledger matches." };

/// Differences: positive if Prometheus is ahead, negative if the file is.
pub(super) const DIFFERENCES: View =
    View { columns: DIFFERENCE_COLUMNS, json: both, empty: "No difference." };

const APP: Column = column("APP", Align::Left, true, |row| row.key.owner.app.to_string());
const PROJECT: Column = column("PROJECT", Align::Left, false, |row| row.key.owner.project.to_string());
const RESOURCE: Column = column("RESOURCE", Align::Left, true, |row| row.key.resource.as_str().to_owned());

const LEDGER_COLUMNS: &[Column] = &[
    APP,
    PROJECT,
    RESOURCE,
    column("ACCOUNTED UNTIL", Align::Left, true, |row| time(file_until(row).or(row.prometheus))),
    column("TOTAL", Align::Right, true, |row| of(row, |ledger| ledger.total.to_string())),
    column("UNACCOUNTED S", Align::Right, false, |row| of(row, |ledger| ledger.unaccounted.to_string())),
    column("LATE", Align::Right, false, |row| of(row, |ledger| ledger.late.to_string())),
    column("OVERCOUNTED", Align::Right, false, |row| of(row, |ledger| ledger.overcounted.to_string())),
    column("RECHECKED UNTIL", Align::Left, false, |row| of(row, |ledger| time(Some(ledger.rechecked_until)))),
    column("BUCKETS", Align::Right, false, |row| of(row, |ledger| ledger.buckets().count().to_string())),
    column("NOTE", Align::Left, true, |row| if row.is_set_aside() { SET_ASIDE } else { "" }.to_owned()),
];

const DIFFERENCE_COLUMNS: &[Column] = &[
    APP,
    PROJECT,
    RESOURCE,
    column("FILE UNTIL", Align::Left, true, |row| time(file_until(row))),
    column("PROMETHEUS UNTIL", Align::Left, true, |row| time(row.prometheus)),
    column("AHEAD S", Align::Right, true, ahead),
    column("CONTINUES FROM", Align::Left, true, |row| row.continues_from().to_owned()),
    column("NOTE", Align::Left, true, note),
];

const SET_ASIDE: &str = "another shard counts it";

/// The counter in the only source that has it.
fn one(row: &Row) -> Value {
    in_file(row).or_else(|| in_prometheus(row)).unwrap_or_default()
}

fn both(row: &Row) -> Value {
    let mut value = counter(row);
    value["continues_from"] = row.continues_from().into();
    value["file"] = in_file(row).into();
    value["prometheus"] = in_prometheus(row).into();
    value
}

fn counter(Row { key, .. }: &Row) -> Value {
    json!({ "project": &*key.owner.project, "app": &*key.owner.app, "resource": key.resource.as_str() })
}

fn in_prometheus(row: &Row) -> Option<Value> {
    let mut value = counter(row);
    value["accounted_until"] = row.prometheus?.into();
    Some(value)
}

fn in_file(row: &Row) -> Option<Value> {
    let (ledger, mut value) = (row.file.as_ref()?, counter(row));
    let bucket = |(threshold, count): (f64, u64)| json!({ "le": threshold, "count": count });
    value["accounted_until"] = ledger.until.into();
    value["ledger"] = json!({
        "total": ledger.total,
        "unaccounted_seconds": ledger.unaccounted,
        "late": ledger.late,
        "overcounted": ledger.overcounted,
        "rechecked_until": ledger.rechecked_until,
        "set_aside": ledger.set_aside,
        "buckets": ledger.buckets().map(bucket).collect::<Value>(),
    });
    Some(value)
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
