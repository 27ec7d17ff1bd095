//! The last six hours of an app's response times, in time slots. The more apps, the longer the slots.
//!
//! A slot holds the highest value of its polls, so that no peak is lost, and the number of failed polls. Per app, six
//! hours take 14 kB with up to 50 apps, 3.6 kB with up to 500, 720 bytes with up to 2,500, and 240 bytes beyond.

use pds_exposition::{Family, Samples};
use pds_interface::response_time;

/// The first window's values at one poll.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// The median response time, seconds; `None` without requests, or if the poll failed.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// Requests per minute of the window, whose length a reload may change; `None` if the poll brought none.
    pub requests_per_minute: Option<f64>,
}

impl Point {
    /// The point in the response time endpoint's `samples`, which belong to `families`, of a window of so many seconds.
    pub(super) fn of(families: &[Family], samples: &Samples, window: u64) -> Self {
        let requests = samples.series(families, &response_time::WINDOW_REQUESTS).next();
        let requests_per_minute = requests.map(|(_, requests)| requests * 60.0 / window.max(1) as f64);
        let mut point = Self { requests_per_minute, ..Self::default() };
        for (labels, value) in samples.series(families, &response_time::SECONDS) {
            match labels.get("percentile").as_deref() {
                Some("p50") => point.p50 = Some(value),
                Some("p95") => point.p95 = Some(value),
                Some("p99") => point.p99 = Some(value),
                _ => {}
            }
        }
        point
    }
}

/// How far back slots are kept.
pub const REACH_SECONDS: u32 = 6 * 3600;

/// Seconds per slot for up to this many apps.
const SLOTS: [(usize, u32); 3] = [(50, 15), (500, 60), (2_500, 300)];
/// Seconds per slot for more apps.
const MAX_SLOT_SECONDS: u32 = 900;
/// Up to this many slots are allocated at once.
const FEW: usize = 72;

/// Seconds per slot with this many `apps`.
pub(super) fn slot_seconds(apps: usize) -> u32 {
    SLOTS.iter().find(|(most, _)| apps <= *most).map_or(MAX_SLOT_SECONDS, |(_, seconds)| *seconds)
}

/// The polls of one slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotSummary {
    /// Its first second, Unix time.
    pub start: i64,
    /// Its length in seconds.
    pub seconds: u32,
    /// The highest values of its polls.
    pub point: Point,
    /// How many polls ended in it; counted up to 255.
    pub polls: u32,
    /// How many of them failed.
    pub failures: u32,
}

impl SlotSummary {
    /// Adds another slot.
    pub fn add(&mut self, Self { point, polls, failures, .. }: &Self) {
        let highest =
            |one: Option<f64>, other: Option<f64>| [one, other].into_iter().flatten().reduce(f64::max);
        self.point = Point {
            p50: highest(self.point.p50, point.p50),
            p95: highest(self.point.p95, point.p95),
            p99: highest(self.point.p99, point.p99),
            requests_per_minute: highest(self.point.requests_per_minute, point.requests_per_minute),
        };
        self.polls += polls;
        self.failures += failures;
    }
}

/// The slots of one app, the oldest first, without gaps.
#[derive(Debug, Default)]
pub(super) struct SixHours {
    /// The number of the newest slot: Unix time divided by `width`.
    newest: u32,
    /// The seconds of a slot.
    width: u16,
    slots: Vec<Slot>,
}

/// Packed values; 0 means none and is the lowest.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    values: [u16; 4],
    polls: u8,
    failures: u8,
}

impl SixHours {
    /// Records a poll that ended at the Unix time `at`. Slots have `width` seconds from now on; what those of another width
    /// hold moves into them.
    pub(super) fn push(&mut self, at: i64, width: u32, point: Point, failed: bool) {
        let width = u16::try_from(width).unwrap_or(u16::MAX).max(1);
        if self.width != width {
            let starts: Vec<i64> = self.summaries().iter().map(|slot| slot.start).collect();
            let before = std::mem::replace(self, Self { width, ..Self::default() }).slots;
            for (start, slot) in starts.into_iter().zip(before).filter(|(_, slot)| slot.polls > 0) {
                self.add(start, slot);
            }
        }
        let values = [point.p50, point.p95, point.p99, point.requests_per_minute].map(pack);
        self.add(at, Slot { values, polls: 1, failures: failed.into() });
    }

    /// Adds `polls` that ended at the Unix time `at`.
    fn add(&mut self, at: i64, polls: Slot) {
        let width = self.width;
        let Ok(number) = u32::try_from(at / i64::from(width)) else { return };
        let most = (REACH_SECONDS / u32::from(width)) as usize;
        if self.slots.is_empty() || number.saturating_sub(self.newest) as usize >= most {
            // There are none yet, or all are too old.
            *self = Self { newest: number, width, ..Self::default() };
            if most <= FEW {
                self.slots.reserve_exact(most);
            }
        }
        let back = self.newest.saturating_sub(number) as usize;
        if back > 1 {
            // The clock was ahead: slots of the future are dropped.
            self.slots.truncate(self.slots.len().saturating_sub(back));
            self.newest = number;
        }
        // If the clock was set back a little, polls go into the newest slot.
        let further = number.saturating_sub(self.newest) as usize;
        self.newest = self.newest.max(number);
        self.slots.drain(..(self.slots.len() + further).saturating_sub(most));
        self.slots.resize((self.slots.len() + further).max(1), Slot::default());
        if let Some(slot) = self.slots.last_mut() {
            slot.polls = slot.polls.saturating_add(polls.polls);
            slot.failures = slot.failures.saturating_add(polls.failures);
            for (kept, value) in slot.values.iter_mut().zip(polls.values) {
                *kept = value.max(*kept);
            }
        }
    }

    /// The slots, the oldest first.
    pub(super) fn summaries(&self) -> Vec<SlotSummary> {
        let first = i64::from(self.newest) + 1 - i64::try_from(self.slots.len()).unwrap_or_default();
        let summary = |(number, slot): (i64, &Slot)| {
            let [p50, p95, p99, requests_per_minute] = slot.values.map(unpack);
            SlotSummary {
                start: number * i64::from(self.width),
                seconds: self.width.into(),
                point: Point { p50, p95, p99, requests_per_minute },
                polls: slot.polls.into(),
                failures: slot.failures.into(),
            }
        };
        (first..).zip(&self.slots).map(summary).collect()
    }
}

/// The smallest packed value distinguished from 0; a microsecond.
const SMALLEST: f64 = 1e-6;
/// Steps of the logarithm, chosen so that values up to a billion fit in 16 bits.
const STEPS_PER_E: f64 = 1890.0;

/// A value on a logarithmic scale: 0 is none, 1 is zero.
pub(super) fn pack(value: Option<f64>) -> u16 {
    match value {
        None => 0,
        Some(value) if value < SMALLEST => 1,
        #[expect(clippy::cast_possible_truncation, reason = "clamped to 2..=65535")]
        Some(value) => ((value / SMALLEST).ln() * STEPS_PER_E + 2.0).round().clamp(2.0, 65_535.0) as u16,
    }
}

/// The value that [`pack`] was given, to 0.03 percent.
pub(super) fn unpack(packed: u16) -> Option<f64> {
    match packed {
        0 => None,
        1 => Some(0.0),
        packed => Some(((f64::from(packed) - 2.0) / STEPS_PER_E).exp() * SMALLEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(p95: f64) -> Point {
        Point { p95: Some(p95), requests_per_minute: Some(10.0), ..Point::default() }
    }

    #[test]
    fn a_slot_holds_the_highest_value_and_counts_polls_and_failures() {
        let mut six_hours = SixHours::default();
        six_hours.push(60, 60, point(1.0), false);
        six_hours.push(80, 60, point(3.0), false);
        six_hours.push(100, 60, Point::default(), true);
        six_hours.push(185, 60, point(2.0), false);
        let [first, gap, last] = &*six_hours.summaries() else { panic!("{six_hours:?}") };
        assert_eq!((first.start, first.seconds, first.polls, first.failures), (60, 60, 3, 1));
        assert!((first.point.p95.unwrap() - 3.0).abs() < 0.01 && first.point.p50.is_none());
        assert_eq!((gap.polls, gap.point), (0, Point::default()), "time without polls has no value");
        assert_eq!((last.start, last.polls), (180, 1));
    }

    #[test]
    fn slots_reach_six_hours_back_and_not_beyond() {
        for (apps, width) in [(1, 15), (50, 15), (51, 60), (2_500, 300), (10_000, 900)] {
            assert_eq!(slot_seconds(apps), width, "{apps} apps");
            let mut six_hours = SixHours::default();
            for at in (0..10 * 3600).step_by(width as usize) {
                six_hours.push(at, width, point(1.0), false);
            }
            let summaries = six_hours.summaries();
            assert_eq!(summaries.len() * width as usize, 6 * 3600);
            assert_eq!(summaries.last().unwrap().start + i64::from(width), 10 * 3600);
        }
    }

    #[test]
    fn other_slots_a_long_silence_and_a_clock_set_back_are_survived() {
        let mut six_hours = SixHours::default();
        six_hours.push(1_000_000, 60, point(1.0), false);
        six_hours.push(999_000, 60, point(2.0), false);
        assert_eq!(six_hours.summaries().len(), 1);
        six_hours.push(900_000, 60, point(2.0), false);
        assert_eq!(six_hours.summaries().len(), 1);
        assert_eq!(six_hours.summaries()[0].start, 900_000);
        six_hours.push(1_100_000, 60, point(1.0), false);
        assert_eq!(six_hours.summaries().len(), 1, "nothing before is recent");
        six_hours.push(1_100_100, 900, point(1.0), false);
        assert_eq!(six_hours.summaries()[0].seconds, 900);
        six_hours.push(-5, 900, point(1.0), false);
    }

    #[test]
    fn another_number_of_apps_keeps_the_last_hours() {
        let mut six_hours = SixHours::default();
        let base = 1_000_000_800;
        for minute in 0..60_u8 {
            let at = base + 60 * i64::from(minute) + 20;
            six_hours.push(at, slot_seconds(50), point(f64::from(minute)), minute == 7);
        }
        six_hours.push(base + 3600, slot_seconds(51), point(1.0), false);
        let summaries = six_hours.summaries();
        assert_eq!((summaries.len(), summaries[0].start), (61, base));
        assert!(summaries.iter().all(|slot| slot.polls == 1 && slot.seconds == 60));
        assert!((summaries[42].point.p95.unwrap() - 42.0).abs() < 0.1 && summaries[7].failures == 1);
        six_hours.push(base + 3700, slot_seconds(10_000), point(1.0), false);
        let summaries = six_hours.summaries();
        assert_eq!(summaries.iter().map(|slot| slot.polls).collect::<Vec<_>>(), [15, 15, 15, 15, 2]);
        assert!((summaries[2].point.p95.unwrap() - 44.0).abs() < 0.1 && summaries[0].failures == 1);
        six_hours.push(base + 3720, slot_seconds(50), point(1.0), false);
        let polls: Vec<u32> = six_hours.summaries().iter().map(|slot| slot.polls).collect();
        assert_eq!((polls.iter().sum::<u32>(), polls[0], polls[60]), (63, 15, 15));
    }

    #[test]
    fn slots_of_a_clock_that_was_ahead_are_dropped() {
        let mut six_hours = SixHours::default();
        // The clock is five hours ahead for five minutes. Later, it is set back by one slot.
        for minute in (0..10).chain(310..315).chain(10..15).chain([13]) {
            six_hours.push(minute * 60, 60, point(1.0), false);
        }
        let summaries = six_hours.summaries();
        let polls: Vec<(i64, u32)> = summaries.iter().map(|slot| (slot.start / 60, slot.polls)).collect();
        let expected: Vec<(i64, u32)> = (0..14).map(|minute| (minute, 1)).chain([(14, 2)]).collect();
        assert_eq!(polls, expected);
    }

    #[test]
    fn the_last_hours_of_each_of_many_apps_are_small() {
        assert_eq!(size_of::<Slot>(), 10);
        let mut six_hours = SixHours::default();
        (0..200_i64).for_each(|n| six_hours.push(n * 300, slot_seconds(10_000), point(1.0), false));
        assert_eq!(six_hours.slots.capacity(), 24);
    }
}
