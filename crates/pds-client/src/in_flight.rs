//! How many bytes of replies are held at once, over all requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// All replies in flight hold at most this many bytes together. Others wait. A single reply may be larger if
/// `api.max_response_bytes` allows it.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// A reply larger than this is read once there is room for the whole of it.
pub(super) const SMALL: u64 = 64 * 1024;
/// Unit of the semaphore, in bytes.
const UNIT: u64 = 1024;

/// The room for replies. Half of it is for replies up to [`SMALL`] and the beginnings of all others, so that a reply
/// that waits for the rest of its room does not block those that could finish.
#[derive(Debug)]
pub(super) struct InFlight {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// Room taken by a reply, released on drop.
#[derive(Debug)]
pub(super) struct ReplyPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl InFlight {
    /// Room for replies of which each has up to `max_bytes`.
    pub(super) fn new(max_bytes: u64) -> Self {
        let semaphore = |bytes: u64| Arc::new(Semaphore::new(usize::try_from(bytes / UNIT).unwrap_or(0)));
        let most = u64::from(u32::MAX);
        Self {
            small: semaphore(MAX_BYTES / 2),
            large: semaphore((MAX_BYTES / 2).max(max_bytes + UNIT).min(most)),
        }
    }

    /// Waits for room for the beginning of a reply.
    pub(super) async fn beginning(&self) -> ReplyPermit {
        Self::acquire(&self.small, SMALL).await
    }

    /// Waits for room for the whole of a reply of `bytes`.
    pub(super) async fn whole(&self, bytes: u64) -> ReplyPermit {
        Self::acquire(&self.large, bytes).await
    }

    async fn acquire(semaphore: &Arc<Semaphore>, bytes: u64) -> ReplyPermit {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        ReplyPermit { _permit: Arc::clone(semaphore).acquire_many_owned(units).await.ok() }
    }
}
