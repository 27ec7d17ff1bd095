//! How many polls may ask at once.

use tokio::sync::watch;

/// The places of polls that ask. One that has asked and waits for the disk holds none: commits are few and far apart,
/// and at ten thousand apps hundreds of polls wait for the same one.
#[derive(Debug)]
pub struct Room {
    taken: watch::Sender<u32>,
    seen: watch::Receiver<u32>,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub struct Place(watch::Sender<u32>);

impl Default for Room {
    fn default() -> Self {
        let (taken, seen) = watch::channel(0);
        Self { taken, seen }
    }
}

impl Room {
    /// Takes a place, whether there is one or not.
    #[must_use]
    pub fn enter(&self) -> Place {
        self.taken.send_modify(|taken| *taken += 1);
        Place(self.taken.clone())
    }

    /// Whether fewer than `most` are taken.
    #[must_use]
    pub fn has_place(&self, most: u32) -> bool {
        *self.taken.borrow() < most
    }

    /// Waits until fewer than `most` are taken.
    pub async fn has_place_again(&mut self, most: u32) {
        // Fails only without a sender, and here is one.
        let _ = self.seen.wait_for(|taken| *taken < most).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send_modify(|taken| *taken -= 1);
    }
}
