//! Requests every step of every stream, in order, several at once.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::stream::{StreamExt as _, TryStreamExt as _, iter};
use indicatif::ProgressBar;
use tokio::sync::Mutex;

use crate::check::service::probe::refused;
use crate::error::{Result, ToolError};
use crate::service::Service;
use pds_core::units;
use pds_exposition::samples::Layouts;
use pds_interface::param::QueryNames;
use pds_interface::{Point, Resource, Subject, Tally, TimeRange, Window};

use super::journal::{self, Record};
use super::plan::{Plan, Stream, Work};

/// Requests every step that is not in the journals yet. Returns the names of the calls for which nothing showed whether
/// the service honours ranges.
///
/// # Errors
/// The first failure; the journals keep the replies so far.
pub async fn all(service: &Service, work: &Work, progress: &ProgressBar) -> Result<BTreeSet<&'static str>> {
    let honoured: Honoured = Mutex::default();
    for stream in work.plan.streams() {
        one(service, work, &stream, &honoured, progress).await?;
    }
    let honoured = honoured.lock().await;
    let unknown = honoured.iter().filter(|(_, is_honoured)| !**is_honoured);
    Ok(unknown.map(|((_, call), _)| call.as_str()).collect())
}

/// Requests the steps of one stream and journals them in order.
async fn one(
    service: &Service,
    work: &Work,
    stream: &Stream<'_>,
    honoured: &Honoured,
    progress: &ProgressBar,
) -> Result<()> {
    let (plan, path) = (&work.plan, work.journal(stream));
    let (mut journal, last) = journal::open(&path)?;
    if let Some(is_honoured) = last.as_ref().and_then(|last| last.is_honoured) {
        *honoured.lock().await.entry(account_and_call(service, stream)).or_default() |= is_honoured;
    }
    let next = last.map_or(plan.start, |last| last.end) + plan.step;
    let ends = (next..=plan.end).step_by(usize::try_from(plan.step).unwrap_or(usize::MAX));
    let ahead = usize::try_from(service.config.api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
    let mut records = iter(ends).map(|end| step(service, plan, stream, honoured, end)).buffered(ahead);
    while let Some(record) = records.try_next().await? {
        journal::append(&mut journal, &path, &record)?;
        progress.inc(plan.requests_per_step());
    }
    Ok(())
}

/// The accounts and calls whose replies state no range, and whether the service was found to honour ranges.
type Honoured = Mutex<HashMap<(String, Resource), bool>>;

fn account_and_call(service: &Service, stream: &Stream<'_>) -> (String, Resource) {
    (service.client.account(stream.project).name().to_owned(), stream.resource)
}

/// Requests all ranges that end with a step, one after another, and records their windows and the step.
async fn step(
    service: &Service,
    plan: &Plan,
    stream: &Stream<'_>,
    honoured: &Honoured,
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
        if length == plan.step {
            record.tally = Tally { range: answered, ..reading.tally.take().unwrap_or_default() };
            if answered.is_none() {
                let is_honoured = judge(service, stream, honoured, range, record.tally.count()).await?;
                record.is_honoured = Some(is_honoured);
            }
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

/// Refuses a service that ignores ranges, by the `count` of a reply that states none: the step and the step before it
/// cannot count more than both at once. They decide nothing if one of them counts nothing. Returns whether the service
/// was found to honour ranges, now or before.
async fn judge(
    service: &Service,
    stream: &Stream<'_>,
    honoured: &Honoured,
    step: TimeRange,
    count: Option<f64>,
) -> Result<bool> {
    // Later steps wait for the decision.
    let mut honoured = honoured.lock().await;
    let is_honoured = honoured.entry(account_and_call(service, stream)).or_default();
    let Some(count) = count.filter(|count| *count > 0.0 && !*is_honoured) else { return Ok(*is_honoured) };
    // A service may refuse ranges that long, or that old, which stops no others.
    let client = service.client.clone().retrying_refused_after(Duration::ZERO);
    let service = &Service { client, config: service.config.clone() };
    let counted = async |range| {
        let read = service.read(stream.resource, stream.project, stream.app, range).await;
        let read = refused(read)?;
        Ok::<_, ToolError>(read.ok().and_then(|(read, _)| read(&[]).tally?.count()))
    };
    let start = step.start - i64::try_from(step.seconds()).unwrap_or(0);
    let before = counted(TimeRange { start, end: step.start }).await?;
    // The last, so that it includes late data.
    let both = counted(TimeRange { start, end: step.end }).await?;
    let (Some(before), Some(both)) = (before, both) else { return Ok(false) };
    if count + before >= both + 1.0 {
        let QueryNames { start, end, .. } = &service.config.api.query_names;
        let [parts, both] = [count + before, both].map(units::rounded);
        return Err(ToolError::RangeIgnored(format!(
            "the service ignores `{start}` or `{end}`, or accounting.range_end is wrong: two steps count {parts}, both at \
             once {both}; see `pdstool check service`"
        )));
    }
    *is_honoured = before > 0.0;
    Ok(*is_honoured)
}
