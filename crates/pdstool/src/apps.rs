//! `pdstool apps`: the apps of running exporters as a table, once or repeatedly.

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::console::{Console, repeat};
use super::error::{Result, ToolError};
use super::exporter::Exporter;
use super::fleet::read_all;
use super::options::OutputFormat;
use super::output::{self, Align, Block, Table};
use super::status::{ReadArgs, say_gaps};
use super::table;
use pds_config::key::nearest;
use pds_core::units;
use pds_diagnosis::columns::{COLUMNS, Column, NARROW};
use pds_diagnosis::{App, Verdict, class_title, resource_title};

/// `pdstool apps`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool apps --problems --watch
  pdstool apps ranker
  pdstool apps --filter ranker -o wide
  pdstool apps -o csv > apps.csv")]
pub struct AppsArgs {
    /// Show everything about one app: its id, its name, or the end of its id.
    #[arg(value_name = "NAME", value_parser = name, conflicts_with_all = ["problems", "filter"])]
    app: Option<String>,

    #[command(flatten)]
    read: ReadArgs,

    /// Only apps that are not ok.
    #[arg(long)]
    problems: bool,

    /// Only apps whose project, id, status or problem contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// Returns `text` itself unless it is an address, which may hold a password.
fn name(text: &str) -> Result<String, String> {
    let is_login = |(login, _): (&str, &str)| login.contains(':') && !login.contains(char::is_whitespace);
    let is_address = text.contains("://") || text.split_once('@').is_some_and(is_login);
    if is_address { Err("must not be an address; use --exporter".to_owned()) } else { Ok(text.to_owned()) }
}

/// Prints the apps, problems first.
///
/// # Errors
/// If an exporter does not reply, or no app has the given name.
pub async fn apps(console: &mut Console, args: &AppsArgs) -> Result<()> {
    // Watched, a name may have other addresses each time.
    let show = async |console: &mut Console| show_apps(console, args, &args.read.open().await?).await;
    match args.read.watch {
        Some(every) => repeat(console, every, show).await,
        None => show(console).await,
    }
}

/// An app with its exporter and all fields of the reply.
struct Row {
    exporter: Exporter,
    app: App,
    sent: Value,
}

async fn show_apps(console: &mut Console, args: &AppsArgs, exporters: &[Exporter]) -> Result<()> {
    let mut fleet = read_all(exporters).await?;
    let (format, gaps) = (args.read.output.format, fleet.gaps());
    let rows = fleet.replies.drain(..).flat_map(|(exporter, status, mut sent)| {
        let apps = sent.get_mut("apps").and_then(Value::as_array_mut).map(std::mem::take);
        let apps = status.apps.into_iter().zip(apps.unwrap_or_default());
        apps.map(move |(app, sent)| Row { exporter: exporter.clone(), app, sent })
    });
    let mut rows: Vec<Row> = rows.collect();
    if let Some(name) = &args.app {
        rows = named(rows, name).or_else(|error| {
            say_gaps(console, &fleet.failures, gaps.clone());
            // It may be of an exporter that does not reply.
            fleet.complete().and(Err(error))
        })?;
    }
    let wants = |app: &App| (!args.problems || app.verdict != Verdict::Ok) && app.holds(&args.filter);
    rows.retain(|row| wants(&row.app));
    // Stable: apps of the same verdict stay in the order of the configuration.
    rows.sort_by_key(|row| row.app.verdict);
    let is_one = exporters.len() == 1;
    match (format, &*rows) {
        (OutputFormat::Json, _) => {
            let apps = rows.into_iter().map(|Row { exporter, mut sent, .. }| {
                if let Some(fields) = sent.as_object_mut().filter(|_| !is_one) {
                    fields.insert("exporter".to_owned(), exporter.name.into());
                }
                sent
            });
            output::print_json(console, &apps.collect())?;
        }
        (OutputFormat::Table | OutputFormat::Wide, [row]) if args.app.is_some() => {
            output::print_as(console, format, &[Block::Facts(details(row))])?;
        }
        _ => {
            // Columns of a higher rank give way before others are cut.
            let fits = |table: &Table| !console.cut || table::fits(table, console.width);
            let mut tables = (0..=NARROW).rev().map(|rank| table(&rows, format, rank, is_one));
            let wide = tables.next().unwrap_or_default();
            let table = match format {
                OutputFormat::Table if !fits(&wide) => {
                    tables.find(fits).unwrap_or_else(|| table(&rows, format, 0, is_one))
                }
                _ => wide,
            };
            output::print_as(console, format, &[Block::Table(table)])?;
        }
    }
    say_gaps(console, &fleet.failures, gaps);
    fleet.complete()
}

/// Apps with this id or name; if there are none, apps whose id ends with it.
fn named(mut rows: Vec<Row>, name: &str) -> Result<Vec<Row>> {
    let is_named = |app: &App| *app.id == *name || app.name.as_deref() == Some(name);
    let end = format!("-{name}");
    if rows.iter().any(|row| is_named(&row.app)) {
        rows.retain(|row| is_named(&row.app));
    } else if rows.iter().any(|row| row.app.id.ends_with(&end)) {
        rows.retain(|row| row.app.id.ends_with(&end));
    } else {
        let like = nearest(name, rows.iter().map(|row| &*row.app.id));
        let like = like.map_or_else(String::new, |like| format!("; did you mean {like}?"));
        return Err(ToolError::Failed { message: format!("no app {name} is polled{like}"), code: 3 });
    }
    Ok(rows)
}

/// All columns of an app, its resources, its problems, and the address of its page.
fn details(Row { exporter, app, .. }: &Row) -> Vec<(&'static str, String)> {
    let columns = COLUMNS.iter().filter(|column| column.rank.is_some() && column.key != "problem");
    let mut facts: Vec<_> =
        columns.map(|column| (column.title, (column.value)(app).text().into_owned())).collect();
    let age = |at: Timestamp| units::age(Timestamp::now().as_second() - at.as_second());
    facts.extend(app.resources.iter().map(|resource| {
        let polled =
            resource.last_success.map_or_else(|| "never".to_owned(), |at| format!("{} ago", age(at)));
        let failing = resource.failing.as_ref();
        let failing = failing
            .map(|f| format!("; failing for {}: {}, {}", age(f.since), class_title(&f.class), f.message));
        let (title, state) = (resource_title(&resource.resource), resource.state.as_str());
        ("Polled", format!("{title}: {state}, last success {polled}{}", failing.unwrap_or_default()))
    }));
    facts.extend(app.problems.iter().map(|problem| ("Problem", problem.text.clone())));
    // No browser opens a socket file.
    if exporter.name.starts_with("http") {
        facts.push(("Page", exporter.page_of(app)));
    }
    facts.push(("Series", format!("{{{}}}", app.selector())));
    facts
}

/// The apps in the columns of `format`, for a table those up to `most`; for programs, all named columns in base units.
fn table(rows: &[Row], format: OutputFormat, most: u8, is_one: bool) -> Table {
    let is_data = format == OutputFormat::Csv;
    let wanted = |column: &&Column| match format {
        OutputFormat::Csv => !column.name.is_empty(),
        OutputFormat::Table => column.rank.is_some_and(|rank| rank <= most),
        _ => column.rank.is_some(),
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(wanted).collect();
    let head = |column: &&Column| {
        let name = if is_data { column.name.to_owned() } else { column.title.to_uppercase() };
        let align = match column.key {
            "verdict" => Align::State,
            "app" | "project" => Align::Id,
            _ if column.is_number() => Align::Right,
            _ => Align::Left,
        };
        (name.into(), align)
    };
    let cell = |column: &Column, app: &App| {
        let cell = (column.value)(app);
        if is_data { cell.raw() } else { cell.text() }.into_owned()
    };
    let page = |row: &Row| match format {
        OutputFormat::Table => row.exporter.name.clone(),
        _ => row.exporter.page_of(&row.app),
    };
    let cells = |row: &Row| {
        let cells = columns.iter().map(|column| cell(column, &row.app));
        cells.chain((!is_one).then(|| page(row))).collect()
    };
    let page = if format == OutputFormat::Table { "EXPORTER" } else { "PAGE" };
    let page = (!is_one).then_some((page.into(), Align::Id));
    Table {
        columns: columns.iter().map(head).chain(page).collect(),
        rows: rows.iter().map(cells).collect(),
        empty: "No app matches.",
    }
}
