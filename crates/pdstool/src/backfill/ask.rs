//! Requests every step of every stream, in order, several at once.

use std::time::Duration;

use futures_util::stream::{StreamExt as _, TryStreamExt as _, iter};
use indicatif::ProgressBar;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OnceCell;

use crate::check::service::ranges;
use crate::error::{Result, ToolError};
use crate::service::Service;
use pds_exposition::samples::Layouts;
use pds_interface::{Point, Subject, Tally, TimeRange, Window};

use super::journal::{self, Record};
use super::plan::{Plan, Stream, Work};

/// Requests every step that is not in the journals yet.
///
/// # Errors
/// The first failure, Ctrl-C or SIGTERM; the journals keep the replies so far.
pub async fn all(service: &Service, work: &Work, progress: &ProgressBar) -> Result<()> {
    let unwatched = ToolError::system("cannot watch for signals");
    let mut terminate = signal(SignalKind::terminate()).map_err(&unwatched)?;
    let honoured = OnceCell::new();
    let asking = async {
        for stream in work.plan.streams() {
            one(service, work, &stream, &honoured, progress).await?;
        }
        Ok(())
    };
    let ended = |message: &str| ToolError::Failed { message: message.to_owned(), code: 130 };
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(unwatched)?;
            Err(ended("interrupted"))
        }
        _ = terminate.recv() => Err(ended("interrupted by SIGTERM")),
        result = asking => result,
    }
}

/// Requests the steps of one stream and journals them in order.
async fn one(
    service: &Service,
    work: &Work,
    stream: &Stream<'_>,
    honoured: &OnceCell<()>,
    progress: &ProgressBar,
) -> Result<()> {
    let (plan, path) = (&work.plan, work.journal(stream));
    let (mut journal, last) = journal::append(&path)?;
    let next = last.unwrap_or(plan.start) + plan.step;
    let ends = (next..=plan.end).step_by(usize::try_from(plan.step).unwrap_or(usize::MAX));
    let ahead = usize::try_from(service.config.api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
    let mut records = iter(ends).map(|end| step(service, plan, stream, honoured, end)).buffered(ahead);
    while let Some(record) = records.try_next().await? {
        journal::add(&mut journal, &path, &record)?;
        progress.inc(plan.requests_per_step());
    }
    Ok(())
}

/// Requests all ranges that end with a step, one after another, and records their windows and the step.
/// Before it believes a reply that states no range, it makes sure once that ranges are `honoured`.
async fn step(
    service: &Service,
    plan: &Plan,
    stream: &Stream<'_>,
    honoured: &OnceCell<()>,
    end: i64,
) -> Result<Record> {
    let Stream { project, app, resource, .. } = *stream;
    let mut record = Record { end, ..Record::default() };
    for length in plan.lengths() {
        let range = TimeRange { start: end - length, end };
        let (read, _) = service.read(resource, project, app, range).await?;

        let label = humantime::format_duration(Duration::from_secs(range.seconds())).to_string();
        let windows = plan.windows.iter().enumerate().filter(|(_, seconds)| **seconds == length);
        let subjects = windows.map(|(index, _)| {
            let window = Window { label: &label, container: None, first: index == 0, range };
            Subject { project, app, labels: &[], window: Some(window) }
        });
        let mut reading = read(&subjects.collect::<Vec<_>>());
        let answered = service.answered(reading.tally.as_ref(), range)?;
        if answered.is_none() {
            honoured.get_or_try_init(|| ranges::honoured(service, &plan.apps)).await?;
        }
        if length == plan.step {
            record.tally = Tally { range: answered, ..reading.tally.take().unwrap_or_default() };
        }
        // The daemon shows no other range either.
        if answered.is_some_and(|answered| !answered.is_rounded_from(range)) {
            continue;
        }
        let begins = |point: &&Point| point.time >= range.start as f64;
        record.points.extend(reading.points.iter().filter(begins).map(|point| (*point, end)));
        for sink in reading.sinks {
            let samples = sink.finish(&Layouts::default());
            for family in 0..resource.polled().families().len() {
                let series = samples.of(family);
                record.gauges.extend(series.map(|(labels, value)| (family, labels.to_owned(), value)));
            }
        }
    }
    Ok(record)
}
