//! Reply bodies as they are sent: in chunks, with pauses, complete or cut off.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::{Body, Frame};

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

/// The connection must be closed.
#[derive(Debug, thiserror::Error)]
#[error("the body is cut here")]
pub(super) struct Cut;

/// The body of `chunks`, which ends `under_way` with its last one.
pub(super) fn sending(chunks: Chunks, under_way: Counted) -> impl Body<Data = Bytes, Error = Cut> {
    let Chunks { chunks, pause, cut, .. } = chunks;
    StreamBody::new(stream::unfold(
        (chunks, cut, under_way),
        move |(mut chunks, cut, under_way)| async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let next = chunks.next().map(|chunk| Ok(Frame::data(chunk)));
            if next.is_none() && cut {
                // The chunks must arrive, so they are flushed before the connection is closed.
                tokio::task::yield_now().await;
                return Some((Err(Cut), (chunks, false, under_way)));
            }
            Some((next?, (chunks, cut, under_way)))
        },
    ))
}
