//! The wall clock as an argument: the system's, or one that tests set and move.
//!
//! Durations (timeouts, ages, schedules) never come from here: they follow [`tokio::time::Instant`], which
//! no administrator can set back. The wall clock only names points in time towards the service and in metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Duration, Instant};

/// The largest difference of two clocks that the log, the status page and the alert `PdsClockSkew` accept. Half of the
/// default `poll.settle`. It is fixed, because an alert cannot know the configuration.
pub const MAX_SKEW: Duration = Duration::from_secs(15);

/// Whether clocks differ by more than [`MAX_SKEW`].
pub fn is_skewed(skew_seconds: f64) -> bool {
    skew_seconds.abs() > MAX_SKEW.as_secs_f64()
}

/// `time` rounded to the second.
pub fn to_second(time: Timestamp) -> Timestamp {
    time.round(jiff::Unit::Second).unwrap_or(time)
}

/// The time at `seconds` since 1970; `None` if it is beyond all dates.
pub fn from_unix_seconds(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_duration(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

/// A source of wall-clock time. Cloning shares the source.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug, Default)]
struct Source {
    /// Start of a manual clock, and the instant since which it runs; without an instant it stands still. `None` is the
    /// machine's own clock.
    manual: Option<(Timestamp, Option<Instant>)>,
    /// How far a manual clock was moved.
    offset_millis: AtomicI64,
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Self(Arc::default())
    }

    /// A clock that shows `start` now and runs with tokio's time, so it stands still while that is paused.
    /// Must be called inside the Tokio runtime whose time it follows.
    pub fn starting_at(start: Timestamp) -> Self {
        Self::manual(start, Some(Instant::now()))
    }

    /// A clock that stands at `start` until [`Clock::jump`] moves it.
    pub fn standing_at(start: Timestamp) -> Self {
        Self::manual(start, None)
    }

    fn manual(start: Timestamp, origin: Option<Instant>) -> Self {
        Self(Arc::new(Source { manual: Some((start, origin)), ..Source::default() }))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let Some((start, origin)) = self.0.manual else { return Timestamp::now() };
        let elapsed = origin.map(|origin| origin.elapsed()).unwrap_or_default();
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        let offset = SignedDuration::from_millis(self.0.offset_millis.load(Ordering::Relaxed));
        start.checked_add(elapsed.saturating_add(offset)).unwrap_or(start)
    }

    /// The time now in whole seconds since the Unix epoch, rounded down.
    pub fn unix_seconds(&self) -> i64 {
        let now = self.now();
        // jiff rounds towards zero, which is up before 1970.
        if now.subsec_nanosecond() < 0 { now.as_second() - 1 } else { now.as_second() }
    }

    /// Moves a manual clock by `by` (back if negative), as an administrator or NTP would. Does nothing to the system's
    /// clock.
    pub fn jump(&self, by: SignedDuration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(0);
        self.0.offset_millis.fetch_add(millis, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_manual_clock_follows_paused_time_and_jumps() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.unix_seconds(), start.as_second() + 90);
        clock.jump(SignedDuration::from_secs(-60));
        assert_eq!(clock.unix_seconds(), start.as_second() + 30);
    }
}
