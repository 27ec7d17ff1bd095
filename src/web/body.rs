//! Bodies of answers, and how they go out: in pieces, encoded on the way where asked, keeping their place under
//! `--web.max-requests` until the last piece is taken.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::compress::Compressor;
use super::timeouts::InFlight;

/// Bodies are handed over in pieces of this size, so that a slow reader holds its place under
/// `--web.max-requests` until it has read nearly all, and an encoder never holds up its thread for long.
const PIECE: usize = 256 * 1024;

/// The body of an answer.
pub enum ResponseBody {
    /// Shared bytes, nothing is copied.
    Whole(Bytes),
    /// The same in parts, which may be shared with other bodies.
    Parts(VecDeque<Bytes>),
    /// Pieces made elsewhere while the client reads. An error breaks the answer off, so that nobody takes the part
    /// for the whole.
    Channel(mpsc::Receiver<io::Result<Bytes>>),
}

impl ResponseBody {
    /// Nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    fn exact_length(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Parts(parts) => Some(parts.iter().map(|bytes| bytes.len() as u64).sum()),
            Self::Channel(_) => None,
        }
    }

    /// Whether nothing is left; `false` where that is not known yet.
    fn is_at_end(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Parts(parts) => parts.iter().all(Bytes::is_empty),
            Self::Channel(_) => false,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Whole(bytes) => Poll::Ready(next_piece(bytes).map(Ok)),
            Self::Parts(parts) => {
                while parts.front().is_some_and(Bytes::is_empty) {
                    parts.pop_front();
                }
                Poll::Ready(parts.front_mut().and_then(next_piece).map(Ok))
            }
            Self::Channel(receiver) => receiver.poll_recv(cx),
        }
    }
}

fn next_piece(bytes: &mut Bytes) -> Option<Bytes> {
    (!bytes.is_empty()).then(|| bytes.split_to(bytes.len().min(PIECE)))
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Parts(parts) => write!(f, "Parts({})", parts.len()),
            Self::Channel(_) => f.write_str("Channel"),
        }
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Self::Whole(bytes.into())
    }
}

/// A body on its way out.
pub(super) struct Outgoing {
    body: ResponseBody,
    compressor: Option<Compressor>,
    /// The connection's record of this answer.
    open: Option<InFlight>,
    /// The place under `--web.max-requests`, given back once the body is written or dropped.
    place: Option<OwnedSemaphorePermit>,
}

impl Outgoing {
    pub(super) fn new(body: ResponseBody, compressor: Option<Compressor>) -> Self {
        Self { body, compressor, open: None, place: None }
    }

    /// Holds a place until the body is written.
    pub(super) fn hold(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    /// Reports to the connection it goes out on.
    pub(super) fn report_to(&mut self, open: InFlight) {
        self.open = Some(open);
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
            // An encoder may need more before it has something to say; an empty piece would mean nothing.
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
        if let Some(open) = &self.open {
            open.taken();
        }
        let piece = std::task::ready!(self.poll_piece(cx));
        if let (Some(open), Some(Ok(_))) = (&self.open, &piece) {
            open.sending();
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.compressor, self.body.exact_length()) {
            (None, Some(length)) => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.compressor.is_none() && self.body.is_at_end()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::web::Encoding;

    #[tokio::test]
    async fn a_large_body_goes_out_in_pieces_and_keeps_its_place_until_the_end() {
        let places = Arc::new(Semaphore::new(1));
        let mut out = Outgoing::new(ResponseBody::from(vec![b'x'; PIECE * 2 + 1]), None);
        out.hold(Arc::clone(&places).try_acquire_owned().unwrap());
        assert_eq!(hyper::body::Body::size_hint(&out).exact(), Some(PIECE as u64 * 2 + 1));
        let mut lengths = Vec::new();
        while let Some(frame) = out.frame().await {
            lengths.push(frame.unwrap().into_data().unwrap().len());
            assert_eq!(places.available_permits(), 0);
        }
        assert_eq!(lengths, [PIECE, PIECE, 1]);
        drop(out);
        assert_eq!(places.available_permits(), 1);
    }

    #[tokio::test]
    async fn pieces_are_encoded_on_the_way() {
        let pieces = || {
            let (sender, receiver) = mpsc::channel(3);
            for letter in *b"abc" {
                sender.try_send(Ok(Bytes::from(vec![letter; 100_000]))).unwrap();
            }
            ResponseBody::Channel(receiver)
        };
        let plain = Outgoing::new(pieces(), None).collect().await.unwrap().to_bytes();
        let mut read = Vec::new();
        let gzip = Outgoing::new(pieces(), Compressor::new(Encoding::Gzip).unwrap());
        let gzip = gzip.collect().await.unwrap().to_bytes();
        io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*gzip), &mut read).unwrap();
        assert!(gzip.len() < plain.len() / 10 && read == plain);
        let zstd = Outgoing::new(pieces(), Compressor::new(Encoding::Zstd).unwrap());
        let zstd = zstd.collect().await.unwrap().to_bytes();
        assert_eq!(zstd::decode_all(&*zstd).unwrap(), plain);
    }

    #[tokio::test]
    async fn an_error_breaks_the_body_off() {
        let (sender, receiver) = mpsc::channel(2);
        sender.send(Ok(Bytes::from_static(b"half"))).await.unwrap();
        sender.send(Err(io::Error::other("the rest is lost"))).await.unwrap();
        drop(sender);
        let mut out = Outgoing::new(ResponseBody::Channel(receiver), None);
        assert!(out.frame().await.unwrap().is_ok());
        assert_eq!(out.frame().await.unwrap().unwrap_err().to_string(), "the rest is lost");
    }
}
