//! Rechecks: each whole hour is asked for once more when it has aged, and compared with what was added for it.
//!
//! If there is more now, that is late data. It is added in equal parts while the cursor moves through the following
//! hour: added at once, 5 % of an hour would raise a rate over five minutes by 60 %. If there is less now, that cannot
//! be taken back and is counted as overcounted.
//!
//! ```text
//! hour ---- added ----|---- age ----|- phase -|-- asked again; late data added over an hour --|
//! ```

use crate::interface::{Tally, TimeRange};

use super::hour::{HOUR, Hour, Late};
use super::ledger::{self, Ledger, Refusal};

/// The ages at which hours are counted again, in seconds, rising. Empty if none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages(Box<[i64]>);

impl Ages {
    /// These ages, in any order.
    #[must_use]
    pub fn new(ages: impl IntoIterator<Item = i64>) -> Self {
        let mut ages: Vec<i64> = ages.into_iter().collect();
        ages.sort_unstable();
        ages.dedup();
        Self(ages.into())
    }

    /// Whether hours are counted again at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The greatest age.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        self.0.last().copied()
    }

    /// Where the first hour begins that is still to be counted again when it is `now`; `i64::MAX` where none is.
    #[must_use]
    pub fn hourly_from(&self, now: i64) -> i64 {
        self.0.last().map_or(i64::MAX, |age| Hour::of(now.saturating_sub(*age).saturating_sub(HOUR)).end())
    }

    /// How many ages an hour has reached that ended at `end`, and where each age counts from `phase` seconds later.
    fn reached(&self, end: i64, phase: i64, now: i64) -> usize {
        self.0.iter().filter(|age| end.saturating_add(**age).saturating_add(phase) <= now).count()
    }
}

/// The outcome of counting an hour again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recheck {
    /// How many were counted again for the first time: all of the hour, or at a later age what has arrived since.
    pub counted: u64,
    /// How many more there were.
    pub late: u64,
    /// How many fewer there were.
    pub overcounted: u64,
}

impl Ledger {
    /// The oldest hour that is due to be counted again at `now`; the ages of this ledger count from `phase` seconds
    /// later, so that not all apps are asked for at once.
    #[must_use]
    pub fn recheck_due(&self, ages: &Ages, phase: i64, now: i64) -> Option<TimeRange> {
        let is_due = |hour: &&Hour| ages.reached(hour.end(), phase, now) > usize::from(hour.rechecks);
        let mut whole = self.hours.iter().filter(|hour| hour.end() <= self.until);
        whole.find(is_due).map(|hour| TimeRange { start: hour.start(), end: hour.end() })
    }

    /// The ledger with a reply that counts the hour `range` again, as it was due at `now`. `None` where that hour is
    /// not to be counted again.
    ///
    /// # Errors
    /// If the reply cannot be counted.
    pub fn recheck(
        &self,
        range: TimeRange,
        tally: &Tally,
        distributed: bool,
        (ages, phase, now): (&Ages, i64, i64),
    ) -> Result<Option<(Self, Recheck)>, Refusal> {
        let total = ledger::count(range, tally, distributed)?;
        let Some(place) = self.hours.iter().position(|hour| hour.start() == range.start) else {
            return Ok(None);
        };
        let mut next = self.learn(tally).unwrap_or_else(|| self.clone());
        let mut hours = std::mem::take(&mut next.hours).into_vec();
        let mut outcome = Recheck { counted: 0, late: 0, overcounted: 0 };
        if let Some(hour) = hours.get_mut(place) {
            let late = total.saturating_sub(hour.added);
            outcome = Recheck {
                counted: if hour.rechecks == 0 { total } else { late },
                late,
                overcounted: hour.added.saturating_sub(total),
            };
            hour.added = total;
            hour.rechecks = u8::try_from(ages.reached(range.end, phase, now)).unwrap_or(u8::MAX);
        }
        hours.retain(|hour| usize::from(hour.rechecks) < ages.0.len());
        next.hours = hours.into();
        next.overcounted += outcome.overcounted;
        next.rechecked_until = next.rechecked_until.max(range.end);
        if outcome.late > 0 {
            let late = Late { from: next.until, total: outcome.late, shares: tally.shares.as_slice().into() };
            next.late_data.push(late);
        }
        Ok(Some((next, outcome)))
    }

    /// The ledger without the hours that ended before `oldest`, and without any where none is counted again. `None`
    /// if there is none of them.
    #[must_use]
    pub fn without_hours_before(&self, oldest: i64) -> Option<Self> {
        let gone = self.hours.iter().filter(|hour| hour.end() < oldest).count();
        (gone > 0).then(|| {
            let mut next = self.clone();
            next.hours = self.hours.get(gone..).unwrap_or_default().into();
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_772_366_400;

    fn tally(total: u64, shares: &[(f64, f64)]) -> Tally {
        Tally { total: Some(total), shares: shares.to_vec(), range: None }
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start: START + start, end: START + end }
    }

    /// A ledger that has added two hours in steps of a quarter, ten requests each.
    fn two_hours() -> Ledger {
        let mut ledger = Ledger::open(START);
        for quarter in 0..8 {
            let range = range(quarter * 900, (quarter + 1) * 900);
            ledger = ledger.add(range, &tally(10, &[(0.1, 0.5), (1.0, 1.0)]), true, START).unwrap();
        }
        ledger
    }

    fn ages(ages: &[i64]) -> Ages {
        Ages::new(ages.iter().copied())
    }

    #[test]
    fn an_hour_is_due_when_it_has_aged_and_its_phase_has_come() {
        let (ledger, ages) = (two_hours(), ages(&[3600]));
        assert_eq!(ledger.recheck_due(&ages, 600, START + 7200 + 599), None);
        assert_eq!(ledger.recheck_due(&ages, 600, START + 7200 + 600), Some(range(0, 3600)));
        assert_eq!(ledger.recheck_due(&Ages::default(), 0, START + 99_999), None);
        let half = Ledger::open(START + 1800)
            .add(range(1800, 3600), &tally(10, &[(1.0, 1.0)]), true, START)
            .unwrap();
        assert_eq!(half.recheck_due(&ages, 0, START + 99_999), None, "not all of that hour was added here");
    }

    #[test]
    fn late_data_is_added_in_equal_parts_over_the_following_hour() {
        let ages = ages(&[3600]);
        let due = (&ages, 0, START + 7200);
        let (mut ledger, outcome) = two_hours()
            .recheck(range(0, 3600), &tally(52, &[(0.1, 0.5), (1.0, 1.0)]), true, due)
            .unwrap()
            .unwrap();
        assert_eq!(outcome, Recheck { counted: 52, late: 12, overcounted: 0 });
        assert_eq!((ledger.total, ledger.late, ledger.rechecked_until), (80, 0, START + 3600));
        let mut totals = Vec::new();
        for quarter in 8..13 {
            let range = range(quarter * 900, (quarter + 1) * 900);
            ledger = ledger.add(range, &tally(0, &[]), true, START).unwrap();
            totals.push((ledger.total, ledger.late, ledger.buckets().next().unwrap().1));
        }
        assert_eq!(totals, [(83, 3, 42), (86, 6, 43), (89, 9, 45), (92, 12, 46), (92, 12, 46)]);
        assert_eq!(ledger.late_data.len(), 0);
    }

    #[test]
    fn fewer_than_were_added_are_counted_as_that_and_the_next_recheck_compares_with_them() {
        let ages = ages(&[3600, 86_400]);
        let (first, outcome) = two_hours()
            .recheck(range(0, 3600), &tally(35, &[(1.0, 1.0)]), true, (&ages, 0, START + 7200))
            .unwrap()
            .unwrap();
        assert_eq!(outcome, Recheck { counted: 35, late: 0, overcounted: 5 });
        assert_eq!((first.total, first.overcounted), (80, 5));
        assert_eq!(first.recheck_due(&ages, 0, START + 10_799), None);
        let now = START + 3600 + 86_400;
        assert_eq!(first.recheck_due(&ages, 0, now), Some(range(0, 3600)));
        let (second, outcome) =
            first.recheck(range(0, 3600), &tally(36, &[(1.0, 1.0)]), true, (&ages, 0, now)).unwrap().unwrap();
        assert_eq!(outcome, Recheck { counted: 1, late: 1, overcounted: 0 });
        assert_eq!(second.hours.len(), 1, "the first hour has had all its rechecks");
        // A day late, the second hour is counted again once, not twice.
        let (third, _) = second
            .recheck(range(3600, 7200), &tally(40, &[(1.0, 1.0)]), true, (&ages, 0, now + 3600))
            .unwrap()
            .unwrap();
        assert_eq!(third.hours.len(), 0);
    }

    #[test]
    fn an_hour_whose_rest_was_added_with_others_is_not_counted_again() {
        let ages = ages(&[3600]);
        let shares = [(1.0, 1.0)];
        let ledger = two_hours().add(range(7200, 8100), &tally(1, &shares), true, START).unwrap();
        // An outage later, three hours come in one range.
        let ledger = ledger.add(range(8100, 18_000), &tally(30, &shares), true, START + 18_000).unwrap();
        let due: Vec<i64> = ledger.hours.iter().map(|hour| hour.start() - START).collect();
        assert_eq!(due, [0, 3600]);
        assert_eq!(ledger.recheck_due(&ages, 0, START + 99_999), Some(range(0, 3600)));
    }

    #[test]
    fn a_gap_keeps_late_data_waiting_and_its_hour_from_being_counted_again() {
        let ages = ages(&[3600]);
        let due = (&ages, 0, START + 7200);
        let shares = [(1.0, 1.0)];
        let (ledger, _) =
            two_hours().recheck(range(0, 3600), &tally(76, &shares), true, due).unwrap().unwrap();
        let ledger = ledger.add(range(7200, 8100), &tally(0, &shares), true, START).unwrap();
        assert_eq!(ledger.late, 9);
        let (ledger, _) = ledger.give_up(START + 20_000).unwrap();
        assert_eq!((ledger.late, ledger.total, ledger.hours.len()), (9, 89, 1));
        let ledger = ledger.add(range(20_000, 20_900), &tally(0, &shares), true, START).unwrap();
        assert_eq!((ledger.late, ledger.total), (18, 98));
    }
}
