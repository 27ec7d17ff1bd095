//! Recent polls of a target, small enough to keep for every target: some 80 bytes each, and 130 more for the trend of
//! an app's response times, besides its last hours ([`super::course`]).
//!
//! Successes and failures are kept separately, so that a failure stays visible after many successes. Trend values have
//! a precision of 0.03 percent: they are plotted, never exposed.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Duration;

use pds_exposition::Samples;
use pds_interface::polled::Polled;

use super::changes::{Change, Changes};
use super::course::{Course, Point, SlotSummary, pack, unpack};

/// Successes kept per target: of the last 20 polls of an app, its two metrics calls make 10 each.
const SUCCESSES: usize = 10;
/// Failures kept per target.
const FAILURES: usize = 8;
/// Points kept per trend: half an hour at one poll per minute.
pub const POINTS: usize = 30;

/// One poll of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct PollRecord {
    /// When it ended; to the second.
    pub at: Timestamp,
    /// How long it took, including all requests.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failure: Option<PollFailure>,
}

/// Why a poll failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollFailure {
    /// Its class: a word of the closed set of `pds_api_requests_total`'s label `code`, or of the poll's own.
    pub class: &'static str,
    /// The error text.
    pub message: Arc<str>,
}

/// The last polls of one target.
#[derive(Debug, Default)]
pub struct History {
    successes: Ring<Success, SUCCESSES>,
    /// Boxed, because most targets have none.
    #[expect(
        clippy::box_collection,
        reason = "8 bytes instead of 24 for each of the many that never failed"
    )]
    failures: Option<Box<Vec<PollRecord>>>,
    /// `None` for targets that have neither.
    more: Option<Box<More>>,
}

/// History that only some targets have.
#[derive(Debug)]
enum More {
    /// Of response times: the last polls and the last hours.
    Trend(Ring<[u16; 2], POINTS>, Course),
    /// Of settings.
    Changes(Changes),
}

/// A successful poll: Unix time to the second, and duration. Packed, which saves a quarter.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(2))]
struct Success {
    at: u32,
    took: u16,
}

impl History {
    pub(super) fn push(&mut self, poll: PollRecord) {
        if poll.failure.is_none() {
            let at = u32::try_from(poll.at.as_second()).unwrap_or_default();
            self.successes.push(Success { at, took: pack(Some(poll.took.as_secs_f64())) });
            return;
        }
        let failures = self.failures.get_or_insert_default();
        if failures.len() == FAILURES {
            failures.remove(0);
        }
        failures.push(poll);
    }

    /// Records the response times of a poll that ended `at`; `None` if it failed. Slots have `slot_seconds`.
    pub(super) fn trace(&mut self, at: Timestamp, slot_seconds: u32, point: Option<Point>) {
        let more = self.more.get_or_insert_with(|| Box::new(More::Trend(Ring::default(), Course::default())));
        if let More::Trend(trend, course) = &mut **more {
            let values = point.unwrap_or_default();
            trend.push([pack(values.p95), pack(values.requests)]);
            course.push(at.as_second(), slot_seconds, values, point.is_none());
        }
    }

    /// Settings that differed from the present ones until now.
    pub(super) fn keep_former(&mut self, former: Arc<Samples>) {
        let more = self.more.get_or_insert_with(|| Box::new(More::Changes(Changes::default())));
        if let More::Changes(changes) = &mut **more {
            changes.former = Some(former);
        }
    }

    /// A poll ended `at`, after which the settings are `after`; notes what the poll changed.
    pub(super) fn change(&mut self, at: Timestamp, polled: &Polled, after: &Samples) {
        if let Some(More::Changes(changes)) = self.more.as_deref_mut()
            && let Some(before) = changes.former.take()
        {
            changes.add(at, &polled.families(), &before, after);
        }
    }

    /// The last hours of an app's response times, the oldest slot first; [`super::course::REACH_SECONDS`] at most.
    pub fn course(&self) -> Vec<SlotSummary> {
        match self.more.as_deref() {
            Some(More::Trend(_, course)) => course.summaries(),
            _ => Vec::new(),
        }
    }

    /// What changed in an app's settings since `since`, within the last day; the newest first.
    pub fn changes(&self, since: Timestamp) -> Vec<Change> {
        match self.more.as_deref() {
            Some(More::Changes(changes)) => changes.since(since),
            _ => Vec::new(),
        }
    }

    /// The kept polls, the newest first; failures are kept longer than successes.
    pub fn polls(&self) -> Vec<PollRecord> {
        let successes = self.successes.iter().map(|Success { at, took }| PollRecord {
            at: Timestamp::from_second(i64::from(at)).unwrap_or_default(),
            took: Duration::from_secs_f64(unpack(took).unwrap_or_default()),
            failure: None,
        });
        let mut polls: Vec<PollRecord> =
            successes.chain(self.failures.iter().flat_map(|f| f.iter().cloned())).collect();
        polls.sort_by_key(|poll| std::cmp::Reverse(poll.at));
        polls
    }

    /// The last failure, even if many successes followed.
    pub fn last_failure(&self) -> Option<PollRecord> {
        self.failures.as_ref()?.last().cloned()
    }

    /// The first window at the last polls, the oldest first; for response times only.
    pub fn trend(&self) -> Vec<Point> {
        let Some(More::Trend(trend, _)) = self.more.as_deref() else { return Vec::new() };
        let point = |[p95, requests]: [u16; 2]| Point {
            p95: unpack(p95),
            requests: unpack(requests),
            ..Point::default()
        };
        trend.iter().map(point).collect()
    }
}

/// The last `N` items, at the end of the array and the newest last.
#[derive(Debug)]
struct Ring<T, const N: usize> {
    items: [T; N],
    count: u8,
}

impl<T: Copy + Default, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self { items: [T::default(); N], count: 0 }
    }
}

impl<T: Copy, const N: usize> Ring<T, N> {
    fn push(&mut self, item: T) {
        self.items.rotate_left(1);
        if let Some(newest) = self.items.last_mut() {
            *newest = item;
        }
        if usize::from(self.count) < N {
            self.count += 1;
        }
    }

    /// The oldest first.
    fn iter(&self) -> impl Iterator<Item = T> {
        self.items.iter().skip(N - usize::from(self.count)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(second: i64, class: Option<&'static str>) -> PollRecord {
        let failure = class.map(|class| PollFailure { class, message: "no reply".into() });
        PollRecord { at: Timestamp::from_second(second).unwrap(), took: Duration::from_millis(250), failure }
    }

    #[test]
    fn a_failure_is_still_seen_after_many_successes() {
        let mut history = History::default();
        history.push(poll(1, Some("timeout")));
        for second in 2..100 {
            history.push(poll(second, None));
        }
        let polls = history.polls();
        assert_eq!(polls.len(), SUCCESSES + 1);
        assert_eq!((polls[0].at.as_second(), polls[SUCCESSES].at.as_second()), (99, 1));
        assert_eq!(history.last_failure(), Some(poll(1, Some("timeout"))));
        for second in 100..200 {
            history.push(poll(second, Some("connect")));
        }
        assert_eq!(history.polls().len(), SUCCESSES + FAILURES);
    }

    #[test]
    fn values_are_kept_closely_enough_to_be_drawn() {
        for value in [1e-6, 0.0123, 1.0, 59.0, 123_456.0, 9.9e8] {
            let kept = unpack(pack(Some(value))).unwrap();
            assert!((kept / value - 1.0).abs() < 3e-4, "{value} is kept as {kept}");
        }
        assert_eq!((unpack(pack(None)), unpack(pack(Some(0.0)))), (None, Some(0.0)));
    }

    #[test]
    fn a_trend_holds_the_last_points_in_order() {
        let mut history = History::default();
        assert_eq!(history.trend(), []);
        for n in 0..40 {
            let point =
                Point { p95: (n != 39).then_some(f64::from(n)), requests: Some(0.0), ..Point::default() };
            history.trace(Timestamp::from_second(60 * i64::from(n)).unwrap(), 60, Some(point));
        }
        let trend = history.trend();
        assert_eq!(trend.len(), POINTS);
        assert!((trend[0].p95.unwrap() - 10.0).abs() < 0.01);
        assert_eq!(trend[POINTS - 1], Point { requests: Some(0.0), ..Point::default() });
        assert_eq!(history.course().len(), 40);
    }

    #[test]
    fn what_is_kept_of_every_target_is_small() {
        assert!(size_of::<History>() <= 80, "{}", size_of::<History>());
        assert!(size_of::<More>() <= 160, "{}", size_of::<More>());
    }
}
