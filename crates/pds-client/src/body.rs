//! Bodies of replies, and the memory for all of them.

use std::sync::Arc;

use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use pds_core::memory::{Holder, MemoryBudget, Room, Share};
use tokio::sync::Mutex;

/// A reply larger than this is read once there is room for all of it.
const SMALL: u64 = 64 * 1024;

/// The room for replies. Half of it is for replies up to [`SMALL`] and the beginnings of all others, so that a reply
/// that waits for the rest of its room does not block those that could finish. A reply that does not fit takes all of
/// the room.
#[derive(Clone, Debug)]
pub(super) struct ReplyRoom {
    small: Share,
    large: Share,
    /// Held while a large reply is decoded: its values may take ten times its bytes.
    pub(super) decoding: Arc<Mutex<()>>,
}

impl ReplyRoom {
    pub(super) fn new(memory: &MemoryBudget) -> Self {
        let (small, large) = (memory.share(Holder::SmallReplies), memory.share(Holder::LargeReplies));
        Self { small, large, decoding: Arc::default() }
    }
}

/// The part of a body read so far, at most `limit` bytes, and the room it takes.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    limit: u64,
    pub(super) room: Vec<Room>,
}

impl Body {
    pub(super) fn new(limit: u64) -> Self {
        Self { bytes: Vec::new(), limit, room: Vec::new() }
    }

    /// Reads chunk by chunk, and returns whether the body is within the limit. Bytes that arrive before an error, or
    /// before this future is dropped, are kept.
    pub(super) async fn read(
        &mut self,
        mut response: Response<Incoming>,
        room: &ReplyRoom,
    ) -> Result<bool, hyper::Error> {
        let announced = response.body().size_hint().exact();
        if announced.is_some_and(|length| length > self.limit) && response.status().is_success() {
            return Ok(false);
        }
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        self.room.extend(room.small.acquire(SMALL).await);
        self.bytes.reserve_exact(size(announced.unwrap_or(0).min(SMALL).min(self.limit)));
        while let Some(frame) = response.body_mut().frame().await {
            let Ok(chunk) = frame?.into_data() else { continue };
            if self.bytes.len() + chunk.len() > size(SMALL) && self.room.len() == 1 {
                // Reserved memory that is never written costs nothing.
                let whole = announced.unwrap_or(self.limit).min(self.limit);
                self.room.extend(room.large.acquire(whole).await);
                self.bytes.reserve_exact(size(whole).saturating_sub(self.bytes.len()));
            }
            let left = size(self.limit).saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(chunk.get(..left).unwrap_or(&chunk));
            if chunk.len() > left {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
