//! Compression on the way out, for answers that are not kept compressed.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::negotiate::Encoding;

/// Metrics pages are repetitive: the fastest level reduces them to a twentieth.
const LEVEL: u8 = 1;

/// A compressor that flushes after every piece.
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    /// `None` for [`Encoding::Identity`].
    pub(super) fn new(encoding: Encoding) -> io::Result<Option<Self>> {
        Ok(match encoding {
            Encoding::Identity => None,
            Encoding::Gzip => {
                Some(Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(u32::from(LEVEL)))))
            }
            Encoding::Zstd => {
                Some(Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), i32::from(LEVEL))?))
            }
        })
    }

    /// Takes a piece and gives what is ready.
    pub(super) fn push(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        let ready = match self {
            Self::Gzip(encoder) => {
                encoder.write_all(piece)?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.write_all(piece)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(ready).into())
    }

    /// Gives the rest.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        Ok(match self {
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        }
        .into())
    }
}
