//! The rate over all accounts, in groups.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;

/// The rate over all accounts. A tenth of a second's requests may be sent at once, which suits the granularity of
/// timers and keeps an even flow.
#[derive(Debug)]
pub(super) struct Rate {
    gap: Duration,
    burst: u32,
    /// When the next request would be sent in an even flow.
    next: Instant,
    /// Requests are gathered until then. Once the burst is used up, half of it is sent together, because waking an idle
    /// processor for each costs more than a request.
    gathers_until: Instant,
}

impl Rate {
    pub(super) fn new(per_second: NonZeroU32) -> Self {
        let now = Instant::now();
        let gap = Duration::from_secs(1) / per_second.get();
        Self { gap, burst: (per_second.get() / 10).max(1), next: now, gathers_until: now }
    }

    /// Takes one request's turn.
    ///
    /// # Errors
    /// When to try again, if none is left.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let free_at = self.next.checked_sub(self.gap * (self.burst - 1)).unwrap_or(now);
        if now < free_at && self.gathers_until <= now {
            self.gathers_until = free_at + self.gap * (self.burst / 2).saturating_sub(1);
        }
        if now < self.gathers_until {
            return Err(self.gathers_until);
        }
        self.next = self.next.max(now) + self.gap;
        Ok(())
    }

    /// Gives back the turn of a request that was not sent.
    pub(super) fn give_back(&mut self, now: Instant) {
        self.next = self.next.checked_sub(self.gap).unwrap_or(now);
        self.gathers_until = now;
    }
}
