//! Reply bodies as they are sent: in chunks, with pauses, complete or cut off.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::Sleep;

use super::journal::Journal;
use super::world::World;

/// The chunks of a body and how they are sent.
pub(super) struct Chunks {
    pub(super) chunks: Box<dyn Iterator<Item = Bytes> + Send>,
    /// The value of Content-Length, if it is sent.
    pub(super) length: Option<u64>,
    /// The pause before each chunk.
    pub(super) pause: Duration,
    /// Whether the connection is closed after the last chunk, before the end of the body.
    pub(super) cut: bool,
}

impl Chunks {
    pub(super) fn new(chunks: impl Iterator<Item = Bytes> + Send + 'static, length: Option<u64>) -> Self {
        Self { chunks: Box::new(chunks), length, pause: Duration::ZERO, cut: false }
    }
}

impl From<Vec<u8>> for Chunks {
    fn from(body: Vec<u8>) -> Self {
        let length = Some(body.len() as u64);
        Self::new((!body.is_empty()).then(|| Bytes::from(body)).into_iter(), length)
    }
}

/// A request in flight, or an open connection: the journal counts it until this is dropped.
pub(super) struct Counted {
    world: World,
    end: fn(&mut Journal),
}

impl Counted {
    pub(super) fn new(world: &World, begin: fn(&mut Journal), end: fn(&mut Journal)) -> Self {
        world.journal(begin);
        Self { world: world.clone(), end }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.world.journal(self.end);
    }
}

/// A body that is being sent.
pub(super) struct Sending {
    chunks: Chunks,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether the connection could flush all chunks.
    written: bool,
    _under_way: Counted,
}

impl Sending {
    pub(super) fn new(chunks: Chunks, under_way: Counted) -> Self {
        Self { chunks, sleep: None, written: false, _under_way: under_way }
    }
}

/// The connection must be closed.
#[derive(Debug, thiserror::Error)]
#[error("the body is cut here")]
pub(super) struct Cut;

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if !self.chunks.pause.is_zero() {
            let pause = self.chunks.pause;
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            std::task::ready!(sleep.as_mut().poll(context));
            self.sleep = None;
        }
        match self.chunks.chunks.next() {
            Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            // The chunks must arrive, so they are flushed before the connection is closed.
            None if self.chunks.cut && !std::mem::replace(&mut self.written, true) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None if std::mem::take(&mut self.chunks.cut) => Poll::Ready(Some(Err(Cut))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.length == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        // The announced length must be that of the complete body.
        match self.chunks.length {
            Some(length) if !self.chunks.cut => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }
}
