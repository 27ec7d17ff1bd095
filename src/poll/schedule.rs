//! When targets are due. Each app or project has a phase: a position within any interval, which all its targets share.
//!
//! The phase depends only on the name, so adding or removing targets does not move the others. An app's targets are
//! polled together: their samples describe the same moment, and one commit writes their ledgers.

use tokio::time::{Duration, Instant};

use pds_ledger::Owner;

/// The phase of `owner` within an interval of this length.
fn phase(owner: &Owner, length: u128) -> u128 {
    (length * u128::from(owner.digest())) >> 64
}

/// The phase of `owner` within a period, in seconds.
pub fn phase_seconds(owner: &Owner, period: i64) -> i64 {
    i64::try_from(phase(owner, period.unsigned_abs().into())).unwrap_or_default()
}

/// The first tick of `owner` after `after`: ticks lie `interval` apart, counted from `origin`.
pub fn tick_after(owner: &Owner, origin: Instant, interval: Duration, after: Instant) -> Instant {
    let interval_nanos = interval.as_nanos().max(1);
    let offset = phase(owner, interval_nanos);
    let elapsed = after.saturating_duration_since(origin).as_nanos();
    let ticks = (elapsed + interval_nanos - offset) / interval_nanos;
    let nanos = u64::try_from(ticks * interval_nanos + offset).unwrap_or(u64::MAX);
    // A tick beyond the range of `Instant` is never reached.
    origin.checked_add(Duration::from_nanos(nanos)).unwrap_or(after + Duration::from_secs(86_400))
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
            let due = tick_after(&owner, origin, interval, origin) - origin;
            apps_due_in[usize::try_from(due.as_secs()).unwrap().min(59)] += 1;
        }
        // A hundred on average; by chance, about one second in a thousand strays by more than a third.
        assert!(apps_due_in.iter().all(|apps| (60..140).contains(apps)), "{apps_due_in:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn ticks_of_a_phase_are_an_interval_apart_and_missed_ones_are_skipped() {
        let (origin, interval) = (Instant::now(), Duration::from_secs(60));
        let owner = Owner::new("proj-1".into(), "app-1".into());
        let tick_after = |after| tick_after(&owner, origin, interval, after);
        let first = tick_after(origin);
        assert!(first > origin && first <= origin + interval);
        assert_eq!(tick_after(first), first + interval);
        assert_eq!(tick_after(first + interval * 9 / 2), first + interval * 5);
    }
}
