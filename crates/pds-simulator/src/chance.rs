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
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
pub(super) fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number of seconds below `most`.
pub(super) fn seconds(hash: u64, most: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(hash % most).unwrap_or(0))
}

/// One of `options`.
pub(super) fn pick<T: Copy>(options: &[T], hash: u64) -> Option<T> {
    let len = u64::try_from(options.len()).ok().filter(|len| *len > 0)?;
    options.get(usize::try_from(hash % len).ok()?).copied()
}

/// An identifier of `len` digits and lower-case letters.
pub(super) fn word(hash: u64, len: usize) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = hash;
    let mut word = String::with_capacity(len);
    for _ in 0..len {
        let at = usize::try_from(rest % 36).unwrap_or(0);
        word.push(char::from(LETTERS.get(at).copied().unwrap_or(b'0')));
        rest /= 36;
    }
    word
}
