//! One poll of one target.

use tokio::time::{Duration, Instant};

use crate::store::{PollFailure, PollRecord, Variant};
use pds_client::{Class, Turn};
use pds_core::error_chain::with_sources;
use pds_diagnosis::Cause;
use pds_interface::{Cadence, Scope};

use super::error::{ADDRESS, PollError};
use super::ledger_update::LedgerUpdate;
use super::metrics;
use super::plan::{Context, Plan, Poll, Target};

/// The result of a poll, for the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The next poll is due an interval later, or sooner after a failure.
    Usual,
    /// The service says again that the resource does not exist; it is polled less often until it does.
    Slow,
    /// The service was not reached or refused the token: the next poll is due `poll.interval` later, since that may end
    /// soon.
    Soon,
    /// The service requested a pause: the next poll is due after this time at the earliest.
    NotBefore(Duration),
    /// Nothing was sent because the service account is paused: the next poll is due when the pause may end.
    Within(Duration),
}

/// Polls `target` once, as this `turn` of its account: sends the requests, replaces the samples, updates the ledger, and
/// records the outcome.
pub async fn poll(context: &Context, plan: &Plan, target: &Target, turn: Turn) -> Outcome {
    let began = Instant::now();
    let poll = Poll { context, plan, target, turn: &turn };
    let mut update = LedgerUpdate::begin(poll);
    // Boxed, so that the memory of the requests is freed before the poll waits for the disk.
    let (result, gone) = match target.endpoint.cadence {
        Cadence::Settings => {
            let result = Box::pin(settings(poll)).await;
            let gone = result.as_ref().is_err_and(PollError::is_not_found);
            (result, gone)
        }
        Cadence::Metrics => Box::pin(metrics::poll(poll, &mut update)).await,
    };
    let took = began.elapsed();
    let now = context.clock.now();
    let owner = &target.key.owner;
    let (store, account) = (&context.store, target.account.name());
    let lost = match (target.endpoint.scope, &result) {
        (Scope::App, Ok(())) => {
            store.gone().found(owner);
            false
        }
        (Scope::App, _) if gone => store.gone().not_found(owner, account, now, plan.config.poll.stale_after),
        // Other failures say nothing about the app.
        (Scope::App, _) => store.gone().is_gone(owner),
        (Scope::Account, answer) => {
            if (gone || answer.is_ok()) && !plan.is_replaced() {
                store.gone().note_address(account, gone);
            }
            false
        }
        _ => false,
    };
    update.end(gone, lost).await;
    let failure = result.as_ref().err().map(|error| PollFailure {
        // The list of projects has no id in its path, so no id is at fault.
        class: match target.endpoint.scope {
            Scope::Account if error.is_not_found() => ADDRESS,
            _ => error.class(),
        },
        message: with_sources(error).into(),
        is_own: !error.is_of_account(plan.config.api.timeout),
    });
    let behind = target.counter.as_ref().is_some_and(|counter| counter.counters_are_behind());
    let polled = PollRecord { at: now, took, behind, failure };
    // The second in a row.
    let is_again = gone && {
        let class = polled.failure.as_ref().map(|failure| failure.class);
        target.subjects.iter().all(|subject| subject.cell.failing_class() == class)
    };
    for subject in &target.subjects {
        if lost {
            subject.cell.clear();
        }
        let transition = subject.cell.record(polled.clone(), &plan.shown());
        context.transitions.polled(&subject.cell.key, &transition, polled.failure.as_ref());
    }
    if is_again { Outcome::Slow } else { result.err().map_or(Outcome::Usual, |error| after(&error)) }
}

fn after(error: &PollError) -> Outcome {
    let PollError::Fetch(error) = error else { return Outcome::Usual };
    let otherwise = match Cause::of_class(error.class().as_str()).ends_with_an_answer() {
        true => Outcome::Soon,
        false => Outcome::Usual,
    };
    match (error.class(), error.retry_after()) {
        (Class::UnauthorizedPaused | Class::ForbiddenPaused | Class::Paused, Some(wait)) => {
            Outcome::Within(wait)
        }
        (Class::Status(429 | 503), Some(wait)) => Outcome::NotBefore(wait),
        _ => otherwise,
    }
}

async fn settings(poll: Poll<'_>) -> Result<(), PollError> {
    let (reading, _) = poll.request(None, None, &poll.subjects(None)).await?;
    poll.show(reading, &Variant::default());
    Ok(())
}
