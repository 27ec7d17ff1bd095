//! `pdstool status`: the verdicts of running exporters, once or repeatedly.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::console::{Console, WARN, repeat};
use super::error::{Result, ToolError};
use super::exporter::{Exporter, ExporterArgs, ExporterStatus};
use super::fleet::{Fleet, read_all};
use super::options::{OutputArg, OutputFormat};
use super::output::{self, Align, Block, Table};
use super::report::{Finding, Report};
use super::service::flags_of_exporter;
use pds_core::printable::plain;
use pds_core::units;
use pds_diagnosis::Verdict;

/// The options of commands that read running exporters.
#[derive(Clone, Debug, Args)]
pub struct ReadArgs {
    /// The exporters.
    #[command(flatten)]
    pub exporters: ExporterArgs,

    /// The output format.
    #[command(flatten)]
    pub output: OutputArg,

    /// Refresh every two seconds, or at this interval.
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = interval
    )]
    pub watch: Option<Duration>,
}

impl ReadArgs {
    /// The exporters that the options name; if there are none, the one that runs on this machine.
    ///
    /// # Errors
    /// Same as [`ExporterArgs::open`].
    pub async fn open(&self) -> Result<Vec<Exporter>> {
        let running = self.exporters.exporters.is_empty().then(|| flags_of_exporter(None)).flatten();
        self.exporters.open(&[], running.as_ref()).await
    }
}

/// `pdstool status`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit code: 0 unless numbers cannot be trusted, an app is in error, or --exporter leaves out a shard.

Examples:
  pdstool status --watch
  pdstool status --exporter http://pds-exporter.internal:10090 -o json
  pdstool status --exporter shard-0:10090 --exporter shard-1:10090
  pdstool status --exporter http://pds-exporter-headless:10090"
)]
pub struct StatusArgs {
    #[command(flatten)]
    read: ReadArgs,

    /// Succeed if the numbers can be trusted, even if apps are unhealthy.
    #[arg(long)]
    numbers_only: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let is_slow = interval >= Duration::from_millis(100);
    is_slow.then_some(interval).ok_or_else(|| "must be at least 100ms".to_owned())
}

/// Prints verdicts with their reasons.
///
/// # Errors
/// If an exporter does not reply, numbers cannot be trusted, an app is unhealthy, or a shard is missing.
pub async fn status(console: &mut Console, args: &StatusArgs) -> Result<()> {
    // Watched, a name may have other addresses each time.
    let show = async |console: &mut Console| show_status(console, args, &args.read.open().await?).await;
    if let Some(every) = args.read.watch {
        // The screen shows whether something is wrong.
        return repeat(console, every, async |console: &mut Console| show(console).await.map(drop)).await;
    }
    let fleet = show(console).await?;
    fleet.complete()?;
    for (exporter, status, _) in &fleet.replies {
        let wrong = match (status.summary.verdict, status.summary.apps.verdict()) {
            (Verdict::Problem, _) => "numbers cannot be trusted",
            (_, Verdict::Problem) if !args.numbers_only => "apps are unhealthy",
            _ => continue,
        };
        return Err(ToolError::failed(format!("{}: {wrong}", exporter.name)));
    }
    // The exporter on this machine is judged alone.
    match fleet.lacks_shards() && !args.read.exporters.exporters.is_empty() {
        true => Err(ToolError::failed("the apps of missing shards have no verdict")),
        false => Ok(()),
    }
}

async fn show_status(console: &mut Console, args: &StatusArgs, exporters: &[Exporter]) -> Result<Fleet> {
    let mut fleet = read_all(exporters).await?;
    fleet.replies.sort_by_key(|(_, status, _)| status.summary.verdict);
    let format = args.read.output.format;
    match format {
        OutputFormat::Json => print_json(console, &mut fleet)?,
        OutputFormat::Csv => output::print_csv(console, &reasons(&fleet))?,
        _ => {
            let overview = match &*fleet.replies {
                [(exporter, status, _)] if fleet.count() == 1 => Block::Facts(facts(exporter, status)),
                _ => Block::Table(shards(&fleet)),
            };
            output::print_as(console, format, &[overview])?;
            let mut report = Report::default();
            let reasons = fleet.replies.iter().flat_map(|(_, status, _)| &status.summary.reasons);
            report.add("reasons", reasons.map(Finding::from));
            if !report.is_empty() {
                console.print("")?;
            }
            report.print_findings(console, "")?;
        }
    }
    say_gaps(console, &fleet.failures, fleet.gaps());
    Ok(fleet)
}

/// Prints failures except the first, which is the command's error, and gaps in the shards.
pub(super) fn say_gaps(console: &mut Console, failures: &[(String, String)], gaps: Option<String>) {
    failures.iter().skip(1).for_each(|(_, failure)| console.say(failure));
    if let Some(gaps) = gaps {
        let label = console.styled(WARN, "warning:");
        console.say(&format!("{label} {}", plain(&gaps)));
    }
}

fn print_json(console: &mut Console, fleet: &mut Fleet) -> Result<()> {
    let is_one = fleet.count() == 1;
    let statuses = fleet.replies.iter_mut().map(|(exporter, _, sent)| {
        if let Some(fields) = sent.as_object_mut() {
            fields.remove("apps");
            fields.remove("projects");
        }
        match sent.take() {
            sent if is_one => sent,
            sent => json!({ "address": exporter.name, "status": sent }),
        }
    });
    let failed = fleet.failures.iter().map(|(name, why)| json!({ "address": name, "error": why }));
    let mut statuses: Vec<Value> = failed.chain(statuses).collect();
    let whole = if is_one { statuses.pop().unwrap_or_default() } else { statuses.into() };
    Ok(output::print_json(console, &whole)?)
}

fn facts(exporter: &Exporter, status: &ExporterStatus) -> Vec<(&'static str, String)> {
    let last_reply = status.service.last_success;
    vec![
        ("exporter", exporter.name.clone()),
        ("shard", shard(status)),
        ("version", status.exporter.version.to_string()),
        ("started", units::time(status.exporter.started)),
        ("service", status.service.base_url.clone()),
        ("last reply", last_reply.map_or_else(|| "none yet".to_owned(), units::time)),
        ("apps", well(status)),
        ("numbers", status.summary.verdict.as_str().to_owned()),
    ]
}

/// Shard of the exporter; empty for a single one.
fn shard(ExporterStatus { exporter, .. }: &ExporterStatus) -> String {
    if exporter.shards > 1 { format!("{} of {}", exporter.shard, exporter.shards) } else { String::new() }
}

fn well(ExporterStatus { summary, .. }: &ExporterStatus) -> String {
    let [well, all] = [summary.apps.ok, summary.apps.all].map(units::count);
    format!("{well} of {all} healthy")
}

/// The exporters, the worst first.
fn shards(fleet: &Fleet) -> Table {
    let missing = fleet.failures.iter().map(|(name, failure)| ["problem", name, "", "", failure]);
    let missing = missing.map(|cells| cells.map(str::to_owned).to_vec());
    let rows = fleet.replies.iter().map(|(exporter, status, _)| {
        let reason = status.summary.reasons.first().map_or("", |reason| &reason.text);
        let verdict = status.summary.verdict.as_str();
        [verdict, &exporter.name, &shard(status), &well(status), reason].map(str::to_owned).to_vec()
    });
    let rows = missing.chain(rows).collect();
    let columns = output::columns([
        ("VERDICT", Align::State),
        ("EXPORTER", Align::Id),
        ("SHARD", Align::Left),
        ("APPS", Align::Left),
        ("REASON", Align::Left),
    ]);
    Table { columns, rows, empty: "" }
}

/// The reasons of all exporters; an exporter without any has a row with its verdict.
fn reasons(fleet: &Fleet) -> Table {
    let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    let failed = fleet.failures.iter().map(|(name, why)| row(["no_status", "problem", why, "", name]));
    let rows = fleet.replies.iter().flat_map(|(exporter, status, _)| {
        let (summary, name) = (&status.summary, &*exporter.name);
        let none = summary.reasons.is_empty().then(|| row(["", summary.verdict.as_str(), "", "", name]));
        let reasons = summary.reasons.iter().map(move |reason| {
            row([&reason.code, reason.verdict.as_str(), &reason.text, &reason.remedy, name])
        });
        reasons.chain(none)
    });
    let rows = failed.chain(rows);
    Table::of_texts(["CODE", "VERDICT", "REASON", "REMEDY", "EXPORTER"], rows, "No reasons.")
}
