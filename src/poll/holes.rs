//! Holes: stretches of time that the service always refuses while it answers later ones.
//!
//! A range may be older than the service's retention, or contain a second that it cannot answer for. Once the range at
//! the cursor was refused three times over five poll intervals and the newest step is answered, halving finds the
//! answered steps around the hole. The steps before it are counted; the hole is given up in whole steps, each of which
//! was refused. A hole of more than `MAX_SINGLE` steps is assumed to be older than the retention, and is given up to
//! the oldest answered step. A service that fails at random answers the same step a moment later, so both ends of a
//! hole must be refused repeatedly.

use pds_interface::{Counted, TimeRange};
use pds_ledger::Ledger;

use super::ledger_update::LedgerUpdate;
use super::plan::Poll;
use super::progress::MAX_SINGLE;
use super::ranges::{self, Purpose, RangeRequest};

/// How many times both ends of a hole must be refused again while the newest step is answered. If a service fails half
/// of its requests, one false hole in 16 million passes.
const CONFIRMATIONS: u32 = 8;

/// Looks for the hole in `refused`, the range at the cursor, and gives it up. Returns whether there is one.
///
/// A search ends: each request halves a range, passes one of [`MAX_SINGLE`] steps, or is one of [`CONFIRMATIONS`].
pub(super) async fn give_up<'a>(
    poll: Poll<'a>,
    update: &mut LedgerUpdate<'a>,
    refused: TimeRange,
    reason: &str,
) -> bool {
    let Poll { plan, target, .. } = poll;
    let step = plan.watermark.step();
    let newest = plan.watermark.settled_step() - step;
    let mut search = Search { poll, update, step };
    let refusals = target.progress.lock().refusals.take();
    let answered = if refused.start < newest { search.probe_step(newest).await } else { None };
    let hole = if answered == Some(true) { search.hole(refused, newest).await } else { None };
    let Some(range) = hole else {
        // If the newest step is refused too, time is not the cause.
        target.progress.lock().refusals = refusals.filter(|_| answered != Some(false));
        return false;
    };
    // Unless all is confirmed, the refusals so far prove nothing.
    let is_hole = search.confirm(range, newest).await == Some(true) && update.give_up(range.end);
    update.hole = is_hole.then(|| (range, reason.to_owned()));
    is_hole
}

struct Search<'a, 'u> {
    poll: Poll<'a>,
    update: &'u mut LedgerUpdate<'a>,
    step: i64,
}

impl Search<'_, '_> {
    /// Counts the answered beginning of `refused`, then finds the hole behind it. `None` if there is no hole, or the
    /// search did not end.
    async fn hole(&mut self, refused: TimeRange, newest: i64) -> Option<TimeRange> {
        let TimeRange { mut start, end: mut bad } = refused;
        loop {
            let steps = (bad - start) / self.step / 2;
            let middle = (start + steps * self.step).div_euclid(self.step) * self.step;
            // The last step is requested alone.
            let end = if middle > start { middle } else { bad };
            if self.add_range(TimeRange { start, end }).await? {
                let answered = (end - start).unsigned_abs();
                start = end;
                if end == bad {
                    // Every part is answered, so the range was too long.
                    ranges::no_longer_than(self.poll.target, answered);
                    return None;
                }
            } else if end == bad {
                break;
            } else {
                bad = end;
            }
        }
        let mut end = bad;
        for _ in 0..MAX_SINGLE {
            if end >= newest || self.probe_step(end).await? {
                return Some(TimeRange { start, end });
            }
            end += self.step;
        }
        let end = self.oldest_answered(end, newest).await?;
        Some(TimeRange { start, end })
    }

    /// Whether both ends of `hole` are refused each time, while the newest step is answered.
    async fn confirm(&self, hole: TimeRange, newest: i64) -> Option<bool> {
        for _ in 0..CONFIRMATIONS {
            let refused =
                !self.probe_step(hole.start).await? && !self.probe_step(hole.end - self.step).await?;
            if !refused || !self.probe_step(newest).await? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The oldest answered step. Steps before `low` are refused, `high` is answered.
    async fn oldest_answered(&self, mut low: i64, mut high: i64) -> Option<i64> {
        while low < high {
            let at = low + (high - low) / self.step / 2 * self.step;
            let next = at + self.step;
            // A single refused step may be a separate hole.
            if self.probe_step(at).await? || (next < high && self.probe_step(next).await?) {
                high = at;
            } else {
                low = next;
            }
        }
        Some(low)
    }

    /// Requests the step that begins at `start`. Returns whether it is answered; `None` if unknown.
    async fn probe_step(&self, start: i64) -> Option<bool> {
        let range = TimeRange { start, end: start + self.step };
        let distributed = self.poll.target.endpoint.counted == Some(Counted::Requests);
        match self.poll.tally(range).await {
            Ok((tally, _)) => Some(Ledger::open(start).add(range, &tally, distributed, i64::MAX).is_ok()),
            Err(error) => error.is_refusal().then_some(false),
        }
    }

    /// Adds the range at the cursor. Returns whether it is answered; `None` if unknown.
    async fn add_range(&mut self, range: TimeRange) -> Option<bool> {
        let taken = match self.poll.tally(range).await {
            Ok((tally, date)) => {
                self.update.verify(&tally, range).await;
                self.update.take(&tally, &RangeRequest::of(range, Purpose::Counted), date)
            }
            Err(error) => Err(error),
        };
        match taken {
            // A reply that is not added yet, such as the first zero of a busy app, is requested again.
            Ok(()) => self.update.ledger().is_some_and(|ledger| ledger.until >= range.end).then_some(true),
            Err(error) => error.is_refusal().then_some(false),
        }
    }
}
