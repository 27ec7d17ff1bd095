//! How a poll updates its target's ledger: in memory while requests are in flight, then on disk, then on the page.

use std::sync::Arc;

use jiff::Timestamp;
use pds_diagnosis::GivenUp;
use pds_interface::{Counted, Tally, TimeRange};
use pds_ledger::recheck::Due;
use pds_ledger::{HOUR, Hold, Ledger, MAX_THRESHOLDS, Refusal};

use super::audit;
use super::completeness;
use super::error::PollError;
use super::evidence::Violation;
use super::plan::{Poll, Target};
use super::progress::{MAX_SINGLE, record_total};
use super::ranges::{Purpose, RangeRequest};
use super::schedule::phase_seconds;

/// The ledger of a target while it is polled.
#[derive(Debug)]
pub struct LedgerUpdate<'a> {
    poll: Poll<'a>,
    /// The ledger so far; `None` if the target has no counters, or its cursor is not known yet.
    ledger: Option<Arc<Ledger>>,
    /// The ledger before the poll.
    before: Option<Arc<Ledger>>,
    /// Whether a missing ledger may be opened.
    may_open: bool,
    /// Whether a reply was added.
    added: bool,
    /// Whether a reply was not added because no check has passed yet.
    awaits_check: bool,
    gave_up: Option<TimeRange>,
    /// The hole that this poll found, and the service's refusal; recorded once it is on disk.
    pub(super) hole: Option<(TimeRange, String)>,
}

impl<'a> LedgerUpdate<'a> {
    /// Takes the ledger of the target, and gives up time that is too old.
    pub(super) fn begin(poll: Poll<'a>) -> Self {
        let Poll { context, target, .. } = poll;
        let counts = target.counter.is_some();
        // The cursor is still being restored.
        let may_open = counts && context.ledgers.hold(&target.key) != Some(Hold::Unknown);
        let before = context.ledgers.ledger(&target.key);
        let ledger = before.clone().filter(|_| may_open);
        ledger.iter().for_each(|ledger| completeness::note_samples(poll, ledger));
        let mut update = Self {
            poll,
            ledger,
            before,
            may_open,
            added: false,
            awaits_check: false,
            gave_up: None,
            hole: None,
        };
        update.follow_clock();
        update
    }

    /// The current ledger.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// The part of an hour to recheck now, if any.
    pub fn recheck_due(&self) -> Option<TimeRange> {
        self.ledger()?.recheck_due(self.due())
    }

    /// The schedule of rechecks.
    fn due(&self) -> Due<'a> {
        let Poll { plan, target, .. } = self.poll;
        let oldest = Some(target.progress.lock().answers_from);
        Due { ages: plan.watermark.ages(), phase: phase(target), oldest }
    }

    /// Records that the recheck of `range` failed; `refused` if the service refused the range.
    pub(super) fn not_answered(&mut self, range: TimeRange, refused: bool) {
        let Some(next) = self.ledger().map(|ledger| ledger.not_answered(range, refused, self.due())) else {
            return;
        };
        self.becomes(next);
    }

    /// Adds the reply to the request `asked`; `date` is the service's time.
    ///
    /// # Errors
    /// If the reply cannot be added; the cursor does not move.
    pub fn take(
        &mut self,
        tally: &Tally,
        asked: &RangeRequest<'_>,
        date: Option<jiff::Timestamp>,
    ) -> Result<(), PollError> {
        let Poll { plan, target, .. } = self.poll;
        let (range, watermark) = (asked.range, &plan.watermark);
        let step = watermark.step().unsigned_abs();
        let unsettled = date.filter(|_| !watermark.has_settled(range, date));
        if let (Some(date), true) = (unsettled, asked.purpose != Purpose::Window) {
            return Err(PollError::Unsettled { end: range.end, date });
        }
        let believed = (asked.purpose != Purpose::Window).then(|| self.is_believed(tally));
        if let Some(believed) = believed.filter(|_| audit::is_needed(self.poll, tally)) {
            match believed {
                Ok(true) => {}
                Ok(false) => {
                    self.awaits_check = true;
                    self.follow_clock();
                    return Ok(());
                }
                Err(violation) => {
                    let text = format!("not added to the counters: {violation}; {}", violation.remedy());
                    return Err(PollError::NotBelieved { violation, text });
                }
            }
        }
        if asked.purpose == Purpose::Counted && watermark.is_too_old(range) {
            self.follow_clock();
            return Err(Refusal::TooOld(range.start).into());
        }
        if asked.purpose == Purpose::Window {
            // Opens a missing ledger first, so that it learns the thresholds of this reply.
            self.follow_clock();
        }
        let distributed = target.endpoint.counted == Some(Counted::Requests);
        if let Some(ledger) = &self.ledger {
            note_beyond_room(ledger, tally, self.poll);
            match asked.purpose {
                Purpose::Window => {
                    if let Some(learnt) = learn(ledger, tally) {
                        self.becomes(learnt);
                    }
                }
                Purpose::Counted
                    if record_total(&target.progress, tally.total, range.seconds() / step, || {
                        plan.check_outage(target)
                    }) => {}
                Purpose::Counted => {
                    let next = ledger.add(range, tally, distributed, watermark.hourly_from())?;
                    let is_verified = tally.total > Some(0) && believed == Some(Ok(true));
                    let next = if is_verified { plan.evidence.verified(next) } else { next };
                    let objective = plan.app_of(target).and_then(|app| app.objective);
                    if let Some(step) = objective.and_then(|_| tally.rounding()) {
                        let known = &mut target.progress.lock().share_step;
                        *known = Some(known.map_or(step, |known| known.min(step)));
                    }
                    self.becomes(next);
                    self.added = true;
                }
                Purpose::Recheck => {
                    if let Some((mut next, recheck)) =
                        ledger.recheck(range, tally, distributed, self.due())?
                    {
                        let sample = next.sample_of(ledger, range, recheck, watermark.ages());
                        if let Some(sample) =
                            sample.filter(|_| completeness::begin_sample(self.poll, range.end))
                        {
                            next.sample = Some(Box::new(sample));
                        }
                        self.becomes(next);
                        self.added |= !recheck.doubtful;
                    }
                }
            }
        }
        // The first reply determines where counting begins and which time is too old.
        self.follow_clock();
        Ok(())
    }

    /// Whether `tally` can be counted. If it states its range, a ledger of the state file that a check has verified
    /// needs no other, unless one has found that the service ignores ranges.
    ///
    /// # Errors
    /// The violation that a check has found.
    pub(super) fn is_believed(&self, tally: &Tally) -> Result<bool, Violation> {
        let Poll { plan, target, .. } = self.poll;
        let evidence = plan.evidence(target);
        let is_verified = self.ledger().is_some_and(|ledger| plan.evidence.verifies(ledger));
        match tally.range {
            Some(_) if is_verified && !evidence.ignores_ranges() => Ok(true),
            _ => evidence.believes(),
        }
    }

    /// Checks the service's replies if no check has passed that must precede counting `tally`, the reply about `range`.
    pub(super) async fn verify(&self, tally: &Tally, range: TimeRange) {
        let is_needed = tally.total > Some(0) && audit::is_needed(self.poll, tally);
        if is_needed && self.is_believed(tally) != Ok(true) {
            audit::verify(self.poll, range, tally.range.is_some()).await;
        }
    }

    /// Requests the sampled hour if it is due, to determine how much of it was counted. A failed request is not
    /// repeated.
    pub(super) async fn sample(&mut self) {
        let Some(sample) = self.ledger().and_then(|ledger| ledger.sample_due(phase(self.poll.target))) else {
            return;
        };
        let known = completeness::known(self.poll, sample.range()).await;
        let Some(next) = self.ledger().map(|ledger| ledger.after_sample(known)) else { return };
        completeness::note_samples(self.poll, &next);
        self.becomes(next);
    }

    /// Gives up the time from the cursor to `end`. Returns whether there is any.
    pub(super) fn give_up(&mut self, end: i64) -> bool {
        let hourly_from = self.poll.plan.watermark.hourly_from();
        let Some((next, _)) = self.ledger().and_then(|ledger| ledger.give_up(end, hourly_from)) else {
            return false;
        };
        self.becomes(next);
        true
    }

    /// Writes changes to disk, then shows them. If the write fails, the previous ledger stays, and the next poll
    /// requests the ranges again. No ledger is opened for an app that the service does not know (`unknown`); a `lost`
    /// app shows no counters.
    pub async fn end(self, unknown: bool, lost: bool) {
        let Poll { context, plan, target, .. } = self.poll;
        if lost || (unknown && self.before.is_none()) {
            return target.counter.iter().for_each(|cell| cell.clear());
        }
        target.progress.lock().awaits_check = self.awaits_check;
        let is_known =
            |ledger: &Arc<Ledger>| self.before.as_ref().is_some_and(|before| Arc::ptr_eq(before, ledger));
        let committed = match self.ledger.filter(|ledger| !is_known(ledger)) {
            None => None,
            // The store counts and logs failed writes; the poll itself succeeded or failed without them.
            Some(ledger) => context.ledgers.commit(&target.key, Arc::unwrap_or_clone(ledger)).await.ok(),
        };
        let Some(ledger) = committed else {
            let ledger = context.ledgers.ledger(&target.key);
            return ledger.iter().for_each(|ledger| plan.show_counters(context, target, ledger, None));
        };
        plan.show_counters(context, target, &ledger, Some(self.before.as_deref().unwrap_or(&ledger)));
        let mut progress = target.progress.lock();
        if let Some((range, reason)) = self.hole {
            let time = |second| Timestamp::from_second(second).unwrap_or_default();
            let (start, end) = (time(range.start), time(range.end));
            progress.hole = Some(Box::new(GivenUp { start, end, reason: reason.as_str().into() }));
            // It is too long for a hole alone: the service may no longer have older time.
            if range.end - range.start > MAX_SINGLE * plan.watermark.step() {
                progress.answers_from = range.end;
            }
            let reason = format!("the service refuses it, although it answers later ranges: {reason}");
            context.transitions.gave_up(&target.key, range, &reason);
        }
        if let Some(gone) = self.gave_up.filter(|_| !std::mem::replace(&mut progress.gave_up, true)) {
            let reason = "it was older than accounting.max_catch_up; pds_app_pending_seconds and \
                          pds_app_unaccounted_seconds_total count further seconds";
            context.transitions.gave_up(&target.key, gone, reason);
        }
        if self.added {
            progress.gave_up = false;
        }
    }

    /// Opens a missing ledger at the current step, resumes one that another shard counted, and gives up time that is
    /// too old. Does none of this until two clocks agree.
    fn follow_clock(&mut self) {
        let plan = self.poll.plan;
        let watermark = &plan.watermark;
        match &self.ledger {
            None => {
                if let Some(first) = watermark.first_cursor().filter(|_| self.may_open) {
                    self.becomes(Ledger::open(first));
                }
            }
            Some(ledger) if ledger.set_aside => {
                if let Some(now) = watermark.first_cursor() {
                    let resumed = ledger.resumed_at(now);
                    self.becomes(resumed);
                }
            }
            Some(ledger) => {
                let Some(oldest) = watermark.oldest() else { return };
                if let Some((next, gone)) = ledger.give_up(oldest, watermark.hourly_from()) {
                    self.becomes(next);
                    // The log names the first range; the metric counts further ones.
                    self.gave_up.get_or_insert(gone);
                }
                let kept = watermark.ages().kept_from(watermark.settled());
                if let Some(next) = self.ledger().and_then(|ledger| ledger.without_hours_before(kept)) {
                    self.becomes(next);
                }
            }
        }
    }

    fn becomes(&mut self, next: Ledger) {
        self.ledger = Some(Arc::new(next));
    }
}

/// Delay in seconds of this target's rechecks, so that not all targets recheck at once.
pub(super) fn phase(target: &Target) -> i64 {
    phase_seconds(&target.key.owner, HOUR)
}

/// Adds the thresholds of a window's reply as buckets at 0 before anything is counted, so that Prometheus scrapes them
/// before they grow.
fn learn(ledger: &Ledger, tally: &Tally) -> Option<Ledger> {
    if ledger.total > 0 { None } else { ledger.learn(tally.shares.iter().map(|(threshold, _)| *threshold)) }
}

/// Counts thresholds as unexpected if the ledger has no room for them.
fn note_beyond_room(ledger: &Ledger, tally: &Tally, Poll { context, target, .. }: Poll<'_>) {
    let unknown = ledger.beyond_room(tally).min(MAX_THRESHOLDS);
    if unknown > 0 {
        let fields = vec!["distribution"; unknown];
        context.telemetry.unexpected(target.key.resource, &fields, &target.key.to_string(), None);
    }
}
