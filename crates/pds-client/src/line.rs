//! A line in which the request that has waited longest goes first, whenever it joined.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// A queue ordered by waiting time.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    joined: u64,
    waiting: BTreeMap<(Instant, u64), Arc<Notify>>,
}

/// A ticket for the line, given up on drop.
#[derive(Debug)]
pub(super) struct Ticket<'a> {
    line: &'a Line,
    key: (Instant, u64),
    wake: Arc<Notify>,
}

impl Line {
    /// Joins the line with a request that has waited since `since`.
    pub(super) fn join(&self, since: Instant) -> Ticket<'_> {
        let wake = Arc::new(Notify::new());
        let mut state = self.state();
        state.joined += 1;
        let key = (since, state.joined);
        state.waiting.insert(key, Arc::clone(&wake));
        Ticket { line: self, key, wake }
    }

    /// Whether the line is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.state().waiting.is_empty()
    }

    /// Wakes the first, which checks again whether it may go.
    pub(super) fn wake_first(&self) {
        self.state().wake_first();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake_first(&self) {
        if let Some((_, first)) = self.waiting.first_key_value() {
            first.notify_one();
        }
    }
}

impl Ticket<'_> {
    /// Whether this ticket is the first. A request that has waited longer may still overtake it.
    pub(super) fn is_first(&self) -> bool {
        self.line.state().waiting.first_key_value().is_some_and(|(key, _)| *key == self.key)
    }

    /// Waits until this ticket may have become the first, or its wait may have become shorter.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.line.state();
        state.waiting.remove(&self.key);
        state.wake_first();
    }
}
