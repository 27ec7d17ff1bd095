//! What a poll does to its target's ledger: in memory while it asks, on disk and then shown once all was asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::accounting::hour::HOUR;
use crate::accounting::ledger_store::{Hold, NotCommitted};
use crate::accounting::recheck::Recheck;
use crate::accounting::{Ledger, MAX_THRESHOLDS, Refusal};
use crate::interface::{Counted, Tally, TimeRange};

use super::error::PollError;
use super::plan::{Context, Plan, Target};
use super::ranges::{Purpose, RangeAsk};
use super::schedule::Phase;
use super::transition_log::TransitionLog;

/// The ledger of a target while it is polled.
#[derive(Debug)]
pub struct LedgerUpdate {
    /// As this poll leaves it so far; `None` if nothing is counted, or nobody knows yet where counting begins.
    ledger: Option<Arc<Ledger>>,
    /// Whether a ledger may be opened if there is none.
    may_open: bool,
    change: Change,
    gave_up: Option<TimeRange>,
    rechecked: Option<Recheck>,
}

/// What a poll has made of its ledger. The greatest decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    /// Something that costs nothing to learn again.
    Learnt,
    /// Opened, resumed, or time given up.
    Begun,
    /// A reply added.
    Added,
}

impl LedgerUpdate {
    /// The ledger of the target, with what is too old given up.
    #[must_use]
    pub fn begin(context: &Context, plan: &Plan, target: &Target) -> Self {
        let counts = target.counter.is_some();
        // While it is asked for elsewhere, nothing is added: what comes from there takes the place of what is here.
        let may_open = counts && context.ledgers.held_back(&target.key) != Some(Hold::Unknown);
        let ledger = context.ledgers.ledger(&target.key).filter(|_| may_open);
        let mut update = Self { ledger, may_open, change: Change::None, gave_up: None, rechecked: None };
        update.follow_clock(plan);
        update
    }

    /// The ledger as it stands.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// The hour to be counted again now, if any.
    #[must_use]
    pub fn recheck_due(&self, plan: &Plan, target: &Target) -> Option<TimeRange> {
        let ledger = self.ledger().filter(|_| target.progress.may_recheck())?;
        ledger.recheck_due(plan.watermark.ages(), phase(target), plan.watermark.settled())
    }

    /// Takes in the reply to `asked`; `date` is where the service's clock stood.
    ///
    /// # Errors
    /// If the reply cannot be added; the cursor stays where it was.
    pub fn take(
        &mut self,
        context: &Context,
        plan: &Plan,
        target: &Target,
        tally: &Tally,
        asked: &RangeAsk,
        date: Option<jiff::Timestamp>,
    ) -> Result<(), PollError> {
        let (range, watermark) = (asked.range, &plan.watermark);
        let unsettled = date.filter(|_| !watermark.has_settled(range, date));
        if let (Some(date), true) = (unsettled, asked.purpose != Purpose::Window) {
            return Err(PollError::Unsettled { end: range.end, date });
        }
        if asked.purpose == Purpose::Counted && watermark.is_too_old(range) {
            self.follow_clock(plan);
            return Err(Refusal::TooOld { start: range.start }.into());
        }
        let distributed = target.endpoint.counted == Some(Counted::Requests);
        if let Some(ledger) = &self.ledger {
            let unknown = ledger.beyond_room(tally).min(MAX_THRESHOLDS);
            if unknown > 0 {
                let fields = vec!["distribution"; unknown];
                context.telemetry.unexpected(target.key.resource, &fields, &target.key.to_string());
            }
            match asked.purpose {
                Purpose::Window => {
                    if let Some(learnt) = learn(ledger, tally) {
                        self.becomes(learnt, Change::Learnt);
                    }
                }
                Purpose::Counted => {
                    let next = ledger.add(range, tally, distributed, watermark.hourly_from())?;
                    self.becomes(next, Change::Added);
                }
                Purpose::Recheck => {
                    let due = (watermark.ages(), phase(target), watermark.settled());
                    if let Some((next, recheck)) = ledger.recheck(range, tally, distributed, due)? {
                        self.becomes(next, Change::Added);
                        self.rechecked = Some(recheck);
                    }
                }
            }
        }
        // The first replies of all: only now is it known where counting begins, and what is too old.
        self.follow_clock(plan);
        Ok(())
    }

    /// Puts what has changed on disk, and shows it then.
    ///
    /// # Errors
    /// If it could not be written; the ledger before stays, and what was added to it is asked for again.
    pub async fn end(
        self,
        context: &Context,
        plan: &Plan,
        target: &Target,
        transitions: &TransitionLog,
    ) -> Result<(), NotCommitted> {
        let Some(ledger) = self.ledger else { return Ok(()) };
        let ledger = match self.change {
            Change::None => ledger,
            Change::Learnt => context.ledgers.hold(&target.key, Arc::unwrap_or_clone(ledger)),
            Change::Begun | Change::Added => {
                context.ledgers.commit(&target.key, Arc::unwrap_or_clone(ledger)).await?
            }
        };
        plan.show_counters(context, target, &ledger, self.change > Change::None);
        if let Some(recheck) = self.rechecked {
            target.progress.add_recheck(recheck);
            transitions.rechecked(recheck);
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

    /// Does what the clocks allow by now: opens a ledger at the current step if there is none, resumes there one
    /// that another shard had, and gives up what is too old.
    fn follow_clock(&mut self, plan: &Plan) {
        let watermark = &plan.watermark;
        match &self.ledger {
            None => {
                if let Some(first) = watermark.first_cursor().filter(|_| self.may_open) {
                    self.becomes(Ledger::open(first), Change::Begun);
                }
            }
            Some(ledger) if ledger.set_aside => {
                if let Some(now) = watermark.first_cursor() {
                    let resumed = ledger.resumed_at(now);
                    self.becomes(resumed, Change::Begun);
                }
            }
            Some(ledger) => {
                let Some(oldest) = watermark.oldest() else { return };
                if let Some((next, gone)) = ledger.give_up(oldest) {
                    self.becomes(next, Change::Begun);
                    self.gave_up = Some(gone);
                }
                let kept = watermark.ages().last().map(|age| oldest - age - 2 * HOUR);
                let ledger = self.ledger.as_ref();
                if let Some(next) = ledger.and_then(|l| l.without_hours_before(kept.unwrap_or(i64::MAX))) {
                    self.becomes(next, Change::Learnt);
                }
            }
        }
    }

    fn becomes(&mut self, next: Ledger, change: Change) {
        self.ledger = Some(Arc::new(next));
        self.change = self.change.max(change);
    }
}

/// How many seconds later than its age an hour of this target is counted again, so that not all are at once.
fn phase(target: &Target) -> i64 {
    Phase::of(&target.key.owner).of_seconds(HOUR)
}

/// Before anything was counted, the thresholds that a window's reply names become buckets at zero, so that
/// Prometheus has seen them all before the first of them moves.
fn learn(ledger: &Ledger, tally: &Tally) -> Option<Ledger> {
    if ledger.total > 0 { None } else { ledger.learn(tally) }
}
