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
    /// Shared bytes; nothing is copied.
    Whole(Bytes),
    /// The same in parts, which may be shared with other bodies.
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
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// The parts, if they are known in advance.
    pub(super) fn parts(&self) -> Option<impl Iterator<Item = &Bytes>> {
        let (whole, parts) = match self {
            Self::Whole(bytes) => (Some(bytes), None),
            Self::Parts(parts) => (None, Some(parts)),
            Self::Channel { .. } => return None,
        };
        Some(whole.into_iter().chain(parts.into_iter().flatten()))
    }

    /// The memory of what its pieces are made from.
    pub(super) fn source_bytes(&self) -> u64 {
        match self {
            Self::Channel { source_bytes, .. } => *source_bytes,
            Self::Whole(_) | Self::Parts(_) => 0,
        }
    }

    /// How long it is, if that is known in advance.
    pub(super) fn exact_length(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Parts(parts) => Some(parts.iter().map(|bytes| bytes.len() as u64).sum()),
            Self::Channel { .. } => None,
        }
    }

    /// Whether nothing is left; `false` if that is not known yet.
    pub(super) fn is_at_end(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Parts(parts) => parts.iter().all(Bytes::is_empty),
            Self::Channel { .. } => false,
        }
    }

    /// The next piece; `None` at the end.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Whole(bytes) => Poll::Ready(next_piece(bytes).map(Ok)),
            Self::Parts(parts) => {
                while parts.front().is_some_and(Bytes::is_empty) {
                    parts.pop_front();
                }
                Poll::Ready(parts.front_mut().and_then(next_piece).map(Ok))
            }
            Self::Channel { pieces, .. } => pieces.poll_recv(cx),
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
            Self::Channel { .. } => f.write_str("Channel"),
        }
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Self::Whole(bytes.into())
    }
}
