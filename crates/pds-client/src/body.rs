//! Bodies of replies, and the memory for all of them.

use std::sync::Arc;

use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use pds_core::memory::{Holder, MemoryBudget, Room, Share};
use tokio::sync::{Mutex, Semaphore};

/// A reply larger than this is read once there is room for all of it.
const SMALL: u64 = 64 * 1024;

/// The parts of half of a share.
const PARTS: u32 = 1024;

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

/// Limits an account beside others to half of each share, in [`PARTS`]. A reply that is larger than half waits until the
/// account has no other, and takes as much of the room as it needs.
#[derive(Debug)]
pub(super) struct AccountRoom {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl AccountRoom {
    pub(super) fn new() -> Self {
        let half = || Arc::new(Semaphore::new(PARTS as usize));
        Self { small: half(), large: half() }
    }
}

/// Waits for `bytes` of `share`, and of the account's `own` part if it has one.
async fn acquire(share: &Share, own: Option<&Arc<Semaphore>>, bytes: u64) -> impl Iterator<Item = Room> {
    let own_room = match own {
        Some(own) => {
            let parts = bytes.saturating_mul(2 * u64::from(PARTS)).div_ceil(share.bytes());
            let parts = u32::try_from(parts).unwrap_or(PARTS).min(PARTS);
            Arc::clone(own).acquire_many_owned(parts).await.ok()
        }
        None => None,
    };
    own_room.into_iter().chain(share.acquire(bytes).await)
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
        own: Option<&AccountRoom>,
    ) -> Result<bool, hyper::Error> {
        let announced = response.body().size_hint().exact();
        if announced.is_some_and(|length| length > self.limit) && response.status().is_success() {
            return Ok(false);
        }
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        self.room.extend(acquire(&room.small, own.map(|own| &own.small), SMALL).await);
        let mut is_large = false;
        self.bytes.reserve_exact(size(announced.unwrap_or(0).min(SMALL).min(self.limit)));
        while let Some(frame) = response.body_mut().frame().await {
            let Ok(chunk) = frame?.into_data() else { continue };
            if self.bytes.len() + chunk.len() > size(SMALL) && !is_large {
                is_large = true;
                // Reserved memory that is never written costs nothing.
                let whole = announced.unwrap_or(self.limit).min(self.limit);
                self.room.extend(acquire(&room.large, own.map(|own| &own.large), whole).await);
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
