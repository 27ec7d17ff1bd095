//! Limits the number of concurrent polls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

/// Slots for polls with requests in flight. A poll that waits for the disk holds none: commits are rare, and with ten
/// thousand apps hundreds of polls wait for the same one.
#[derive(Debug, Default)]
pub struct PollSlots(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    taken: AtomicU32,
    given_back: Notify,
}

/// A taken slot, freed when dropped.
#[derive(Debug)]
pub struct SlotPermit(Arc<Inner>);

impl PollSlots {
    /// Takes a slot, even beyond the limit.
    #[must_use]
    pub fn enter(&self) -> SlotPermit {
        self.0.taken.fetch_add(1, Ordering::AcqRel);
        SlotPermit(Arc::clone(&self.0))
    }

    /// Whether fewer than `most` are taken.
    #[must_use]
    pub fn has_place(&self, most: u32) -> bool {
        self.0.taken.load(Ordering::Acquire) < most
    }

    /// Waits until fewer than `most` are taken. Single waiter.
    pub async fn has_place_again(&self, most: u32) {
        while !self.has_place(most) {
            self.0.given_back.notified().await;
        }
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.given_back.notify_one();
    }
}
