//! Requests every step of every stream, in order, several at once.

use std::collections::VecDeque;
use std::sync::Arc;

use indicatif::ProgressBar;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::error::ToolError;
use crate::service::Service;
use pds_exposition::samples::Layouts;
use pds_interface::polled::Terms;
use pds_interface::{Arguments, Point, Request, Resource, RuleError, Subject, TimeRange, Window};

use super::journal::Record;
use super::plan::{Plan, Stream, Work};

/// Requests every step that is not in the journals yet.
///
/// # Errors
/// The first failure, or Ctrl-C or SIGTERM; the journals keep the replies so far.
pub async fn all(service: &Service, work: &Work, progress: &ProgressBar) -> Result<(), ToolError> {
    let unwatched = |source| ToolError::System { doing: "cannot watch for signals", source };
    let mut terminate = signal(SignalKind::terminate()).map_err(unwatched)?;
    let asking = async {
        for stream in work.plan.streams() {
            one(service, work, &stream, progress).await?;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(unwatched)?;
            Err(ToolError::Interrupted(String::new()))
        }
        _ = terminate.recv() => Err(ToolError::Interrupted(" by SIGTERM".to_owned())),
        result = asking => result,
    }
}

/// A step in flight; aborted when dropped.
struct Pending(JoinHandle<Result<Record, ToolError>>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Requests the steps of one stream and journals them in order.
async fn one(
    service: &Service,
    work: &Work,
    stream: &Stream<'_>,
    progress: &ProgressBar,
) -> Result<(), ToolError> {
    let plan = &work.plan;
    let journal = work.journal(stream);
    let mut next = journal.until()?.unwrap_or(plan.start) + plan.step;
    let mut appender = journal.append()?;
    let asker = Arc::new(Asker::new(service, plan, stream));
    let ahead = usize::try_from(service.config.api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
    let mut pending: VecDeque<Pending> = VecDeque::new();
    loop {
        while pending.len() < ahead && next <= plan.end {
            let (asker, end) = (Arc::clone(&asker), next);
            pending.push_back(Pending(tokio::spawn(async move { asker.step(end).await })));
            next += plan.step;
        }
        let Some(mut first) = pending.pop_front() else { return Ok(()) };
        let answered = (&mut first.0).await;
        let failed =
            |error: tokio::task::JoinError| ToolError::Failed { message: error.to_string(), code: 1 };
        appender.add(&answered.map_err(failed)??)?;
        progress.inc(plan.requests_per_step());
    }
}

/// The parts that all requests of a stream share.
struct Asker {
    service: Service,
    resource: Resource,
    project: String,
    app: String,
    step: i64,
    lengths: Vec<i64>,
    /// The windows with their labels, in the order of the configuration.
    windows: Vec<(i64, String)>,
}

impl Asker {
    fn new(service: &Service, plan: &Plan, stream: &Stream<'_>) -> Self {
        let label = |seconds: i64| {
            humantime::format_duration(std::time::Duration::from_secs(seconds.unsigned_abs())).to_string()
        };
        Self {
            service: service.clone(),
            resource: stream.resource,
            project: stream.project.to_owned(),
            app: stream.app.to_owned(),
            step: plan.step,
            lengths: plan.lengths(),
            windows: plan.windows.iter().map(|seconds| (*seconds, label(*seconds))).collect(),
        }
    }

    /// Requests all ranges that end with a step, one after another.
    async fn step(&self, end: i64) -> Result<Record, ToolError> {
        let mut record = Record {
            end,
            total: None,
            shares: Vec::new(),
            answered: None,
            gauges: Vec::new(),
            points: Vec::new(),
        };
        for length in &self.lengths {
            self.range(TimeRange { start: end - length, end }, &mut record).await?;
        }
        Ok(record)
    }

    /// Requests one range and records its windows and its step.
    async fn range(&self, range: TimeRange, record: &mut Record) -> Result<(), ToolError> {
        let request = self.request(range)?;
        let length = range.end - range.start;
        let windows = self.windows.iter().enumerate().filter(|(_, (seconds, _))| *seconds == length);
        let subjects: Vec<Subject<'_>> = windows
            .map(|(index, (_, label))| Subject {
                project: &self.project,
                app: &self.app,
                labels: &[],
                window: Some(Window { label, container: None, first: index == 0, range }),
            })
            .collect();
        let account = self.service.client.account(&self.project);
        let polled = self.resource.polled();
        let terms = Terms { range: Some(range), domain_status: None };
        let decode = move |body: &[u8]| polled.decode(body, &terms);
        let (read, _) = self.service.client.read(&account, self.resource, &request, decode).await?;
        let reading = read(&subjects);
        #[expect(clippy::cast_precision_loss, reason = "Unix seconds are far below 2^53")]
        let begins = |point: &&Point| point.time >= range.start as f64;
        let points = reading.points.iter().filter(begins);
        record.points.extend(points.map(|point| (point.time, point.values, range.end)));
        let families = self.resource.polled().families().len();
        let layouts = Layouts::default();
        for sink in reading.sinks {
            let samples = sink.finish(&layouts);
            for family in 0..families {
                let series = samples.of(family);
                record.gauges.extend(series.map(|(labels, value)| (family, labels.to_owned(), value)));
            }
        }
        if let Some(tally) = reading.tally.filter(|_| length == self.step) {
            record.total = tally.total;
            record.shares = tally.shares;
            record.answered = tally.range.map(|range| (range.start, range.end));
        }
        Ok(())
    }

    fn request(&self, range: TimeRange) -> Result<Request, RuleError> {
        let config = &self.service.config;
        let arguments = Arguments::about(&self.project, &self.app)
            .in_range_to(range, config.accounting.range_end)
            .at_resolution(config.poll.resolution);
        self.resource.call().request(&arguments, &config.api.query_names)
    }
}
