//! Recent polls of a target.

use std::sync::atomic::Ordering;

use jiff::Timestamp;

use pds_interface::response_time;

use super::super::changes::Change;
use super::super::course::Point;
use super::super::course::SlotSummary;
use super::super::history::{PollFailure, PollRecord};
use super::{State, TargetState, Variant};

impl TargetState {
    /// A poll has ended; `shown` is the variant that an app's trend follows.
    pub fn record(&self, poll: PollRecord, shown: &Variant) {
        let mut state = self.state();
        let (at, failed) = (poll.at, poll.failure.is_some());
        let point = (self.key.resource == response_time::RESOURCE).then(|| {
            let entry = state.entries.iter().find(|entry| entry.variant == *shown && !failed)?;
            Some(Point::of(&self.key.resource.polled().families(), &entry.samples))
        });
        let history = state.history.get_or_insert_default();
        history.push(poll);
        if let Some(point) = point {
            history.trace(at, self.shared.slot_seconds.load(Ordering::Relaxed), point);
        }
        if let State { entries, history: Some(history), .. } = &mut *state
            && let (Some(before), Some(entry)) = (history.take_former(), entries.first())
        {
            history.change(at, &self.key.resource.polled().families(), &before, &entry.samples);
        }
    }

    /// The last polls, the newest first; failures are kept longer than successes.
    #[must_use]
    pub fn polls(&self) -> Vec<PollRecord> {
        self.state().history.as_ref().map(|history| history.polls()).unwrap_or_default()
    }

    /// The last failed poll, however many have succeeded since.
    #[must_use]
    pub fn last_failure(&self) -> Option<(Timestamp, PollFailure)> {
        let poll = self.state().history.as_ref()?.last_failure()?;
        Some((poll.at, poll.failure?))
    }

    /// What the first window said at the last polls, the oldest first; for response times only.
    #[must_use]
    pub fn trend(&self) -> Vec<Point> {
        self.state().history.as_ref().map(|history| history.trend()).unwrap_or_default()
    }

    /// The last hours of an app's response times, the oldest stretch first; [`crate::store::course::REACH_SECONDS`] at most.
    #[must_use]
    pub fn course(&self) -> Vec<SlotSummary> {
        self.state().history.as_ref().map(|history| history.course()).unwrap_or_default()
    }

    /// What changed in an app's settings since `since`, within the last day; the newest first.
    #[must_use]
    pub fn changes(&self, since: Timestamp) -> Vec<Change> {
        let state = self.state();
        let changes = state.history.as_ref().and_then(|history| history.changes());
        changes.map(|changes| changes.since(since)).unwrap_or_default()
    }
}
