//! Tables of ledgers: a row per counter, and a column per row of the constants here.

use std::io;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::console::Console;
use crate::options::OutputFormat;
use crate::page::{self, Align, Block, Table};
use pds_ledger::Ledger;

use super::read::{Held, Pair};

/// A column of a table about `T`.
struct Column<T> {
    name: &'static str,
    align: Align,
    /// Whether the narrow table shows it, too.
    narrow: bool,
    value: fn(&T) -> String,
}

const fn column<T>(name: &'static str, align: Align, narrow: bool, value: fn(&T) -> String) -> Column<T> {
    Column { name, align, narrow, value }
}

/// How rows of `T` are printed.
pub(super) struct View<T: 'static> {
    columns: &'static [Column<T>],
    json: fn(&T) -> Value,
    empty: &'static str,
}

impl<T> View<T> {
    /// Prints the rows.
    pub(super) fn print(&self, console: &mut Console, format: OutputFormat, rows: &[T]) -> io::Result<()> {
        if format == OutputFormat::Json {
            return page::print_json(console, &rows.iter().map(self.json).collect());
        }
        let is_shown = |column: &&Column<T>| column.narrow || format != OutputFormat::Table;
        let columns: Vec<_> = self.columns.iter().filter(is_shown).collect();
        let cells = |row: &T| columns.iter().map(|column| (column.value)(row)).collect();
        let table = Table {
            columns: columns.iter().map(|column| (column.name.into(), column.align)).collect(),
            rows: rows.iter().map(cells).collect(),
            empty: self.empty,
        };
        page::print_as(console, format, &[Block::Table(table)])
    }
}

/// Ledgers; in JSON with their buckets.
pub(super) const LEDGERS: View<Held> =
    View { columns: LEDGER_COLUMNS, json: held_json, empty: "No ledger matches." };

/// Differences: positive if Prometheus is ahead, negative if the file is.
pub(super) const PAIRS: View<Pair> = View { columns: PAIR_COLUMNS, json: pair_json, empty: "No difference." };

const LEDGER_COLUMNS: &[Column<Held>] = &[
    column("APP", Align::Left, true, |held| held.key.owner.app.to_string()),
    column("PROJECT", Align::Left, false, |held| held.key.owner.project.to_string()),
    column("RESOURCE", Align::Left, true, |held| held.key.resource.as_str().to_owned()),
    column("ACCOUNTED UNTIL", Align::Left, true, |held| time(held.until)),
    column("TOTAL", Align::Right, true, |held| of(held, |ledger| ledger.total.to_string())),
    column("UNACCOUNTED S", Align::Right, false, |held| of(held, |ledger| ledger.unaccounted.to_string())),
    column("LATE", Align::Right, false, |held| of(held, |ledger| ledger.late.to_string())),
    column("OVERCOUNTED", Align::Right, false, |held| of(held, |ledger| ledger.overcounted.to_string())),
    column("RECHECKED UNTIL", Align::Left, false, |held| of(held, |ledger| time(ledger.rechecked_until))),
    column("BUCKETS", Align::Right, false, |held| of(held, |ledger| ledger.buckets().count().to_string())),
    column("NOTE", Align::Left, true, note),
];

const PAIR_COLUMNS: &[Column<Pair>] = &[
    column("APP", Align::Left, true, |pair| pair.key.owner.app.to_string()),
    column("PROJECT", Align::Left, false, |pair| pair.key.owner.project.to_string()),
    column("RESOURCE", Align::Left, true, |pair| pair.key.resource.as_str().to_owned()),
    column("FILE UNTIL", Align::Left, true, |pair| until(&pair.file)),
    column("PROMETHEUS UNTIL", Align::Left, true, |pair| until(&pair.prometheus)),
    column("AHEAD S", Align::Right, true, ahead),
    column("CONTINUES FROM", Align::Left, true, |pair| pair.continues_from().to_owned()),
    column("NOTE", Align::Left, true, note_of_pair),
];

fn pair_json(pair: &Pair) -> Value {
    json!({
        "project": &*pair.key.owner.project,
        "app": &*pair.key.owner.app,
        "resource": pair.key.resource.as_str(),
        "continues_from": pair.continues_from(),
        "file": pair.file.as_ref().map(held_json),
        "prometheus": pair.prometheus.as_ref().map(held_json),
    })
}

fn held_json(held: &Held) -> Value {
    let mut value = json!({
        "project": &*held.key.owner.project,
        "app": &*held.key.owner.app,
        "resource": held.key.resource.as_str(),
        "accounted_until": held.until,
    });
    if let Some(ledger) = &held.ledger {
        let bucket = |(threshold, count): (f64, u64)| json!({ "le": threshold, "count": count });
        value["ledger"] = json!({
            "total": ledger.total,
            "unaccounted_seconds": ledger.unaccounted,
            "late": ledger.late,
            "overcounted": ledger.overcounted,
            "rechecked_until": ledger.rechecked_until,
            "set_aside": ledger.set_aside,
            "buckets": ledger.buckets().map(bucket).collect::<Value>(),
        });
    }
    value
}

/// A value of the ledger, if there is one.
fn of(held: &Held, value: fn(&Ledger) -> String) -> String {
    held.ledger.as_ref().map(value).unwrap_or_default()
}

fn until(held: &Option<Held>) -> String {
    held.as_ref().map(|held| time(held.until)).unwrap_or_default()
}

fn ahead(pair: &Pair) -> String {
    match (&pair.file, &pair.prometheus) {
        (Some(file), Some(prometheus)) => format!("{:+}", prometheus.until - file.until),
        _ => String::new(),
    }
}

fn note(held: &Held) -> String {
    let is_set_aside = held.ledger.as_ref().is_some_and(|ledger| ledger.set_aside);
    if is_set_aside { "another shard counts it".to_owned() } else { String::new() }
}

fn note_of_pair(pair: &Pair) -> String {
    let note = match (&pair.file, &pair.prometheus) {
        (Some(_), None) => "not configured, or not in Prometheus",
        (None, Some(_)) => "not in the file",
        _ if pair.is_set_aside() => "another shard counts it",
        _ => "",
    };
    note.to_owned()
}

/// A time in seconds; nothing for 0, which means never.
fn time(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) if seconds != 0 => time.to_string(),
        _ => String::new(),
    }
}
