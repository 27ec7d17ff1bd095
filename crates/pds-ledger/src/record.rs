//! A ledger as bytes, in the format written here and in those before it.
//!
//! Words of 8 bytes, little endian: the first six of [`Number::ALL`], sizes; a threshold and the count within it (`f64`)
//! for each bucket; each hour still to be counted again; each piece of late data; the other numbers. Format 2 lacks the
//! last, and part of the late data. Format 1 ends after the third word with a threshold and a whole count for each bucket.

use std::sync::Arc;

use crate::Key;

use super::counters::Number;
use super::ledger::{Hour, Late, Ledger};

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
    let bits = |(threshold, within): (f64, f64)| [threshold.to_bits(), within.to_bits()];
    let (first, further) = Number::ALL.split_at(FIRST_NUMBERS);
    let mut words: Vec<u64> = first.iter().map(|number| number.of(ledger)).collect();
    words.push(sizes.iter().rev().fold(0, |word, size| (word << 16) | u64::from(*size)));
    words.extend(ledger.shares().flat_map(bits));
    for hour in &ledger.hours {
        words.extend([u64::from(hour.index) | u64::from(hour.rechecks) << 32, hour.added]);
    }
    for late in &ledger.late_data {
        let sizes = u64::from(small(late.shares.len())) | u64::from(late.hour) << 32;
        words.extend([late.from.cast_unsigned(), late.total, sizes, late.figure, late.added]);
        words.extend(late.shares.iter().copied().flat_map(bits));
    }
    words.extend(further.iter().map(|number| number.of(ledger)));
    words.into_iter().map(u64::to_le_bytes).collect::<Vec<_>>().into_flattened()
}

/// The ledger of a record in this format. `None` if it is not one.
pub fn decode(format: u64, record: &[u8]) -> Option<Ledger> {
    let (words, []) = record.as_chunks::<8>() else { return None };
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mut ledger = Ledger::default();
    let (first, further) = Number::ALL.split_at(FIRST_NUMBERS);
    let (oldest, second) = first.split_at(3);
    for number in oldest {
        number.put(&mut ledger, words.next()?);
    }
    if format == 1 {
        let mut buckets = Vec::new();
        while let Some(threshold) = words.next() {
            buckets.push((f64::from_bits(threshold), words.next()?));
        }
        return Some(ledger.with_buckets(&buckets));
    }
    for number in second {
        number.put(&mut ledger, words.next()?);
    }
    let sizes = words.next()?;
    let size = |index: u32| (sizes >> (16 * index)) & 0xffff;
    ledger.set_aside = size(0) != 0;
    let buckets = pairs(&mut words, size(1))?;
    let mut hour = || {
        let (word, added) = (words.next()?, words.next()?);
        Some(Hour {
            index: u32::try_from(word & 0xffff_ffff).ok()?,
            rechecks: u8::try_from(word >> 32).ok()?,
            added,
        })
    };
    ledger.hours = (0..size(2)).map(|_| hour()).collect::<Option<_>>()?;
    for _ in 0..size(3) {
        let (from, total, word) = (words.next()?.cast_signed(), words.next()?, words.next()?);
        let hour = u32::try_from(word >> 32).ok()?;
        let (figure, added) = if format > 2 { (words.next()?, words.next()?) } else { (0, 0) };
        let shares = pairs(&mut words, word & 0xffff_ffff)?.into();
        let mut late = Late { hour, from, figure, total, added, shares };
        if format == 2 {
            late.added = late.part(ledger.until);
        }
        ledger.late_data.push(late);
    }
    for number in further.iter().filter(|_| format > 2) {
        number.put(&mut ledger, words.next()?);
    }
    words.next().is_none().then(|| ledger.with_shares(buckets))
}

/// The next `count` pairs of numbers. Those that are missing ask for no memory.
fn pairs(words: &mut impl Iterator<Item = u64>, count: u64) -> Option<Vec<(f64, f64)>> {
    let mut number = || words.next().map(f64::from_bits);
    (0..count).map(|_| Some((number()?, number()?))).collect()
}

/// Hours, buckets and pieces of late data are at most some hundreds each.
fn small(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_format_1_decodes() {
        let words = [7200, 9, 60, 0.5f64.to_bits(), 4, 1.0f64.to_bits(), 9];
        let record: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let ledger = decode(1, &record).unwrap();
        assert_eq!((ledger.until, ledger.total, ledger.unaccounted), (7200, 9, 60));
        assert_eq!(ledger.buckets().collect::<Vec<_>>(), [(0.5, 4), (1.0, 9)]);
        assert_eq!(decode(1, &record[..record.len() - 8]), None, "a threshold without its count");
    }

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
