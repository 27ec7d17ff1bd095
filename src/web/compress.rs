//! Content codings made on the way out, for what nobody keeps encoded.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::negotiate::Encoding;

/// Metrics pages repeat themselves so much that the fastest level takes them to a twentieth.
const LEVEL: u8 = 1;

/// An encoder that gives what it has after every piece.
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    /// `None` where nothing is to be done.
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

    /// Takes a piece, gives what is ready.
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

    /// Gives the end.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        Ok(match self {
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        }
        .into())
    }
}
