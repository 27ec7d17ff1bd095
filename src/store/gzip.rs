//! The bytes of a page, plain or compressed, in segments that were rendered at different times.
//!
//! gzip is deflate between a header and a checksum. Deflate can stop at a byte boundary and be continued by another
//! encoder, and checksums of segments can be combined. So an unchanged segment is never compressed again, and the
//! result is still one gzip member, which every client can read.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use pds_web::Encoding;

/// RFC 1952: deflate, no name, no time, fastest compression, any system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Approximate size of the pieces of a page: large enough to keep their number low, small enough to keep a streamed
/// page out of memory.
const PIECE: usize = 128 * 1024;

/// Writes one segment.
pub(super) enum Writer {
    Identity(Vec<u8>),
    Gzip(Box<DeflateEncoder<Vec<u8>>>, Crc),
}

/// A written segment.
#[derive(Debug)]
pub(super) struct Segment {
    /// In pieces, because joining them would double the memory of a large page.
    pub(super) pieces: Vec<Bytes>,
    /// Checksum and length of the plain text; not used without compression.
    pub(super) crc: Crc,
}

impl Writer {
    /// Begins a segment, the first of a page or a later one.
    pub(super) fn new(encoding: Encoding, is_first: bool) -> Self {
        if encoding != Encoding::Gzip {
            return Self::Identity(Vec::new());
        }
        let begin = if is_first { HEADER.to_vec() } else { Vec::new() };
        // Level 1, because a higher one takes longer than rendering the page, and saves nothing on a local network.
        Self::Gzip(Box::new(DeflateEncoder::new(begin, Compression::fast())), Crc::new())
    }

    // Writing into memory cannot fail, here and below.

    pub(super) fn write(&mut self, text: &[u8]) {
        match self {
            Self::Identity(bytes) => bytes.extend_from_slice(text),
            Self::Gzip(encoder, crc) => {
                crc.update(text);
                let _ = encoder.write_all(text);
            }
        }
    }

    /// Moves finished output into a piece, if there is enough.
    pub(super) fn take_piece(&mut self) -> Option<Bytes> {
        (self.ready().len() >= PIECE).then(|| self.take())
    }

    fn take(&mut self) -> Bytes {
        // Copied, because the buffer collects the next piece and has spare capacity, while this piece may be kept for
        // long.
        let ready = self.ready();
        let piece = Bytes::copy_from_slice(ready);
        ready.clear();
        piece
    }

    fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Identity(bytes) => bytes,
            Self::Gzip(encoder, _) => encoder.get_mut(),
        }
    }

    /// Ends the segment so that another can follow.
    pub(super) fn pause(mut self) -> (Bytes, Crc) {
        let crc = match &mut self {
            Self::Identity(_) => Crc::new(),
            Self::Gzip(encoder, crc) => {
                let _ = encoder.flush();
                std::mem::take(crc)
            }
        };
        (self.take(), crc)
    }

    /// Ends the segment and the page; `before` is the checksum of the previous segment.
    pub(super) fn close(self, before: &Crc) -> Bytes {
        match self {
            Self::Identity(bytes) => bytes.into(),
            Self::Gzip(encoder, own) => {
                let mut crc = Crc::new();
                crc.combine(before);
                crc.combine(&own);
                let mut bytes = encoder.finish().unwrap_or_default();
                bytes.extend_from_slice(&crc.sum().to_le_bytes());
                bytes.extend_from_slice(&crc.amount().to_le_bytes());
                bytes.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn stretches_of_different_times_are_one_gzip_member() {
        let text = "pds_up{project=\"p\"} 1\n".repeat(20_000);
        let mut first = Writer::new(Encoding::Gzip, true);
        first.write(text.as_bytes());
        let (first, crc) = first.pause();
        for end in ["# EOF\n", "", "process_open_fds 7\n"] {
            let mut further = Writer::new(Encoding::Gzip, false);
            further.write(end.as_bytes());
            let page = [&first[..], &further.close(&crc)].concat();
            let mut decoder = GzDecoder::new(&page[..]);
            assert_eq!(std::io::read_to_string(&mut decoder).unwrap(), text.clone() + end);
            assert!(decoder.into_inner().is_empty(), "nothing follows the member");
        }
    }

    #[test]
    fn a_page_that_goes_out_as_it_is_written_is_whole_too() {
        let mut writer = Writer::new(Encoding::Gzip, true);
        let mut page = Vec::new();
        for n in 0..200_000 {
            writer.write(format!("line {n}\n").as_bytes());
            page.extend(writer.take_piece().into_iter().flatten());
        }
        assert!(page.len() > PIECE, "{} bytes", page.len());
        page.extend_from_slice(&writer.close(&Crc::new()));
        let read = std::io::read_to_string(GzDecoder::new(&page[..])).unwrap();
        assert!(read.starts_with("line 0\n") && read.ends_with("line 199999\n"));
    }
}
