//! The buckets of a ledger: the number of requests within each threshold.
//!
//! A share of a total leaves a fraction, which is carried over. Each bucket is a counter, and none holds more than the
//! next. A threshold that replies lack grows with the next lower threshold. It leaves the page after a while
//! ([`MAX_ABSENT_REPLIES`], [`HOUR`]), and still grows, so that it has no gap if it returns.

use std::sync::Arc;

use pds_interface::TimeRange;

use super::MAX_THRESHOLDS;
use super::stretch::HOUR;

/// A request in the unit of [`Buckets::within`].
pub(super) const ONE: u64 = 1 << 16;

/// Replies with traffic that lack a threshold before it leaves the page, if another one has appeared.
const MAX_ABSENT_REPLIES: u8 = 3;

/// The number of requests within each threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    /// In seconds, rising. Most ledgers share one list.
    pub(super) thresholds: Arc<[f64]>,
    /// Requests within each, in 65,536ths; cumulative.
    pub(super) within: Box<[u64]>,
    /// Thresholds that replies currently lack.
    pub(super) absent: Box<[Absent]>,
}

/// A threshold that replies with traffic lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    /// Its index.
    pub(super) index: usize,
    /// The number of replies that lacked it.
    pub(super) replies: u8,
    /// Start of the first such reply, Unix seconds.
    pub(super) since: i64,
    /// Whether a new threshold has appeared since.
    pub(super) replaced: bool,
    /// Whether it has left the page.
    pub(super) left: bool,
}

impl Buckets {
    /// The number of thresholds, on the page or not.
    pub(super) fn len(&self) -> usize {
        self.thresholds.len()
    }

    /// The thresholds on the page, and the requests within each: whole numbers, cumulative.
    pub(super) fn shown(&self) -> impl Iterator<Item = (f64, u64)> {
        let all = self.thresholds.iter().copied().zip(self.within.iter().copied().map(rounded)).enumerate();
        all.filter(|(index, _)| !self.has_left(*index)).map(|(_, bucket)| bucket)
    }

    fn has_left(&self, index: usize) -> bool {
        self.absent.iter().any(|absent| absent.left && absent.index == index)
    }

    fn index_of(&self, threshold: f64) -> Result<usize, usize> {
        self.thresholds.binary_search_by(|known| known.total_cmp(&threshold))
    }

    /// The number of these thresholds that do not fit.
    pub(super) fn beyond_room(&self, shares: &[(f64, f64)]) -> usize {
        let room = MAX_THRESHOLDS.saturating_sub(self.len());
        if shares.len() <= room {
            return 0;
        }
        let unknown = shares.iter().filter(|(threshold, _)| self.index_of(*threshold).is_err());
        unknown.count().saturating_sub(room)
    }

    /// Adds buckets for missing `thresholds`, which are sorted, as far as they fit. Each begins with the greatest count
    /// of a lower bucket. Returns their indices, sorted.
    pub(super) fn learn(&mut self, thresholds: impl IntoIterator<Item = f64>) -> Vec<usize> {
        let mut new: Vec<f64> = thresholds.into_iter().filter(|at| self.index_of(*at).is_err()).collect();
        new.dedup();
        new.truncate(MAX_THRESHOLDS.saturating_sub(self.len()));
        if new.is_empty() {
            return Vec::new();
        }
        let (mut learnt, mut within) = (Vec::with_capacity(new.len()), self.within.to_vec());
        let mut known = self.thresholds.to_vec();
        for threshold in new {
            let index = known.partition_point(|known| known.total_cmp(&threshold).is_lt());
            let below = within.iter().take(index).copied().max();
            known.insert(index, threshold);
            within.insert(index, below.unwrap_or_default());
            learnt.push(index);
        }
        (self.thresholds, self.within) = (known.into(), within.into());
        for absent in &mut self.absent {
            absent.index =
                learnt.iter().fold(absent.index, |index, learnt| index + usize::from(*learnt <= index));
        }
        learnt
    }

    /// Follows the thresholds of a reply about `range` that has traffic: adds new ones, restores returning ones, and
    /// removes those that replies lack. Returns the indices of the new ones.
    pub(super) fn follow(&mut self, shares: &[(f64, f64)], range: TimeRange) -> Vec<usize> {
        let reported = shares.iter().map(|(threshold, _)| *threshold);
        if self.absent.is_empty() && self.thresholds.iter().copied().eq(reported.clone()) {
            return Vec::new();
        }
        let learnt = self.learn(reported);
        let is_reported =
            |threshold: f64| shares.binary_search_by(|(reported, _)| reported.total_cmp(&threshold)).is_ok();
        let mut appeared = !learnt.is_empty();
        let mut absent = std::mem::take(&mut self.absent).into_vec();
        absent.retain(|absent| {
            let is_back = self.thresholds.get(absent.index).is_some_and(|threshold| is_reported(*threshold));
            appeared |= is_back && absent.left;
            !is_back
        });
        for (index, _) in
            self.thresholds.iter().enumerate().filter(|(_, threshold)| !is_reported(**threshold))
        {
            if !absent.iter().any(|absent| absent.index == index) {
                absent.push(Absent { index, replies: 0, since: range.start, replaced: false, left: false });
            }
        }
        for absent in &mut absent {
            absent.replies = absent.replies.saturating_add(1);
            absent.replaced |= appeared;
            absent.left |= (absent.replaced && absent.replies >= MAX_ABSENT_REPLIES)
                || range.end.saturating_sub(absent.since) >= HOUR;
        }
        self.absent = absent.into();
        learnt
    }

    /// Adds the thresholds on the page of `other`, with the counts at which they begin here.
    pub(super) fn with_thresholds_of(&self, other: &Self) -> Self {
        let mut with = self.clone();
        with.learn(other.thresholds.iter().copied());
        if !with.absent.is_empty() {
            let thresholds: Vec<(f64, f64)> = other.shown().map(|(at, _)| (at, 0.0)).collect();
            with.follow(&thresholds, TimeRange { start: i64::MAX, end: i64::MAX });
        }
        with
    }

    /// Adds `count` requests distributed like `shares`. Returns by how many whole requests each bucket has grown.
    pub(super) fn put_shares(&mut self, shares: &[(f64, f64)], count: f64) -> Vec<u64> {
        let shares = self.spread(shares);
        let grow = |(within, (_, share)): (&mut u64, (bool, f64))| {
            let before = rounded(*within);
            *within = within.saturating_add(units(share * count));
            rounded(*within) - before
        };
        self.within.iter_mut().zip(shares).map(grow).collect()
    }

    /// For each bucket, whether `shares` name it, and its share, or the share of the highest lower threshold, which it
    /// includes.
    fn spread(&self, shares: &[(f64, f64)]) -> Vec<(bool, f64)> {
        let (mut shares, mut share) = (shares.iter().peekable(), 0.0f64);
        let spread = |threshold: &f64| {
            let mut named = false;
            while let Some((at, share_reported)) = shares.next_if(|(known, _)| known <= threshold) {
                share = share_reported.clamp(share, 1.0);
                named = at == threshold;
            }
            (named, share)
        };
        self.thresholds.iter().map(spread).collect()
    }

    /// The part of `count` requests, distributed like `shares`, that each bucket holds; `known` are the counts before, with
    /// the total behind those of the buckets. Absence is no correction: buckets that `shares` lack keep their count, but
    /// hold no more than all requests. If the service no longer has the distribution, or has far fewer requests within a
    /// threshold, further requests have the distribution of the known ones.
    pub(super) fn figures(&self, shares: &[(f64, f64)], count: f64, known: &[f64]) -> Vec<f64> {
        let figure = |((named, share), known): ((bool, f64), &f64)| match named {
            true => share * count,
            false => (share * count).max(known.min(count)),
        };
        let mut figures: Vec<f64> = self.spread(shares).into_iter().zip(known).map(figure).collect();
        let (of_known, mut above) = (known.last().copied().unwrap_or_default(), count);
        let growth = (count / of_known.max(1.0)).max(1.0);
        for (figure, known) in figures.iter_mut().zip(known).rev() {
            if shares.is_empty() || is_far_below(*known, *figure, of_known) {
                *figure = known * growth;
            }
            *figure = figure.min(above);
            above = *figure;
        }
        figures
    }

    /// Adds the `wanted` whole requests to each bucket, as long as it holds no more than the next, and the last no more
    /// than `total`. Returns the number added to each.
    pub(super) fn put_whole(&mut self, wanted: &[i64], total: u64) -> Vec<i64> {
        let mut added = vec![0; self.len()];
        let mut above = total.saturating_mul(ONE);
        for index in (0..self.len()).rev() {
            let (Some(within), Some(wanted)) = (self.within.get_mut(index), wanted.get(index)) else { break };
            let room = above.saturating_sub(*within) / ONE;
            let part = u64::try_from(*wanted).unwrap_or_default().min(room);
            *within += part * ONE;
            added[index] = part.cast_signed();
            above = *within;
        }
        added
    }
}

/// Whether a `figure` is too far below the `known` count, of an hour with `of_hour` requests, to be a correction: by more
/// than shares are rounded by, and by more than one request that moved to another hour, or all of them.
pub(super) fn is_far_below(known: f64, figure: f64, of_hour: f64) -> bool {
    let fewer = known - figure;
    fewer > of_hour * 0.05 && (fewer >= 2.0 || figure == 0.0)
}

/// A count of 65,536ths as the nearest whole number.
fn rounded(within: u64) -> u64 {
    within.saturating_add(ONE / 2) / ONE
}

/// A count that is never negative, in 65,536ths.
#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn units(count: f64) -> u64 {
    (count * ONE as f64).round() as u64
}

/// A count, which stays below 2^53.
pub(super) fn to_f64(count: i64) -> f64 {
    count as f64
}
