//! The arithmetic of one ledger. No clock, no I/O: a ledger and a reply in, the next ledger out.

use std::sync::Arc;

use pds_interface::{Tally, TimeRange};

use super::MAX_THRESHOLDS;
use super::error::Refusal;

/// The length of what is counted again in one request, in seconds.
pub const HOUR: i64 = 3600;

/// What was counted of one app by one of the metrics calls, up to a point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// The cursor: every second before it was added or given up, none after it was. Unix seconds.
    pub until: i64,
    /// Requests or runs added.
    pub total: u64,
    /// Seconds that `total` has counted.
    pub accounted: u64,
    /// Seconds given up on.
    pub unaccounted: u64,
    /// How many of `total` arrived after their range was first counted.
    pub late: u64,
    /// How many were missing when their range was counted again. They stay in `total`; late data pays them off first.
    pub overcounted: u64,
    /// End of the last hour counted again, Unix seconds; 0 before the first.
    pub rechecked_until: i64,
    /// Whether another shard counts this app at present.
    pub set_aside: bool,
    /// Thresholds in seconds, rising. Most ledgers share one list.
    thresholds: Arc<[f64]>,
    /// How many within each of them, cumulative, with the fraction that shares leave.
    within: Box<[f64]>,
    /// The hours that are still to be counted again, by time.
    pub(super) hours: Vec<Hour>,
    /// Figures of some of them that differ from what was added, each until a second answer confirms it.
    pub(super) doubts: Vec<Hour>,
    /// Late data that is not added in full yet, the oldest first.
    pub(super) late_data: Vec<Late>,
    /// How many of `overcounted` no late data has paid off yet.
    pub debt: u64,
}

impl Ledger {
    /// This ledger with these buckets: threshold in seconds and how many within it, by rising threshold, cumulative.
    /// Those beyond [`MAX_THRESHOLDS`] are left out.
    #[must_use]
    pub fn with_buckets(self, buckets: &[(f64, u64)]) -> Self {
        self.with_shares(buckets.iter().map(|(threshold, count)| (*threshold, exact(*count))))
    }

    /// This ledger with these thresholds in seconds, rising, and how many within each, fractions included.
    pub(super) fn with_shares(self, buckets: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (thresholds, within): (Vec<f64>, Vec<f64>) = buckets.into_iter().take(MAX_THRESHOLDS).unzip();
        Self { thresholds: thresholds.into(), within: within.into(), ..self }
    }

    /// How many within each threshold (seconds), by rising threshold: whole numbers, cumulative, none above `total`.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = (f64, u64)> {
        self.shares().map(|(threshold, within)| (threshold, rounded(within).min(self.total)))
    }

    /// The same with the fractions.
    pub(super) fn shares(&self) -> impl ExactSizeIterator<Item = (f64, f64)> {
        self.thresholds.iter().copied().zip(self.within.iter().copied())
    }

    /// Shares the list of thresholds with `known`, if they are the same. Ledgers of runs have none.
    pub(super) fn share_thresholds(&mut self, known: &mut Arc<[f64]>) {
        if self.thresholds == *known {
            self.thresholds = Arc::clone(known);
        } else if !self.thresholds.is_empty() {
            *known = Arc::clone(&self.thresholds);
        }
    }

    /// Whether nothing was counted or given up since it was opened.
    pub fn is_new(&self) -> bool {
        (self.total, self.accounted, self.unaccounted) == (0, 0, 0)
    }

    /// Whether it has buckets for all thresholds of `other`.
    pub fn has_thresholds_of(&self, other: &Self) -> bool {
        self.thresholds == other.thresholds || self.learn_thresholds(&*other.thresholds).is_none()
    }

    /// The ledger with buckets for all thresholds of `other`, as [`Ledger::learn`] begins them.
    #[must_use]
    pub fn with_thresholds_of(&self, other: &Self) -> Self {
        self.learn_thresholds(&*other.thresholds).unwrap_or_else(|| self.clone())
    }

    /// An empty ledger that begins at `second`.
    pub fn open(second: i64) -> Self {
        Self { until: second, ..Self::default() }
    }

    /// The next range to ask for: from the cursor to `settled`, no longer than `most` seconds (ending on a
    /// multiple of `step` then). Hours that begin at or after `hourly_from` are still to be counted again, as is one
    /// that was begun while it was such an hour; no range reaches across their boundaries. `None` while nothing new has
    /// settled.
    pub fn due(&self, settled: i64, step: i64, most: i64, hourly_from: i64) -> Option<TimeRange> {
        let aligned = |second: i64| second.div_euclid(step.max(1)) * step.max(1);
        // Even the shortest range has to move the cursor.
        let end =
            settled.min(aligned(self.until.saturating_add(most)).max(aligned(self.until) + step.max(1)));
        let is_merged = self.until < hourly_from && !self.has_begun_hour(self.until);
        let boundary = if is_merged { hourly_from } else { Hour::of(self.until).end() };
        let end = end.min(boundary);
        (end > self.until).then_some(TimeRange { start: self.until, end })
    }

    /// Gives up the time before `oldest`. `None` if there is none.
    #[must_use]
    pub fn give_up(&self, oldest: i64) -> Option<(Self, TimeRange)> {
        let range = TimeRange { start: self.until, end: oldest };
        (oldest > self.until).then(|| {
            let next = Self { unaccounted: self.unaccounted + range.seconds(), ..self.moved_to(oldest) };
            (next, range)
        })
    }

    /// Stops counting until [`Ledger::resumed_at`]: another shard counts this app. `None` if it has stopped already.
    #[must_use]
    pub fn put_aside(&self) -> Option<Self> {
        (!self.set_aside).then(|| Self { set_aside: true, ..self.clone() })
    }

    /// Resumes at `second`. Another shard counted the time before it.
    #[must_use]
    pub fn resumed_at(&self, second: i64) -> Self {
        Self { set_aside: false, ..self.moved_to(second.max(self.until)) }
    }

    /// The ledger with its cursor moved and nothing added. The hour that the cursor leaves can no longer be counted
    /// again.
    fn moved_to(&self, second: i64) -> Self {
        let wholly = self.hours.iter().filter(|hour| hour.end() <= self.until).copied().collect();
        Self { until: second, hours: wholly, ..self.clone() }
    }

    /// The ledger with a reply about `range` added. `distributed` says whether the call has a distribution; hours
    /// that begin at or after `hourly_from` are kept to be compared when they are counted again.
    ///
    /// # Errors
    /// If the reply cannot be added. Nothing is counted then.
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
        let total = count(range, tally, distributed)?;
        let mut next = self.learn(tally).unwrap_or_else(|| self.clone());
        next.total = next.total.checked_add(total).ok_or(Refusal::TooMany(total))?;
        next.accounted += range.seconds();
        next.put_shares(&tally.shares, exact(total));
        next.put_late_data(range.end);
        next.put_hour(range, total, hourly_from);
        next.until = range.end;
        Ok(next)
    }

    /// Adds `count` requests that are distributed as `shares`.
    fn put_shares(&mut self, shares: &[(f64, f64)], count: f64) {
        let mut shares = shares.iter().peekable();
        let mut share = 0.0f64;
        for (threshold, within) in self.thresholds.iter().zip(&mut self.within) {
            // The share of this threshold, or of the highest one below it: at least as many were within this one too.
            while let Some((_, told)) = shares.next_if(|(known, _)| known <= threshold) {
                share = told.clamp(share, 1.0);
            }
            *within += share * count;
        }
    }

    /// Adds the late data that is due once the cursor stands at `end`. It pays off first what was counted too much.
    fn put_late_data(&mut self, end: i64) {
        let mut late_data = std::mem::take(&mut self.late_data);
        late_data.retain_mut(|late| {
            let part = late.part(end).saturating_sub(late.added);
            let paid = part.min(self.debt);
            self.debt -= paid;
            self.total = self.total.saturating_add(part - paid);
            self.late = self.late.saturating_add(part);
            self.put_shares(&late.shares, exact(part - paid));
            late.added += part;
            late.added < late.total
        });
        self.late_data = late_data;
    }

    /// Whether `second` lies within an hour of which a part was added and is still to be counted again.
    fn has_begun_hour(&self, second: i64) -> bool {
        self.hours.last().is_some_and(|last| last.end() > second)
    }

    /// Records what was added for the hour of `range`, if the ledger has added all of that hour so far.
    fn put_hour(&mut self, range: TimeRange, total: u64, hourly_from: i64) {
        let hour = Hour::of(range.start);
        let begun = self.has_begun_hour(range.start);
        if range.end > hour.end() || (hour.start() < hourly_from && !begun) {
            return self.hours.retain(|known| known.end() <= range.start);
        }
        match self.hours.last_mut().filter(|last| last.start() == hour.start()) {
            Some(last) => last.added = last.added.saturating_add(total),
            None if range.start == hour.start() => self.hours.push(Hour { added: total, ..hour }),
            None => {}
        }
    }

    /// How many of the reply's thresholds the ledger has no room for.
    pub fn beyond_room(&self, tally: &Tally) -> usize {
        let room = MAX_THRESHOLDS.saturating_sub(self.thresholds.len());
        if tally.shares.len() <= room {
            return 0;
        }
        let unknown = tally.shares.iter().filter(|(threshold, _)| {
            self.thresholds.binary_search_by(|known| known.total_cmp(threshold)).is_err()
        });
        unknown.count().saturating_sub(room)
    }

    /// The ledger with buckets for all thresholds of the reply, as far as there is room. `None` if it has them. A new
    /// bucket begins with the count of the next lower one: a lower bound that keeps the buckets cumulative and each of
    /// them a counter.
    #[must_use]
    pub fn learn(&self, tally: &Tally) -> Option<Self> {
        self.learn_thresholds(tally.shares.iter().map(|(threshold, _)| threshold))
    }

    pub(super) fn learn_thresholds<'a>(
        &self,
        thresholds: impl IntoIterator<Item = &'a f64> + Clone,
    ) -> Option<Self> {
        if self.thresholds.iter().eq(thresholds.clone()) {
            return None;
        }
        let mut room = MAX_THRESHOLDS.saturating_sub(self.thresholds.len());
        let mut known = self.shares().peekable();
        let mut merged: Vec<(f64, f64)> = Vec::new();
        let mut below = 0.0;
        for threshold in thresholds {
            while let Some(bucket) = known.next_if(|(at, _)| at < threshold) {
                below = bucket.1;
                merged.push(bucket);
            }
            if known.peek().is_none_or(|(at, _)| at != threshold) && room > 0 {
                room -= 1;
                merged.push((*threshold, below));
            }
        }
        merged.extend(known);
        (merged.len() > self.thresholds.len()).then(|| self.clone().with_shares(merged))
    }
}

/// An hour that is still to be counted again. 16 bytes: a ledger has a few of them, or 25 with an age of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hour {
    /// Hours since 1970.
    pub index: u32,
    /// How many of the configured ages it was counted again at.
    pub rechecks: u8,
    /// What was added for it, or the answer when it was last counted again.
    pub added: u64,
}

impl Hour {
    /// The hour that `second` lies in, with nothing added.
    pub(super) fn of(second: i64) -> Self {
        Self { index: u32::try_from(second.div_euclid(HOUR)).unwrap_or_default(), rechecks: 0, added: 0 }
    }

    pub(super) fn start(self) -> i64 {
        i64::from(self.index) * HOUR
    }

    pub(super) fn end(self) -> i64 {
        self.start() + HOUR
    }
}

/// Late data on its way into the counters: in equal parts while the cursor moves through the hour that begins at `from`,
/// a place that its own hour and the age of the recheck fix. So any process that counts the hour again adds it there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Late {
    /// The hour that it belongs to, in hours since 1970; 0 if a version that did not note it found it.
    pub hour: u32,
    /// Where it begins to be added.
    pub from: i64,
    /// How many that hour has with them.
    pub figure: u64,
    /// How many there are.
    pub total: u64,
    /// How many of them were added.
    pub added: u64,
    /// The distribution of their hour: threshold in seconds and share, by rising threshold.
    pub shares: Box<[(f64, f64)]>,
}

impl Late {
    /// How many of them are added once the cursor stands at `second`.
    pub(super) fn part(&self, second: i64) -> u64 {
        let passed = u128::from((second - self.from).clamp(0, HOUR).unsigned_abs());
        u64::try_from(u128::from(self.total) * passed / u128::from(HOUR.unsigned_abs())).unwrap_or(self.total)
    }
}

/// The total of a reply about `range`, if it can be counted.
pub(super) fn count(range: TimeRange, tally: &Tally, distributed: bool) -> Result<u64, Refusal> {
    if let Some(answered) = tally.range.filter(|answered| *answered != range) {
        return Err(Refusal::OtherRange { asked: range, answered });
    }
    let total = tally.total.ok_or(Refusal::NoTotal)?;
    if distributed && total > 0 && tally.shares.is_empty() {
        return Err(Refusal::NoDistribution(total));
    }
    Ok(total)
}

/// A count or a Unix second, which stay below 2^53.
pub(super) fn exact(value: u64) -> f64 {
    value as f64
}

/// A sum of counts, which stay below 2^53 and are never negative.
#[expect(clippy::cast_possible_truncation, reason = "it is in range")]
fn rounded(within: f64) -> u64 {
    within.round() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(total: u64, shares: &[(f64, f64)]) -> Tally {
        Tally { total: Some(total), shares: shares.to_vec(), range: None }
    }

    fn buckets(ledger: &Ledger) -> Vec<(f64, u64)> {
        ledger.buckets().collect()
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start, end }
    }

    #[test]
    fn ranges_follow_one_another_and_end_on_whole_steps() {
        let ledger = Ledger::open(120);
        assert_eq!(ledger.due(120, 60, 3600, i64::MAX), None);
        assert_eq!(ledger.due(60, 60, 3600, i64::MAX), None, "a clock set back asks for nothing twice");
        assert_eq!(ledger.due(240, 60, 3600, i64::MAX), Some(range(120, 240)));
        assert_eq!(ledger.due(36_000, 60, 3600, i64::MAX), Some(range(120, 3720)));
        assert_eq!(
            Ledger::open(130).due(36_000, 60, 90, i64::MAX),
            Some(range(130, 180)),
            "back on whole steps"
        );
        assert_eq!(
            Ledger::open(130).due(36_000, 60, 1, i64::MAX),
            Some(range(130, 180)),
            "never no progress"
        );
    }

    #[test]
    fn time_given_up_is_counted_once() {
        let (ledger, gone) = Ledger::open(100).give_up(160).unwrap();
        assert_eq!((ledger.until, ledger.unaccounted, gone), (160, 60, range(100, 160)));
        assert_eq!(ledger.give_up(160), None);
    }

    #[test]
    fn a_reply_is_added_once_and_only_where_it_belongs() {
        let ledger = Ledger::open(0)
            .add(range(0, 60), &tally(10, &[(0.1, 0.5), (1.0, 0.96)]), true, i64::MAX)
            .unwrap();
        assert_eq!(buckets(&ledger), [(0.1, 5), (1.0, 10)]);
        assert_eq!((ledger.total, ledger.accounted, ledger.until), (10, 60, 60));
        let again = ledger.add(range(0, 60), &tally(10, &[]), true, i64::MAX);
        assert_eq!(again, Err(Refusal::NotNext { asked: 0, until: 60 }));
        let other = Tally { range: Some(range(60, 119)), ..tally(1, &[(0.1, 1.0)]) };
        assert!(matches!(
            ledger.add(range(60, 120), &other, true, i64::MAX),
            Err(Refusal::OtherRange { .. })
        ));
        assert_eq!(
            ledger.add(range(60, 120), &tally(3, &[]), true, i64::MAX),
            Err(Refusal::NoDistribution(3))
        );
        assert_eq!(
            ledger.add(range(60, 120), &tally(3, &[]), false, i64::MAX).unwrap().total,
            13,
            "runs have none"
        );
        let full = Ledger { total: u64::MAX - 2, ..ledger.clone() };
        assert_eq!(full.add(range(60, 120), &tally(3, &[]), false, i64::MAX), Err(Refusal::TooMany(3)));
        let silent = Tally { total: None, shares: vec![], range: None };
        assert_eq!(ledger.add(range(60, 120), &silent, true, i64::MAX), Err(Refusal::NoTotal));
    }

    #[test]
    fn thresholds_that_come_and_go_keep_the_buckets_cumulative() {
        let first =
            Ledger::open(0).add(range(0, 1), &tally(10, &[(0.1, 0.2), (1.0, 0.8)]), true, i64::MAX).unwrap();
        // 0.5 is new: of the first ten at least the two within 0.1 were within it. 1.0 is not spoken of: at least
        // the six within 0.5 were within it too.
        let second = first.add(range(1, 2), &tally(10, &[(0.1, 0.3), (0.5, 0.6)]), true, i64::MAX).unwrap();
        assert_eq!(buckets(&second), [(0.1, 5), (0.5, 8), (1.0, 14)]);
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
        assert!(Arc::ptr_eq(&one.thresholds, &other.thresholds));
        assert_eq!((one.thresholds.len(), runs.thresholds.len()), (1, 0));
    }

    #[test]
    fn a_ledger_is_new_until_time_is_counted_or_given_up() {
        let ledger = Ledger::open(0);
        assert!(ledger.is_new());
        assert!(!ledger.add(range(0, 60), &tally(0, &[]), true, i64::MAX).unwrap().is_new());
        assert!(!ledger.give_up(60).unwrap().0.is_new());
    }

    #[test]
    fn ranges_end_on_the_hour_if_it_will_be_rechecked() {
        let hours = |until: i64| Ledger::open(until).due(50_000, 60, 21_600, 36_000);
        assert_eq!(hours(10_800), Some(range(10_800, 32_400)), "older time in one request");
        assert_eq!(hours(28_800), Some(range(28_800, 36_000)));
        assert_eq!(hours(36_000), Some(range(36_000, 39_600)));
        assert_eq!(hours(37_000), Some(range(37_000, 39_600)));
    }

    #[test]
    fn a_partly_counted_hour_is_completed_and_rechecked() {
        let part = Ledger::open(7_200).add(range(7_200, 7_920), &tally(3, &[(1.0, 1.0)]), true, 0).unwrap();
        // An outage later that hour is older than those that are asked for one by one.
        assert_eq!(part.due(50_000, 60, 21_600, 36_000), Some(range(7_920, 10_800)));
        let whole = part.add(range(7_920, 10_800), &tally(9, &[(1.0, 1.0)]), true, 36_000).unwrap();
        assert_eq!(whole.hours.iter().map(|hour| hour.added).collect::<Vec<_>>(), [12]);
        assert_eq!(
            whole.due(50_000, 60, 21_600, 36_000),
            Some(range(10_800, 32_400)),
            "older time in one request"
        );
    }

    #[test]
    fn fractions_of_shares_are_carried_from_range_to_range() {
        let mut ledger = Ledger::open(0);
        for second in 0..14 {
            ledger = ledger
                .add(range(second, second + 1), &tally(1, &[(0.1, 0.4), (9.0, 1.0)]), true, i64::MAX)
                .unwrap();
        }
        assert_eq!(buckets(&ledger), [(0.1, 6), (9.0, 14)], "40 % of 14 are 5.6");
    }

    #[test]
    fn thresholds_beyond_the_limit_are_left_out_and_those_known_go_on() {
        let shares = |from: u32, count: u32| {
            (from..from + count).map(|n| (f64::from(n), f64::from(n) / 1e6)).collect::<Vec<_>>()
        };
        let first =
            Ledger::open(0).add(range(0, 1), &tally(1_000_000, &shares(0, 200)), true, i64::MAX).unwrap();
        let drifted = tally(1_000_000, &shares(100, 100_000));
        assert_eq!(first.beyond_room(&drifted), 100_000 - 100 - 56);
        let second = first.add(range(1, 2), &drifted, true, i64::MAX).unwrap();
        assert_eq!(second.buckets().len(), MAX_THRESHOLDS);
        assert!(buckets(&second).is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1));
        assert_eq!(buckets(&second)[150], (150.0, 300));
        let below = Ledger::open(0).with_buckets(&[(1e6, 5)]).learn(&drifted).unwrap();
        assert_eq!(buckets(&below).last(), Some(&(1e6, 0)), "a known one above those that are new");
    }

    #[test]
    fn a_ledger_set_aside_resumes_at_the_present_step_and_catches_up_nothing() {
        let ledger = Ledger::open(0).add(range(0, 60), &tally(3, &[(1.0, 1.0)]), true, i64::MAX).unwrap();
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
            let mut ledger = Ledger::open(0);
            for (second, (total, shares)) in (0..).zip(replies) {
                let shares: Vec<(f64, f64)> = shares.into_iter().map(|(t, share)| (f64::from(t) / 8.0, share)).collect();
                let next = ledger.add(range(second, second + 1), &tally(total, &shares), true, i64::MAX).unwrap();
                prop_assert!(buckets(&next).windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0));
                prop_assert!(next.buckets().all(|(_, count)| count <= next.total));
                for (threshold, count) in ledger.buckets() {
                    let now = next.buckets().find(|(known, _)| *known == threshold).map(|(_, count)| count);
                    prop_assert!(now >= Some(count));
                }
                let exact: Vec<f64> = next.shares().map(|(_, within)| within).collect();
                prop_assert!(next.buckets().zip(exact).all(|((_, count), exact)| (count as f64 - exact).abs() <= 0.500_001));
                prop_assert_eq!(next.total, ledger.total + total);
                ledger = next;
            }
        }
    }
}
