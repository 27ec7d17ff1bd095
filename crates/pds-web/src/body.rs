//! Bodies of answers, which are handed over in pieces.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;

/// The largest piece of a body handed over at once: a slow reader is noticed by not taking it, and compressing it
/// blocks the thread only briefly.
pub(super) const PIECE: usize = 256 * 1024;

/// The body of an answer.
pub enum ResponseBody {
    /// Bytes in parts, which may be shared with other bodies; nothing is copied.
    Parts(VecDeque<Bytes>),
    /// Pieces made elsewhere while the client reads. An error breaks the answer off, so that no client takes a part
    /// for the whole.
    Channel {
        /// The pieces.
        pieces: mpsc::Receiver<io::Result<Bytes>>,
        /// The memory, in bytes, of what they are made from: it is held until the client has read them.
        source_bytes: u64,
    },
}

impl ResponseBody {
    /// How long it is, if that is known in advance.
    pub(super) fn exact_length(&self) -> Option<u64> {
        match self {
            Self::Parts(parts) => Some(parts.iter().map(|bytes| bytes.len() as u64).sum()),
            Self::Channel { .. } => None,
        }
    }

    /// The next piece; `None` at the end.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Parts(parts) => {
                while parts.front().is_some_and(Bytes::is_empty) {
                    parts.pop_front();
                }
                let piece = parts.front_mut().map(|bytes| bytes.split_to(bytes.len().min(PIECE)));
                Poll::Ready(piece.map(Ok))
            }
            Self::Channel { pieces, .. } => pieces.poll_recv(cx),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts(parts) => write!(f, "Parts({})", parts.len()),
            Self::Channel { .. } => f.write_str("Channel"),
        }
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Self::Parts(VecDeque::from([bytes.into()]))
    }
}
