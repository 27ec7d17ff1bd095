//! Stretches of time to request again, and the balance of the results. Packed, because an app has about four of them,
//! or 75 with an age of three days.

use std::borrow::Cow;

use pds_interface::TimeRange;

use super::varint::{put, put_signed, take, take_signed};

/// The length of the range that a recheck requests, in seconds.
pub const HOUR: i64 = 3600;

/// Number of parts of a request, the unit of [`Balance`].
pub(super) const PARTS: i64 = 64;

/// A stretch of at most an hour that was counted or given up as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stretch<'a> {
    /// Its start and end, Unix seconds.
    pub(super) start: i64,
    pub(super) end: i64,
    /// The greatest age in seconds at which it was requested; 0 if it was not.
    pub(super) age: i64,
    /// Whether it was given up, so that nothing of it was counted.
    pub(super) missing: bool,
    /// The counts that the counters hold of it once the balance is settled.
    pub(super) added: Counts<'a>,
    /// A different reply, until a second reply confirms it.
    pub(super) doubt: Option<Counts<'a>>,
    /// The number of replies with far fewer requests than were added.
    pub(super) disputes: u8,
    /// The number of requests missing in the last of them.
    pub(super) lacks: u64,
    /// It is not requested before the cursor reaches this second; 0 if only its ages decide.
    pub(super) not_before: i64,
}

/// Flags of a packed stretch: it is missing, a doubt follows, or disputes and a time follow.
const MISSING: u8 = 1;
const DOUBT: u8 = 2;
const MORE: u8 = 4;

/// A sampled hour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Its start, Unix seconds.
    pub start: i64,
    /// The count that the ledger added for it.
    pub counted: u64,
    /// The number of [`AGES`](super::sample::AGES) that were requested or covered by rechecks.
    pub(super) asked: u8,
    /// The last result at each age, of this hour or an earlier one.
    pub(super) results: [Option<Completeness>; 3],
}

/// How complete the counters of an hour were at an age.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completeness {
    /// Start of the hour, Unix seconds.
    pub start: i64,
    /// The counted part of the service's total.
    pub ratio: f64,
}

impl Stretch<'_> {
    pub(super) fn range(&self) -> TimeRange {
        TimeRange { start: self.start, end: self.end }
    }

    pub(super) fn seconds(&self) -> u64 {
        self.range().seconds()
    }

    /// The end of its hour, from which its ages count.
    pub(super) fn hour_end(&self) -> i64 {
        end_of_hour(self.start)
    }

    fn pack(&self, bytes: &mut Vec<u8>, former_end: i64) {
        put_signed(bytes, self.start - former_end);
        put_signed(bytes, self.end - self.start);
        let more = (self.disputes, self.lacks, self.not_before) != (0, 0, 0);
        let flags = (MISSING * u8::from(self.missing))
            | (DOUBT * u8::from(self.doubt.is_some()))
            | (MORE * u8::from(more));
        bytes.push(flags);
        put_signed(bytes, self.age);
        self.added.pack(bytes);
        self.doubt.iter().for_each(|doubt| doubt.pack(bytes));
        if more {
            put(bytes, self.disputes.into());
            put(bytes, self.lacks);
            put_signed(bytes, self.not_before);
        }
    }
}

/// The end of the hour of `second`.
pub(super) fn end_of_hour(second: i64) -> i64 {
    (second.div_euclid(HOUR) + 1) * HOUR
}

impl<'a> Stretch<'a> {
    fn unpack(bytes: &mut &'a [u8], former_end: i64) -> Option<Self> {
        let start = former_end.checked_add(take_signed(bytes)?)?;
        let end = start.checked_add(take_signed(bytes)?)?;
        let (&[flags], rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        let age = take_signed(bytes)?;
        let added = Counts::unpack(bytes)?;
        let doubt = if flags & DOUBT != 0 { Some(Counts::unpack(bytes)?) } else { None };
        let mut stretch =
            Self { start, end, age, missing: flags & MISSING != 0, added, doubt, ..Self::default() };
        if flags & MORE != 0 {
            stretch.disputes = take(bytes)?.try_into().ok()?;
            stretch.lacks = take(bytes)?;
            stretch.not_before = take_signed(bytes)?;
        }
        Some(stretch)
    }
}

/// Whole counts by threshold, then the total; each as the difference from the previous one, without trailing zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts<'a>(Cow<'a, [u8]>);

impl<'a> Counts<'a> {
    pub(super) fn of(counts: &[i64]) -> Self {
        // Most differences take one or two bytes.
        let (mut bytes, mut before, mut length) = (Vec::with_capacity(2 * counts.len()), 0, 0);
        for count in counts {
            put_signed(&mut bytes, count - before);
            if *count != before {
                length = bytes.len();
            }
            before = *count;
        }
        bytes.truncate(length);
        Self(bytes.into())
    }

    /// The counts of `thresholds` thresholds, and the total.
    pub(super) fn list(&self, thresholds: usize) -> Vec<i64> {
        let (mut bytes, mut count) = (&*self.0, 0);
        let next = |_| {
            count += take_signed(&mut bytes).unwrap_or_default();
            count
        };
        (0..=thresholds).map(next).collect()
    }

    /// The total.
    pub(super) fn total(&self) -> u64 {
        let (mut bytes, mut total) = (&*self.0, 0);
        while let Some(difference) = take_signed(&mut bytes) {
            total += difference;
        }
        total.try_into().unwrap_or_default()
    }

    /// The counts with a further threshold at each of these sorted indices; it has the count of the next lower
    /// threshold.
    fn with_thresholds_at(&self, indices: &[usize]) -> Counts<'static> {
        let (mut bytes, mut rest, mut index) = (Vec::new(), &*self.0, 0);
        while !rest.is_empty() {
            match indices.contains(&index) {
                true => put(&mut bytes, 0),
                false => put_signed(&mut bytes, take_signed(&mut rest).unwrap_or_default()),
            }
            index += 1;
        }
        Counts(bytes.into())
    }

    fn pack(&self, bytes: &mut Vec<u8>) {
        put(bytes, self.0.len() as u64);
        bytes.extend_from_slice(&self.0);
    }

    fn unpack(bytes: &mut &'a [u8]) -> Option<Self> {
        let length = usize::try_from(take(bytes)?).ok()?;
        let (counts, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(Self(counts.into()))
    }
}

/// The amounts that the counters lack according to the last replies: by threshold, in total, and in accounted seconds;
/// negative for overcounts. Missing amounts are added in equal parts while the cursor moves through an hour. Overcounts
/// stay until late data offsets them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Balance {
    /// Start of that hour.
    pub(super) from: i64,
    /// Missing amount there, in [`PARTS`]; empty if nothing was missing.
    pub(super) lacking: Vec<i64>,
    /// The whole requests of it that were added since.
    pub(super) added: Vec<i64>,
}

impl Balance {
    /// Missing amount now, in parts.
    pub(super) fn rest(&self) -> Vec<i64> {
        self.lacking.iter().zip(&self.added).map(|(lacking, added)| lacking - added * PARTS).collect()
    }

    /// Missing amount of the total now, in parts.
    pub(super) fn of_total(&self) -> i64 {
        let total = |amounts: &[i64]| amounts.iter().rev().nth(1).copied().unwrap_or_default();
        total(&self.lacking) - total(&self.added) * PARTS
    }

    /// The whole requests to add of each now that the cursor is at `end`.
    pub(super) fn due(&self, end: i64) -> Vec<i64> {
        let passed = (end - self.from).clamp(0, HOUR);
        let due = |(lacking, added): (&i64, &i64)| {
            let due = i128::from(*lacking) * i128::from(passed) / i128::from(HOUR * PARTS);
            (i64::try_from(due).unwrap_or_default() - added).max(0)
        };
        self.lacking.iter().zip(&self.added).map(due).collect()
    }

    /// Adds further missing amounts when the cursor is at `from`. If there are none, those that are missing keep their hour.
    pub(super) fn add(&mut self, from: i64, differences: &[i64]) {
        if differences.len() == self.lacking.len() && differences.iter().all(|difference| *difference == 0) {
            return;
        }
        let mut rest = self.rest();
        rest.resize(differences.len(), 0);
        self.lacking = rest.iter().zip(differences).map(|(rest, difference)| rest + difference).collect();
        self.added = vec![0; self.lacking.len()];
        self.from = from;
    }

    fn with_thresholds_at(mut self, indices: &[usize]) -> Self {
        for index in indices.iter().filter(|_| !self.lacking.is_empty()).copied().collect::<Vec<_>>() {
            self.lacking.insert(index.min(self.lacking.len()), 0);
            self.added.insert(index.min(self.added.len()), 0);
        }
        self
    }
}

/// Enough for the stretches of an age of one hour.
const USUAL_BYTES: usize = 512;

/// The stretches of a ledger to recheck, by time, and the corrections to add.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PendingRechecks(Box<[u8]>);

impl PendingRechecks {
    pub(super) fn of<'a>(balance: &Balance, stretches: impl IntoIterator<Item = Stretch<'a>>) -> Self {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        let is_even = balance.rest().iter().all(|rest| *rest == 0);
        put(&mut bytes, if is_even { 0 } else { balance.lacking.len() as u64 });
        if !is_even {
            put_signed(&mut bytes, balance.from);
            balance.lacking.iter().chain(&balance.added).for_each(|part| put_signed(&mut bytes, *part));
        }
        let mut former_end = 0;
        for stretch in stretches {
            stretch.pack(&mut bytes, former_end);
            former_end = stretch.end;
        }
        Self(if former_end == 0 && is_even { Box::default() } else { bytes.into() })
    }

    /// Parses the bytes of [`PendingRechecks::bytes`]; `None` if they are invalid.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let rechecks = Self(bytes.into());
        if bytes.is_empty() {
            return Some(rechecks);
        }
        let (_, mut rest) = unpack_balance(bytes)?;
        let mut former_end = 0;
        while !rest.is_empty() {
            former_end = Stretch::unpack(&mut rest, former_end)?.end;
        }
        Some(rechecks)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn balance(&self) -> Balance {
        unpack_balance(&self.0).map(|(balance, _)| balance).unwrap_or_default()
    }

    /// Whether there is neither balance nor stretch.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn stretches(&self) -> impl Iterator<Item = Stretch<'_>> {
        let (mut rest, mut former_end) = (unpack_balance(&self.0).map_or(&[][..], |(_, rest)| rest), 0);
        std::iter::from_fn(move || {
            let stretch = Stretch::unpack(&mut rest, former_end)?;
            former_end = stretch.end;
            Some(stretch)
        })
    }

    /// The same with a further threshold at each of these sorted indices.
    pub(super) fn with_thresholds_at(&self, indices: &[usize]) -> Self {
        if indices.is_empty() || self.is_empty() {
            return self.clone();
        }
        let stretches = self.stretches().map(|stretch| Stretch {
            added: stretch.added.with_thresholds_at(indices),
            doubt: stretch.doubt.map(|doubt| doubt.with_thresholds_at(indices)),
            ..stretch
        });
        Self::of(&self.balance().with_thresholds_at(indices), stretches)
    }
}

/// The balance at the start of packed bytes, and the bytes behind it.
fn unpack_balance(bytes: &[u8]) -> Option<(Balance, &[u8])> {
    let mut rest = bytes;
    let count = usize::try_from(take(&mut rest)?).ok()?;
    let mut balance = Balance::default();
    if count > 0 {
        balance.from = take_signed(&mut rest)?;
        let mut numbers = || (0..count).map(|_| take_signed(&mut rest)).collect::<Option<Vec<_>>>();
        (balance.lacking, balance.added) = (numbers()?, numbers()?);
    }
    Some((balance, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_without_requests_takes_nine_bytes_and_one_with_twenty_thresholds_some_forty() {
        let hour = |counts: &[i64]| {
            let stretch = |n: i64| Stretch {
                start: n * HOUR,
                end: (n + 1) * HOUR,
                added: Counts::of(counts),
                ..Stretch::default()
            };
            PendingRechecks::of(&Balance::default(), (1..=11).map(stretch)).bytes().len() / 11
        };
        assert!(hour(&[0; 21]) <= 9, "{}", hour(&[0; 21]));
        let many: Vec<i64> = (0..25).map(|n| n * 170).collect();
        assert!(hour(&many) <= 60, "{}", hour(&many));
    }

    #[test]
    fn a_stretch_is_read_as_it_was_packed() {
        let counts = Counts::of(&[1, 3, 2, 9, 9, 9]);
        assert_eq!((counts.list(5), counts.total()), (vec![1, 3, 2, 9, 9, 9], 9));
        assert_eq!(counts.with_thresholds_at(&[0, 3, 7]).list(8), [0, 1, 3, 3, 2, 9, 9, 9, 9]);
        let one = Stretch { start: 3600, end: 7200, age: 7200, added: counts.clone(), ..Stretch::default() };
        let other = Stretch {
            start: 7260,
            end: 7320,
            missing: true,
            doubt: Some(counts),
            disputes: 1,
            lacks: 70,
            not_before: 11_000,
            ..Stretch::default()
        };
        let balance = Balance { from: 3600, lacking: vec![-1, 700, 0], added: vec![0, 2, 0] };
        let rechecks = PendingRechecks::of(&balance, [one.clone(), other.clone()]);
        assert_eq!(rechecks.stretches().collect::<Vec<_>>(), [one, other]);
        assert_eq!(rechecks.balance(), balance);
        assert_eq!(PendingRechecks::parse(rechecks.bytes()), Some(rechecks.clone()));
        assert_eq!(PendingRechecks::parse(&rechecks.bytes()[..rechecks.bytes().len() - 1]), None);
        let even = Balance { added: vec![2], lacking: vec![2 * PARTS], from: 1 };
        assert!(PendingRechecks::of(&even, []).is_empty());
    }
}
