//! The history of a target: its last events and the last six hours of its samples. It is the only record of the past;
//! page, plots, log and status read it.
//!
//! Consecutive polls with the same result are one event, so an event of a healthy target lasts for days. The newest
//! events of each kind are kept, so a failure stays visible after many successes. The service and each token have a
//! ring of events, too, written when the status is computed.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::{Duration, Instant};

use pds_diagnosis::Cause;

use super::changes::Change;
use super::six_hours::{Point, SixHours, SlotSummary, pack, unpack};

/// Events kept of each kind.
const MAX_EVENTS: usize = 16;
/// Points of a trend.
pub const POINTS: usize = 30;

/// The end of a poll.
#[derive(Clone, Debug)]
pub struct PollRecord {
    /// When it ended; kept to the second.
    pub at: Timestamp,
    /// How long it took, including all requests.
    pub took: Duration,
    /// Whether the target's counters are hidden because they are behind.
    pub behind: bool,
    /// Why it failed, if it did.
    pub failure: Option<PollFailure>,
}

/// Why a poll failed.
#[derive(Clone, Debug)]
pub struct PollFailure {
    /// Its class: from the closed set of `pds_api_requests_total`'s label `code`, or one of the poll's own.
    pub class: &'static str,
    /// The error text.
    pub message: Arc<str>,
    /// Whether the log names the target. False if the reason stops its whole service account, which the account logs.
    pub is_own: bool,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Polls succeeded.
    Ok,
    /// Polls succeeded, but counters are hidden because they are behind.
    Behind,
    /// Polls failed.
    Failed(Arc<Failure>),
    /// Settings changed.
    Changed(Arc<Vec<Change>>),
    /// The exporter started.
    Restart,
    /// The configuration was loaded again.
    Reload,
    /// A reload was refused.
    ReloadRefused,
}

/// Why polls fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When they began to fail, for any reason.
    pub since: Timestamp,
    /// When they began to fail for this cause.
    pub cause_since: Timestamp,
    /// When the last one was recorded.
    pub recorded: Instant,
    /// The class of the last failure.
    pub class: &'static str,
    /// The text of the last failure.
    pub message: Arc<str>,
    /// The class last logged for the target; `None` if only the service account logged the failure.
    logged: Option<&'static str>,
}

impl Failure {
    /// A failure that the target does not log.
    pub fn new(since: Timestamp, class: &'static str, message: Arc<str>) -> Self {
        let (cause_since, recorded) = (since, Instant::now());
        Self { since, cause_since, recorded, class, message, logged: None }
    }
}

/// The change caused by a poll's outcome. Logged unless it is `Same`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Nothing.
    Same,
    /// The first failure, or the first of another class.
    Failing,
    /// The first success after failures that the target logged.
    Recovered {
        /// How long it was failing, by the wall clock.
        after: Duration,
    },
}

/// An event at a moment, or a stretch of consecutive polls. Times are Unix seconds; durations are packed.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The kind of event.
    pub what: What,
    /// The number of polls.
    pub polls: u32,
    from: u32,
    until: u32,
    took: [u16; 2],
}

impl Event {
    /// An event of one poll of this duration, or of one moment.
    pub fn new(what: What, at: Timestamp, took: Duration) -> Self {
        let second = u32::try_from(at.as_second()).unwrap_or_default();
        Self { what, polls: 1, from: second, until: second, took: [pack(Some(took.as_secs_f64())); 2] }
    }

    /// The ends of its first and last polls.
    pub fn times(&self) -> [Timestamp; 2] {
        [self.from, self.until].map(|second| Timestamp::from_second(second.into()).unwrap_or_default())
    }

    /// How long its polls took, the shortest and the longest, in seconds.
    pub fn took(&self) -> [f64; 2] {
        self.took.map(|took| unpack(took).unwrap_or_default())
    }

    /// Whether it is a stretch of polls.
    pub fn is_stretch(&self) -> bool {
        matches!(self.what, What::Ok | What::Behind | What::Failed(_))
    }

    /// Why its polls failed, if they did.
    pub fn failure(&self) -> Option<&Arc<Failure>> {
        if let What::Failed(failure) = &self.what { Some(failure) } else { None }
    }

    fn is_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.what) == std::mem::discriminant(&other.what)
    }

    /// Merges `next` into this event if it has the same outcome.
    fn extend(&mut self, next: &Self) -> bool {
        let class = |event: &Self| event.failure().map(|failure| failure.class);
        let goes_on = self.is_same_kind(next) && class(self) == class(next);
        if goes_on {
            self.what = next.what.clone();
            self.polls = self.polls.saturating_add(next.polls);
            self.until = next.until;
            self.took = [self.took[0].min(next.took[0]), self.took[1].max(next.took[1])];
        }
        goes_on
    }
}

/// The last events, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Events(Vec<Event>);

impl Events {
    /// Adds an event, or lengthens the last stretch.
    pub fn add(&mut self, event: Event) {
        let last = self.0.iter_mut().rfind(|known| known.is_stretch() && event.is_stretch());
        if last.is_some_and(|last| last.extend(&event)) {
            return;
        }
        let mut same = self.0.iter().enumerate().filter(|(_, known)| known.is_same_kind(&event));
        if let (Some((oldest, _)), MAX_EVENTS..) = (same.next(), same.count() + 1) {
            self.0.remove(oldest);
        }
        // Most targets have one event.
        self.0.reserve_exact(1);
        self.0.push(event);
    }

    /// The events, and whether each still lasts.
    pub fn iter(&self) -> impl Iterator<Item = (&Event, bool)> {
        let last = self.0.iter().rposition(Event::is_stretch);
        self.0.iter().enumerate().map(move |(index, event)| (event, Some(index) == last))
    }
}

/// The events of one target.
#[derive(Debug, Default)]
pub struct History {
    /// The events.
    pub events: Events,
    /// For response times.
    six_hours: Option<Box<SixHours>>,
}

impl History {
    /// Records the end of a poll.
    pub(super) fn record(&mut self, poll: PollRecord) -> Transition {
        let before = self.failing().cloned();
        let logged_before = before.as_ref().and_then(|before| before.logged);
        let (what, transition) = match poll.failure {
            Some(PollFailure { class, message, is_own }) => {
                let logged = if is_own { Some(class) } else { logged_before };
                let since = before.as_ref().map_or(poll.at, |before| before.since);
                let is_same = |before: &Arc<Failure>| Cause::of_class(before.class) == Cause::of_class(class);
                let cause_since = before.filter(is_same).map_or(poll.at, |before| before.cause_since);
                let changed = if logged == logged_before { Transition::Same } else { Transition::Failing };
                let failure = Failure { logged, cause_since, ..Failure::new(since, class, message) };
                (What::Failed(Arc::new(failure)), changed)
            }
            None => {
                let after = before.filter(|_| logged_before.is_some()).map(|before| {
                    Duration::try_from(poll.at.duration_since(before.since)).unwrap_or_default()
                });
                let changed = after.map_or(Transition::Same, |after| Transition::Recovered { after });
                (if poll.behind { What::Behind } else { What::Ok }, changed)
            }
        };
        self.events.add(Event::new(what, poll.at, poll.took));
        transition
    }

    /// Records the response times of a poll that ended `at`; `None` if it failed. Slots have `slot_seconds`.
    pub(super) fn sample(&mut self, at: Timestamp, slot_seconds: u32, point: Option<Point>) {
        let six_hours = self.six_hours.get_or_insert_default();
        six_hours.push(at.as_second(), slot_seconds, point.unwrap_or_default(), point.is_none());
    }

    /// Why polls fail, if the last one did.
    pub fn failing(&self) -> Option<&Arc<Failure>> {
        self.events.0.iter().rfind(|event| event.is_stretch())?.failure()
    }

    /// The last stretch of failed polls, even if many successes followed.
    pub fn last_failed(&self) -> Option<Event> {
        self.events.0.iter().rfind(|event| event.failure().is_some()).cloned()
    }

    /// The changes in an app's settings since `since`; the newest first.
    pub fn changes(&self, since: Timestamp) -> Vec<Change> {
        let changes = self.events.0.iter().rev().filter_map(|event| match &event.what {
            What::Changed(changes) => Some(changes.iter().rev()),
            _ => None,
        });
        changes.flatten().take_while(|change| change.at >= since).cloned().collect()
    }

    /// Since when all changes are kept; `None` if that is the first poll.
    pub fn changes_since(&self) -> Option<Timestamp> {
        let mut changes = self.events.0.iter().filter(|event| matches!(event.what, What::Changed(_)));
        let oldest = changes.next()?;
        (changes.count() + 1 == MAX_EVENTS).then(|| oldest.times()[0])
    }

    /// The last six hours of an app's response times, the oldest slot first.
    pub fn six_hours(&self) -> Vec<SlotSummary> {
        self.six_hours.as_ref().map(|six_hours| six_hours.summaries()).unwrap_or_default()
    }

    /// The newest of these slots that have polls, the oldest first.
    pub fn trend(&self) -> Vec<Point> {
        let mut slots = self.six_hours();
        slots.retain(|slot| slot.polls > 0);
        slots.iter().skip(slots.len().saturating_sub(POINTS)).map(|slot| slot.point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn poll(second: i64, class: Option<&'static str>) -> PollRecord {
        let failure = class.map(|class| PollFailure { class, message: "no reply".into(), is_own: true });
        let took = Duration::from_secs(second.unsigned_abs() % 10);
        PollRecord { at: at(second), took, behind: second == 7, failure }
    }

    /// First and last second, polls, and class of each event.
    fn told(history: &History) -> Vec<(i64, i64, u32, &'static str)> {
        let event = |(event, _): (&Event, bool)| {
            let [from, until] = event.times().map(Timestamp::as_second);
            let class = match &event.what {
                What::Failed(failure) => failure.class,
                What::Ok => "ok",
                _ => "behind",
            };
            (from, until, event.polls, class)
        };
        history.events.iter().map(event).collect()
    }

    #[test]
    fn polls_with_the_same_result_are_one_event_and_a_failure_outlives_many_successes() {
        let mut history = History::default();
        for (second, class) in [(1, Some("timeout")), (2, Some("timeout")), (3, Some("500")), (7, None)] {
            history.record(poll(second, class));
        }
        assert_eq!(history.failing(), None);
        for second in 8..500 {
            history.record(poll(second, None));
        }
        let expected = [(1, 2, 2, "timeout"), (3, 3, 1, "500"), (7, 7, 1, "behind"), (8, 499, 492, "ok")];
        assert_eq!(told(&history), expected);
        let longest = history.events.iter().last().unwrap().0.took();
        assert!(longest[0] == 0.0 && (longest[1] - 9.0).abs() < 0.01, "{longest:?}");
        let last = history.last_failed().unwrap();
        assert_eq!(last.failure().unwrap().since, at(1), "of the failures, for whatever reason");
        assert_eq!(history.events.iter().filter(|(_, goes_on)| *goes_on).count(), 1);
    }

    #[test]
    fn once_changes_are_dropped_the_rest_is_complete_from_its_oldest_on() {
        let change = Change { at: at(0), family: "", label: None, before: None, after: None };
        let mut history = History::default();
        for second in 0..40 {
            let changes = What::Changed(vec![Change { at: at(second), ..change.clone() }].into());
            history.events.add(Event::new(changes, at(second), Duration::ZERO));
        }
        assert_eq!((history.changes(at(0)).len(), history.changes_since()), (MAX_EVENTS, Some(at(24))));
    }

    #[test]
    fn each_kind_of_event_has_its_own_room() {
        let mut history = History::default();
        let change = Change { at: at(0), family: "", label: None, before: None, after: None };
        for second in 0..1_000 {
            history.record(poll(second * 10, (second % 2 == 0).then_some("connect")));
            if second < 3 {
                let changes = What::Changed(vec![change.clone()].into());
                history.events.add(Event::new(changes, at(second), Duration::ZERO));
            }
        }
        assert_eq!((history.changes(at(0)).len(), history.changes_since()), (3, None));
        assert_eq!(history.events.0.len(), 2 * MAX_EVENTS + 3);
        assert_eq!(told(&history).last().unwrap().0, 9_990);
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
    fn a_trend_holds_the_last_slots_with_polls_in_order() {
        let mut history = History::default();
        assert_eq!(history.trend(), []);
        for n in 0..40 {
            let p95 = (n != 39).then_some(f64::from(n));
            let point = Point { p95, requests_per_minute: Some(0.0), ..Point::default() };
            history.sample(at(60 * i64::from(n)), 15, Some(point));
        }
        let trend = history.trend();
        assert_eq!(trend.len(), POINTS);
        assert!((trend[0].p95.unwrap() - 10.0).abs() < 0.01);
        assert_eq!(trend[POINTS - 1], Point { requests_per_minute: Some(0.0), ..Point::default() });
    }

    #[test]
    fn the_state_of_every_target_is_small() {
        assert!(size_of::<History>() <= 32, "{}", size_of::<History>());
        assert!(size_of::<Event>() <= 32, "{}", size_of::<Event>());
        assert!(size_of::<SixHours>() <= 32, "{}", size_of::<SixHours>());
        assert!(size_of::<crate::store::TargetState>() <= 96, "{}", size_of::<crate::store::TargetState>());
        let mut history = History::default();
        for second in 0..100 {
            history.record(PollRecord { behind: false, ..poll(second, None) });
        }
        assert_eq!(history.events.0.capacity(), 1, "a target that is well has one event");
    }
}
