//! One poll of one target.

use std::sync::atomic::Ordering;

use tokio::time::{Duration, Instant};

use crate::accounting::Refusal;
use crate::accounting::ledger_store::NotCommitted;
use crate::client::{Class, FetchError};
use crate::error_chain::with_sources;
use crate::interface::polled::Reading;
use crate::interface::{Arguments, Cadence, RuleError, Subject, TimeRange, Window};
use crate::store::{PollFailure, PollRecord, Variant};

use super::ledger_update::LedgerUpdate;
use super::plan::{Context, Plan, Target};
use super::ranges::{self, MAX_HALVINGS, RangeAsk};
use super::shown::Replies;
use super::slots::SlotPermit;
use super::transition_log::TransitionLog;

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The request got no reply that counts.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The request can't be made: an identifier that no path can carry.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The reply had not settled by the service's own clock.
    #[error(
        "by the service's clock the range to {end} had not settled at {date}; it will be asked for again"
    )]
    Unsettled {
        /// End of the range, Unix seconds.
        end: i64,
        /// The service's clock.
        date: jiff::Timestamp,
    },
    /// The reply can't be added to the counters.
    #[error("not added to the counters: {0}")]
    Refused(#[from] Refusal),
    /// The counters could not be written to the state file.
    #[error(transparent)]
    NotCommitted(#[from] NotCommitted),
}

/// The classes of polls that fail although each request got its reply.
pub const ANSWERED: [&str; 3] = [UNSETTLED, REFUSED, STATE];

const UNSETTLED: &str = "unsettled";
const REFUSED: &str = "refused";
const STATE: &str = "state";

impl PollError {
    /// The class of the failure: of requests that of their code, else a word of its own.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.class().as_str(),
            Self::Rule(_) => "identifier",
            Self::Unsettled { .. } => UNSETTLED,
            Self::Refused(_) => REFUSED,
            Self::NotCommitted(_) => STATE,
        }
    }

    /// Whether the next request of the same poll would fail likewise: unless this one failed for what it asked or
    /// for what was answered.
    fn is_of_all(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        !matches!(error.class(), Class::Decode | Class::TooLarge | Class::Status(400 | 413 | 422))
    }

    /// Whether it stops the whole service account, which says so itself: its token is missing or refused, or the
    /// service asked it to wait for longer than a request may take, `patience`.
    fn is_of_account(&self, patience: Duration) -> bool {
        let Self::Fetch(error) = self else { return false };
        match error.class() {
            Class::Credentials | Class::UnauthorizedPaused | Class::Paused | Class::Status(401) => true,
            Class::Status(429 | 503) => error.retry_after() > Some(patience),
            _ => false,
        }
    }

    /// Whether a shorter range may succeed.
    fn is_of_size(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        matches!(error.class(), Class::Timeout | Class::TooLarge | Class::Status(413 | 422 | 500..=599))
    }
}

/// How a poll ended, as far as the schedule is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The next one is due an interval later.
    Usual,
    /// The service says that there is no such thing; it is asked less often until there is.
    Slow,
}

/// Polls `target` once: asks, replaces what is shown, adds what is counted, and notes how it went. Holds its `permit`
/// while it asks.
pub async fn poll(
    context: &Context,
    plan: &Plan,
    target: &Target,
    transitions: &TransitionLog,
    permit: SlotPermit,
) -> Outcome {
    let began = Instant::now();
    let mut update = LedgerUpdate::begin(context, plan, target);
    // What asking takes in memory is not kept while the disk is waited for.
    let asked = match target.endpoint.cadence {
        Cadence::Settings => Box::pin(settings(context, plan, target)).await,
        Cadence::Metrics => Box::pin(metrics(context, plan, target, &mut update)).await,
    };
    let took = began.elapsed();
    drop(permit);
    let counted = update.end(context, target, transitions).await;
    let result = asked.and_then(|()| Ok(counted?));
    let now = context.clock.now();
    let failure =
        |error: &PollError| PollFailure { class: error.class(), message: with_sources(error).into() };
    let polled = PollRecord { at: now, took, failure: result.as_ref().err().map(failure) };
    let gone = matches!(&result, Err(PollError::Fetch(error)) if error.is_not_found());
    for subject in &target.subjects {
        if gone {
            subject.cell.clear();
        }
        let transition = match &result {
            Ok(()) => subject.cell.succeeded(now),
            Err(error) if error.is_of_account(plan.config.api.timeout) => {
                subject.cell.failed_with_account(now, error.class(), &with_sources(error))
            }
            Err(error) => subject.cell.failed(now, error.class(), &with_sources(error)),
        };
        subject.cell.note(polled.clone(), &plan.shown());
        transitions.note(subject.cell.key(), &transition, result.as_ref().err());
    }
    if gone { Outcome::Slow } else { Outcome::Usual }
}

async fn settings(context: &Context, plan: &Plan, target: &Target) -> Result<(), PollError> {
    let subjects = subjects(plan, target, &[]);
    let reading = ask(context, plan, target, None, None, &subjects).await?.reading;
    show(context, target, reading, |_| Variant::default());
    Ok(())
}

/// Asks for every range that is due. A failure that says nothing of the other ranges does not keep them from being
/// asked; the first one is the poll's.
async fn metrics(
    context: &Context,
    plan: &Plan,
    target: &Target,
    update: &mut LedgerUpdate,
) -> Result<(), PollError> {
    let (mut first_error, mut replies) = (None, Replies::default());
    for wanted in ranges::asks(plan, target, update.ledger()) {
        match metrics_range(context, plan, target, &wanted, update, &mut replies).await {
            Ok(()) => {}
            Err(error) => {
                let stop = error.is_of_all();
                first_error.get_or_insert(error);
                if stop {
                    break;
                }
            }
        }
    }
    replies.show(plan, target);
    replies.compare_containers(plan, target);
    first_error.map_or(Ok(()), Err)
}

async fn metrics_range(
    context: &Context,
    plan: &Plan,
    target: &Target,
    wanted: &RangeAsk,
    update: &mut LedgerUpdate,
    replies: &mut Replies,
) -> Result<(), PollError> {
    let windows: Vec<Window<'_>> = wanted
        .windows
        .iter()
        .filter_map(|&index| plan.windows.get(index).map(|window| (index, window)))
        .map(|(index, window)| Window {
            label: &window.label,
            container: wanted.container.as_deref(),
            first: index == 0,
            range: wanted.range,
        })
        .collect();
    let subjects = subjects(plan, target, &windows);
    let container = wanted.container.as_deref();
    let answer = ask(context, plan, target, Some(wanted.range), container, &subjects).await;
    if wanted.counted {
        note_span(target, wanted.range, plan.watermark.step(), answer.as_ref().err());
    }
    let mut answer = answer?;
    if let Some(of) = answer.reading.tally.as_ref().and_then(|tally| tally.range)
        && !wanted.windows.is_empty()
        && !of.is_rounded_from(wanted.range)
    {
        return Err(Refusal::OtherRange { answered_start: of.start, answered_end: of.end }.into());
    }
    replies.add(plan, target, wanted, &answer.reading);
    let tally = answer.reading.tally.take();
    show(context, target, answer.reading, |index| Variant {
        window: wanted
            .windows
            .get(index)
            .and_then(|&w| plan.windows.get(w))
            .map_or(0, |w| w.seconds.unsigned_abs()),
        container: wanted.container.clone(),
    });
    match tally {
        Some(tally) => update.take(plan, target, &tally, wanted.range, wanted.counted, answer.date),
        None => Ok(()),
    }
}

/// A long range that was too much for the service is asked for in halves, then in halves of those; a success makes
/// them longer again.
fn note_span(target: &Target, range: TimeRange, step: i64, error: Option<&PollError>) {
    let halvings = target.progress.halvings.load(Ordering::Relaxed);
    let next = match error {
        None => halvings.saturating_sub(1),
        Some(error) if error.is_of_size() && range.end - range.start > step => {
            (halvings + 1).min(MAX_HALVINGS)
        }
        Some(_) => halvings,
    };
    target.progress.halvings.store(next, Ordering::Relaxed);
}

/// What a request brought.
struct Answer {
    reading: Reading,
    date: Option<jiff::Timestamp>,
}

async fn ask(
    context: &Context,
    plan: &Plan,
    target: &Target,
    range: Option<TimeRange>,
    container: Option<&str>,
    subjects: &[Subject<'_>],
) -> Result<Answer, PollError> {
    let resource = target.key.resource;
    let mut arguments = Arguments::about(&target.key.owner.project, &target.key.owner.app)
        .in_container(container)
        .at_resolution(plan.config.poll.resolution);
    if let Some(range) = range {
        arguments = arguments.in_range(range);
    }
    let request = resource.call().request(&arguments, &plan.config.api.query_names)?;
    let read = |body: &[u8]| target.endpoint.read(body, subjects);
    let (reading, fetched) = plan.client.read(&target.account, resource, &request, read).await?;
    plan.watermark.observe(fetched.date);
    // Of a metrics call's replies the one behind what is shown first.
    if subjects.iter().any(|subject| subject.window.is_none_or(|of| of.first && of.container.is_none())) {
        let lossy = |_| String::from_utf8_lossy(&fetched.body).into_owned();
        let text = || std::str::from_utf8(&fetched.body).map_or_else(lossy, str::to_owned);
        let now = context.clock.now();
        context.store.replies().keep(&target.key, now, fetched.body.len(), text);
    }
    Ok(Answer { reading, date: fetched.date })
}

/// Puts each subject's series into its cell.
fn show(context: &Context, target: &Target, reading: Reading, variant: impl Fn(usize) -> Variant) {
    if !reading.unexpected.is_empty() {
        context.telemetry.unexpected(target.key.resource, &reading.unexpected, &target.key.to_string());
    }
    for (index, sink) in reading.sinks.into_iter().enumerate() {
        // A target about one app has a reading for each window; one about an account has one for each project.
        let subject =
            if target.subjects.len() == 1 { target.subjects.first() } else { target.subjects.get(index) };
        if let Some(subject) = subject {
            subject.cell.replace(&variant(index), sink);
        }
    }
}

/// Whose series a reply holds: those of all subjects, or for metrics those of the one subject by window.
fn subjects<'a>(plan: &'a Plan, target: &Target, windows: &[Window<'a>]) -> Vec<Subject<'a>> {
    match target.endpoint.cadence {
        Cadence::Settings => {
            target.subjects.iter().filter_map(|subject| plan.subject(subject, None)).collect()
        }
        Cadence::Metrics => {
            let subject = target.subjects.first();
            windows.iter().filter_map(|window| plan.subject(subject?, Some(*window))).collect()
        }
    }
}
