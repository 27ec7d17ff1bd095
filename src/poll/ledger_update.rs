//! What a poll does to its target's ledger: in memory while it asks, on disk and then shown once all was asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::accounting::ledger_store::NotCommitted;
use crate::accounting::{self, Ledger};
use crate::interface::{Counted, Tally, TimeRange};
use crate::store::Variant;

use super::execute::PollError;
use super::plan::{Context, Plan, Target};
use super::transition_log::TransitionLog;

/// The ledger of a target while it is polled.
#[derive(Debug)]
pub struct LedgerUpdate {
    /// As this poll leaves it so far; `None` where nothing is counted, or nobody knows yet where counting begins.
    ledger: Option<Arc<Ledger>>,
    change: Change,
    gave_up: Option<TimeRange>,
}

/// What a poll has made of its ledger. The greatest decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    /// Something that costs nothing to learn again.
    Learnt,
    /// Opened, or time given up.
    Begun,
    /// A reply added.
    Added,
}

impl LedgerUpdate {
    /// The ledger of the target, with what is too old given up.
    #[must_use]
    pub fn begin(context: &Context, plan: &Plan, target: &Target) -> Self {
        let ledger = target.counter.as_ref().and_then(|_| context.ledgers.ledger(&target.key));
        let mut update = Self { ledger, change: Change::None, gave_up: None };
        let given_up = |ledger: &Arc<Ledger>| ledger.give_up(plan.watermark.oldest()?);
        if let Some((next, gone)) = update.ledger.as_ref().and_then(given_up) {
            update.becomes(next, Change::Begun);
            update.gave_up = Some(gone);
        }
        update.open(plan, target);
        update
    }

    /// The ledger as it stands.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// Takes in a reply about `range`; `counted` says whether it was asked for to be added, and `date` where the
    /// service's clock stood.
    ///
    /// # Errors
    /// Where the reply can't be added; the ledger stays as it was.
    pub fn take(
        &mut self,
        plan: &Plan,
        target: &Target,
        tally: &Tally,
        range: TimeRange,
        counted: bool,
        date: Option<jiff::Timestamp>,
    ) -> Result<(), PollError> {
        // The service's first reply of all: only now is it known where counting begins.
        self.open(plan, target);
        let Some(ledger) = &self.ledger else { return Ok(()) };
        if counted {
            if let (Some(date), false) = (date, plan.watermark.has_settled(range, date)) {
                return Err(PollError::Unsettled { end: range.end, date });
            }
            let distributed = target.endpoint.counted == Some(Counted::Requests);
            let next = ledger.add(range, tally, distributed, i64::MAX)?;
            self.becomes(next, Change::Added);
        } else if let Some(learnt) = learn(ledger, tally) {
            self.becomes(learnt, Change::Learnt);
        }
        Ok(())
    }

    /// Puts what has changed on disk, and shows it then.
    ///
    /// # Errors
    /// Where it could not be written; the ledger before stays, and what was added to it is asked for again.
    pub async fn end(
        self,
        context: &Context,
        target: &Target,
        transitions: &TransitionLog,
    ) -> Result<(), NotCommitted> {
        let Some(ledger) = self.ledger.filter(|_| self.change > Change::None) else { return Ok(()) };
        let (ledgers, ledger) = (&context.ledgers, Arc::unwrap_or_clone(ledger));
        let ledger = match self.change {
            Change::None | Change::Learnt => ledgers.hold(&target.key, ledger),
            Change::Begun | Change::Added => ledgers.commit(&target.key, ledger).await?,
        };
        if let Some(cell) = &target.counter {
            cell.replace(&Variant::default(), accounting::series(target.key.resource, &ledger));
        }
        let gave_up = &target.progress.gave_up;
        if let Some(gone) = self.gave_up.filter(|_| !gave_up.swap(true, Ordering::Relaxed)) {
            transitions.gave_up(&target.key, gone.seconds());
        }
        if self.change == Change::Added {
            gave_up.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Opens a ledger at the current step where there is none and that is known.
    fn open(&mut self, plan: &Plan, target: &Target) {
        if target.counter.is_some()
            && self.ledger.is_none()
            && let Some(first) = plan.watermark.first_cursor()
        {
            self.becomes(Ledger::open(first), Change::Begun);
        }
    }

    fn becomes(&mut self, next: Ledger, change: Change) {
        self.ledger = Some(Arc::new(next));
        self.change = self.change.max(change);
    }
}

/// Before anything was counted, the thresholds that a window's reply names become buckets at zero, so that
/// Prometheus has seen them all before the first of them moves.
fn learn(ledger: &Ledger, tally: &Tally) -> Option<Ledger> {
    if ledger.total > 0 { None } else { ledger.learn(tally) }
}
