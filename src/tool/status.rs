//! `pdstool status` and `pdstool apps`: a running exporter's verdict and apps, once, as tables.

use std::cmp::Reverse;

use clap::Args;

use super::console::Console;
use super::error::ToolError;
use super::exporter::{Exporter, ExporterArgs, ExporterError, ExporterStatus, Row};
use super::output::{OutputArg, OutputFormat};
use super::page::{self, Align, Block, Table};
use crate::units;

/// `pdstool status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Exit code: 0 unless the verdict is problem.

Examples:
  pdstool status
  pdstool status --exporter http://pds-exporter.internal:10090 -o json")]
pub struct StatusArgs {
    #[command(flatten)]
    exporter: ExporterArgs,

    #[command(flatten)]
    output: OutputArg,
}

/// `pdstool apps`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool apps --problems
  pdstool apps --filter ranker -o wide
  pdstool apps -o csv > apps.csv")]
pub struct AppsArgs {
    #[command(flatten)]
    exporter: ExporterArgs,

    #[command(flatten)]
    output: OutputArg,

    /// Only apps that are not ok.
    #[arg(long)]
    problems: bool,

    /// Only apps whose project, id, status or problem contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// Prints the verdict with its reasons.
///
/// # Errors
/// If the exporter does not answer; also if its verdict is `problem`.
pub async fn status(console: &mut Console, args: &StatusArgs) -> Result<(), ToolError> {
    let exporter = args.exporter.open()?;
    let status = exporter.status().await.map_err(|error| unreachable_exporter(&exporter, &error))?;
    match args.output.format {
        OutputFormat::Json => {
            let mut shown =
                exporter.status_json().await.map_err(|error| unreachable_exporter(&exporter, &error))?;
            if let Some(fields) = shown.as_object_mut() {
                fields.remove("apps");
                fields.remove("projects");
            }
            page::print_json(console, &shown)?;
        }
        OutputFormat::Csv => page::print_csv(console, &reasons(&status))?,
        format => page::print_as(console, format, &verdict(&exporter, &status))?,
    }
    if status.summary.verdict == "problem" {
        let message = format!("the verdict of {} is problem", exporter.name());
        return Err(ToolError::Failed { message, code: 1 });
    }
    Ok(())
}

/// Prints the apps, problems first.
///
/// # Errors
/// If the exporter does not answer.
pub async fn apps(console: &mut Console, args: &AppsArgs) -> Result<(), ToolError> {
    let exporter = args.exporter.open()?;
    if args.output.format == OutputFormat::Json {
        let mut json =
            exporter.status_json().await.map_err(|error| unreachable_exporter(&exporter, &error))?;
        let mut apps = json.get_mut("apps").map(serde_json::Value::take).unwrap_or_default();
        if let Some(apps) = apps.as_array_mut() {
            apps.retain(|app| serde_json::from_value(app.clone()).is_ok_and(|row| args.wants(&row)));
        }
        return Ok(page::print_json(console, &apps)?);
    }
    let status = exporter.status().await.map_err(|error| unreachable_exporter(&exporter, &error))?;
    let mut rows: Vec<Row> = status.apps.into_iter().filter(|row| args.wants(row)).collect();
    // Stable: apps of the same verdict stay in the order of the configuration.
    rows.sort_by_key(|row| gravity(&row.verdict));
    if args.output.format == OutputFormat::Csv {
        let names: Vec<&str> = RAW.iter().map(|(name, _)| *name).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| RAW.iter().map(|(_, value)| value(row)).collect()).collect();
        return Ok(page::print_csv_rows(console, &names, &rows)?);
    }
    let table = table(&rows, args.output.format != OutputFormat::Table);
    Ok(page::print_as(console, args.output.format, &[Block::Table(table)])?)
}

impl AppsArgs {
    fn wants(&self, row: &Row) -> bool {
        let text = self.filter.to_lowercase();
        let holds = |part: &str| part.to_lowercase().contains(&text);
        (!self.problems || row.verdict != "ok")
            && (holds(&row.project)
                || holds(&row.id)
                || row.status.as_deref().is_some_and(holds)
                || row.problems.iter().any(|problem| holds(problem)))
    }
}

fn unreachable_exporter(exporter: &Exporter, error: &ExporterError) -> ToolError {
    let why = crate::error_chain::with_sources(error);
    let hint = if error.is_connect() { "; is it running? --exporter gives another address" } else { "" };
    ToolError::Failed { message: format!("no status from {}: {why}{hint}", exporter.name()), code: 1 }
}

/// Worse verdicts first; unknown words in the middle.
fn gravity(verdict: &str) -> Reverse<u8> {
    Reverse(match verdict {
        "problem" => 4,
        "warning" => 3,
        "waiting" => 1,
        "ok" => 0,
        _ => 2,
    })
}

fn verdict(exporter: &Exporter, status: &ExporterStatus) -> Vec<Block> {
    let summary = &status.summary;
    let facts = vec![
        ("exporter", exporter.name()),
        ("version", status.exporter.version.clone()),
        ("started", moment(&status.exporter.started)),
        ("service", status.service.base_url.clone()),
        ("last reply", status.service.last_success.as_deref().map_or_else(|| "none yet".to_owned(), moment)),
        ("apps", format!("{} of {} ok", summary.ok, summary.apps)),
        ("verdict", summary.verdict.clone()),
        ("why", status.service.reason.clone().unwrap_or_default()),
    ];
    let mut blocks = vec![Block::Facts(facts)];
    if !summary.reasons.is_empty() {
        blocks.push(Block::Heading("Reasons".to_owned()));
        for reason in &summary.reasons {
            blocks.push(Block::Text(format!("{}: {}\n    {}", reason.verdict, reason.text, reason.action)));
        }
    }
    blocks
}

/// An RFC 3339 time as the status page writes it.
fn moment(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), units::time)
}

fn reasons(status: &ExporterStatus) -> Table {
    let columns = page::columns(["CODE", "VERDICT", "REASON", "ACTION"].map(|name| (name, Align::Left)));
    let row = |reason: &super::exporter::Reason| {
        [&reason.code, &reason.verdict, &reason.text, &reason.action].map(Clone::clone).to_vec()
    };
    Table { columns, rows: status.summary.reasons.iter().map(row).collect(), empty: "No reasons." }
}

/// A column of the table of apps.
struct Column {
    name: &'static str,
    align: Align,
    /// Shown in the narrow table, too.
    narrow: bool,
    value: fn(&Row) -> String,
}

const fn column(name: &'static str, align: Align, narrow: bool, value: fn(&Row) -> String) -> Column {
    Column { name, align, narrow, value }
}

fn time(value: Option<f64>) -> String {
    value.map(units::seconds).unwrap_or_default()
}

fn number(value: Option<f64>) -> String {
    value.map(units::number).unwrap_or_default()
}

static COLUMNS: &[Column] = &[
    column("VERDICT", Align::Left, true, |row| row.verdict.clone()),
    column("APP", Align::Left, true, |row| row.id.clone()),
    column("PROJECT", Align::Left, false, |row| row.project.clone()),
    column("STATUS", Align::Left, true, |row| row.status.clone().unwrap_or_default()),
    column("REQUESTS/MIN", Align::Right, true, |row| number(row.requests_per_minute)),
    column("P50", Align::Right, false, |row| time(row.response_time.p50)),
    column("P90", Align::Right, false, |row| time(row.response_time.p90)),
    column("P95", Align::Right, true, |row| time(row.response_time.p95)),
    column("P99", Align::Right, false, |row| time(row.response_time.p99)),
    column("MIN", Align::Right, false, |row| number(row.min_replicas)),
    column("MAX", Align::Right, false, |row| number(row.max_replicas)),
    column("HARDWARE", Align::Left, false, |row| row.hardware.clone().unwrap_or_default()),
    column("$/H", Align::Right, false, |row| number(row.dollars_per_replica_hour)),
    column("PROBLEM", Align::Left, true, |row| row.problems.first().cloned().unwrap_or_default()),
];

fn raw(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A column of the values for programs: its name, and the value of a row.
type Raw = (&'static str, fn(&Row) -> String);

/// The columns for programs: numbers as they are, in base units.
static RAW: &[Raw] = &[
    ("verdict", |row| row.verdict.clone()),
    ("app", |row| row.id.clone()),
    ("project", |row| row.project.clone()),
    ("status", |row| row.status.clone().unwrap_or_default()),
    ("requests_per_minute", |row| raw(row.requests_per_minute)),
    ("p50_seconds", |row| raw(row.response_time.p50)),
    ("p90_seconds", |row| raw(row.response_time.p90)),
    ("p95_seconds", |row| raw(row.response_time.p95)),
    ("p99_seconds", |row| raw(row.response_time.p99)),
    ("min_replicas", |row| raw(row.min_replicas)),
    ("max_replicas", |row| raw(row.max_replicas)),
    ("hardware", |row| row.hardware.clone().unwrap_or_default()),
    ("dollars_per_replica_hour", |row| raw(row.dollars_per_replica_hour)),
    ("problem", |row| row.problems.join("; ")),
];

fn table(rows: &[Row], wide: bool) -> Table {
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| wide || column.narrow).collect();
    Table {
        columns: columns.iter().map(|column| (column.name.into(), column.align)).collect(),
        rows: rows.iter().map(|row| columns.iter().map(|column| (column.value)(row)).collect()).collect(),
        empty: "No app matches.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_first_and_a_narrow_table_keeps_the_name_and_the_problem() {
        let row = |id: &str, verdict: &str| Row { id: id.into(), verdict: verdict.into(), ..Row::default() };
        let mut rows = [row("a", "ok"), row("b", "waiting"), row("c", "problem"), row("d", "warning")];
        rows.sort_by_key(|row| gravity(&row.verdict));
        assert_eq!(rows.each_ref().map(|row| &*row.id), ["c", "d", "b", "a"]);
        let names: Vec<String> =
            table(&rows, false).columns.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["VERDICT", "APP", "STATUS", "REQUESTS/MIN", "P95", "PROBLEM"]);
        assert_eq!(table(&rows, true).columns.len(), COLUMNS.len());
    }
}
