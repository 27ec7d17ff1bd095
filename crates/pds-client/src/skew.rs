//! The difference between the service's clock and ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use super::observer::Observer;
use pds_core::clock::{Clock, MAX_SKEW, differ};

/// Compares the clocks with every reply.
#[derive(Debug)]
pub(super) struct Skew {
    clock: Clock,
    observer: Arc<dyn Observer>,
    warned: AtomicBool,
}

impl Skew {
    pub(super) fn new(clock: Clock, observer: Arc<dyn Observer>) -> Self {
        Self { clock, observer, warned: AtomicBool::new(false) }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Records that a request sent at `sent_at` got a reply dated `date` after `round_trip`. A difference is logged
    /// once.
    pub(super) fn observe(&self, date: Timestamp, sent_at: Timestamp, round_trip: Duration) {
        // The date was written half a round trip ago. It has whole seconds, so it is half a second early on average.
        let date = date.as_duration().as_secs_f64() + 0.5;
        let ours = sent_at.as_duration().as_secs_f64() + round_trip.as_secs_f64() / 2.0;
        let skew = date - ours;
        self.observer.clock_skew(skew);
        let large = differ(skew);
        if self.warned.swap(large, Ordering::Relaxed) == large {
            return;
        }
        if large {
            tracing::warn!(
                skew_seconds = skew.round(),
                limit_seconds = MAX_SKEW.as_secs(),
                "the service's clock and ours differ; set this machine's clock by NTP"
            );
        } else {
            tracing::info!(skew_seconds = skew.round(), "the service's clock and ours agree again");
        }
    }
}
