//! Reproducible randomness: numbers hashed from numbers.

use jiff::SignedDuration;

/// A hash of `parts`; each bit depends on all of them (the finalizer of splitmix64, chained).
pub(super) fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, part| {
        let mut x = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}

/// A hash of `start` and a text.
pub(super) fn hash_text(start: u64, text: &str) -> u64 {
    text.bytes().fold(start, |state, byte| hash(&[state, u64::from(byte)]))
}

/// A uniform number in 0..1 from a hash.
pub(super) fn unit(hash: u64) -> f64 {
    // 53 bits fit.
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number of seconds below `most`.
pub(super) fn seconds(hash: u64, most: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(hash % most).unwrap_or(0))
}

/// One of `options`, which must not be empty.
pub(super) fn pick<T: Copy>(options: &[T], hash: u64) -> T {
    options[usize::try_from(hash % options.len() as u64).unwrap_or(0)]
}

/// An identifier of `len` digits and lower-case letters.
pub(super) fn word(hash: u64, len: usize) -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let rests = std::iter::successors(Some(hash), |rest| Some(rest / LETTERS.len() as u64));
    rests.map(|rest| char::from(pick(LETTERS, rest))).take(len).collect()
}
