//! Which time has settled: by our clock, held back to the service's where that is behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

use crate::clock::Clock;
use crate::config::Config;
use crate::interface::TimeRange;

/// The end of the time that may be asked for. Cloning shares what was learned of the service's clock.
///
/// Our clock may be wrong; a range that ended in the service's future would be added with what had happened of it
/// so far, and the rest lost. So the service's Date header holds the horizon back, and is asked once more when the
/// reply has come: [`Horizon::has_settled`].
#[derive(Clone, Debug)]
pub struct Horizon {
    clock: Clock,
    settle: i64,
    step: i64,
    max_catch_up: i64,
    /// By how many seconds our clock is ahead of the service's; 0 where it is not.
    ahead: Arc<AtomicI64>,
}

impl Horizon {
    /// The horizon of a configuration.
    #[must_use]
    pub fn new(config: &Config, clock: Clock) -> Self {
        let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Self {
            clock,
            settle: seconds(config.poll.settle),
            step: seconds(config.accounting.step).max(1),
            max_catch_up: seconds(config.accounting.max_catch_up),
            ahead: Arc::default(),
        }
    }

    /// This horizon with another configuration: what was learned of the service's clock stays.
    #[must_use]
    pub fn reconfigured(&self, config: &Config) -> Self {
        Self { ahead: Arc::clone(&self.ahead), ..Self::new(config, self.clock.clone()) }
    }

    /// The step that ranges are aligned to, in seconds.
    #[must_use]
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The last second that has settled.
    #[must_use]
    pub fn settled(&self) -> i64 {
        self.clock.unix_seconds() - self.ahead.load(Ordering::Relaxed) - self.settle
    }

    /// The end of the last whole step that has settled.
    #[must_use]
    pub fn settled_step(&self) -> i64 {
        self.settled().div_euclid(self.step) * self.step
    }

    /// The first whole step that may still be asked for; what lies before is given up.
    #[must_use]
    pub fn oldest(&self) -> i64 {
        let oldest = self.settled().saturating_sub(self.max_catch_up);
        oldest.div_euclid(self.step) * self.step
            + if oldest.rem_euclid(self.step) == 0 { 0 } else { self.step }
    }

    /// The service's clock stood at `date` just now.
    pub fn observe(&self, date: Timestamp) {
        let now = self.clock.unix_seconds();
        // The header has whole seconds, rounded down: the service may be up to one second further.
        let ahead = (now - date.as_second() - 1).max(0);
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    /// Whether `range` had settled by the service's own clock when it answered; half of `settle` is left for what
    /// the two clocks may differ by. A service that sends no Date can't be checked.
    #[must_use]
    pub fn has_settled(&self, range: TimeRange, date: Option<Timestamp>) -> bool {
        date.is_none_or(|date| range.end + self.settle / 2 <= date.as_second() + 1)
    }
}
