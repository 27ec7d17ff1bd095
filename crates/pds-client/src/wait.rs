//! Waits as instants and as text.

use std::time::Duration;

use tokio::time::Instant;

/// The instant `wait` from now. A wait beyond the range of the clock ends in two years.
pub(super) fn from_now(wait: Duration) -> Instant {
    const MAX_WAIT: Duration = Duration::from_secs(2 * 365 * 24 * 3600);
    Instant::now() + wait.min(MAX_WAIT)
}

/// `wait` in whole seconds, rounded up, for log lines and errors.
pub(super) fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}
