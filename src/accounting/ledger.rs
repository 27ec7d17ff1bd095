//! The arithmetic of one ledger. No clock, no I/O: a ledger and a reply in, the next ledger out.

use std::sync::Arc;

use crate::interface::TimeRange;
use crate::interface::endpoint::Tally;

/// What was counted of one app by one of the metrics calls, up to a point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// The cursor: every second before it was added or given up, none after it was looked at. Unix seconds.
    pub until: i64,
    /// How many requests or runs were added.
    pub total: u64,
    /// Seconds given up on.
    pub unaccounted: u64,
    /// Thresholds in seconds, rising; most ledgers share theirs.
    thresholds: Arc<[f64]>,
    /// How many within each of them: cumulative, none above `total`.
    counts: Box<[u64]>,
}

/// Why a reply is not added. The cursor stays, and the range is asked for again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The range does not begin at the cursor.
    #[error("the range from {asked} does not begin where the last one ended, at {until}")]
    NotNext {
        /// Where the range begins.
        asked: i64,
        /// The cursor.
        until: i64,
    },
    /// The reply does not say how many there were.
    #[error("the reply does not say how many there were")]
    NoTotal,
    /// There were requests, but nothing is said of how long they took.
    #[error("the reply counts {0} requests but has no distribution of their response times")]
    NoDistribution(u64),
    /// The reply is about another stretch of time than was asked for.
    #[error("the reply is about {answered_start} to {answered_end}, not about the range asked for")]
    OtherRange {
        /// Start of the range in the reply.
        answered_start: i64,
        /// End of the range in the reply.
        answered_end: i64,
    },
}

impl Ledger {
    /// The same with these buckets: threshold in seconds and how many within it, by rising threshold, cumulative.
    #[must_use]
    pub fn with_buckets(self, buckets: &[(f64, u64)]) -> Self {
        let (thresholds, counts): (Vec<f64>, Vec<u64>) = buckets.iter().copied().unzip();
        Self { thresholds: thresholds.into(), counts: counts.into(), ..self }
    }

    /// How many within each threshold (seconds), by rising threshold: cumulative, none above `total`.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = (f64, u64)> {
        self.thresholds.iter().copied().zip(self.counts.iter().copied())
    }

    /// Holds its thresholds together with whoever held `known` last, where they are the same.
    pub(super) fn share_thresholds(&mut self, known: &mut Arc<[f64]>) {
        if self.thresholds == *known {
            self.thresholds = Arc::clone(known);
        } else {
            *known = Arc::clone(&self.thresholds);
        }
    }

    /// An empty ledger that begins at `second`.
    #[must_use]
    pub fn open(second: i64) -> Self {
        Self { until: second, ..Self::default() }
    }

    /// The next range to ask for: from the cursor to `settled`, no longer than `most` seconds (ending on a
    /// multiple of `step` then). `None` while nothing new has settled.
    #[must_use]
    pub fn due(&self, settled: i64, step: i64, most: i64) -> Option<TimeRange> {
        let whole = |second: i64| second.div_euclid(step.max(1)) * step.max(1);
        // Even the shortest piece has to move the cursor.
        let end = settled.min(whole(self.until.saturating_add(most)).max(whole(self.until) + step.max(1)));
        (end > self.until).then_some(TimeRange { start: self.until, end })
    }

    /// Gives up on what lies before `oldest`; `None` where there is nothing.
    #[must_use]
    pub fn give_up(&self, oldest: i64) -> Option<(Self, TimeRange)> {
        let range = TimeRange { start: self.until, end: oldest };
        let next = Self { until: oldest, unaccounted: self.unaccounted + range.seconds(), ..self.clone() };
        (oldest > self.until).then_some((next, range))
    }

    /// The ledger with a reply about `range` added. `distributed` says whether the call has a distribution.
    ///
    /// # Errors
    /// Where the reply can't be added; nothing is counted then.
    pub fn add(&self, range: TimeRange, tally: &Tally, distributed: bool) -> Result<Self, Refusal> {
        if range.start != self.until {
            return Err(Refusal::NotNext { asked: range.start, until: self.until });
        }
        if let Some(answered) = tally.range.filter(|answered| *answered != range) {
            return Err(Refusal::OtherRange { answered_start: answered.start, answered_end: answered.end });
        }
        let total = tally.total.ok_or(Refusal::NoTotal)?;
        if distributed && total > 0 && tally.shares.is_empty() {
            return Err(Refusal::NoDistribution(total));
        }
        let mut next =
            self.learn(tally.shares.iter().map(|(threshold, _)| *threshold)).unwrap_or_else(|| self.clone());
        let mut shares = tally.shares.iter().peekable();
        let mut within = 0;
        for (threshold, count) in next.thresholds.iter().zip(&mut next.counts) {
            // What the reply says of this threshold, or of the highest one below it that it speaks of: so many at
            // least were within this one too.
            while let Some((_, share)) = shares.next_if(|(known, _)| known <= threshold) {
                within = share_of(*share, total).max(within);
            }
            *count += within;
        }
        next.total += total;
        next.until = range.end;
        Ok(next)
    }

    /// The ledger with buckets for all of `thresholds`; `None` where it has them. Of what was counted before a
    /// threshold was heard of, as many are taken to be within it as within the next lower one: a lower bound
    /// that keeps the buckets cumulative and every one of them a counter.
    #[must_use]
    pub fn learn(&self, thresholds: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut learnt: Option<Vec<(f64, u64)>> = None;
        for threshold in thresholds {
            let place = match &learnt {
                None => self.thresholds.binary_search_by(|known| known.total_cmp(&threshold)),
                Some(buckets) => buckets.binary_search_by(|(known, _)| known.total_cmp(&threshold)),
            };
            let Err(place) = place else { continue };
            let buckets = learnt.get_or_insert_with(|| self.buckets().collect());
            let below =
                place.checked_sub(1).and_then(|below| buckets.get(below)).map_or(0, |(_, count)| *count);
            buckets.insert(place, (threshold, below));
        }
        learnt.map(|buckets| self.clone().with_buckets(&buckets))
    }
}

/// A share of a whole count, rounded to a whole number, never above it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts stay below 2^53 and shares within 0..=1"
)]
fn share_of(share: f64, total: u64) -> u64 {
    ((share * total as f64).round() as u64).min(total)
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
        assert_eq!(ledger.due(120, 60, 3600), None);
        assert_eq!(ledger.due(60, 60, 3600), None, "a clock set back asks for nothing twice");
        assert_eq!(ledger.due(240, 60, 3600), Some(range(120, 240)));
        assert_eq!(ledger.due(36_000, 60, 3600), Some(range(120, 3720)));
        assert_eq!(Ledger::open(130).due(36_000, 60, 90), Some(range(130, 180)), "back on whole steps");
        assert_eq!(Ledger::open(130).due(36_000, 60, 1), Some(range(130, 180)), "never no progress");
    }

    #[test]
    fn time_given_up_is_counted_once() {
        let (ledger, gone) = Ledger::open(100).give_up(160).unwrap();
        assert_eq!((ledger.until, ledger.unaccounted, gone), (160, 60, range(100, 160)));
        assert_eq!(ledger.give_up(160), None);
    }

    #[test]
    fn a_reply_is_added_once_and_only_where_it_belongs() {
        let ledger = Ledger::open(0).add(range(0, 60), &tally(10, &[(0.1, 0.5), (1.0, 0.96)]), true).unwrap();
        assert_eq!(buckets(&ledger), [(0.1, 5), (1.0, 10)]);
        assert_eq!((ledger.total, ledger.until), (10, 60));
        let again = ledger.add(range(0, 60), &tally(10, &[]), true);
        assert_eq!(again, Err(Refusal::NotNext { asked: 0, until: 60 }));
        let other = Tally { range: Some(range(60, 119)), ..tally(1, &[(0.1, 1.0)]) };
        assert!(matches!(ledger.add(range(60, 120), &other, true), Err(Refusal::OtherRange { .. })));
        assert_eq!(ledger.add(range(60, 120), &tally(3, &[]), true), Err(Refusal::NoDistribution(3)));
        assert_eq!(ledger.add(range(60, 120), &tally(3, &[]), false).unwrap().total, 13, "runs have none");
        let silent = Tally { total: None, shares: vec![], range: None };
        assert_eq!(ledger.add(range(60, 120), &silent, true), Err(Refusal::NoTotal));
    }

    #[test]
    fn thresholds_that_come_and_go_keep_the_buckets_cumulative() {
        let first = Ledger::open(0).add(range(0, 1), &tally(10, &[(0.1, 0.2), (1.0, 0.8)]), true).unwrap();
        // 0.5 is new: of the first ten at least the two within 0.1 were within it. 1.0 is not spoken of: at least
        // the six within 0.5 were within it too.
        let second = first.add(range(1, 2), &tally(10, &[(0.1, 0.3), (0.5, 0.6)]), true).unwrap();
        assert_eq!(buckets(&second), [(0.1, 5), (0.5, 8), (1.0, 14)]);
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
                let next = ledger.add(range(second, second + 1), &tally(total, &shares), true).unwrap();
                prop_assert!(buckets(&next).windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0));
                prop_assert!(next.buckets().all(|(_, count)| count <= next.total));
                for (threshold, count) in ledger.buckets() {
                    let now = next.buckets().find(|(known, _)| *known == threshold).map(|(_, count)| count);
                    prop_assert!(now >= Some(count));
                }
                prop_assert_eq!(next.total, ledger.total + total);
                ledger = next;
            }
        }
    }
}
