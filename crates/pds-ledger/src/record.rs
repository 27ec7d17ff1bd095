//! A ledger as bytes, in the format written here and in those before it.
//!
//! Words of 8 bytes, little endian: the first six of [`Number::ALL`], sizes; a threshold and the count within it (`f64`)
//! for each bucket; each hour still to be counted again; each piece of late data; the other numbers. Format 2 lacks the
//! last, and part of the late data. Format 1 ends after the third word with a threshold and a whole count for each bucket.

use std::sync::Arc;

use crate::Key;

use super::counters::Number;
use super::hour::{Hour, Late};
use super::ledger::Ledger;

/// How many numbers format 2 has.
const FIRST_NUMBERS: usize = 6;

/// A ledger and its name, on its way to the file; `None` removes it.
pub(super) type Record = (Key, Option<Arc<Ledger>>);

/// The record of a ledger.
pub(super) fn encode(ledger: &Ledger) -> Vec<u8> {
    let sizes = [
        u16::from(ledger.set_aside),
        small(ledger.shares().len()),
        small(ledger.hours.len()),
        small(ledger.late_data.len()),
    ];
    let sizes = sizes.iter().rev().fold(0, |word, size| (word << 16) | u64::from(*size));
    let mut words = Words(Vec::with_capacity(56 + 16 * (ledger.shares().len() + ledger.hours.len())));
    let (first, further) = Number::ALL.split_at(FIRST_NUMBERS);
    first.iter().for_each(|number| words.unsigned(number.of(ledger)));
    words.unsigned(sizes);
    for (threshold, within) in ledger.shares() {
        words.number(threshold);
        words.number(within);
    }
    for hour in &ledger.hours {
        words.unsigned(u64::from(hour.index) | u64::from(hour.rechecks) << 32);
        words.unsigned(hour.added);
    }
    for late in ledger.late_data.iter() {
        words.signed(late.from);
        words.unsigned(late.total);
        words.unsigned(u64::from(small(late.shares.len())) | u64::from(late.hour) << 32);
        words.unsigned(late.figure);
        words.unsigned(late.added);
        for (threshold, share) in &late.shares {
            words.number(*threshold);
            words.number(*share);
        }
    }
    further.iter().for_each(|number| words.unsigned(number.of(ledger)));
    words.0
}

/// The ledger of a record in this format. `None` if it is not one.
#[must_use]
pub fn decode(format: u64, record: &[u8]) -> Option<Ledger> {
    let (words, []) = record.as_chunks::<8>() else { return None };
    let mut words = Reader(words.iter());
    let mut ledger = Ledger::default();
    let (first, further) = Number::ALL.split_at(FIRST_NUMBERS);
    let (oldest, second) = first.split_at(3);
    for number in oldest {
        number.put(&mut ledger, words.unsigned()?);
    }
    if format == 1 {
        let mut buckets = Vec::new();
        while let Some(threshold) = words.number() {
            buckets.push((threshold, words.unsigned()?));
        }
        return Some(ledger.with_buckets(&buckets));
    }
    for number in second {
        number.put(&mut ledger, words.unsigned()?);
    }
    let sizes = words.unsigned()?;
    let size = |index: u32| usize::try_from((sizes >> (16 * index)) & 0xffff).ok();
    ledger.set_aside = size(0)? != 0;
    let buckets = words.pairs(size(1)?)?;
    for _ in 0..size(2)? {
        let word = words.unsigned()?;
        let (index, rechecks) = (u32::try_from(word & 0xffff_ffff).ok()?, u8::try_from(word >> 32).ok()?);
        let hour = Hour { index, rechecks, added: words.unsigned()? };
        ledger.hours = ledger.hours.iter().copied().chain([hour]).collect();
    }
    for _ in 0..size(3)? {
        let (from, total, word) = (words.signed()?, words.unsigned()?, words.unsigned()?);
        let (hour, shares) = (u32::try_from(word >> 32).ok()?, usize::try_from(word & 0xffff_ffff).ok()?);
        let (figure, added) = if format > 2 { (words.unsigned()?, words.unsigned()?) } else { (0, 0) };
        let mut late = Late { hour, from, figure, total, added, shares: words.pairs(shares)?.into() };
        if format == 2 {
            late.added = late.part(ledger.until);
        }
        ledger.late_data.push(late);
    }
    for number in further.iter().filter(|_| format > 2) {
        number.put(&mut ledger, words.unsigned()?);
    }
    words.0.next().is_none().then(|| ledger.with_shares(buckets))
}

struct Words(Vec<u8>);

impl Words {
    fn unsigned(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn signed(&mut self, word: i64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn number(&mut self, word: f64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

struct Reader<'a>(std::slice::Iter<'a, [u8; 8]>);

impl Reader<'_> {
    fn unsigned(&mut self) -> Option<u64> {
        self.0.next().map(|word| u64::from_le_bytes(*word))
    }

    fn signed(&mut self) -> Option<i64> {
        self.0.next().map(|word| i64::from_le_bytes(*word))
    }

    fn number(&mut self) -> Option<f64> {
        self.0.next().map(|word| f64::from_le_bytes(*word))
    }

    fn pairs(&mut self, count: usize) -> Option<Vec<(f64, f64)>> {
        (0..count.min(self.0.len())).map(|_| Some((self.number()?, self.number()?))).collect()
    }
}

/// Hours, buckets and pieces of late data are at most some hundreds each.
fn small(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_format_2_decodes() {
        // One bucket, no hour, one piece of late data that is half added.
        let (sizes, one) = (1 | 1 << 16 | 1 << 48, 1.0f64.to_bits());
        let words = [7200, 9, 60, 3, 2, 3600, sizes, one, 4.5f64.to_bits(), 5400, 10, 1, one, one];
        let record: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let ledger = decode(2, &record).unwrap();
        assert_eq!((ledger.until, ledger.total, ledger.rechecked_until), (7200, 9, 3600));
        assert_eq!((ledger.accounted, ledger.debt, ledger.set_aside), (0, 0, true));
        assert_eq!(
            ledger.late_data.iter().map(|late| (late.total, late.added)).collect::<Vec<_>>(),
            [(10, 5)]
        );
    }

    #[test]
    fn a_record_decodes_to_the_ledger_it_was_written_from() {
        let mut ledger = Ledger::open(1_772_366_460).with_shares([(0.035, 1.4), (1.0, 7.0)]);
        (ledger.total, ledger.unaccounted, ledger.late, ledger.overcounted) = (9, 60, 3, 2);
        (ledger.rechecked_until, ledger.set_aside, ledger.accounted) = (1_772_362_800, true, 3600);
        ledger.debt = 4;
        ledger.hours = [Hour { index: 492_324, rechecks: 1, added: 40 }].into();
        let late = Late {
            hour: 492_321,
            from: 1_772_366_400,
            figure: 45,
            total: 5,
            added: 2,
            shares: [(0.035, 0.25), (1.0, 1.0)].into(),
        };
        ledger.late_data.push(late.clone());
        ledger.late_data.push(Late { shares: [].into(), ..late });
        let record = encode(&ledger);
        assert_eq!(decode(3, &record), Some(ledger));
        for at in 0..record.len() {
            assert_eq!(decode(3, &record[..at]), None, "the first {at} bytes");
        }
    }
}
