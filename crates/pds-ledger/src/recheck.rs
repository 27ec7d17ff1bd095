//! Rechecks: each hour is requested again at certain ages, and compared with its added counts, by threshold and in
//! total. Time that was given up is requested again, too.
//!
//! If the reply differs, the hour is requested once more, and the median of the three counts is used. So a single bad
//! reply changes nothing, and noise cancels out.
//!
//! The difference goes into the balance of the ledger. Missing requests are late data. They are added in equal parts
//! while the cursor moves through an hour. Added at once, 5 % of an hour would raise a five-minute rate by 60 %.
//! Overcounts cannot be subtracted: they stay in the balance, and late data is offset against them, whichever is found
//! first. A reply with far fewer requests is no correction: the hour is disputed, and nothing changes. Far fewer requests
//! within a threshold are none either: that count stays.
//!
//! A reply without requests is no evidence about time that was given up. The time stays pending, and is requested again
//! like a disputed hour. At the end, the time is unaccounted if the service may no longer have it or if the rest of its
//! hour had requests, and accounted otherwise.
//!
//! ```text
//! hour ---- added ----|---- age ----|- phase -|-- requested again; late data added over an hour --|
//! ```

use pds_interface::{Tally, TimeRange};

use super::buckets::{is_far_below, to_f64};
use super::error::Refusal;
use super::ledger::{self, Ledger, MAX_TOTAL, exact};
use super::stretch::{Counts, HOUR, PARTS, PendingRechecks, Stretch, end_of_hour};

/// Delay before a lower reply is confirmed, in seconds, as a reply may be incomplete for a while. A stretch without a
/// reply waits as long.
const LOW_ANSWER: i64 = 600;

/// Delays before a disputed hour is requested again, in seconds.
const DISPUTED: [i64; 3] = [HOUR, 3 * HOUR, 24 * HOUR];

/// How long an hour is kept after its greatest age, in seconds: the duration of a dispute, and of outages in it.
const KEPT_AFTER_LAST_AGE: i64 = 36 * HOUR;

/// Bytes of a kept hour besides its counts.
const HOUR_BYTES: usize = 6;

/// The ages at which hours are rechecked, in seconds, sorted. Empty if they are not.
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

    /// Whether hours are not rechecked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The greatest age.
    pub fn last(&self) -> Option<i64> {
        self.0.last().copied()
    }

    /// Start of the first hour with a pending recheck at `now`; `i64::MAX` if there is none.
    pub fn hourly_from(&self, now: i64) -> i64 {
        self.0.last().map_or(i64::MAX, |age| end_of_hour(now.saturating_sub(*age).saturating_sub(HOUR)))
    }

    /// The end of the last hour that is no longer kept at `now`.
    pub fn kept_from(&self, now: i64) -> i64 {
        self.0.last().map_or(i64::MAX, |age| now.saturating_sub(*age).saturating_sub(KEPT_AFTER_LAST_AGE))
    }

    /// Bytes that the hours kept for rechecks usually take in a ledger with this many thresholds.
    pub fn kept_bytes(&self, thresholds: usize) -> usize {
        // One hour is being counted, and the phase may add another.
        let hours = self.last().map_or(0, |age| age / HOUR + 2);
        // Half of the buckets hold requests: 64 to 8,191 requests take two bytes. An empty bucket takes one byte.
        usize::try_from(hours).unwrap_or_default() * (HOUR_BYTES + 3 * (thresholds + 1) / 2)
    }

    /// The greatest age in seconds that the hour that ended at `end` has reached, 0 if none; each age begins `phase`
    /// seconds later.
    fn reached(&self, end: i64, phase: i64, now: i64) -> i64 {
        let reached = self.0.iter().rfind(|age| end.saturating_add(**age).saturating_add(phase) <= now);
        reached.copied().unwrap_or_default()
    }
}

/// The schedule of rechecks.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    /// The ages of rechecks.
    pub ages: &'a Ages,
    /// Delay of each age in seconds, so that rechecks of apps spread out.
    pub phase: i64,
    /// The service may no longer have hours that begin before this second.
    pub oldest: Option<i64>,
}

impl Due<'_> {
    /// The greatest age in seconds that the hour of `stretch` has reached when the cursor is at `now`.
    fn reached(self, stretch: &Stretch<'_>, now: i64) -> i64 {
        self.ages.reached(stretch.hour_end(), self.phase, now)
    }
}

/// The outcome of counting an hour again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recheck {
    /// Additional requests.
    pub late: u64,
    /// Missing requests.
    pub overcounted: u64,
    /// Whether a second reply must confirm it. Until then nothing changes, and `late` and `overcounted` hold the
    /// difference.
    pub doubtful: bool,
    /// Whether the reply was so much lower that nothing changed.
    pub disputed: bool,
}

impl Ledger {
    /// The oldest stretch that is due for a recheck.
    pub fn recheck_due(&self, due: Due<'_>) -> Option<TimeRange> {
        let is_due = |stretch: &Stretch<'_>| {
            let is_pending = stretch.doubt.is_some()
                || stretch.not_before > 0
                || due.reached(stretch, self.until) > stretch.age;
            stretch.hour_end() <= self.until && stretch.not_before <= self.until && is_pending
        };
        self.rechecks.stretches().find(is_due).map(|stretch| stretch.range())
    }

    /// The count added for the hour that begins at `start`; `None` if it was not added as a whole, or is no longer
    /// kept.
    pub fn added_in_hour(&self, start: i64) -> Option<u64> {
        let is_it = |of: &Stretch<'_>| (of.start, of.end) == (start, start + HOUR) && !of.missing;
        Some(self.rechecks.stretches().find(is_it)?.added.total())
    }

    /// Data that the service no longer has, within the time that is still rechecked: the range from the start of the
    /// first hour to the end of the last, and how many fewer requests there were.
    pub fn disputes(&self) -> Option<(TimeRange, u64)> {
        // `disputed` has counted each of these stretches.
        if self.disputed == 0 {
            return None;
        }
        let mut disputed = self.rechecks.stretches().filter(|stretch| stretch.lacks > 0).peekable();
        let start = disputed.peek()?.start;
        let (end, lacks) = disputed.fold((start, 0), |(_, sum), of| (of.end, sum + of.lacks));
        Some((TimeRange { start, end }, lacks))
    }

    /// The ledger after a recheck of the stretch `range`. `None` if no recheck of it is due. A different reply changes
    /// nothing until a second reply confirms it.
    ///
    /// # Errors
    /// If the reply cannot be counted.
    pub fn recheck(
        &self,
        range: TimeRange,
        tally: &Tally,
        distributed: bool,
        due: Due<'_>,
    ) -> Result<Option<(Self, Recheck)>, Refusal> {
        let mut next = self.learn(tally.shares.iter().map(|(at, _)| *at)).unwrap_or_else(|| self.clone());
        let (rechecks, mut balance) = (next.rechecks.clone(), next.rechecks.balance());
        let mut stretches: Vec<Stretch<'_>> = rechecks.stretches().collect();
        let is_of_hour = |stretch: &&Stretch<'_>| stretch.hour_end() == end_of_hour(range.start);
        let is_busy = stretches.iter().filter(is_of_hour).any(|stretch| stretch.added.total() > 0);
        let Some(stretch) = stretches.iter_mut().find(|stretch| stretch.range() == range) else {
            return Ok(None);
        };
        // A distribution that is gone does not keep late data from the total.
        let count = ledger::count(range, tally, distributed && stretch.added.total() == 0)?;
        let thresholds = next.buckets.len();
        let list = |counts: &Counts<'_>| counts.list(thresholds).into_iter().map(to_f64).collect::<Vec<_>>();
        let added = list(&stretch.added);
        let later = to_f64(balance.of_total()) / to_f64(PARTS);
        if exact(self.total) + later + count - total_of(&added) >= exact(MAX_TOTAL) {
            return Err(Refusal::TooMany(round_or_zero(count)));
        }
        let mut answer = next.buckets.figures(&tally.shares, count, &added);
        answer.push(count);
        let (figures, doubtful) = match stretch.doubt.take() {
            Some(doubt) => (median(&added, &list(&doubt), &answer), false),
            None => {
                let doubtful = differs(&added, &answer);
                (answer, doubtful)
            }
        };
        let (figure, before) = (total_of(&figures), total_of(&added));
        let (late, overcounted) = (round_or_zero(figure - before), round_or_zero(before - figure));
        let mut outcome = Recheck { late, overcounted, doubtful, ..Recheck::default() };
        let counts = Counts::of(&figures.iter().copied().map(nearest).collect::<Vec<_>>());
        if doubtful {
            stretch.doubt = Some(counts);
            stretch.not_before = if figure < before { self.until + LOW_ANSWER } else { 0 };
            next.rechecks = PendingRechecks::of(&balance, stretches);
            return Ok(Some((next, outcome)));
        }
        let is_gone = due.oldest.is_some_and(|oldest| stretch.start < oldest);
        stretch.not_before = 0;
        let again = DISPUTED.get(usize::from(stretch.disputes));
        let is_disputed = match stretch.missing {
            true => figure == 0.0 && (again.is_some() || is_gone || is_busy),
            false => is_disputed(before, figure, is_gone),
        };
        if is_disputed {
            outcome = Recheck { disputed: true, ..Recheck::default() };
            next.disputed += u64::from(stretch.disputes == 0 && !stretch.missing);
            stretch.not_before = again.map_or(0, |again| self.until + again);
            (stretch.disputes, stretch.lacks) =
                (stretch.disputes.saturating_add(1), round_or_zero(before - figure));
        } else {
            let is_first = stretch.age == 0;
            let difference = |(figure, added): (&f64, &f64)| match figure - added {
                // Amounts recorded at an earlier age are rounded.
                small if !is_first && small.abs() <= 0.5 => 0,
                difference => nearest(difference * to_f64(PARTS)),
            };
            let mut differences: Vec<i64> = figures.iter().zip(&added).map(difference).collect();
            let answered = if std::mem::take(&mut stretch.missing) { stretch.end - stretch.start } else { 0 };
            differences.push(answered * PARTS);
            let pending = ledger::whole_parts(Some(&balance.of_total()));
            balance.add(self.until, &differences);
            next.overcounted = next.overcounted.saturating_add(overcounted);
            // Late data and overcounts offset each other, whichever was found first.
            next.late = next.late.saturating_add(late.min(self.debt()) + overcounted.min(pending));
            stretch.added = counts;
            (stretch.disputes, stretch.lacks) = (0, 0);
        }
        stretch.age = stretch.age.max(due.reached(stretch, self.until));
        next.rechecked_until = next.rechecked_until.max(range.end);
        next.rechecks = PendingRechecks::of(&balance, stretches);
        Ok(Some((next.without_done(due.ages), outcome)))
    }

    /// The ledger after a failed recheck of the stretch `range`. The next request follows at the next age if the
    /// service `refused` the range, and a little later otherwise. Time that is still missing after the last age stays
    /// unaccounted.
    #[must_use]
    pub fn not_answered(&self, range: TimeRange, refused: bool, due: Due<'_>) -> Self {
        let mut stretches: Vec<Stretch<'_>> = self.rechecks.stretches().collect();
        if let Some(stretch) = stretches.iter_mut().find(|stretch| stretch.range() == range) {
            match refused {
                true => {
                    stretch.age = stretch.age.max(due.reached(stretch, self.until));
                    (stretch.doubt, stretch.disputes, stretch.lacks, stretch.not_before) = (None, 0, 0, 0);
                }
                false => stretch.not_before = self.until + LOW_ANSWER,
            }
        }
        Self { rechecks: PendingRechecks::of(&self.rechecks.balance(), stretches), ..self.clone() }
            .without_done(due.ages)
    }

    /// Whether the stretch `range` was given up and has had no reply since.
    pub fn is_unanswered(&self, range: TimeRange) -> bool {
        let has_reply = |stretch: &Stretch<'_>| stretch.doubt.is_some() || stretch.disputes > 0;
        let mut stretches = self.rechecks.stretches();
        stretches.any(|stretch| stretch.range() == range && stretch.missing && !has_reply(&stretch))
    }

    /// The ledger without the stretches that were rechecked at all ages. An hour with pending time keeps its other
    /// stretches: they show whether it had requests.
    fn without_done(self, ages: &Ages) -> Self {
        let is_done = |stretch: &Stretch<'_>| {
            stretch.age >= ages.last().unwrap_or_default()
                && stretch.doubt.is_none()
                && stretch.not_before == 0
        };
        let pending = self.rechecks.stretches().filter(|stretch| stretch.missing && !is_done(stretch));
        let pending: Vec<i64> = pending.map(|stretch| stretch.hour_end()).collect();
        let is_gone = |stretch: &Stretch<'_>| is_done(stretch) && !pending.contains(&stretch.hour_end());
        self.without_stretches(is_gone).unwrap_or(self)
    }

    /// The ledger without the hours that ended before `oldest`. `None` if there are none.
    #[must_use]
    pub fn without_hours_before(&self, oldest: i64) -> Option<Self> {
        self.without_stretches(|stretch| stretch.hour_end() < oldest && stretch.hour_end() <= self.until)
    }

    fn without_stretches(&self, is_gone: impl Fn(&Stretch<'_>) -> bool) -> Option<Self> {
        let gone = self.rechecks.stretches().filter(|stretch| is_gone(stretch));
        let (count, missing) = gone.fold((0, 0), |(count, missing), stretch| {
            (count + 1, missing + if stretch.missing { stretch.seconds() } else { 0 })
        });
        let left = || self.rechecks.stretches().filter(|stretch| !is_gone(stretch));
        (count > 0).then(|| Self {
            unaccounted: self.unaccounted + missing,
            rechecks: PendingRechecks::of(&self.rechecks.balance(), left()),
            ..self.clone()
        })
    }
}

/// Whether a reply is too far below the added count to be a correction. `is_gone` if the service may no longer have all
/// of the data.
fn is_disputed(added: f64, figure: f64, is_gone: bool) -> bool {
    figure < added && (is_gone || is_far_below(added, figure, added))
}

/// Whether a second reply must confirm this one: its total differs, or the count within a threshold differs by more
/// than the rounding of shares.
fn differs(added: &[f64], answer: &[f64]) -> bool {
    let of_hour = total_of(answer);
    let within = |(added, answer): (&f64, &f64)| (answer - added).abs() > 2.0 + of_hour * 0.05;
    (of_hour - total_of(added)).abs() >= 1.0 || added.iter().zip(answer).any(within)
}

/// The median of each three.
fn median(one: &[f64], two: &[f64], three: &[f64]) -> Vec<f64> {
    let middle = |((one, two), three): ((&f64, &f64), &f64)| one.max(*two).min(one.min(*two).max(*three));
    one.iter().zip(two).zip(three).map(middle).collect()
}

/// The total of figures.
fn total_of(figures: &[f64]) -> f64 {
    figures.last().copied().unwrap_or_default()
}

/// The nearest whole number to a count or a difference of counts.
#[expect(clippy::cast_possible_truncation, reason = "it is in range")]
fn nearest(count: f64) -> i64 {
    count.round() as i64
}

/// A difference as a whole number; 0 if it is negative.
fn round_or_zero(difference: f64) -> u64 {
    u64::try_from(nearest(difference)).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const START: i64 = 1_772_366_400;

    fn tally(total: u64, shares: &[(f64, f64)]) -> Tally {
        Tally { total: Some(total), shares: shares.to_vec(), ..Tally::default() }
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start: START + start, end: START + end }
    }

    /// A ledger that has added two hours in steps of a quarter, ten requests each.
    fn two_hours() -> Ledger {
        quarters(8, 10, &[(0.1, 0.5), (1.0, 1.0)])
    }

    /// A ledger that has added so many quarters of an hour with `each` requests.
    fn quarters(count: i64, each: u64, shares: &[(f64, f64)]) -> Ledger {
        (0..count).fold(Ledger::open(START), |ledger, quarter| {
            let range = range(quarter * 900, (quarter + 1) * 900);
            ledger.add(range, &tally(each, shares), true, START).unwrap()
        })
    }

    fn ages(ages: &[i64]) -> Ages {
        Ages::new(ages.iter().copied())
    }

    fn due(ages: &Ages) -> Due<'_> {
        Due { ages, phase: 0, oldest: None }
    }

    /// The ledger once its cursor stands at `second`; nothing is added.
    fn at(ledger: &Ledger, second: i64) -> Ledger {
        Ledger { until: START + second, ..ledger.clone() }
    }

    /// The ledger after quarters without requests up to `second`.
    fn idle(mut ledger: Ledger, second: i64) -> Ledger {
        while ledger.until < START + second {
            let next = TimeRange { start: ledger.until, end: ledger.until + 900 };
            ledger = ledger.add(next, &tally(0, &[]), true, i64::MAX).unwrap();
        }
        ledger
    }

    /// A ledger with these many thresholds that has counted for as many hours as the age and two more, some 4,000 requests
    /// an hour, a twentieth of which come late.
    pub(crate) fn busy(age: i64, thresholds: u32) -> Ledger {
        let share = |n: u32| (f64::from(n) / 8.0, 1.0 - 0.7f64.powi(n.cast_signed()));
        let shares: Vec<(f64, f64)> = (1..=thresholds).map(share).collect();
        let (ages, distributed) = (ages(&[age * HOUR]), thresholds > 0);
        let mut ledger = Ledger::open(START);
        for _ in 0..4 * (age + 2) {
            let next = TimeRange { start: ledger.until, end: ledger.until + 900 };
            ledger = ledger.add(next, &tally(1003, &shares), distributed, START).unwrap();
            while let Some(hour) = ledger.recheck_due(due(&ages)) {
                ledger =
                    ledger.recheck(hour, &tally(4200, &shares), distributed, due(&ages)).unwrap().unwrap().0;
            }
        }
        ledger
    }

    fn starts(ledger: &Ledger) -> Vec<i64> {
        ledger.rechecks.stretches().map(|stretch| stretch.start - START).collect()
    }

    fn buckets(ledger: &Ledger) -> Vec<u64> {
        ledger.buckets().map(|(_, count)| count).collect()
    }

    #[test]
    fn the_greatest_age_determines_the_hours_that_are_still_rechecked() {
        let two = ages(&[7200, 3600, 7200]);
        assert_eq!((two.is_empty(), two.last()), (false, Some(7200)));
        assert_eq!([-1, 0, 1800].map(|now| two.hourly_from(START + now) - START), [-10_800, -7200, -7200]);
        let none = Ages::default();
        assert_eq!((none.is_empty(), none.last(), none.hourly_from(START)), (true, None, i64::MAX));
    }

    #[test]
    fn a_whole_hour_is_compared_with_its_added_count() {
        let ledger = two_hours().add(range(7200, 8100), &tally(10, &[(1.0, 1.0)]), true, START).unwrap();
        let added = |hour: i64| ledger.added_in_hour(START + hour * HOUR);
        assert_eq!([-1, 0, 1, 2].map(added), [None, Some(40), Some(40), None]);
    }

    #[test]
    fn hours_that_ended_before_the_oldest_are_dropped() {
        let left = |oldest| Some(starts(&two_hours().without_hours_before(START + oldest)?));
        assert_eq!([0, 3600].map(left), [None, None]);
        assert_eq!([3601, 7201].map(left), [Some(vec![3600]), Some(vec![])]);
    }

    #[test]
    fn a_stretch_is_due_when_its_hour_has_aged_and_its_phase_has_come() {
        let (ledger, ages) = (two_hours(), ages(&[3600]));
        let later = Due { phase: 600, ..due(&ages) };
        assert_eq!(at(&ledger, 7799).recheck_due(later), None);
        assert_eq!(at(&ledger, 7800).recheck_due(later), Some(range(0, 3600)));
        assert_eq!(at(&ledger, 99_999).recheck_due(due(&Ages::default())), None);
        let (half, reply) = (Ledger::open(START + 1800), tally(10, &[(1.0, 1.0)]));
        let half = half.add(range(1800, 3600), &reply, true, START).unwrap();
        assert_eq!(at(&half, 7200).recheck_due(due(&ages)), Some(range(1800, 3600)), "what was added of it");
    }

    /// Rechecks the hour until the result is certain: a difference takes a second reply.
    fn recheck(ledger: &Ledger, range: TimeRange, tally: &Tally, ages: &Ages) -> (Ledger, Recheck) {
        let (next, outcome) = ledger.recheck(range, tally, true, due(ages)).unwrap().unwrap();
        if !outcome.doubtful {
            return (next, outcome);
        }
        assert_eq!((next.rechecks.balance(), next.total), (ledger.rechecks.balance(), ledger.total));
        next.recheck(range, tally, true, due(ages)).unwrap().unwrap()
    }

    #[test]
    fn late_data_is_added_in_equal_parts_over_the_following_hour() {
        let late = tally(52, &[(0.1, 0.5), (1.0, 1.0)]);
        let (mut ledger, outcome) = recheck(&two_hours(), range(0, 3600), &late, &ages(&[3600]));
        assert_eq!(outcome, Recheck { late: 12, ..Recheck::default() });
        assert_eq!((ledger.total, ledger.late, ledger.rechecked_until), (80, 0, START + 3600));
        let mut totals = Vec::new();
        for quarter in 8..13 {
            ledger = idle(ledger, (quarter + 1) * 900);
            totals.push((ledger.total, ledger.late, ledger.buckets().next().unwrap().1));
        }
        assert_eq!(totals, [(83, 3, 41), (86, 6, 43), (89, 9, 44), (92, 12, 46), (92, 12, 46)]);
        assert_eq!(starts(&ledger), [3600]);
    }

    #[test]
    fn a_recheck_without_a_difference_does_not_delay_late_data() {
        let (late, ages) = (tally(52, &[(0.1, 0.5), (1.0, 1.0)]), ages(&[3600, 5400]));
        let (ledger, _) = recheck(&two_hours(), range(0, 3600), &late, &ages);
        let (ledger, outcome) = recheck(&idle(ledger, 9000), range(0, 3600), &late, &ages);
        assert_eq!((outcome, idle(ledger, 10_800).total), (Recheck::default(), 92));
    }

    #[test]
    fn late_data_goes_into_the_buckets_that_it_belongs_to() {
        // All ten of each quarter are fast; two in a hundred of all are slow and come once they are finished.
        let fast = [(0.5, 0.9), (1.0, 1.0), (3600.0, 1.0)];
        let whole = tally(408, &[(0.5, 360.0 / 408.0), (1.0, 400.0 / 408.0), (3600.0, 1.0)]);
        let (ledger, outcome) = recheck(&quarters(8, 100, &fast), range(0, 3600), &whole, &ages(&[3600]));
        assert_eq!(outcome.late, 8);
        let ledger = idle(ledger, 10_800);
        assert_eq!((buckets(&ledger), ledger.total), (vec![720, 800, 808], 808));
    }

    #[test]
    fn a_distribution_that_is_corrected_is_followed_as_far_as_counters_can() {
        let ages = ages(&[3600]);
        let first = quarters(8, 100, &[(0.5, 0.5), (1.0, 0.6), (2.0, 0.7)]);
        // Faster than first reported.
        let (ledger, outcome) =
            recheck(&first, range(0, 3600), &tally(400, &[(0.5, 0.6), (1.0, 0.8), (2.0, 0.8)]), &ages);
        assert_eq!((outcome.late, outcome.overcounted), (0, 0));
        let faster = idle(ledger, 10_800);
        assert_eq!((buckets(&faster), faster.total), (vec![440, 560, 600], 800));
        // Slower: late data of the next hour offsets it.
        let (ledger, _) =
            recheck(&first, range(0, 3600), &tally(400, &[(0.5, 0.46), (1.0, 0.6), (2.0, 0.7)]), &ages);
        let ledger = idle(ledger, 10_800);
        assert_eq!(buckets(&ledger), [400, 480, 560], "none goes back");
        let (ledger, _) = recheck(
            &ledger,
            range(3600, 7200),
            &tally(420, &[(0.5, 220.0 / 420.0), (1.0, 260.0 / 420.0), (2.0, 300.0 / 420.0)]),
            &ages,
        );
        let ledger = idle(ledger, 14_400);
        assert_eq!((buckets(&ledger), ledger.total), (vec![404, 500, 580], 820));
    }

    #[test]
    fn shares_in_whole_percent_leave_every_bucket_within_their_resolution() {
        let (ages, mut ledger) = (ages(&[3600]), Ledger::open(START));
        let percent = |within: u64, of: u64| (within as f64 / of as f64 * 100.0).round() / 100.0;
        let (minutes, mut told) = (26 * 60, 0.0);
        let requests_of = |minute: i64| 9 + minute.unsigned_abs() % 7;
        for minute in 0..minutes {
            let next = TimeRange { start: ledger.until, end: ledger.until + 60 };
            let reply =
                tally(requests_of(minute), &[(1.0, percent(requests_of(minute) - 1, requests_of(minute)))]);
            ledger = ledger.add(next, &reply, true, START).unwrap();
            if let Some(hour) = ledger.recheck_due(due(&ages)) {
                let first = (hour.start - START) / 60;
                let count: u64 = (first..first + 60).map(requests_of).sum();
                let share = percent(count - 60, count);
                told += share * count as f64;
                let whole = tally(count, &[(1.0, share)]);
                ledger = ledger.recheck(hour, &whole, true, due(&ages)).unwrap().unwrap().0;
            }
        }
        let last: u64 = (minutes - 60..minutes).map(requests_of).sum();
        let error = ledger.buckets().next().unwrap().1 as f64 - told - (last - 60) as f64;
        assert!(error.abs() < 10.0, "{error} after 25 hours; {} of one hour", last - 60);
    }

    #[test]
    fn a_threshold_that_appears_within_an_hour_is_counted_again_with_it() {
        let first = quarters(2, 100, &[(0.5, 0.5), (2.0, 1.0)]);
        let both = tally(100, &[(0.5, 0.5), (1.0, 0.8), (2.0, 1.0)]);
        let ledger = (2..8).fold(first, |ledger, quarter| {
            ledger.add(range(quarter * 900, (quarter + 1) * 900), &both, true, START).unwrap()
        });
        assert_eq!(buckets(&ledger), [400, 580, 800]);
        let whole = tally(400, &both.shares);
        let (ledger, _) = recheck(&ledger, range(0, 3600), &whole, &ages(&[3600]));
        assert_eq!(buckets(&idle(ledger, 10_800)), [400, 640, 800]);
    }

    #[test]
    fn a_threshold_that_returns_after_hours_without_slow_requests_has_missed_nothing() {
        // No threshold is named beyond the one that has all requests.
        let fast = |each| tally(each, &[(0.5, 1.0)]);
        let slow = |each| tally(each, &[(0.5, 0.5), (1.0, 0.8), (10.0, 1.0)]);
        let reply = |second: i64, each| match (4 * HOUR..14 * HOUR).contains(&second) {
            true => fast(each),
            false => slow(each),
        };
        let (ages, mut ledger) = (ages(&[HOUR]), Ledger::open(START));
        for quarter in 0..80 {
            let second = quarter * 900;
            ledger = ledger.add(range(second, second + 900), &reply(second, 100), true, START).unwrap();
            while let Some(hour) = ledger.recheck_due(due(&ages)) {
                let whole = reply(hour.start - START, 400);
                ledger = ledger.recheck(hour, &whole, true, due(&ages)).unwrap().unwrap().0;
            }
        }
        assert_eq!((buckets(&ledger), ledger.total), (vec![6000, 7200, 8000], 8000));
    }

    #[test]
    fn an_hour_is_rechecked_at_its_last_age_although_an_earlier_one_is_no_longer_configured() {
        let (both, last) = (ages(&[3600, 86_400]), ages(&[86_400]));
        let equal = tally(40, &[(0.1, 0.5), (1.0, 1.0)]);
        let (ledger, _) = recheck(&two_hours(), range(0, 3600), &equal, &both);
        let later = at(&ledger, 3600 + 86_400);
        assert_eq!(later.recheck_due(due(&last)), Some(range(0, 3600)));
        // A recheck that is repeated is still of the earlier age.
        let (counted, _) = recheck(&ledger, range(3600, 7200), &equal, &both);
        assert_eq!(starts(&counted.not_answered(range(0, 3600), true, due(&last))), [0, 3600]);
        assert_eq!(counted.not_answered(range(0, 3600), true, due(&last)).recheck_due(due(&both)), None);
        // An outcome for another hour drops none.
        assert_eq!(starts(&ledger.not_answered(range(3600, 7200), true, due(&last))), [0, 3600]);
    }

    #[test]
    fn overcounts_are_counted_and_late_data_is_offset_against_them() {
        let ages = ages(&[3600, 86_400]);
        let few = tally(38, &[(0.1, 0.5), (1.0, 1.0)]);
        let (first, outcome) = recheck(&two_hours(), range(0, 3600), &few, &ages);
        assert_eq!(outcome, Recheck { overcounted: 2, ..Recheck::default() });
        assert_eq!((first.total, first.overcounted, first.debt()), (80, 2, 2));
        assert_eq!(at(&first, 10_799).recheck_due(due(&ages)), None);
        let first = at(&first, 3600 + 86_400);
        assert_eq!(first.recheck_due(due(&ages)), Some(range(0, 3600)));
        let (second, outcome) =
            recheck(&first, range(0, 3600), &tally(39, &[(0.1, 20.0 / 39.0), (1.0, 1.0)]), &ages);
        assert_eq!(outcome, Recheck { late: 1, ..Recheck::default() });
        assert_eq!(starts(&second), [3600], "the first hour has had all its rechecks");
        let paid = second.add(range(90_000, 100_000), &tally(0, &[]), true, i64::MAX).unwrap();
        assert_eq!((paid.total, paid.late, paid.debt()), (80, 1, 1));
        assert_eq!(buckets(&paid), [40, 80], "it is in no bucket either");
        // A day late, the second hour is rechecked once, not twice.
        let second = at(&second, 7200 + 86_400);
        let (third, _) = recheck(&second, range(3600, 7200), &tally(40, &[(0.1, 0.5), (1.0, 1.0)]), &ages);
        assert_eq!(starts(&third), [0; 0]);
    }

    #[test]
    fn late_data_and_overcounts_offset_each_other_in_either_order() {
        let ages = ages(&[3600]);
        let after = |hours: [(i64, u64); 2]| {
            let again = |ledger: Ledger, (hour, total): (i64, u64)| {
                let range = range(hour * HOUR, (hour + 1) * HOUR);
                recheck(&ledger, range, &tally(total, &[(0.1, 0.5), (1.0, 1.0)]), &ages).0
            };
            let ledger = idle(hours.into_iter().fold(two_hours(), again), 14_400);
            (ledger.total, ledger.late, ledger.overcounted, ledger.debt(), buckets(&ledger))
        };
        let second = (1, 38);
        let all = [((0, 52), (90, 12, 2, 0, vec![45, 90])), ((0, 41), (80, 1, 2, 1, vec![40, 80]))];
        for (first, expected) in all {
            assert_eq!(after([first, second]), expected);
            assert_eq!(after([second, first]), expected);
        }
    }

    #[test]
    fn overcounts_are_offset_within_thresholds_beyond_the_one_that_has_all_requests() {
        let (ages, slow) = (ages(&[3600]), [(0.5, 0.5), (1.0, 0.8)]);
        let fast = |ledger: Ledger, quarter: i64| {
            let range = range(quarter * 900, (quarter + 1) * 900);
            ledger.add(range, &tally(100, &[(0.5, 1.0)]), true, START).unwrap()
        };
        let mut ledger = (4..12).fold(quarters(4, 100, &slow), fast);
        for (hour, total) in [(1, 390), (2, 410)] {
            let range = range(hour * HOUR, (hour + 1) * HOUR);
            ledger = recheck(&ledger, range, &tally(total, &[(0.5, 1.0)]), &ages).0;
        }
        let ledger = idle(ledger, 18_000).add(range(18_000, 18_900), &tally(100, &slow), true, i64::MAX);
        let ledger = ledger.unwrap();
        assert_eq!((buckets(&ledger), ledger.total), (vec![1050, 1200], 1300));
    }

    #[test]
    fn a_low_reply_changes_nothing_and_is_requested_again_ten_minutes_later() {
        let (ages, ledger) = (ages(&[3600]), two_hours());
        let reply = |total| tally(total, &[(0.1, 0.5), (1.0, 1.0)]);
        let (doubtful, _) = ledger.recheck(range(0, 3600), &reply(3), true, due(&ages)).unwrap().unwrap();
        assert_eq!(at(&doubtful, 7799).recheck_due(due(&ages)), None);
        assert_eq!(at(&doubtful, 7800).recheck_due(due(&ages)), Some(range(0, 3600)));
        let (high, _) = ledger.recheck(range(0, 3600), &reply(50), true, due(&ages)).unwrap().unwrap();
        assert_eq!(high.recheck_due(due(&ages)), Some(range(0, 3600)), "a high one at once");
        for (second, debt) in [(40, 0), (41, 0), (39, 1), (38, 2), (3, 0)] {
            let (next, outcome) =
                doubtful.recheck(range(0, 3600), &reply(second), true, due(&ages)).unwrap().unwrap();
            assert_eq!((next.total, next.debt(), outcome.late), (80, debt, 0), "{second}");
            assert_eq!((next.rechecked_until, outcome.disputed), (START + 3600, second == 3));
        }
    }

    #[test]
    fn a_distribution_that_is_gone_takes_nothing_back_and_keeps_no_late_data_away() {
        let (ages, hour) = (ages(&[3600]), range(0, 3600));
        let first = quarters(8, 100, &[(0.5, 0.5), (1.0, 1.0)]);
        // The counts within 0.5 s and 1 s after two replies about the first of two hours, and the late data of both hours.
        for (count, shares, within, late) in [
            (400, &[(0.5, 0.0), (1.0, 0.0)][..], [400, 800], 0),
            (440, &[(0.5, 0.0), (1.0, 0.0)], [420, 840], 40),
            (440, &[], [420, 840], 40),
            // Within a twentieth of the hour, it is a correction.
            (400, &[(0.5, 179.0 / 400.0), (1.0, 1.0)], [420, 840], 0),
            (400, &[(0.5, 181.0 / 400.0), (1.0, 1.0)], [401, 840], 0),
        ] {
            let (ledger, outcome) = recheck(&first, hour, &tally(count, shares), &ages);
            assert_eq!((outcome.late, outcome.disputed), (late, false), "{count} {shares:?}");
            let ledger = idle(ledger, 10_800);
            assert_eq!(ledger.total, 800 + late);
            if late > 0 || shares.iter().all(|(_, share)| *share == 0.0) {
                assert_eq!(buckets(&ledger), within, "{count} {shares:?}");
                continue;
            }
            // Late data of the next hour is first offset against what was too much.
            let more = tally(440, &[(0.5, 0.5), (1.0, 1.0)]);
            let (ledger, _) = recheck(&ledger, range(3600, 7200), &more, &ages);
            assert_eq!(buckets(&idle(ledger, 14_400)), within, "{count} {shares:?}");
        }
        // Without counted requests, no distribution is known for late data.
        let empty = at(&quarters(4, 0, &[]), 7200);
        let refused = empty.recheck(hour, &tally(3, &[]), true, due(&ages)).unwrap_err();
        assert_eq!(refused, Refusal::NoDistribution(3));
    }

    #[test]
    fn an_answer_that_has_far_fewer_is_disputed_and_repeated_and_changes_nothing() {
        let ages = ages(&[3600]);
        let reply = |total| tally(total, &[(0.1, 0.5), (1.0, 1.0)]);
        let (mut ledger, mut asked) = (two_hours(), Vec::new());
        for minute in 0..40 * 60 {
            let now = at(&ledger, 7200 + 60 * minute);
            let hour = now.recheck_due(due(&ages)).filter(|hour| *hour == range(0, 3600));
            let Some(hour) = hour else { continue };
            ledger = now.recheck(hour, &reply(37), true, due(&ages)).unwrap().unwrap().0;
            asked.push(minute);
            let disputed = (hour, 3);
            assert_eq!(ledger.disputes().unwrap_or(disputed), disputed);
        }
        let hours = |hours: i64| 10 + 60 * hours;
        assert_eq!(asked[..2], [0, 10]);
        // Each repetition is confirmed ten minutes later.
        let repeated = [hours(1), hours(4) + 10, hours(28) + 20].map(|first| [first, first + 10]);
        assert_eq!(asked[2..], *repeated.as_flattened());
        assert_eq!((ledger.disputed, ledger.debt(), ledger.overcounted), (1, 0, 0));
        assert_eq!((starts(&ledger), ledger.disputes()), (vec![3600], None));
    }

    #[test]
    fn an_answer_that_a_counter_cannot_hold_is_refused_and_counting_continues() {
        let (ages, ledger) = (ages(&[3600]), two_hours());
        let all = [(0.1, 0.5), (1.0, 1.0)];
        let answer = |ledger: &Ledger, hour: i64, total| {
            let range = range(hour * HOUR, (hour + 1) * HOUR);
            ledger.recheck(range, &tally(total, &all), true, due(&ages)).map(|answered| answered.unwrap().0)
        };
        for too_many in [5_000_000_000_000_000, u64::MAX] {
            let refused = answer(&ledger, 0, too_many).unwrap_err();
            assert!(matches!(refused, Refusal::TooMany(_)), "{refused}");
        }
        // Both hours together exceed the limit, and so does one of them with what is counted meanwhile.
        let many = MAX_TOTAL / 2 + 1000;
        let first = answer(&answer(&ledger, 0, many).unwrap(), 0, many).unwrap();
        assert_eq!(answer(&first, 1, many), Err(Refusal::TooMany(many)));
        let meanwhile = |total| first.add(range(7200, 8100), &tally(total, &all), true, START);
        assert_eq!(meanwhile(many), Err(Refusal::TooMany(many)));
        let right = answer(&meanwhile(10).unwrap(), 1, 40).unwrap();
        assert_eq!(idle(right, 14_400).total, many + 50);
    }

    #[test]
    fn late_data_of_a_disputed_hour_is_added_as_always() {
        let ages = ages(&[3600]);
        let reply = |total| tally(total, &[(0.1, 0.5), (1.0, 1.0)]);
        let (disputed, outcome) = recheck(&two_hours(), range(0, 3600), &reply(0), &ages);
        assert!(outcome.disputed && disputed.disputes().is_some_and(|(_, lacks)| lacks == 40));
        let (found, outcome) = recheck(&at(&disputed, 10_800), range(0, 3600), &reply(44), &ages);
        assert_eq!((outcome.late, outcome.disputed, found.disputes(), found.disputed), (4, false, None, 1));
        assert_eq!(idle(found, 14_400).total, 84);
    }

    #[test]
    fn a_lower_answer_about_time_that_the_service_may_have_dropped_is_no_correction() {
        let (ages, ledger) = (ages(&[3600]), two_hours());
        for (oldest, disputed) in [(None, false), (Some(START), false), (Some(START + 1), true)] {
            let due = Due { oldest, ..due(&ages) };
            let answer = tally(39, &[(0.1, 0.5), (1.0, 1.0)]);
            let (next, _) = ledger.recheck(range(0, 3600), &answer, true, due).unwrap().unwrap();
            let (next, outcome) = next.recheck(range(0, 3600), &answer, true, due).unwrap().unwrap();
            assert_eq!((outcome.disputed, next.debt()), (disputed, u64::from(!disputed)), "{oldest:?}");
        }
    }

    #[test]
    fn time_given_up_is_requested_at_each_age_and_then_unaccounted() {
        let ages = ages(&[3600, 7200]);
        let (gone, _) = two_hours().give_up(START + 8100, START).unwrap();
        assert_eq!((gone.unaccounted, gone.pending(), gone.until), (0, 900, START + 8100));
        let due_at = |second: i64| at(&gone, second).recheck_due(due(&ages));
        let first_hours = |ledger: &Ledger| {
            let asked = ledger.rechecks.stretches().map(|stretch| stretch.range()).collect::<Vec<_>>();
            asked
                .into_iter()
                .take(2)
                .fold(ledger.clone(), |ledger, range| ledger.not_answered(range, true, due(&ages)))
        };
        assert_eq!(due_at(14_399), Some(range(0, 3600)));
        let late = first_hours(&at(&gone, 14_400));
        assert_eq!(late.recheck_due(due(&ages)), Some(range(7200, 8100)));

        let (found, outcome) =
            recheck(&late, range(7200, 8100), &tally(12, &[(0.1, 0.5), (1.0, 1.0)]), &ages);
        assert_eq!((outcome.late, found.accounted, found.pending()), (12, 7200, 900));
        let half = idle(found.clone(), 16_200);
        assert_eq!((half.accounted, half.pending(), half.total), (9450, 450, 86));
        let all = idle(found, 18_000);
        assert_eq!((all.accounted, all.pending(), all.unaccounted), (11_700, 0, 0));
        assert_eq!(buckets(&all), [46, 92]);

        let refused = late.not_answered(range(7200, 8100), true, due(&ages));
        assert_eq!((refused.pending(), refused.recheck_due(due(&ages))), (900, None));
        let down = late.not_answered(range(7200, 8100), false, due(&ages));
        assert_eq!(at(&down, 14_999).recheck_due(due(&ages)), None);
        assert_eq!(at(&down, 15_000).recheck_due(due(&ages)), Some(range(7200, 8100)));
        let last = at(&refused, 18_000).not_answered(range(7200, 8100), true, due(&ages));
        assert_eq!((last.pending(), last.unaccounted), (0, 900));
        assert_eq!(two_hours().give_up(START + 8100, i64::MAX).unwrap().0.unaccounted, 900, "no rechecks");
    }

    /// Three quarters of an hour with `each` requests, and one that was given up.
    fn part_of_an_hour(each: u64) -> Ledger {
        quarters(3, each, &[(1.0, 1.0)]).give_up(START + 3600, START).unwrap().0
    }

    #[test]
    fn zeros_about_pending_time_are_accounted_only_if_the_hour_is_idle_and_kept() {
        let ages = ages(&[3600]);
        let (accounted, unaccounted) = ((900, 0), (0, 900));
        for (each, oldest, expected) in [
            (0, None, accounted),
            (0, Some(START + 2700), accounted),
            (0, Some(START + 2701), unaccounted),
            (10, None, unaccounted),
        ] {
            let due = Due { oldest, ..due(&ages) };
            let (mut ledger, mut asked) = (part_of_an_hour(each), Vec::new());
            for minute in 0..40 * 60 {
                let now = at(&ledger, 7200 + 60 * minute);
                let Some(hour) = now.recheck_due(due) else { continue };
                let is_pending = hour == range(2700, 3600);
                let reply = tally(if is_pending { 0 } else { 3 * each }, &[(1.0, 1.0)]);
                ledger = now.recheck(hour, &reply, true, due).unwrap().unwrap().0;
                asked.extend(is_pending.then_some(minute));
            }
            assert_eq!(asked, [1, 61, 241, 1681]);
            let end = idle(ledger.clone(), 144_000);
            let passed = (end.until - ledger.until).unsigned_abs();
            assert_eq!((end.accounted - 2700 - passed, end.unaccounted), expected, "{each} {oldest:?}");
            assert_eq!((end.pending(), starts(&end).len()), (0, 0));
            assert_eq!((end.disputed, end.total), (0, 3 * each));
        }
    }

    #[test]
    fn pending_time_is_counted_once_two_replies_agree() {
        let ages = ages(&[3600]);
        let pending = range(2700, 3600);
        let reply = |ledger: &Ledger, total| {
            ledger.recheck(pending, &tally(total, &[(1.0, 1.0)]), true, due(&ages)).unwrap().unwrap().0
        };
        let empty = reply(&at(&part_of_an_hour(10), 7200), 0);
        assert!(!empty.is_unanswered(pending) && part_of_an_hour(10).is_unanswered(pending));
        let down = at(&empty, 10_800).not_answered(pending, false, due(&ages));
        assert_eq!(down.pending(), 900);
        let first = reply(&at(&down, 11_400), 12);
        assert!(!first.is_unanswered(pending));
        for (second, total) in [(12, 42), (900, 42), (11, 41), (0, 30)] {
            let end = idle(reply(&first, second), 18_000);
            assert_eq!((end.total, end.pending()), (total, if second == 0 { 900 } else { 0 }), "{second}");
        }
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
                        let Some(hour) = ledger.recheck_due(due(&ages)) else { break };
                        ledger = ledger.recheck(hour, &answer(HOUR_OF), true, due(&ages)).unwrap().unwrap().0;
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

    /// The requests of a quarter of an hour: within each of the thresholds 1 to 6, and in total.
    type Quarter = [u64; 7];

    /// The number within the greatest of the thresholds `named` that is at most `threshold`.
    fn within(counts: &Quarter, named: &BTreeSet<usize>, threshold: usize) -> u64 {
        named.range(..=threshold).next_back().map_or(0, |named| counts[named - 1])
    }

    /// A reply that names these thresholds, but none beyond the first that has all requests.
    fn reply(counts: &Quarter, named: &BTreeSet<usize>) -> Tally {
        let total = counts[6];
        let is_new = |at: &&usize| within(counts, named, **at - 1) < total;
        let share = |at: &usize| (*at as f64, counts[at - 1] as f64 / total as f64);
        tally(total, &named.iter().filter(is_new).map(share).collect::<Vec<_>>())
    }

    fn quarter() -> impl Strategy<Value = Quarter> {
        let classes = prop::collection::vec(0u64..50, 1..8);
        classes.prop_map(|classes| {
            let mut sum = 0;
            std::array::from_fn(|class| {
                sum += classes.get(class).copied().unwrap_or_default();
                sum
            })
        })
    }

    proptest! {
        #[test]
        fn absences_returns_and_rechecks_leave_every_bucket_at_the_requests_within_its_threshold(
            hours in prop::collection::vec(
                (prop::collection::btree_set(1usize..7, 1..6), prop::array::uniform4(quarter())), 1..24),
        ) {
            let (ages, mut ledger) = (ages(&[HOUR, 2 * HOUR]), Ledger::open(START));
            let (mut truth, mut greatest) = ([0; 7], [0; 7]);
            for (named, quarters) in &hours {
                for counts in quarters {
                    let next = TimeRange { start: ledger.until, end: ledger.until + 900 };
                    ledger = ledger.add(next, &reply(counts, named), true, START).unwrap();
                    while let Some(hour) = ledger.recheck_due(due(&ages)) {
                        let (named, quarters) = &hours[usize::try_from((hour.start - START) / HOUR).unwrap()];
                        let whole = std::array::from_fn(|at| quarters.iter().map(|counts| counts[at]).sum());
                        let (next, outcome) =
                            ledger.recheck(hour, &reply(&whole, named), true, due(&ages)).unwrap().unwrap();
                        prop_assert_eq!((outcome.late, outcome.overcounted, outcome.doubtful), (0, 0, false));
                        ledger = next;
                    }
                    (1..7).for_each(|at| truth[at - 1] += within(counts, named, at));
                    truth[6] += counts[6];
                    prop_assert_eq!(ledger.total, truth[6]);
                    prop_assert!(buckets(&ledger).into_iter().chain([ledger.total]).is_sorted());
                    for (threshold, count) in ledger.buckets() {
                        let at = (1..7).find(|at| *at as f64 == threshold).unwrap() - 1;
                        prop_assert!(count.abs_diff(truth[at]) <= 1, "{} within {}: {:?}", count, threshold, truth);
                        prop_assert!(count >= greatest[at], "{} after {:?}", count, greatest);
                        greatest[at] = count;
                    }
                }
            }
        }
    }

    #[test]
    fn an_hour_whose_rest_was_added_with_others_is_counted_again_in_part() {
        let shares = [(1.0, 1.0)];
        let ledger = two_hours().add(range(7200, 8100), &tally(1, &shares), true, START).unwrap();
        // After an outage, three hours come in one range.
        let ledger = ledger.add(range(8100, 18_000), &tally(30, &shares), true, START + 18_000).unwrap();
        assert_eq!(starts(&ledger), [0, 3600, 7200]);
        let last = ledger.rechecks.stretches().last().unwrap();
        assert_eq!((last.range(), last.added.total()), (range(7200, 8100), 1));
    }

    #[test]
    fn late_data_that_is_due_in_a_gap_is_added_behind_it() {
        let shares = [(1.0, 1.0)];
        let (ledger, _) = recheck(&two_hours(), range(0, 3600), &tally(76, &shares), &ages(&[3600]));
        let ledger = ledger.add(range(7200, 8100), &tally(0, &shares), true, START).unwrap();
        assert_eq!(ledger.late, 9);
        let (ledger, _) = ledger.give_up(START + 20_000, i64::MAX).unwrap();
        assert_eq!((ledger.late, ledger.total, ledger.unaccounted), (9, 89, 11_900));
        let ledger = ledger.add(range(20_000, 20_900), &tally(0, &shares), true, i64::MAX).unwrap();
        assert_eq!((ledger.late, ledger.total), (36, 116));
    }
}
