//! Rechecks: each whole hour is asked for once more when it has aged, and compared with what was added for it.
//!
//! Where the answer differs, a second one is asked for, and the hour takes the figure that both support: the middle one of
//! the three. So one bad answer changes nothing, and noise adds up to nothing.
//!
//! More than was added is late data. It is added in equal parts while the cursor moves through the hour that begins with
//! the age: added at once, 5 % of an hour would raise a rate over five minutes by 60 %. Fewer cannot be taken back: they
//! are a debt, which late data pays off first.
//!
//! ```text
//! hour ---- added ----|---- age ----|- phase -|-- asked again; late data added over an hour --|
//! ```

use pds_interface::{Tally, TimeRange};

use super::error::Refusal;
use super::ledger::{self, HOUR, Hour, Late, Ledger};

/// How much older an hour is when an answer that was lower than what was added is confirmed, in seconds: a reply that lacks
/// something may do so for a while.
const LOW_ANSWER: i64 = 600;

/// The ages at which hours are counted again, in seconds, rising. Empty if none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages(Box<[i64]>);

impl Ages {
    /// These ages, in any order.
    pub fn new(ages: impl IntoIterator<Item = i64>) -> Self {
        let mut ages: Vec<i64> = ages.into_iter().collect();
        ages.sort_unstable();
        ages.dedup();
        Self(ages.into())
    }

    /// Whether hours are counted again at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The greatest age.
    pub fn last(&self) -> Option<i64> {
        self.0.last().copied()
    }

    /// Where the first hour begins that is still to be counted again when it is `now`; `i64::MAX` where none is.
    pub fn hourly_from(&self, now: i64) -> i64 {
        self.0.last().map_or(i64::MAX, |age| Hour::of(now.saturating_sub(*age).saturating_sub(HOUR)).end())
    }

    /// How many ages an hour has reached that ended at `end`, and where each age counts from `phase` seconds later.
    fn reached(&self, end: i64, phase: i64, now: i64) -> usize {
        self.0.iter().filter(|age| end.saturating_add(**age).saturating_add(phase) <= now).count()
    }

    /// When an hour that ended at `end` reaches its age number `index`.
    fn place(&self, end: i64, phase: i64, index: u8) -> i64 {
        let age = self.0.get(usize::from(index)).copied().unwrap_or_default();
        end.saturating_add(age).saturating_add(phase)
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
    /// Whether a second answer has to confirm it. Then nothing has changed yet, and `late` and `overcounted` say by how
    /// many it differs.
    pub doubtful: bool,
}

impl Recheck {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            counted: self.counted + other.counted,
            late: self.late + other.late,
            overcounted: self.overcounted + other.overcounted,
            doubtful: self.doubtful || other.doubtful,
        }
    }
}

impl Ledger {
    /// The oldest hour that is due to be counted again at `now`; the ages of this ledger count from `phase` seconds
    /// later, so that not all apps are asked for at once.
    pub fn recheck_due(&self, ages: &Ages, phase: i64, now: i64) -> Option<TimeRange> {
        let is_due = |hour: &&Hour| {
            let wait = if self.is_lower(hour) { LOW_ANSWER } else { 0 };
            ages.reached(hour.end(), phase.saturating_add(wait), now) > usize::from(hour.rechecks)
        };
        let mut whole = self.hours.iter().filter(|hour| hour.end() <= self.until);
        whole.find(is_due).map(|hour| TimeRange { start: hour.start(), end: hour.end() })
    }

    /// Whether the first answer about `hour` was lower than what was added for it, and is not confirmed yet.
    fn is_lower(&self, hour: &Hour) -> bool {
        self.doubts.iter().any(|doubt| doubt.index == hour.index && doubt.added < hour.added)
    }

    /// What was added for the hour that begins at `start`; `None` if it was not added as a whole, or is no longer known.
    pub fn added_in_hour(&self, start: i64) -> Option<u64> {
        let hour = self.hours.iter().find(|hour| hour.start() == start && hour.end() <= self.until)?;
        Some(hour.added)
    }

    /// The ledger with a reply that counts the hour `range` again, as it was due at `now`. `None` where that hour is
    /// not to be counted again. An answer that differs changes nothing before a second one confirms it.
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
        let mut next = self.learn(tally).unwrap_or_else(|| self.clone());
        let Some(hour) = next.hours.iter_mut().find(|hour| hour.start() == range.start) else {
            return Ok(None);
        };
        let former = next.doubts.extract_if(.., |doubt| doubt.index == hour.index).next();
        let figure = former.map_or(total, |former| middle(hour.added, former.added, total));
        let (late, overcounted) = (figure.saturating_sub(hour.added), hour.added.saturating_sub(figure));
        let doubtful = former.is_none() && figure != hour.added;
        if doubtful {
            next.doubts.push(Hour { added: total, ..*hour });
            return Ok(Some((next, Recheck { counted: 0, late, overcounted, doubtful })));
        }
        let counted = if hour.rechecks == 0 { figure } else { late };
        if late > 0 {
            let from = ages.place(range.end, phase, hour.rechecks);
            let shares = tally.shares.as_slice().into();
            next.late_data.push(Late { hour: hour.index, from, figure, total: late, added: 0, shares });
        }
        hour.added = figure;
        hour.rechecks = u8::try_from(ages.reached(range.end, phase, now)).unwrap_or(u8::MAX);
        next.hours.retain(|hour| usize::from(hour.rechecks) < ages.0.len());
        next.doubts.retain(|doubt| next.hours.iter().any(|hour| hour.index == doubt.index));
        next.overcounted = next.overcounted.saturating_add(overcounted);
        next.debt = next.debt.saturating_add(overcounted);
        next.rechecked_until = next.rechecked_until.max(range.end);
        Ok(Some((next, Recheck { counted, late, overcounted, doubtful })))
    }

    /// The ledger without the hours that ended before `oldest`, and without any where none is counted again. `None`
    /// if there is none of them.
    #[must_use]
    pub fn without_hours_before(&self, oldest: i64) -> Option<Self> {
        let is_gone = |hour: &Hour| hour.end() < oldest;
        self.hours.iter().any(is_gone).then(|| {
            let mut next = self.clone();
            next.hours.retain(|hour| !is_gone(hour));
            next
        })
    }
}

/// The middle one of three.
fn middle(one: u64, two: u64, three: u64) -> u64 {
    one.max(two).min(one.min(two).max(three))
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
    fn the_greatest_age_says_which_hours_are_still_to_be_counted_again() {
        let two = ages(&[7200, 3600, 7200]);
        assert_eq!((two.is_empty(), two.last()), (false, Some(7200)));
        assert_eq!([-1, 0, 1800].map(|now| two.hourly_from(START + now) - START), [-10_800, -7200, -7200]);
        let none = Ages::default();
        assert_eq!((none.is_empty(), none.last(), none.hourly_from(START)), (true, None, i64::MAX));
    }

    #[test]
    fn an_hour_is_known_by_what_was_added_once_it_is_whole() {
        let ledger = two_hours().add(range(7200, 8100), &tally(10, &[(1.0, 1.0)]), true, START).unwrap();
        let added = |hour: i64| ledger.added_in_hour(START + hour * HOUR);
        assert_eq!([-1, 0, 1, 2].map(added), [None, Some(40), Some(40), None]);
    }

    #[test]
    fn hours_that_ended_before_the_oldest_are_dropped() {
        let left = |oldest| {
            let ledger = two_hours().without_hours_before(START + oldest)?;
            Some(ledger.hours.iter().map(|hour| hour.start() - START).collect::<Vec<_>>())
        };
        assert_eq!([0, 3600].map(left), [None, None]);
        assert_eq!([3601, 7201].map(left), [Some(vec![3600]), Some(vec![])]);
    }

    #[test]
    fn two_rechecks_together_found_what_each_of_them_found() {
        let one = Recheck { counted: 5, late: 4, overcounted: 3, doubtful: true };
        let other = Recheck { counted: 3, late: 7, overcounted: 2, doubtful: false };
        assert_eq!(one.and(other), Recheck { counted: 8, late: 11, overcounted: 5, doubtful: true });
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

    /// Counts the hour again until it is certain: a difference takes a second answer.
    fn recheck(
        ledger: &Ledger,
        range: TimeRange,
        tally: &Tally,
        due: (&Ages, i64, i64),
    ) -> (Ledger, Recheck) {
        let (next, outcome) = ledger.recheck(range, tally, true, due).unwrap().unwrap();
        if !outcome.doubtful {
            return (next, outcome);
        }
        assert_eq!((next.late_data.len(), next.debt), (ledger.late_data.len(), ledger.debt));
        next.recheck(range, tally, true, due).unwrap().unwrap()
    }

    #[test]
    fn late_data_is_added_in_equal_parts_over_the_following_hour() {
        let ages = ages(&[3600]);
        let due = (&ages, 0, START + 7200);
        let late = tally(52, &[(0.1, 0.5), (1.0, 1.0)]);
        let (mut ledger, outcome) = recheck(&two_hours(), range(0, 3600), &late, due);
        assert_eq!(outcome, Recheck { counted: 52, late: 12, overcounted: 0, doubtful: false });
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
    fn fewer_than_were_added_are_counted_as_that_and_late_data_pays_them_off() {
        let ages = ages(&[3600, 86_400]);
        let few = tally(35, &[(1.0, 1.0)]);
        let (first, outcome) = recheck(&two_hours(), range(0, 3600), &few, (&ages, 0, START + 7200));
        assert_eq!(outcome, Recheck { counted: 35, late: 0, overcounted: 5, doubtful: false });
        assert_eq!((first.total, first.overcounted, first.debt, first.late_data.len()), (80, 5, 5, 0));
        assert_eq!(first.recheck_due(&ages, 0, START + 10_799), None);
        let now = START + 3600 + 86_400;
        assert_eq!(first.recheck_due(&ages, 0, now), Some(range(0, 3600)));
        let (second, outcome) = recheck(&first, range(0, 3600), &tally(36, &[(0.1, 1.0)]), (&ages, 0, now));
        assert_eq!(outcome, Recheck { counted: 1, late: 1, overcounted: 0, doubtful: false });
        assert_eq!(second.hours.len(), 1, "the first hour has had all its rechecks");
        let paid = second.add(range(7200, 100_000), &tally(0, &[]), true, i64::MAX).unwrap();
        assert_eq!((paid.total, paid.late, paid.debt), (80, 1, 4));
        assert_eq!(paid.buckets().next(), Some((0.1, 40)), "it is in no bucket either");
        // A day late, the second hour is counted again once, not twice.
        let (third, _) =
            recheck(&second, range(3600, 7200), &tally(40, &[(1.0, 1.0)]), (&ages, 0, now + 3600));
        assert_eq!(third.hours.len(), 0);
    }

    #[test]
    fn one_low_answer_changes_nothing_and_is_asked_for_again_ten_minutes_later() {
        let ages = ages(&[3600]);
        let due = (&ages, 0, START + 7200);
        let of = |total| tally(total, &[(1.0, 1.0)]);
        let (doubtful, _) = two_hours().recheck(range(0, 3600), &of(3), true, due).unwrap().unwrap();
        assert_eq!(doubtful.recheck_due(&ages, 0, START + 7799), None);
        assert_eq!(doubtful.recheck_due(&ages, 0, START + 7800), Some(range(0, 3600)));
        let (high, _) = two_hours().recheck(range(0, 3600), &of(50), true, due).unwrap().unwrap();
        assert_eq!(high.recheck_due(&ages, 0, START + 7200), Some(range(0, 3600)), "a high one at once");
        for (second, figure) in [(40, 40), (41, 40), (39, 39), (3, 3)] {
            let (next, outcome) = doubtful.recheck(range(0, 3600), &of(second), true, due).unwrap().unwrap();
            assert_eq!((next.total, next.debt, outcome.late), (80, 40 - figure, 0), "{second}");
            assert_eq!(next.rechecked_until, START + 3600);
        }
    }

    #[test]
    fn two_hours_that_are_due_at_once_and_hold_less_are_asked_for_twice_each() {
        let (ages, of) = (ages(&[3600, 7200]), |total| tally(total, &[(1.0, 1.0)]));
        let (mut ledger, _) = recheck(&two_hours(), range(0, 3600), &of(40), (&ages, 0, START + 7200));
        let mut asked = Vec::new();
        for minute in 0..30 {
            let now = START + 10_800 + 60 * minute;
            if let Some(hour) = ledger.recheck_due(&ages, 0, now) {
                ledger = ledger.recheck(hour, &of(30), true, (&ages, 0, now)).unwrap().unwrap().0;
                asked.push(minute);
            }
        }
        assert_eq!(asked, [0, 1, 10, 11]);
        assert_eq!((ledger.debt, ledger.hours.len(), ledger.doubts.len()), (20, 1, 0));
    }

    #[test]
    fn noise_and_partial_answers_add_up_to_no_trend() {
        const HOUR_OF: f64 = 10_000.0;
        let ages = ages(&[3600]);
        for seed in 0..8 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut answer = |truth: f64| {
                let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                let part = if random.f64() < 0.01 { 0.3 + random.f64() / 2.0 } else { 1.0 };
                #[expect(clippy::cast_possible_truncation, reason = "some thousands")]
                let total = (truth * (1.0 + 0.01 * normal) * part).round() as u64;
                tally(total, &[(1.0, 1.0)])
            };
            let mut ledger = Ledger::open(START);
            for hour in 1..=500i64 {
                for _ in 0..4 {
                    let next = TimeRange { start: ledger.until, end: ledger.until + 900 };
                    ledger = ledger.add(next, &answer(HOUR_OF / 4.0), true, START).unwrap();
                    for _ in 0..2 {
                        let Some(hour) = ledger.recheck_due(&ages, 0, ledger.until) else { break };
                        let due = (&ages, 0, ledger.until);
                        ledger = ledger.recheck(hour, &answer(HOUR_OF), true, due).unwrap().unwrap().0;
                    }
                }
                if hour % 100 == 0 {
                    let error = ledger.total as f64 - HOUR_OF * hour as f64;
                    let most = 4.0 * (hour as f64).sqrt() * 0.01 * HOUR_OF;
                    assert!(error.abs() <= most, "{error} of {most} after {hour} hours, seed {seed}");
                }
            }
        }
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
    fn late_data_whose_place_lies_in_a_gap_is_added_behind_it() {
        let ages = ages(&[3600]);
        let due = (&ages, 0, START + 7200);
        let shares = [(1.0, 1.0)];
        let (ledger, _) = recheck(&two_hours(), range(0, 3600), &tally(76, &shares), due);
        let ledger = ledger.add(range(7200, 8100), &tally(0, &shares), true, START).unwrap();
        assert_eq!(ledger.late, 9);
        let (ledger, _) = ledger.give_up(START + 20_000).unwrap();
        assert_eq!((ledger.late, ledger.total), (9, 89));
        let again: Vec<i64> = ledger.hours.iter().map(|hour| hour.start() - START).collect();
        assert_eq!(again, [3600], "the hour that the gap begins in is not counted again");
        let ledger = ledger.add(range(20_000, 20_900), &tally(0, &shares), true, START).unwrap();
        assert_eq!((ledger.late, ledger.total), (36, 116));
    }
}
