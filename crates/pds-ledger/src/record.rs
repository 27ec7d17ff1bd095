//! A ledger as bytes.
//!
//! Numbers are encoded as in `varint`. In order: the whole numbers; a byte of flags; four bytes for the settings of the
//! last passed audit; the fraction of the total (`f64`); the sample; the thresholds; the count within each, as the
//! difference from the previous one; the thresholds that replies lack; the pending rechecks as in memory. A threshold is
//! stored in microseconds, or as its bits if that is not a whole number.

use std::sync::Arc;

use crate::{Key, MAX_THRESHOLDS};

use super::buckets::{Absent, Buckets};
use super::ledger::Ledger;
use super::stretch::{Completeness, PendingRechecks, Sample};
use super::varint::{put, put_signed, take, take_signed};

/// A ledger and its name, on its way to the file; `None` removes it.
pub(super) type Record = (Key, Option<Arc<Ledger>>);

/// The record of a ledger.
pub(super) fn encode(ledger: &Ledger) -> Vec<u8> {
    let Buckets { thresholds, within, absent } = &ledger.buckets;
    let mut bytes = Vec::new();
    let numbers = [
        ledger.until.cast_unsigned(),
        ledger.total,
        ledger.unaccounted,
        ledger.late,
        ledger.overcounted,
        ledger.rechecked_until.cast_unsigned(),
        ledger.accounted,
        ledger.disputed,
    ];
    numbers.into_iter().for_each(|number| put(&mut bytes, number));
    let flags = [ledger.set_aside, ledger.fraction != 0.0, ledger.sample.is_some()];
    bytes.push(flags.iter().rev().fold(0, |flags, flag| (flags << 1) | u8::from(*flag)));
    bytes.extend(ledger.verified.to_le_bytes());
    if ledger.fraction != 0.0 {
        bytes.extend(ledger.fraction.to_le_bytes());
    }
    if let Some(Sample { start, counted, asked, results }) = ledger.sample.as_deref() {
        put_signed(&mut bytes, *start);
        put(&mut bytes, *counted);
        bytes.push(*asked);
        for result in results {
            bytes.push(u8::from(result.is_some()));
            if let Some(Completeness { start, ratio }) = result {
                put_signed(&mut bytes, *start);
                bytes.extend(ratio.to_le_bytes());
            }
        }
    }
    put(&mut bytes, thresholds.len() as u64);
    for threshold in &**thresholds {
        match micros(*threshold) {
            Some(micros) => put(&mut bytes, micros << 1 | 1),
            None => {
                put(&mut bytes, 0);
                bytes.extend(threshold.to_le_bytes());
            }
        }
    }
    let mut below = 0;
    for within in within {
        put_signed(&mut bytes, within.wrapping_sub(below).cast_signed());
        below = *within;
    }
    put(&mut bytes, absent.len() as u64);
    for Absent { index, replies, since, replaced, left } in absent {
        put(&mut bytes, *index as u64);
        put_signed(&mut bytes, *since);
        bytes.extend([*replies, u8::from(*replaced) | (2 * u8::from(*left))]);
    }
    bytes.extend_from_slice(ledger.rechecks.bytes());
    bytes
}

/// A threshold in microseconds, if it is a whole number.
#[expect(clippy::cast_possible_truncation, reason = "checked to give the same threshold back")]
fn micros(threshold: f64) -> Option<u64> {
    let micros = (threshold * 1e6).round() as u64;
    (micros < 1 << 52 && (micros as f64 / 1e6).to_bits() == threshold.to_bits()).then_some(micros)
}

/// The ledger of a record; `None` if it is invalid.
pub fn decode(record: &[u8]) -> Option<Ledger> {
    let (mut bytes, mut ledger) = (record, Ledger::default());
    ledger.until = take(&mut bytes)?.cast_signed();
    ledger.total = take(&mut bytes)?;
    ledger.unaccounted = take(&mut bytes)?;
    ledger.late = take(&mut bytes)?;
    ledger.overcounted = take(&mut bytes)?;
    ledger.rechecked_until = take(&mut bytes)?.cast_signed();
    ledger.accounted = take(&mut bytes)?;
    ledger.disputed = take(&mut bytes)?;
    let [flags] = take_bytes(&mut bytes)?;
    ledger.set_aside = flags & 1 != 0;
    ledger.verified = u32::from_le_bytes(take_bytes(&mut bytes)?);
    if flags & 2 != 0 {
        ledger.fraction = f64::from_le_bytes(take_bytes(&mut bytes)?);
    }
    if flags & 4 != 0 {
        let (start, counted) = (take_signed(&mut bytes)?, take(&mut bytes)?);
        let [asked] = take_bytes(&mut bytes)?;
        let mut results = [None; 3];
        for result in &mut results {
            if take_bytes(&mut bytes)? != [0] {
                let start = take_signed(&mut bytes)?;
                let ratio = f64::from_le_bytes(take_bytes(&mut bytes)?);
                *result = Some(Completeness { start, ratio }).filter(|_| (0.0..=1.0).contains(&ratio));
            }
        }
        ledger.sample = Some(Box::new(Sample { start, counted, asked, results }));
    }
    let count = take(&mut bytes)?;
    let threshold = || match take(&mut bytes)? {
        0 => take_bytes(&mut bytes).map(f64::from_le_bytes),
        micros => Some((micros >> 1) as f64 / 1e6),
    };
    let thresholds: Arc<[f64]> = list(count, threshold)?.into();
    let mut below = 0u64;
    let within = || {
        below = below.wrapping_add(take_signed(&mut bytes)?.cast_unsigned());
        Some(below)
    };
    let within = list(count, within)?.into();
    let count = take(&mut bytes)?;
    let absent = || {
        let (index, since) = (usize::try_from(take(&mut bytes)?).ok()?, take_signed(&mut bytes)?);
        let [replies, flags] = take_bytes(&mut bytes)?;
        let is_known = index < thresholds.len();
        is_known.then_some(Absent { index, replies, since, replaced: flags & 1 != 0, left: flags & 2 != 0 })
    };
    let absent = list(count, absent)?.into();
    ledger.buckets = Buckets { thresholds, within, absent };
    ledger.rechecks = PendingRechecks::parse(bytes)?;
    Some(ledger)
}

/// `count` values of `next`, in one allocation; `None` if any of them is invalid.
fn list<T>(count: u64, mut next: impl FnMut() -> Option<T>) -> Option<Vec<T>> {
    let count = usize::try_from(count).ok()?;
    let mut list = Vec::with_capacity(count.min(MAX_THRESHOLDS));
    for _ in 0..count {
        list.push(next()?);
    }
    Some(list)
}

/// The next bytes.
fn take_bytes<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stretch::{Balance, Counts, Stretch};

    #[test]
    fn a_record_decodes_to_the_ledger_it_was_written_from() {
        let mut ledger = Ledger::open(1_772_366_460);
        ledger.buckets =
            Buckets::of([(0.035, 91_750), (1.0 / 3.0, 100_000), (1.0, 7 << 16), (3600.0, 6 << 16)]);
        ledger.buckets.absent =
            [Absent { index: 2, replies: 3, since: 17, replaced: true, left: true }].into();
        (ledger.total, ledger.unaccounted, ledger.late, ledger.overcounted) = (9, 60, 3, 2);
        (ledger.rechecked_until, ledger.set_aside, ledger.accounted) = (1_772_362_800, true, 3600);
        (ledger.disputed, ledger.fraction, ledger.verified) = (4, 0.25, 1 << 24 | 513);
        let results = [Some(Completeness { start: -7200, ratio: 0.75 }), None, None];
        ledger.sample = Some(Box::new(Sample { start: -3600, counted: 1234, asked: 2, results }));
        let balance = Balance { from: 1_772_366_400, lacking: vec![-64; 6], added: vec![0; 6] };
        let added = Counts::of(&[1, 2, 7, 9]);
        let stretch = Stretch { start: 1_772_362_800, end: 1_772_366_400, added, ..Stretch::default() };
        ledger.rechecks = PendingRechecks::of(&balance, [stretch]);
        let record = encode(&ledger);
        assert_eq!(decode(&record), Some(ledger.clone()));
        let rechecks = record.len() - ledger.rechecks.bytes().len();
        let ends_on_a_stretch =
            |at: &usize| record.get(rechecks..*at).is_some_and(|part| PendingRechecks::parse(part).is_some());
        for at in (0..record.len()).filter(|at| !ends_on_a_stretch(at)) {
            assert_eq!(decode(&record[..at]), None, "the first {at} bytes");
        }
    }
}
