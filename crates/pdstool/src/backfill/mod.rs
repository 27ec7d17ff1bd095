//! `pdstool backfill`: history of the metrics calls as an OpenMetrics file, from which `promtool` creates blocks.
//!
//! ```text
//! Plan -> one request per step, window and call -> Journal (a file per stream, appended) -> OpenMetrics file
//! ```
//!
//! The journals hold the replies step by step, so an interrupted run resumes where it stopped: replies on disk are not
//! requested again. The file is written from them at the end, because the format requires all samples of a series
//! together. Only files grow with the length of the range, not memory.
//!
//! - [`plan`]: the requests of a run, and whether it resumes an earlier one.
//! - [`journal`]: the replies so far.
//! - [`fetch`]: requests, in order, several at a time.
//! - [`series`]: samples gathered by series.
//! - [`write`](mod@write): the journals as one file.

pub mod fetch;
pub mod journal;
pub mod plan;
pub mod series;
pub mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

use super::console::Console;
use super::error::{Result, ToolError};
use super::options::checked_time;
use super::service::{Environment, ServiceArgs};
use pds_config::MAX_DURATION;
use pds_core::units;
use pds_interface::range::rfc3339;
use plan::{Plan, Work};

/// `pdstool backfill`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool backfill --start 30d history.om
  pdstool backfill --start 2026-01-01 --end 2026-02-01 --step 1h --label job=pds history.om
  promtool tsdb create-blocks-from openmetrics history.om /var/lib/prometheus

promtool reads the file once per block. For a long range, use
  promtool tsdb create-blocks-from --max-block-duration=744h openmetrics history.om FOLDER

An interrupted run is resumed by the same command; FILE.partial holds its replies.
The result is FILE; standard output stays empty, and messages go to standard error.
Each sample has the time at which its range ends. Counters begin at 0 at --start.
Import only time that Prometheus has not scraped: before the exporter's first start, or a gap, with
a separate instance label.")]
pub struct BackfillArgs {
    /// Project of the apps [default: the project that has them in the configuration].
    #[arg(long, value_name = "ID", env = "PDSTOOL_PROJECT", hide_env_values = true)]
    project: Option<String>,

    /// App; repeatable [default: all configured apps].
    #[arg(long = "app", value_name = "ID")]
    apps: Vec<String>,

    /// Start of the history: a time, a day, or how long ago (30d).
    #[arg(long, value_name = "TIME", value_parser = checked_time)]
    start: String,

    /// End of the history [default: now minus poll.settle].
    #[arg(long, value_name = "TIME", value_parser = checked_time)]
    end: Option<String>,

    /// Time between samples; must divide a day and be at most 6h. A step as long as a window needs no requests of its own.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = step)]
    step: Duration,

    /// Trailing window; repeatable [default: poll.windows].
    #[arg(long = "window", value_name = "DURATION", value_parser = window)]
    windows: Vec<Duration>,

    /// Label for every series, such as the job and instance of a scrape; repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// Discard the replies of an earlier run and start over.
    #[arg(long)]
    restart: bool,

    /// File to write; must not exist.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    service: ServiceArgs,
}

fn window(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() || duration.subsec_nanos() > 0 || duration > MAX_DURATION {
        let most = humantime::format_duration(MAX_DURATION);
        return Err(format!("must be whole seconds, at most {most}, such as 5m"));
    }
    Ok(duration)
}

fn step(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 86_400;
    let step = window(text)?;
    if step > pds_ledger::MAX_MERGED || !DAY.is_multiple_of(step.as_secs()) {
        return Err("must divide a day and be at most 6h, such as 5m or 1h".to_owned());
    }
    Ok(step)
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    let taken = ["project", "app", "window", "container_id", "percentile", "threshold", "resource", "le"];
    if !pds_exposition::family::is_label_name(name) {
        return Err(format!("{name} is not the name of a label"));
    }
    if name.starts_with("__") || taken.contains(&name) {
        return Err(format!("{name} is reserved"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Fetches the history and writes the file.
///
/// # Errors
/// If arguments are invalid, the service fails, or files cannot be written; the replies so far are kept.
pub async fn run(console: &mut Console, environment: &Environment, args: &BackfillArgs) -> Result<()> {
    let service = args.service.open(environment)?;
    let plan = Plan::new(&service.config, args)?;
    let work = Arc::new(Work::open(plan, args)?);
    let (total, done) = (work.plan.requests(), work.answered_requests()?);
    say_plan(console, &work, done);
    let progress = progress(console, total, done);
    let result = unless_interrupted(async {
        let unknown = fetch::all(&service, &work, &progress).await?;
        let journals = Arc::clone(&work);
        // A long history takes minutes.
        let written = spawn_blocking(move || write::whole(&journals)).await;
        Ok((unknown, written.map_err(|error| ToolError::failed(error.to_string()))??))
    })
    .await;
    progress.finish_and_clear();
    let (unknown, written) = result.inspect_err(|_| {
        let partial = work.folder.display();
        console.say(&format!("The replies so far are in {partial}; run the same command to resume."));
    })?;
    write::publish(&work, &args.file)?;
    say_written(console, args, &written);
    for call in unknown {
        console.say(&format!(
            "Replies of {call} state no range, and nothing showed that they are about the requested ranges: if the service \
             ignores these, this history is wrong; see `pdstool check service`."
        ));
    }
    Ok(())
}

/// The result of `doing`, unless Ctrl-C or SIGTERM comes first.
///
/// # Errors
/// The same, or the interruption.
async fn unless_interrupted<T>(doing: impl Future<Output = Result<T>>) -> Result<T> {
    let unwatched = ToolError::system("cannot watch for signals");
    let mut terminate = signal(SignalKind::terminate()).map_err(&unwatched)?;
    let ended = |message: &str| ToolError::Failed { message: message.to_owned(), code: 130 };
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(unwatched)?;
            Err(ended("interrupted"))
        }
        _ = terminate.recv() => Err(ended("interrupted by SIGTERM")),
        result = doing => result,
    }
}

/// A progress bar on a terminal; nothing elsewhere.
fn progress(console: &Console, total: u64, done: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} requests  {per_sec}  {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let progress = console.shown(ProgressBar::new(total).with_style(style).with_position(done));
    progress.reset_eta();
    progress
}

fn say_plan(console: &mut Console, work: &Work, done: u64) {
    let plan = &work.plan;
    let (apps, requests) = (units::plural(plan.apps.len(), "app", "apps"), units::count(plan.requests()));
    let [start, end] = [plan.start, plan.end].map(rfc3339);
    let mut text = format!("{apps}, {start} to {end}: {requests} requests to the service");
    if done > 0 {
        text.push_str(&format!(", {} of them done by an earlier run", units::count(done)));
    }
    console.say(&text);
}

fn say_written(console: &mut Console, args: &BackfillArgs, written: &write::Written) {
    let file = args.file.display();
    let (samples, series) = (units::count(written.samples), units::count(written.series));
    console.say(&format!("Wrote {samples} samples of {series} series and histograms to {file}."));
    if written.max_unaccounted_seconds > 0 {
        let lost = units::seconds(Duration::from_secs(written.max_unaccounted_seconds).as_secs_f64());
        let counters = units::plural(written.streams_with_gaps, "counter", "counters");
        console.say(&format!(
            "Up to {lost} of the range has no usable count in {counters} (pds_app_unaccounted_seconds_total)."
        ));
    }
    console.say(&format!("Next: promtool tsdb create-blocks-from openmetrics {file} DATA_FOLDER"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_divide_a_day_and_labels_do_not_clash() {
        assert_eq!(step("1h"), Ok(Duration::from_secs(3600)));
        assert!(
            step("7m").is_err() && step("12h").is_err() && step("0s").is_err() && step("1500ms").is_err()
        );
        assert_eq!(label("job=pds=1"), Ok(("job".to_owned(), "pds=1".to_owned())));
        assert_eq!(label("a-b=x"), Err("a-b is not the name of a label".to_owned()));
        assert!(label("app=x").is_err() && label("__a=x").is_err() && label("job").is_err());
    }
}
