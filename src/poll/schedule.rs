//! When targets are due: each on a phase of its own, spread over its interval.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tokio::time::{Duration, Instant};

/// Hands out phases that lie evenly in 0..1 however many are handed out: multiples of the golden ratio. A target
/// that joins later falls into a gap, and nobody has to move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases(u64);

impl Phases {
    /// The next phase.
    pub fn next_phase(&mut self) -> Phase {
        // The golden ratio as a fraction of 2^64: adding it wraps around evenly.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Phase(self.0)
    }
}

/// A place within an interval, as a fraction of 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase(u64);

impl Phase {
    /// The first tick of this phase after `after`: ticks lie `interval` apart, counted from `origin`.
    #[must_use]
    pub fn tick_after(self, origin: Instant, interval: Duration, after: Instant) -> Instant {
        let interval_nanos = interval.as_nanos().max(1);
        let offset = (interval_nanos * u128::from(self.0)) >> 64;
        let elapsed = after.saturating_duration_since(origin).as_nanos();
        let ticks = (elapsed + interval_nanos - offset) / interval_nanos;
        let nanos = u64::try_from(ticks * interval_nanos + offset).unwrap_or(u64::MAX);
        // A point that an Instant can't hold lies beyond the machine's life.
        origin.checked_add(Duration::from_nanos(nanos)).unwrap_or(after + Duration::from_secs(86_400))
    }
}

/// What is due when; the earliest first, equal ones in the order of their numbers.
#[derive(Debug, Default)]
pub struct Schedule(BinaryHeap<Reverse<(Instant, usize)>>);

impl Schedule {
    /// `target` is due at `due`.
    pub fn add(&mut self, due: Instant, target: usize) {
        self.0.push(Reverse((due, target)));
    }

    /// When the first is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes out the first that is due at `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, usize)> {
        if self.next_due()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(first)| first)
    }

    /// Takes out all, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = (Instant, usize)> {
        self.0.drain().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn phases_spread_evenly_over_the_interval() {
        let (origin, interval) = (Instant::now(), Duration::from_secs(60));
        let mut phases = Phases::default();
        for targets in [1usize, 7, 100, 3000] {
            let mut ticks: Vec<Duration> = (0..targets)
                .map(|_| phases.next_phase().tick_after(origin, interval, origin) - origin)
                .collect();
            ticks.sort();
            let mut gaps: Vec<Duration> = ticks.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort();
            let even = interval / u32::try_from(targets).unwrap();
            assert!(
                gaps.last().is_none_or(|gap| *gap < even * 3),
                "{targets} targets leave a gap of {gaps:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ticks_of_a_phase_are_an_interval_apart_and_missed_ones_are_skipped() {
        let (origin, interval) = (Instant::now(), Duration::from_secs(60));
        let phase = Phases::default().next_phase();
        let first = phase.tick_after(origin, interval, origin);
        assert!(first > origin && first <= origin + interval);
        assert_eq!(phase.tick_after(origin, interval, first), first + interval);
        assert_eq!(phase.tick_after(origin, interval, first + interval * 9 / 2), first + interval * 5);
    }
}
