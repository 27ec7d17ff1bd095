//! One poll of one target.

use tokio::time::Instant;

use crate::error_chain::with_sources;
use crate::interface::polled::Reading;
use crate::interface::{Arguments, Cadence, Subject, TimeRange, Window};
use crate::store::{PollFailure, PollRecord, Variant};

use super::error::PollError;
use super::ledger_update::LedgerUpdate;
use super::metrics;
use super::plan::{Context, Plan, Target};
use super::slots::SlotPermit;
use super::transition_log::TransitionLog;

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
    let (asked, gone) = match target.endpoint.cadence {
        Cadence::Settings => {
            let asked = Box::pin(settings(context, plan, target)).await;
            let gone = asked.as_ref().is_err_and(PollError::is_not_found);
            (asked, gone)
        }
        Cadence::Metrics => Box::pin(metrics::poll(context, plan, target, &mut update, transitions)).await,
    };
    let took = began.elapsed();
    drop(permit);
    let counted = update.end(context, plan, target, transitions).await;
    let result = asked.and_then(|()| Ok(counted?));
    let now = context.clock.now();
    let failure =
        |error: &PollError| PollFailure { class: error.class(), message: with_sources(error).into() };
    let polled = PollRecord { at: now, took, failure: result.as_ref().err().map(failure) };
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
        subject.cell.record(polled.clone(), &plan.shown());
        transitions.polled(subject.cell.key(), &transition, result.as_ref().err());
    }
    if gone { Outcome::Slow } else { Outcome::Usual }
}

async fn settings(context: &Context, plan: &Plan, target: &Target) -> Result<(), PollError> {
    let subjects = subjects(plan, target, &[]);
    let reading = ask(context, plan, target, None, None, &subjects).await?.reading;
    show(context, plan, target, reading, |_| Variant::default());
    Ok(())
}

/// What a request brought.
pub(super) struct Answer {
    pub reading: Reading,
    pub date: Option<jiff::Timestamp>,
}

pub(super) async fn ask(
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
        arguments = arguments.in_range_to(range, plan.config.accounting.range_end);
    }
    let request = resource.call().request(&arguments, &plan.config.api.query_names)?;
    let endpoint = target.endpoint;
    let decode = move |body: &[u8]| endpoint.decode(body, range);
    let (decoded, fetched) = plan.client.read(&target.account, resource, &request, decode).await?;
    plan.watermark.observe(fetched.date);
    // Of a metrics call's replies the one behind what is shown first.
    if subjects.iter().any(|subject| subject.window.is_none_or(|of| of.first && of.container.is_none())) {
        let lossy = |_| String::from_utf8_lossy(&fetched.body).into_owned();
        let text = || std::str::from_utf8(&fetched.body).map_or_else(lossy, str::to_owned);
        let now = context.clock.now();
        context.store.replies().keep(&target.key, now, fetched.body.len(), text);
    }
    Ok(Answer { reading: decoded.reading(subjects), date: fetched.date })
}

/// Puts each subject's series into its cell.
pub(super) fn show(
    context: &Context,
    plan: &Plan,
    target: &Target,
    reading: Reading,
    variant: impl Fn(usize) -> Variant,
) {
    if !reading.unexpected.is_empty() {
        context.telemetry.unexpected(target.key.resource, &reading.unexpected, &target.key.to_string());
    }
    // A poll that a reload has overtaken may have asked for what nobody wants any more.
    if plan.is_replaced() {
        return;
    }
    if let [subject] = &*target.subjects {
        subject.cell.set_message(reading.message);
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
pub(super) fn subjects<'a>(plan: &'a Plan, target: &Target, windows: &[Window<'a>]) -> Vec<Subject<'a>> {
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
