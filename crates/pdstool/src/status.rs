//! `pdstool status` and `pdstool apps`: a running exporter's verdict and apps, once, as tables.

use clap::Args;

use super::console::Console;
use super::error::{Result, ToolError};
use super::exporter::{ExporterArgs, ExporterStatus};
use super::output::{OutputArg, OutputFormat};
use super::page::{self, Align, Block, Table};
use pds_core::units;
use pds_diagnosis::cause::Verdict;
use pds_diagnosis::columns::{COLUMNS, Column, NARROW};
use pds_diagnosis::model::App;
use pds_diagnosis::verdict::Reason;

/// `pdstool status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Exit code: 0 unless numbers cannot be trusted, or an app is in error.

Examples:
  pdstool status
  pdstool status --exporter http://pds-exporter.internal:10090 -o json")]
pub struct StatusArgs {
    #[command(flatten)]
    exporter: ExporterArgs,

    #[command(flatten)]
    output: OutputArg,

    /// Succeed if the numbers can be trusted, even if apps are unwell.
    #[arg(long)]
    numbers_only: bool,
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
/// If the exporter does not answer; also if numbers cannot be trusted, or an app is in error.
pub async fn status(console: &mut Console, args: &StatusArgs) -> Result<()> {
    let (exporter, status, mut sent) = args.exporter.ask().await?;
    match args.output.format {
        OutputFormat::Json => {
            if let Some(fields) = sent.as_object_mut() {
                fields.remove("apps");
                fields.remove("projects");
            }
            page::print_json(console, &sent)?;
        }
        OutputFormat::Csv => page::print_csv(console, &reasons(&status))?,
        format => page::print_as(console, format, &verdict(&exporter, &status))?,
    }
    let wrong = match (status.summary.verdict, status.summary.apps.verdict()) {
        (Verdict::Problem, _) => "numbers cannot be trusted",
        (_, Verdict::Problem) if !args.numbers_only => "apps are unwell",
        _ => return Ok(()),
    };
    Err(ToolError::failed(format!("{exporter}: {wrong}")))
}

/// Prints the apps, problems first.
///
/// # Errors
/// If the exporter does not answer.
pub async fn apps(console: &mut Console, args: &AppsArgs) -> Result<()> {
    let (_, status, mut sent) = args.exporter.ask().await?;
    let wants = |app: &App| (!args.problems || app.verdict != Verdict::Ok) && app.holds(&args.filter);
    if args.output.format == OutputFormat::Json {
        let mut wanted = status.apps.iter().map(wants);
        let mut apps = sent.get_mut("apps").map(serde_json::Value::take).unwrap_or_default();
        if let Some(apps) = apps.as_array_mut() {
            apps.retain(|_| wanted.next().unwrap_or_default());
        }
        return Ok(page::print_json(console, &apps)?);
    }
    let mut rows = status.apps;
    rows.retain(wants);
    // Stable: apps of the same verdict stay in the order of the configuration.
    rows.sort_by_key(|app| app.verdict);
    Ok(page::print_as(console, args.output.format, &[Block::Table(table(&rows, args.output.format))])?)
}

fn verdict(exporter: &str, status: &ExporterStatus) -> Vec<Block> {
    let summary = &status.summary;
    let facts = vec![
        ("exporter", exporter.to_owned()),
        ("version", status.exporter.version.to_string()),
        ("started", units::time(status.exporter.started)),
        ("service", status.service.base_url.clone()),
        ("last reply", status.service.last_success.map_or_else(|| "none yet".to_owned(), units::time)),
        ("apps", format!("{} of {} well", summary.apps.ok, summary.apps.all)),
        ("numbers", summary.verdict.as_str().to_owned()),
        ("why", status.service.reason.clone().unwrap_or_default()),
    ];
    let mut blocks = vec![Block::Facts(facts)];
    if !summary.reasons.is_empty() {
        blocks.push(Block::Heading("Reasons".to_owned()));
    }
    blocks.extend(summary.reasons.iter().map(|Reason { verdict, text, remedy, .. }| {
        Block::Text(format!("{}: {text}\n    {remedy}", verdict.as_str()))
    }));
    blocks
}

fn reasons(status: &ExporterStatus) -> Table {
    let rows = status.summary.reasons.iter().map(|Reason { code, verdict, text, remedy, .. }| {
        [code, verdict.as_str(), text, remedy].map(str::to_owned).to_vec()
    });
    Table::of_texts(["CODE", "VERDICT", "REASON", "REMEDY"], rows, "No reasons.")
}

/// The apps in the columns that `format` has room for; for programs all with a name, in base units.
fn table(rows: &[App], format: OutputFormat) -> Table {
    let is_data = format == OutputFormat::Csv;
    let wanted = |column: &&Column| match format {
        OutputFormat::Csv => !column.name.is_empty(),
        OutputFormat::Table => column.rank.is_some_and(|rank| rank <= NARROW),
        _ => column.rank.is_some(),
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(wanted).collect();
    let head = |column: &&Column| {
        let name = if is_data { column.name.to_owned() } else { column.title.to_uppercase() };
        (name.into(), if column.is_number() { Align::Right } else { Align::Left })
    };
    let cell = |column: &Column, app: &App| {
        let cell = (column.value)(app);
        if is_data { cell.raw() } else { cell.text() }.into_owned()
    };
    Table {
        columns: columns.iter().map(head).collect(),
        rows: rows.iter().map(|app| columns.iter().map(|column| cell(column, app)).collect()).collect(),
        empty: "No app matches.",
    }
}
