//! Whether replies are about the requested ranges.

use std::sync::Arc;

use super::Account;

/// Whether a reply of an account was about the requested range: `None` before a reply states a range, `Err` with the
/// text of the report while no reply was. After `Ok`, no failure is due to the names of query parameters.
pub(super) type Ranges = Option<Result<(), Arc<str>>>;

impl Account {
    /// Records that a reply is about the requested range.
    pub fn range_honoured(&self) {
        match self.inner.state.lock().ranges.replace(Ok(())) {
            Some(Ok(())) => return,
            Some(Err(_)) => tracing::info!(token = self.name(), "the service honours the requested range"),
            None => {}
        }
        self.reporter().fact(|observer, name| observer.range_honoured(name, None));
    }

    /// Records that a reply is about another range than requested, as `told` explains. Returns whether no reply so far
    /// was about the requested range: the service does not know the query parameters.
    pub fn range_ignored(&self, told: &str) -> bool {
        let mut state = self.inner.state.lock();
        if state.ranges.is_none() {
            state.ranges = Some(Err(told.into()));
            self.reporter().fact(|observer, name| observer.range_honoured(name, Some(told)));
        }
        matches!(state.ranges, Some(Err(_)))
    }

    /// Why no reply was about the requested range; `None` if one was, or nothing is known yet.
    pub fn ignored_range(&self) -> Option<Arc<str>> {
        self.inner.state.lock().ranges.clone()?.err()
    }
}
