//! An outgoing body: in pieces, compressed on request, holding its request slot until the kernel has the last byte.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Frame, SizeHint};

use super::connection_state::InFlight;
use super::negotiate::Encoding;
use super::request_slots::RequestPermit;
use super::response::ResponseBody;

/// An outgoing body.
pub(super) struct Outgoing {
    body: ResponseBody,
    compressor: Option<Compressor>,
    held: Arc<Held>,
}

/// The request and its permit, held until the kernel has the last byte of the answer.
type Held = (InFlight, Option<Arc<RequestPermit>>);

/// Bytes that wait in the buffers of the connection.
struct Piece(Bytes, #[expect(dead_code, reason = "dropped with the bytes")] Arc<Held>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Outgoing {
    /// Keeps `request` in flight, and its permit, until the body is written.
    pub(super) fn new(
        body: ResponseBody,
        compressor: Option<Compressor>,
        request: InFlight,
        permit: Option<Arc<RequestPermit>>,
    ) -> Self {
        Self { body, compressor, held: Arc::new((request, permit)) }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let piece = std::task::ready!(self.body.poll_piece(cx));
            let out = match (piece, &mut self.compressor) {
                (None, None) => return Poll::Ready(None),
                (Some(piece), None) => piece,
                (Some(piece), Some(compressor)) => piece.and_then(|piece| compressor.push(&piece)),
                (None, Some(_)) => match self.compressor.take() {
                    Some(compressor) => compressor.finish(),
                    None => return Poll::Ready(None),
                },
            };
            // A compressor may need more input before it gives any output.
            if !out.as_ref().is_ok_and(Bytes::is_empty) {
                return Poll::Ready(Some(out));
            }
        }
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.held.0.taken();
        let piece = std::task::ready!(self.poll_piece(cx));
        let tracked = |bytes| {
            self.held.0.sending();
            Bytes::from_owner(Piece(bytes, Arc::clone(&self.held)))
        };
        Poll::Ready(piece.map(|piece| piece.map(tracked).map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.compressor, self.body.exact_length()) {
            (None, Some(length)) => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.compressor.is_none() && self.body.exact_length() == Some(0)
    }
}

/// Compresses answers that are not kept compressed, at the fastest level, which reduces repetitive metrics pages to a
/// twentieth.
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    /// `None` for [`Encoding::Identity`], and for an encoding without a compressor.
    pub(super) fn new(encoding: Encoding) -> Option<Self> {
        match encoding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast()))),
            Encoding::Zstd => zstd::Encoder::new(Vec::new(), 1).ok().map(Self::Zstd),
        }
    }

    /// Takes a piece and returns the output that is ready.
    fn push(&mut self, piece: &[u8]) -> io::Result<Bytes> {
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

    /// Returns the rest of the output.
    fn finish(self) -> io::Result<Bytes> {
        Ok(match self {
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use pds_core::memory::{Holder, MemoryBudget};
    use tokio::sync::mpsc;

    use super::*;
    use crate::Limits;
    use crate::backend::tests::Counted;
    use crate::connection_state::ConnectionState;
    use crate::request_slots::RequestSlots;
    use crate::response::MAX_PIECE_BYTES;
    use crate::turns::Peer;

    #[tokio::test]
    async fn a_large_body_goes_out_in_pieces_and_keeps_its_slot_until_the_last_is_written() {
        let counted = Counted::default();
        let connection = ConnectionState::new(Peer::Local, Limits::default(), Arc::new(counted.clone()));
        let (request, slots) =
            (connection.open(), RequestSlots::new(1, MemoryBudget::default().share(Holder::Answers)));
        let permit = slots.take(&request).await.unwrap();
        let body = ResponseBody::from(vec![b'x'; MAX_PIECE_BYTES * 2 + 1]);
        let mut out = Outgoing::new(body, None, request, Some(Arc::new(permit)));
        assert_eq!(hyper::body::Body::size_hint(&out).exact(), Some(MAX_PIECE_BYTES as u64 * 2 + 1));
        let mut pieces = Vec::new();
        while let Some(frame) = out.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        drop(out);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [MAX_PIECE_BYTES, MAX_PIECE_BYTES, 1]);
        let last = pieces.pop();
        drop(pieces);
        assert_eq!(counted.connections(), (1, 0));
        assert!(slots.take(&connection.open()).await.is_none());
        drop(last);
        assert_eq!(counted.connections(), (0, 1));
        assert!(slots.take(&connection.open()).await.is_some());
    }

    fn outgoing(body: ResponseBody, compressor: Option<Compressor>) -> Outgoing {
        let connection = ConnectionState::new(Peer::Local, Limits::default(), Arc::new(()));
        Outgoing::new(body, compressor, connection.open(), None)
    }

    #[tokio::test]
    async fn pieces_are_encoded_on_the_way() {
        let pieces = || {
            let (sender, pieces) = mpsc::channel(3);
            for letter in *b"abc" {
                sender.try_send(Ok(Bytes::from(vec![letter; 100_000]))).unwrap();
            }
            ResponseBody::Channel { pieces, source_bytes: 0 }
        };
        let plain = outgoing(pieces(), None).collect().await.unwrap().to_bytes();
        let mut read = Vec::new();
        let gzip = outgoing(pieces(), Compressor::new(Encoding::Gzip));
        let gzip = gzip.collect().await.unwrap().to_bytes();
        io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*gzip), &mut read).unwrap();
        assert!(gzip.len() < plain.len() / 10 && read == plain);
        let zstd = outgoing(pieces(), Compressor::new(Encoding::Zstd));
        let zstd = zstd.collect().await.unwrap().to_bytes();
        assert_eq!(zstd::decode_all(&*zstd).unwrap(), plain);
    }

    #[tokio::test]
    async fn an_error_breaks_the_body_off() {
        let (sender, pieces) = mpsc::channel(2);
        sender.send(Ok(Bytes::from_static(b"half"))).await.unwrap();
        sender.send(Err(io::Error::other("the rest is lost"))).await.unwrap();
        drop(sender);
        let mut out = outgoing(ResponseBody::Channel { pieces, source_bytes: 0 }, None);
        assert!(out.frame().await.unwrap().is_ok());
        assert_eq!(out.frame().await.unwrap().unwrap_err().to_string(), "the rest is lost");
    }
}
