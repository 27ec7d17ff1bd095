//! The arithmetic of one ledger, without clock or I/O: a ledger and a reply in, the next ledger out.

use std::sync::Arc;

use pds_interface::{Tally, TimeRange};

use super::buckets::Buckets;
use super::error::Refusal;
use super::stretch::{Balance, Counts, PARTS, PendingRechecks, Sample, Stretch, end_of_hour};

/// The limit of a counter, including late data that is still to be added.
pub(super) const MAX_TOTAL: u64 = 1 << 47;

/// Counts of one app by one metrics call, up to a point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// The cursor, Unix seconds. Every second before it was added or given up; no later second was.
    pub until: i64,
    /// Requests or runs added.
    pub total: u64,
    /// Seconds that `total` has counted.
    pub accounted: u64,
    /// Seconds given up for good.
    pub unaccounted: u64,
    /// The part of `total` that arrived after its range was first counted.
    pub late: u64,
    /// Counted requests that were missing at a recheck. They stay in `total`; late data is offset against them.
    pub overcounted: u64,
    /// Stretches, each at most an hour, of which the service later reported far fewer requests. The requests stay in
    /// `total`.
    pub disputed: u64,
    /// End of the last hour counted again, Unix seconds; 0 before the first.
    pub rechecked_until: i64,
    /// Whether another shard counts this app at present.
    pub set_aside: bool,
    /// A number that identifies the settings with which an audit passed; 0 if none did.
    pub verified: u32,
    /// An hour that shows how complete the counters are.
    pub sample: Option<Box<Sample>>,
    /// The fraction of a request that `total` has not counted yet, if totals have fractions.
    pub(super) fraction: f64,
    pub(super) buckets: Buckets,
    /// The stretches to recheck, and the corrections to add.
    pub(super) rechecks: PendingRechecks,
}

/// Limits of the next range.
#[derive(Clone, Copy, Debug)]
pub struct RangeLimits {
    /// The end of settled time, Unix seconds.
    pub settled: i64,
    /// A range that is cut ends at a multiple of so many seconds.
    pub step: i64,
    /// The greatest length in seconds.
    pub max_length: i64,
    /// The start of the first hour that will be rechecked, Unix seconds.
    pub hourly_from: i64,
}

impl Ledger {
    /// The requests within each threshold (seconds), sorted: whole numbers, cumulative, none above `total`.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.buckets.shown().map(|(threshold, within)| (threshold, within.min(self.total)))
    }

    /// Shares the list of thresholds with `known` if they are equal. Ledgers of runs have none.
    pub(super) fn share_thresholds(&mut self, known: &mut Arc<[f64]>) {
        let thresholds = &mut self.buckets.thresholds;
        if *thresholds == *known {
            *thresholds = Arc::clone(known);
        } else if !thresholds.is_empty() {
            *known = Arc::clone(thresholds);
        }
    }

    /// Whether nothing has been counted or given up since it was opened.
    pub fn is_new(&self) -> bool {
        (self.total, self.accounted, self.unaccounted, self.pending()) == (0, 0, 0, 0)
    }

    /// Whether its page has buckets for all thresholds on the page of `other`.
    pub fn has_thresholds_of(&self, other: &Self) -> bool {
        let (mut own, mut others) = (self.buckets.shown(), other.buckets.shown());
        others.all(|(threshold, _)| own.any(|(own, _)| own == threshold))
    }

    /// The ledger with buckets for all thresholds on the page of `other`, at the counts at which they begin here.
    #[must_use]
    pub fn with_thresholds_of(&self, other: &Self) -> Self {
        Self { buckets: self.buckets.with_thresholds_of(&other.buckets), ..self.clone() }
    }

    /// An empty ledger that begins at `second`.
    pub fn open(second: i64) -> Self {
        Self { until: second, ..Self::default() }
    }

    /// An empty ledger that begins at `second` after `pending` seconds that were given up. It is only shown: the pending
    /// time is one stretch, however long.
    pub fn open_after(second: i64, pending: u64) -> Self {
        let start = second.saturating_sub_unsigned(pending);
        let stretch = Stretch { start, end: second, missing: true, ..Stretch::default() };
        let pending = (start < second).then_some(stretch);
        Self { rechecks: PendingRechecks::of(&Balance::default(), pending), ..Self::open(second) }
    }

    /// The next range to request, from the cursor. No range crosses the boundary of an hour that will be rechecked, or
    /// was begun as such. `None` while nothing new has settled.
    pub fn due(&self, limits: RangeLimits) -> Option<TimeRange> {
        let RangeLimits { settled, max_length, hourly_from, .. } = limits;
        let (start, step) = (self.until, limits.step.max(1));
        let aligned = |second: i64| second.div_euclid(step) * step;
        // Even the shortest range must move the cursor.
        let longest = aligned(start.saturating_add(max_length)).max(aligned(start) + step);
        let boundary = if self.is_hourly(start, hourly_from) { end_of_hour(start) } else { hourly_from };
        let end = settled.min(longest).min(boundary);
        (end > start).then_some(TimeRange { start, end })
    }

    /// Gives up the time before `oldest`, and returns the range. Hours that begin at or after `hourly_from` will be
    /// requested again. `None` if there is nothing to give up.
    #[must_use]
    pub fn give_up(&self, oldest: i64, hourly_from: i64) -> Option<(Self, TimeRange)> {
        let range = TimeRange { start: self.until, end: oldest };
        if oldest <= self.until {
            return None;
        }
        let (mut pending, mut start) = (Vec::new(), self.until.max(hourly_from));
        while start < oldest {
            let end = oldest.min(end_of_hour(start));
            pending.push(Stretch { start, end, missing: true, ..Stretch::default() });
            start = end;
        }
        let later: u64 = pending.iter().map(Stretch::seconds).sum();
        let rechecks =
            PendingRechecks::of(&self.rechecks.balance(), self.rechecks.stretches().chain(pending));
        let unaccounted = self.unaccounted + range.seconds() - later;
        Some((Self { unaccounted, until: oldest, rechecks, ..self.clone() }, range))
    }

    /// Seconds given up that will be requested again, or whose data is being added to the counters.
    pub fn pending(&self) -> u64 {
        let missing =
            self.rechecks.stretches().filter(|stretch| stretch.missing).map(|stretch| stretch.seconds());
        missing.sum::<u64>() + whole_parts(self.rechecks.balance().rest().last())
    }

    /// Overcounts that late data has not offset yet.
    pub fn debt(&self) -> u64 {
        whole_parts(Some(&-self.rechecks.balance().of_total()))
    }

    /// Stops counting until [`Ledger::resumed_at`], because another shard counts this app. `None` if it has already
    /// stopped.
    #[must_use]
    pub fn put_aside(&self) -> Option<Self> {
        (!self.set_aside).then(|| Self { set_aside: true, ..self.clone() })
    }

    /// Resumes at `second`. Another shard counted the time before it.
    #[must_use]
    pub fn resumed_at(&self, second: i64) -> Self {
        Self { set_aside: false, until: second.max(self.until), ..self.clone() }
    }

    /// The ledger with a reply about `range` added. `distributed` if the call has a distribution. Counts of hours that
    /// begin at or after `hourly_from` are kept for their rechecks.
    ///
    /// # Errors
    /// If the reply cannot be added; the ledger is unchanged.
    pub fn add(
        &self,
        range: TimeRange,
        tally: &Tally,
        distributed: bool,
        hourly_from: i64,
    ) -> Result<Self, Refusal> {
        if range.start != self.until {
            return Err(Refusal::NotNext { asked: range.start, until: self.until });
        }
        let count = count(range, tally, distributed)?;
        let mut next = self.clone();
        if count > 0.0 {
            next.follow(tally, range);
        }
        next.fraction += count.fract();
        let total = floor_to_u64(count) + floor_to_u64(next.fraction);
        next.fraction = next.fraction.fract();
        next.total = next.total.saturating_add(total);
        next.accounted += range.seconds();
        let shares = next.buckets.put_shares(&tally.shares, count);
        let grown: Vec<i64> = shares.into_iter().chain([total]).map(u64::cast_signed).collect();
        let later = next.add_due_corrections(range.end);
        if next.total.saturating_add(later) >= MAX_TOTAL {
            return Err(Refusal::TooMany(total));
        }
        next.put_stretch(range, &grown, hourly_from);
        next.until = range.end;
        Ok(next)
    }

    /// Follows the thresholds of a reply about `range` that has traffic.
    pub(super) fn follow(&mut self, tally: &Tally, range: TimeRange) {
        let learnt = self.buckets.follow(&tally.shares, range);
        if !learnt.is_empty() {
            self.rechecks = self.rechecks.with_thresholds_at(&learnt);
        }
    }

    /// Adds the corrections that are due when the cursor is at `end`. Returns the requests that are due later.
    fn add_due_corrections(&mut self, end: i64) -> u64 {
        let mut balance = self.rechecks.balance();
        let mut due = balance.due(end);
        let (Some(seconds), Some(total)) = (due.pop(), due.pop()) else { return 0 };
        self.total = self.total.saturating_add(total.unsigned_abs());
        self.late = self.late.saturating_add(total.unsigned_abs());
        self.accounted += seconds.unsigned_abs();
        let mut added = self.buckets.put_whole(&due, self.total);
        added.extend([total, seconds]);
        balance.added.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
        self.rechecks = PendingRechecks::of(&balance, self.rechecks.stretches());
        whole_parts(Some(&balance.of_total()))
    }

    /// Whether the hour of `second` will be rechecked, or was begun as such an hour.
    fn is_hourly(&self, second: i64, hourly_from: i64) -> bool {
        let begun = || self.rechecks.stretches().last().is_some_and(|last| last.hour_end() > second);
        second >= hourly_from || begun()
    }

    /// Keeps the count added for `range`, for the recheck of its hour.
    fn put_stretch(&mut self, range: TimeRange, grown: &[i64], hourly_from: i64) {
        if range.end > end_of_hour(range.start) || !self.is_hourly(range.start, hourly_from) {
            return;
        }
        let thresholds = self.buckets.len();
        let mut stretches: Vec<Stretch<'_>> = self.rechecks.stretches().collect();
        let continues = |last: &&mut Stretch<'_>| {
            last.end == range.start && last.hour_end() > range.start && !last.missing && last.age == 0
        };
        match stretches.last_mut().filter(continues) {
            Some(last) => {
                let mut sums = last.added.list(thresholds);
                sums.iter_mut().zip(grown).for_each(|(sum, grown)| *sum += grown);
                last.added = Counts::of(&sums);
                last.end = range.end;
            }
            None => {
                let added = Counts::of(grown);
                stretches.push(Stretch { start: range.start, end: range.end, added, ..Stretch::default() });
            }
        }
        self.rechecks = PendingRechecks::of(&self.rechecks.balance(), stretches);
    }

    /// The number of the reply's thresholds that do not fit in the ledger.
    pub fn beyond_room(&self, tally: &Tally) -> usize {
        self.buckets.beyond_room(&tally.shares)
    }

    /// The ledger with buckets for all `thresholds`, which are sorted, as far as they fit. `None` if it has them. A new
    /// bucket begins with the count of the next lower bucket: a lower bound that keeps the buckets cumulative and each
    /// of them a counter.
    #[must_use]
    pub fn learn(&self, thresholds: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut next = self.clone();
        let learnt = next.buckets.learn(thresholds);
        next.rechecks = next.rechecks.with_thresholds_at(&learnt);
        (!learnt.is_empty()).then_some(next)
    }
}

/// The count of a reply about `range`, if it can be added.
pub(super) fn count(range: TimeRange, tally: &Tally, distributed: bool) -> Result<f64, Refusal> {
    if let Some(answered) = tally.range.filter(|answered| *answered != range) {
        return Err(Refusal::OtherRange { asked: range, answered });
    }
    let total = tally.total.ok_or(Refusal::NoTotal)?;
    if distributed && total > 0 && tally.shares.is_empty() && !tally.has_hidden_shares {
        return Err(Refusal::NoDistribution(total));
    }
    Ok(exact(total) + tally.fraction)
}

/// A count or a Unix second; both stay below 2^53.
pub(super) fn exact(value: u64) -> f64 {
    value as f64
}

/// A number of a balance in whole requests; 0 if it is negative.
pub(super) fn whole_parts(number: Option<&i64>) -> u64 {
    number.map_or(0, |number| number.max(&0).unsigned_abs() / PARTS.unsigned_abs())
}

/// A count rounded down; it is never negative.
#[expect(clippy::cast_possible_truncation, reason = "it is in range")]
fn floor_to_u64(count: f64) -> u64 {
    count.floor() as u64
}

/// Restricts how a ledger is opened or shown at startup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The cursor is not known yet. No ledger is opened until it is.
    Unknown,
    /// It began at a cursor from Prometheus. Its counters are shown at 0 for a while, so that every Prometheus scrapes
    /// them at 0.
    Begun {
        /// The cursor, Unix seconds.
        until: i64,
        /// Seconds before it that the previous process had yet to request again. They are pending until the counters
        /// grow, and unaccounted then.
        pending: u64,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MAX_THRESHOLDS;
    use crate::buckets::ONE;

    impl Buckets {
        /// Buckets with these thresholds and counts, in 65,536ths.
        pub(crate) fn of(buckets: impl IntoIterator<Item = (f64, u64)>) -> Self {
            let (thresholds, within): (Vec<f64>, Vec<u64>) = buckets.into_iter().unzip();
            Self { thresholds: thresholds.into(), within: within.into(), absent: Box::default() }
        }
    }

    impl Ledger {
        /// This ledger with these buckets: threshold in seconds and requests within it, sorted, cumulative.
        pub(crate) fn with_buckets(self, buckets: &[(f64, u64)]) -> Self {
            let in_parts = buckets.iter().map(|(threshold, count)| (*threshold, count * ONE));
            Self { buckets: Buckets::of(in_parts), ..self }
        }

        /// Bytes of memory that the stretches and the balance take.
        pub(crate) fn rechecks_bytes(&self) -> usize {
            self.rechecks.bytes().len()
        }
    }

    fn tally(total: u64, shares: &[(f64, f64)]) -> Tally {
        Tally { total: Some(total), shares: shares.to_vec(), ..Tally::default() }
    }

    fn buckets(ledger: &Ledger) -> Vec<(f64, u64)> {
        ledger.buckets().collect()
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start, end }
    }

    /// The ledger with a reply about the next `seconds` added. No hour is rechecked.
    fn after(ledger: &Ledger, seconds: i64, reply: &Tally) -> Ledger {
        ledger.add(range(ledger.until, ledger.until + seconds), reply, true, i64::MAX).unwrap()
    }

    #[test]
    fn ranges_follow_one_another_and_end_on_whole_steps() {
        let due = |until, settled, max_length| {
            Ledger::open(until).due(RangeLimits { settled, step: 60, max_length, hourly_from: i64::MAX })
        };
        assert_eq!(due(120, 120, 3600), None);
        assert_eq!(due(120, 60, 3600), None, "a clock set back requests nothing twice");
        assert_eq!(due(120, 240, 3600), Some(range(120, 240)));
        assert_eq!(due(120, 36_000, 3600), Some(range(120, 3720)));
        assert_eq!(due(130, 36_000, 90), Some(range(130, 180)), "back on whole steps");
        assert_eq!(due(130, 36_000, 1), Some(range(130, 180)), "never no progress");
    }

    #[test]
    fn time_given_up_is_counted_once() {
        let (ledger, gone) = Ledger::open(100).give_up(160, i64::MAX).unwrap();
        assert_eq!((ledger.until, ledger.unaccounted, gone), (160, 60, range(100, 160)));
        assert_eq!(ledger.give_up(160, i64::MAX), None);
    }

    #[test]
    fn a_reply_is_added_once_and_only_where_it_belongs() {
        let ledger = after(&Ledger::open(0), 60, &tally(10, &[(0.1, 0.5), (1.0, 0.96)]));
        let add = |tally: &Tally, distributed| ledger.add(range(60, 120), tally, distributed, i64::MAX);
        assert_eq!(buckets(&ledger), [(0.1, 5), (1.0, 10)]);
        assert_eq!((ledger.total, ledger.accounted, ledger.until), (10, 60, 60));
        let again = ledger.add(range(0, 60), &tally(10, &[]), true, i64::MAX);
        assert_eq!(again, Err(Refusal::NotNext { asked: 0, until: 60 }));
        let other = Tally { range: Some(range(60, 119)), ..tally(1, &[(0.1, 1.0)]) };
        assert!(matches!(add(&other, true), Err(Refusal::OtherRange { .. })));
        assert_eq!(add(&tally(3, &[]), true), Err(Refusal::NoDistribution(3)));
        let next = add(&Tally { has_hidden_shares: true, ..tally(3, &[]) }, true).unwrap();
        assert_eq!((next.total, buckets(&next)), (13, vec![(0.1, 5), (1.0, 10)]), "no exposed threshold");
        assert_eq!(add(&tally(3, &[]), false).unwrap().total, 13, "runs have none");
        let full = Ledger { total: MAX_TOTAL - 2, ..ledger.clone() };
        assert_eq!(full.add(range(60, 120), &tally(3, &[]), false, i64::MAX), Err(Refusal::TooMany(3)));
        let endless = ledger.add(range(60, 120), &tally(u64::MAX, &[(0.1, 1.0)]), true, 0);
        assert_eq!(endless, Err(Refusal::TooMany(u64::MAX)));
        assert_eq!(add(&Tally::default(), true), Err(Refusal::NoTotal));
    }

    #[test]
    fn thresholds_that_come_and_go_keep_the_buckets_cumulative() {
        let first = after(&Ledger::open(0), 1, &tally(10, &[(0.1, 0.2), (1.0, 0.8)]));
        // 0.5 is new: at least two of the first ten, those within 0.1, are within 0.5. 1.0 is missing: at least the six
        // within 0.5 are within 1.0.
        let second = after(&first, 1, &tally(10, &[(0.1, 0.3), (0.5, 0.6)]));
        assert_eq!(buckets(&second), [(0.1, 5), (0.5, 8), (1.0, 14)]);
    }

    #[test]
    fn a_threshold_that_another_one_replaces_leaves_after_three_replies_and_returns_complete() {
        let reply = |threshold: f64| tally(10, &[(0.5, 0.5), (threshold, 1.0)]);
        let mut ledger = after(&Ledger::open(0), 60, &reply(1.0));
        for left in [false, false, true] {
            ledger = after(&ledger, 60, &tally(0, &[(0.5, 0.0)]));
            ledger = after(&ledger, 60, &reply(1.2));
            assert_eq!(ledger.buckets().any(|(threshold, _)| threshold == 1.0), !left);
        }
        assert_eq!(buckets(&ledger), [(0.5, 20), (1.2, 40)]);
        let back = after(&ledger, 60, &tally(10, &[(0.5, 0.5), (1.0, 0.8), (1.2, 1.0)]));
        assert_eq!(buckets(&back), [(0.5, 25), (1.0, 33), (1.2, 50)], "it grew by five each time");
        let begins = ledger.with_thresholds_of(&back);
        assert!(!ledger.has_thresholds_of(&back) && begins.has_thresholds_of(&back));
        assert_eq!(buckets(&begins), [(0.5, 20), (1.0, 25), (1.2, 40)]);
    }

    #[test]
    fn a_threshold_that_replies_lack_for_an_hour_leaves() {
        let mut ledger = after(&Ledger::open(0), 60, &tally(9, &[(0.5, 0.5), (1.0, 1.0)]));
        for minute in 1..=60 {
            assert_eq!(ledger.buckets().count(), 2, "{minute}");
            ledger = after(&ledger, 60, &tally(9, &[(0.5, 0.5)]));
        }
        assert_eq!(ledger.buckets().count(), 1);
    }

    #[test]
    fn the_fraction_of_a_total_is_carried() {
        let half = Tally { fraction: 0.5, ..tally(12, &[(1.0, 0.5)]) };
        let ledger = (0..4).fold(Ledger::open(0), |ledger, _| after(&ledger, 1, &half));
        assert_eq!((ledger.total, buckets(&ledger)), (50, vec![(1.0, 25)]));
    }

    #[test]
    fn a_ledger_takes_the_thresholds_of_another() {
        let ledger = |buckets: &[(f64, u64)]| Ledger { total: 9, ..Ledger::open(0).with_buckets(buckets) };
        let (one, other) = (ledger(&[(0.1, 2), (1.0, 8)]), ledger(&[(0.1, 4), (0.5, 6)]));
        assert!(!one.has_thresholds_of(&other));
        let both = one.with_thresholds_of(&other);
        assert_eq!(buckets(&both), [(0.1, 2), (0.5, 2), (1.0, 8)]);
        assert!(both.has_thresholds_of(&one) && both.has_thresholds_of(&other));
        assert_eq!(both.with_thresholds_of(&other), both);
    }

    #[test]
    fn ledgers_of_the_same_thresholds_share_one_list() {
        let mut known = Arc::default();
        let [mut one, mut runs, mut other] =
            [&[(0.1, 2)][..], &[], &[(0.1, 4)]].map(|buckets| Ledger::open(0).with_buckets(buckets));
        for ledger in [&mut one, &mut runs, &mut other] {
            ledger.share_thresholds(&mut known);
        }
        assert!(Arc::ptr_eq(&one.buckets.thresholds, &other.buckets.thresholds));
        assert_eq!((one.buckets.len(), runs.buckets.len()), (1, 0));
    }

    #[test]
    fn a_ledger_is_new_until_time_is_counted_or_given_up() {
        let ledger = Ledger::open(0);
        assert!(ledger.is_new());
        assert!(!after(&ledger, 60, &tally(0, &[])).is_new());
        assert!(!ledger.give_up(60, i64::MAX).unwrap().0.is_new());
    }

    const LIMITS: RangeLimits =
        RangeLimits { settled: 50_000, step: 60, max_length: 21_600, hourly_from: 36_000 };

    #[test]
    fn ranges_end_on_the_hour_if_it_will_be_rechecked() {
        let hours = |until: i64| Ledger::open(until).due(LIMITS);
        assert_eq!(hours(10_800), Some(range(10_800, 32_400)), "older time in one request");
        assert_eq!(hours(28_800), Some(range(28_800, 36_000)));
        assert_eq!(hours(36_000), Some(range(36_000, 39_600)));
        assert_eq!(hours(37_000), Some(range(37_000, 39_600)));
    }

    #[test]
    fn a_partly_counted_hour_is_completed_and_rechecked() {
        let part = Ledger::open(7_200).add(range(7_200, 7_920), &tally(3, &[(1.0, 1.0)]), true, 0).unwrap();
        // After an outage, hours this old are no longer rechecked, but this hour was begun before.
        assert_eq!(part.due(LIMITS), Some(range(7_920, 10_800)));
        let whole = part.add(range(7_920, 10_800), &tally(9, &[(1.0, 1.0)]), true, 36_000).unwrap();
        assert_eq!(whole.rechecks.stretches().map(|of| of.added.total()).collect::<Vec<_>>(), [12]);
        assert_eq!(whole.due(LIMITS), Some(range(10_800, 32_400)), "older time in one request");
    }

    #[test]
    fn fractions_of_shares_are_carried_from_range_to_range() {
        let reply = tally(1, &[(0.1, 0.4), (9.0, 1.0)]);
        let ledger = (0..14).fold(Ledger::open(0), |ledger, _| after(&ledger, 1, &reply));
        assert_eq!(buckets(&ledger), [(0.1, 6), (9.0, 14)], "40 % of 14 are 5.6");
    }

    #[test]
    fn thresholds_beyond_the_limit_are_omitted_and_known_ones_continue() {
        let shares = |from: u32, count: u32| {
            (from..from + count).map(|n| (f64::from(n), f64::from(n) / 1e6)).collect::<Vec<_>>()
        };
        let first = after(&Ledger::open(0), 1, &tally(1_000_000, &shares(0, 200)));
        let drifted = tally(1_000_000, &shares(100, 100_000));
        assert_eq!(first.beyond_room(&drifted), 100_000 - 100 - 56);
        let second = after(&first, 1, &drifted);
        assert_eq!(second.buckets().count(), MAX_THRESHOLDS);
        assert!(buckets(&second).is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1));
        assert_eq!(buckets(&second)[150], (150.0, 300));
        let below = Ledger::open(0)
            .with_buckets(&[(1e6, 5)])
            .learn(drifted.shares.iter().map(|(at, _)| *at))
            .unwrap();
        assert_eq!(buckets(&below).last(), Some(&(1e6, 0)), "a known one above those that are new");
    }

    #[test]
    fn a_ledger_may_begin_after_pending_time() {
        let ledger = Ledger::open_after(7230, 900);
        assert_eq!((ledger.until, ledger.pending(), ledger.unaccounted), (7230, 900, 0));
        assert_eq!(Ledger::open_after(7230, 0), Ledger::open(7230));
        // Prometheus may return any number.
        let odd = Ledger::open_after(7230, 1 << 30);
        assert_eq!((odd.until, odd.pending(), odd.unaccounted), (7230, 1 << 30, 0));
        assert_eq!(odd.rechecks.stretches().count(), 1, "it takes no memory for each hour");
    }

    #[test]
    fn a_ledger_set_aside_resumes_at_the_present_step_and_catches_up_nothing() {
        let ledger = after(&Ledger::open(0), 60, &tally(3, &[(1.0, 1.0)]));
        let aside = ledger.put_aside().unwrap();
        assert_eq!(aside.put_aside(), None);
        let back = aside.resumed_at(6000);
        assert_eq!((back.until, back.total, back.unaccounted, back.set_aside), (6000, 3, 0, false));
        assert_eq!(aside.resumed_at(30).until, 60, "never before its own cursor");
    }

    proptest! {
        #[test]
        fn buckets_are_cumulative_and_every_one_a_counter(
            replies in prop::collection::vec(
                (0u64..5000, prop::collection::btree_map(1u32..12, 0.0f64..=1.0, 1..8)), 1..20),
        ) {
            let (mut ledger, mut greatest) = (Ledger::open(0), std::collections::BTreeMap::new());
            for (total, shares) in replies {
                let shares: Vec<(f64, f64)> = shares.into_iter().map(|(t, share)| (f64::from(t) / 8.0, share)).collect();
                let next = after(&ledger, 1, &tally(total, &shares));
                prop_assert!(buckets(&next).windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0));
                prop_assert!(next.buckets().all(|(_, count)| count <= next.total));
                // A threshold that returns continues at least at its last value.
                for (threshold, count) in next.buckets() {
                    prop_assert!(count >= greatest.insert(threshold.to_bits(), count).unwrap_or_default());
                }
                prop_assert_eq!(next.total, ledger.total + total);
                ledger = next;
            }
        }
    }
}
