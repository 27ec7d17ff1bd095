//! Which time has settled at one moment, and whether a ledger keeps up with it.

use std::time::Duration;

/// What a [`Watermark`](super::Watermark) says at one moment. Finding out takes two clocks and a lock; a look at all
/// ledgers does so once.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// The last second that has settled.
    pub second: i64,
    pub(super) step: i64,
    /// The last whole step that had settled when two clocks first agreed; `None` before.
    pub started: Option<i64>,
}

impl Settled {
    /// The end of the last whole step that has settled.
    #[must_use]
    pub fn step_end(self) -> i64 {
        self.second.div_euclid(self.step) * self.step
    }

    /// For how long from now the counters of a ledger are shown if its cursor is `until` and moves every `interval`.
    /// `None` if they are hidden.
    ///
    /// They are hidden while the ledger is behind, that is, while `until` is before the last whole step that had
    /// settled two intervals ago: a counter that stands still reads as no requests, and its jump afterwards as far too
    /// many. They are also hidden until the ledger has passed what had settled when counting began: an earlier process
    /// with the same counters may have shown as much.
    #[must_use]
    pub fn shown_for(self, until: i64, interval: Duration) -> Option<Duration> {
        if until < self.started?.min(self.step_end()) {
            return None;
        }
        self.keeps_up_for(until, interval)
    }

    /// As [`Settled::shown_for`], without regard to what had settled when counting began.
    #[must_use]
    pub fn keeps_up_for(self, until: i64, interval: Duration) -> Option<Duration> {
        let allowed = self.step.saturating_add(seconds(interval).saturating_mul(2));
        // A clock set back does not prolong it.
        let left = until.saturating_add(allowed).saturating_sub(self.second).min(allowed);
        u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_secs)
    }
}

pub(super) fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
