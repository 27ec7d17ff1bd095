//! Numbers in as few bytes as possible: 7 bits per byte, the lowest first.

/// Appends `number`.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(0x80 | number.to_le_bytes()[0]);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Appends `number`, which may be negative; small numbers of either sign are short.
pub(crate) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Removes and returns the number at the start of `bytes`; `None` if there is none.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Like [`take`], for numbers of [`put_signed`].
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = take(bytes)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_was_written_and_none_from_its_beginning_alone() {
        let numbers = [0, 1, -1, 63, -64, 64, 3600, 1 << 40, i64::MAX, i64::MIN];
        for number in numbers {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            put(&mut bytes, number.cast_unsigned());
            let mut rest = &*bytes;
            let read = (take_signed(&mut rest), take(&mut rest));
            assert_eq!(read, (Some(number), Some(number.cast_unsigned())));
            assert_eq!((rest, take(&mut rest)), (&[][..], None));
            assert_eq!(take(&mut &bytes[..1]).is_none(), bytes[0] > 0x7f);
        }
        assert_eq!(take(&mut &[0xff; 11][..]), None, "more than 64 bits");
    }
}
