//! When targets are due: all targets of an app or project share a phase within their interval.

use tokio::time::{Duration, Instant};

use pds_ledger::Owner;

/// A position within an interval, as a fraction of 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase(u64);

impl Phase {
    /// The phase of all targets of `owner`. It depends on the name only, so other targets can come and go without effect.
    /// An app's targets are polled together, so its figures are of one moment and its ledgers are written side by side.
    pub fn of(owner: &Owner) -> Self {
        Self(owner.digest())
    }

    /// The position as seconds within a period.
    pub fn of_seconds(self, period: i64) -> i64 {
        let offset = (u128::from(period.unsigned_abs()) * u128::from(self.0)) >> 64;
        i64::try_from(offset).unwrap_or_default()
    }

    /// The first tick of this phase after `after`: ticks lie `interval` apart, counted from `origin`.
    pub fn tick_after(self, origin: Instant, interval: Duration, after: Instant) -> Instant {
        let interval_nanos = interval.as_nanos().max(1);
        let offset = (interval_nanos * u128::from(self.0)) >> 64;
        let elapsed = after.saturating_duration_since(origin).as_nanos();
        let ticks = (elapsed + interval_nanos - offset) / interval_nanos;
        let nanos = u64::try_from(ticks * interval_nanos + offset).unwrap_or(u64::MAX);
        // An Instant that overflows is never reached.
        origin.checked_add(Duration::from_nanos(nanos)).unwrap_or(after + Duration::from_secs(86_400))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn apps_spread_over_the_interval() {
        let (origin, interval) = (Instant::now(), Duration::from_secs(60));
        let mut apps_due_in = [0; 60];
        for app in 0..6000 {
            let owner = Owner::new("proj-1".into(), format!("app-{app}").into());
            let due = Phase::of(&owner).tick_after(origin, interval, origin) - origin;
            apps_due_in[usize::try_from(due.as_secs()).unwrap().min(59)] += 1;
        }
        // A hundred on average; by chance, about one second in a thousand strays by more than a third.
        assert!(apps_due_in.iter().all(|apps| (60..140).contains(apps)), "{apps_due_in:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn ticks_of_a_phase_are_an_interval_apart_and_missed_ones_are_skipped() {
        let (origin, interval) = (Instant::now(), Duration::from_secs(60));
        let phase = Phase::of(&Owner::new("proj-1".into(), "app-1".into()));
        let first = phase.tick_after(origin, interval, origin);
        assert!(first > origin && first <= origin + interval);
        assert_eq!(phase.tick_after(origin, interval, first), first + interval);
        assert_eq!(phase.tick_after(origin, interval, first + interval * 9 / 2), first + interval * 5);
    }
}
