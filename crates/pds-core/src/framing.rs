//! Streams of units with their length in their header: frames of HTTP/2, records of TLS.

/// Longest header of a unit.
const MAX_HEADER_BYTES: usize = 9;

/// The layout of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// Bytes before the first unit.
    pub preface: usize,
    /// Bytes of a header, at most nine.
    pub header: usize,
    /// The bytes of the length in a header, from the first to the one after the last.
    pub length: (usize, usize),
}

impl Framing {
    /// HTTP/2 frames from a server (RFC 9113, section 4.1).
    pub const HTTP2: Self = Self { preface: 0, header: 9, length: (0, 3) };
    /// HTTP/2 frames from a client, after `PRI * HTTP/2.0` and so on.
    pub const HTTP2_REQUESTS: Self = Self { preface: 24, ..Self::HTTP2 };
    /// TLS records (RFC 8446, section 5.1).
    pub const TLS: Self = Self { preface: 0, header: 5, length: (3, 5) };
}

/// Finds the headers in the bytes of a stream as they arrive, in pieces of any length.
#[derive(Debug)]
pub struct Headers {
    framing: Framing,
    /// Bytes until the next header begins.
    skip: usize,
    header: [u8; MAX_HEADER_BYTES],
    /// Bytes of the header that have arrived.
    filled: usize,
}

impl Headers {
    /// For a stream that is about to begin.
    pub const fn new(framing: Framing) -> Self {
        Self { framing, skip: framing.preface, header: [0; MAX_HEADER_BYTES], filled: 0 }
    }

    /// The next header in `arrived`, and the length of its unit's payload in bytes. Takes what it has read from
    /// `arrived`; returns `None` once all of it is read.
    pub fn next(&mut self, arrived: &mut &[u8]) -> Option<([u8; MAX_HEADER_BYTES], usize)> {
        let Self { framing, .. } = *self;
        let skipped = self.skip.min(arrived.len());
        self.skip -= skipped;
        let taken = (framing.header - self.filled).min(arrived.len() - skipped);
        let (read, rest) = arrived.split_at(skipped + taken);
        self.header[self.filled..self.filled + taken].copy_from_slice(&read[skipped..]);
        self.filled += taken;
        *arrived = rest;
        if self.filled < framing.header {
            return None;
        }
        let length = &self.header[framing.length.0..framing.length.1];
        self.skip = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.filled = 0;
        Some((self.header, self.skip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_however_the_bytes_arrive() {
        let record = |length: u8| [&[23, 3, 3, 0, length][..], &vec![7; usize::from(length)]].concat();
        let stream = [record(200), record(0), record(1)].concat();
        for piece in [1, 4, 5, 6, 100, 1000] {
            let mut headers = Headers::new(Framing::TLS);
            let mut lengths = Vec::new();
            for mut arrived in stream.chunks(piece) {
                lengths.extend(std::iter::from_fn(|| headers.next(&mut arrived)).map(|(_, length)| length));
            }
            assert_eq!(lengths, [200, 0, 1], "in pieces of {piece}");
        }
        let mut requests = Headers::new(Framing::HTTP2_REQUESTS);
        let mut arrived = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x08\x06\0\0\0\0\0pingping"[..];
        assert_eq!(requests.next(&mut arrived), Some((*b"\0\0\x08\x06\0\0\0\0\0", 8)));
        assert_eq!(requests.next(&mut arrived), None);
    }
}
