//! The number of events (requests, runs) in each second: a pure function of a seed and the second.
//!
//! A stream has a fixed number of events per period of 2^22 seconds. The number is split between the halves of the
//! period, by weight (time of day) and by chance, and so on down to single seconds. Counting up to any second takes 22
//! halvings, so a month is as fast as a minute, and counts of adjacent ranges add up exactly.

use super::chance::{hash, unit};

/// A period is 2^22 seconds, some 48 days.
const HALVINGS: u32 = 22;

/// The distribution of a stream's events over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// Drop of the rate from noon to midnight (UTC) in percent, 0..=100.
    pub(super) night: u64,
    /// Unevenness of each halving, 0..1: 0.1 is calm, 0.7 is bursty.
    pub(super) unrest: f64,
}

/// A source of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The seed.
    pub(super) seed: u64,
    /// Events in an average hour.
    pub(super) per_hour: u64,
    /// Their distribution over time.
    pub(super) rhythm: Rhythm,
}

impl Stream {
    /// The number of events from the Unix epoch to `second` (exclusive).
    pub(super) fn before(&self, second: i64) -> u64 {
        let second = u64::try_from(second).unwrap_or(0);
        let whole = (self.per_hour << HALVINGS) / 3600;
        let mut start = second >> HALVINGS << HALVINGS;
        let mut sum = (second >> HALVINGS) * whole;
        let mut events = whole;
        for level in (0..HALVINGS).rev() {
            if events == 0 || start == second {
                break;
            }
            let middle = start + (1 << level);
            let first = self.first_half(events, start, middle, level);
            if second >= middle {
                sum += first;
                start = middle;
                events -= first;
            } else {
                events = first;
            }
        }
        sum
    }

    /// How many of `events` fall into the first half of a period of 2^`level` seconds.
    // A stretch has far fewer than 2^53 events.
    #[expect(clippy::cast_possible_truncation, reason = "a share of them is as many at most")]
    fn first_half(&self, events: u64, start: u64, middle: u64, level: u32) -> u64 {
        let end = 2 * middle - start;
        let (from, half, to) = (self.weight(start), self.weight(middle), self.weight(end));
        let chance = hash(&[self.seed, start, u64::from(level)]);
        let tilt = 1.0 + self.rhythm.unrest * (2.0 * unit(chance) - 1.0);
        let (first, second) = ((half - from) as f64 * tilt, (to - half) as f64 * (2.0 - tilt));
        if first + second <= 0.0 {
            return 0;
        }
        let share = events as f64 * (first / (first + second));
        // Rounded up or down at random, otherwise single events would all be on the same side.
        let rounded = (share + unit(hash(&[chance]))) as u64;
        rounded.min(events)
    }

    /// The integral of the rate from the Unix epoch to `second`: a triangle per day, lowest at midnight.
    fn weight(&self, second: u64) -> u64 {
        const DAY: u64 = 86_400;
        const HALF: u64 = DAY / 2;
        let (days, rest) = (second / DAY, second % DAY);
        let today = if rest <= HALF { rest * rest } else { 2 * HALF * HALF - (DAY - rest) * (DAY - rest) };
        let night = self.rhythm.night.min(100);
        // Both terms are twice the area under the curve, which keeps them integers.
        (100 - night) * 2 * HALF * second + night * (days * 2 * HALF * HALF + today)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CALM: Rhythm = Rhythm { night: 0, unrest: 0.1 };
    const NOON: i64 = 1_767_268_800;

    #[test]
    fn an_average_hour_has_the_events_it_should() {
        for rhythm in [CALM, Rhythm { night: 90, unrest: 0.1 }, Rhythm { night: 50, unrest: 0.7 }] {
            let stream = Stream { seed: 7, per_hour: 3600, rhythm };
            let stretch = 1_i64 << HALVINGS;
            assert_eq!(stream.before(400 * stretch) - stream.before(399 * stretch), 1 << HALVINGS);
        }
        assert_eq!(Stream { seed: 7, per_hour: 0, rhythm: CALM }.before(NOON), 0);
    }

    #[test]
    fn nights_are_quiet_and_bursts_are_not_even() {
        let day = Stream { seed: 1, per_hour: 36_000, rhythm: Rhythm { night: 90, unrest: 0.1 } };
        let hour = |stream: &Stream, start: i64| stream.before(start + 3600) - stream.before(start);
        assert!(hour(&day, NOON) > 3 * hour(&day, NOON + 43_200 - 1800));
        let peak = |unrest| {
            let stream = Stream { seed: 1, per_hour: 36_000, rhythm: Rhythm { night: 0, unrest } };
            let seconds = (NOON..NOON + 3600).map(|s| stream.before(s + 1) - stream.before(s));
            3600 * seconds.max().unwrap_or(0) / hour(&stream, NOON)
        };
        assert!(peak(0.8) > 3 * peak(0.05), "{} {}", peak(0.8), peak(0.05));
    }

    proptest! {
        #[test]
        fn counts_grow_with_every_second_and_add_up(
            seed: u64, per_hour in 0..5_000_000_u64, night in 0..=100_u64, unrest in 0.0..0.99_f64,
            start in 0..4_000_000_000_i64, long in 0..10_000_000_i64,
        ) {
            let stream = Stream { seed, per_hour, rhythm: Rhythm { night, unrest } };
            let (from, to) = (stream.before(start), stream.before(start + long));
            prop_assert!(from <= to);
            let mut last = from;
            for second in start..start + long.min(50) {
                let next = stream.before(second + 1);
                prop_assert!(last <= next && next <= to.max(stream.before(start + 50)));
                last = next;
            }
        }
    }
}
