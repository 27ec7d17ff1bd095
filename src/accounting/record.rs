//! A ledger as bytes, in the format written here and in the one before it.
//!
//! A record is the CRC-32 of the rest and then words of 8 bytes, little endian. Format 2: cursor, total, unaccounted
//! seconds, late, overcounted, end of the last recheck, sizes; a threshold and the count within it (`f64`) for each
//! bucket; each hour still to be counted again; each piece of late data. Format 1 ends after the third word with a
//! threshold and a whole count for each bucket.

use std::sync::Arc;

use flate2::Crc;

use crate::store::Key;

use super::hour::{Hour, Late};
use super::ledger::Ledger;

/// The version of the records written here. The one before, of version 0.1.0, is read.
pub(super) const FORMAT: u64 = 2;

/// A ledger and its name, on its way to the file; `None` removes it.
pub(super) type Record = (Key, Option<Arc<Ledger>>);

/// The record of a ledger, in format 2.
pub(super) fn encode(ledger: &Ledger) -> Vec<u8> {
    let sizes = [
        u16::from(ledger.set_aside),
        small(ledger.shares().len()),
        small(ledger.hours.len()),
        small(ledger.late_data.len()),
    ];
    let sizes = sizes.iter().rev().fold(0, |word, size| (word << 16) | u64::from(*size));
    let mut words = Words(Vec::with_capacity(56 + 16 * (ledger.shares().len() + ledger.hours.len())));
    words.signed(ledger.until);
    words.whole(ledger.total);
    words.whole(ledger.unaccounted);
    words.whole(ledger.late);
    words.whole(ledger.overcounted);
    words.signed(ledger.rechecked_until);
    words.whole(sizes);
    for (threshold, within) in ledger.shares() {
        words.number(threshold);
        words.number(within);
    }
    for hour in &ledger.hours {
        words.whole(u64::from(hour.index) | u64::from(hour.rechecks) << 32);
        words.whole(hour.added);
    }
    for late in ledger.late_data.iter() {
        words.signed(late.from);
        words.whole(late.total);
        words.whole(late.shares.len() as u64);
        for (threshold, share) in &late.shares {
            words.number(*threshold);
            words.number(*share);
        }
    }
    let mut record = crc(&words.0).to_le_bytes().to_vec();
    record.append(&mut words.0);
    record
}

/// The ledger of a record in this format. `None` if the record is damaged.
pub(super) fn decode(format: u64, record: &[u8]) -> Option<Ledger> {
    let (sum, fields) = record.split_first_chunk::<4>()?;
    let (words, rest) = fields.as_chunks::<8>();
    if u32::from_le_bytes(*sum) != crc(fields) || !rest.is_empty() {
        return None;
    }
    let mut words = Reader(words.iter());
    let mut ledger = Ledger::open(words.signed()?);
    ledger.total = words.whole()?;
    ledger.unaccounted = words.whole()?;
    if format == 1 {
        let mut buckets = Vec::new();
        while let Some(threshold) = words.number() {
            buckets.push((threshold, words.whole()?));
        }
        return Some(ledger.with_buckets(&buckets));
    }
    ledger.late = words.whole()?;
    ledger.overcounted = words.whole()?;
    ledger.rechecked_until = words.signed()?;
    let sizes = words.whole()?;
    let size = |index: u32| usize::try_from((sizes >> (16 * index)) & 0xffff).ok();
    ledger.set_aside = size(0)? != 0;
    let buckets = words.pairs(size(1)?)?;
    for _ in 0..size(2)? {
        let word = words.whole()?;
        let (index, rechecks) = (u32::try_from(word & 0xffff_ffff).ok()?, u8::try_from(word >> 32).ok()?);
        let hour = Hour { index, rechecks, added: words.whole()? };
        ledger.hours = ledger.hours.iter().copied().chain([hour]).collect();
    }
    for _ in 0..size(3)? {
        let (from, total, shares) = (words.signed()?, words.whole()?, usize::try_from(words.whole()?).ok()?);
        ledger.late_data.push(Late { from, total, shares: words.pairs(shares)?.into() });
    }
    words.0.next().is_none().then(|| ledger.with_shares(buckets))
}

struct Words(Vec<u8>);

impl Words {
    fn whole(&mut self, word: u64) {
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
    fn whole(&mut self) -> Option<u64> {
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

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_decodes_to_the_ledger_it_was_written_from() {
        let mut ledger = Ledger::open(1_772_366_460).with_shares([(0.035, 1.4), (1.0, 7.0)]);
        (ledger.total, ledger.unaccounted, ledger.late, ledger.overcounted) = (9, 60, 3, 2);
        (ledger.rechecked_until, ledger.set_aside) = (1_772_362_800, true);
        ledger.hours = [Hour { index: 492_324, rechecks: 1, added: 40 }].into();
        let late = Late { from: 1_772_366_400, total: 5, shares: [(0.035, 0.25), (1.0, 1.0)].into() };
        ledger.late_data.push(late.clone());
        ledger.late_data.push(Late { shares: [].into(), ..late });
        let record = encode(&ledger);
        assert_eq!(decode(2, &record), Some(ledger));
        for at in 0..record.len() {
            let mut bad = record.clone();
            bad[at] ^= 0x10;
            assert_eq!(decode(2, &bad), None, "byte {at}");
            assert_eq!(decode(2, &record[..at]), None, "the first {at} bytes");
        }
    }
}
