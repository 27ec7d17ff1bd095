//! Whether replies are about the requested ranges.

use std::sync::Arc;

use super::Account;

/// The evidence of the replies of an account.
#[derive(Debug, Default)]
pub(super) enum Ranges {
    /// No reply has shown it yet.
    #[default]
    Unknown,
    /// At least one reply was; other failures are not due to the names of query parameters.
    Honoured,
    /// No reply was; holds the text of the report.
    Ignored(Arc<str>),
}

impl Account {
    /// Records that a reply is about the requested range.
    pub fn range_honoured(&self) {
        match std::mem::replace(&mut self.inner.state.lock().ranges, Ranges::Honoured) {
            Ranges::Honoured => return,
            Ranges::Ignored(_) => {
                tracing::info!(token = self.name(), "the service honours the requested range");
            }
            Ranges::Unknown => {}
        }
        self.inner.credentials.reporter.fact(|observer, name| observer.range_honoured(name, None));
    }

    /// Records that a reply is about another range than requested, as `told` explains. Returns whether all replies so
    /// far were, because the service does not know the query parameters.
    pub fn range_ignored(&self, told: &str) -> bool {
        let mut state = self.inner.state.lock();
        let ranges = &mut state.ranges;
        if matches!(ranges, Ranges::Unknown) {
            *ranges = Ranges::Ignored(told.into());
            self.inner.credentials.reporter.fact(|observer, name| observer.range_honoured(name, Some(told)));
        }
        matches!(ranges, Ranges::Ignored(_))
    }

    /// Why no reply was about the requested range; `None` if one was, or nothing is known yet.
    pub fn ignored_range(&self) -> Option<Arc<str>> {
        match &self.inner.state.lock().ranges {
            Ranges::Ignored(told) => Some(Arc::clone(told)),
            Ranges::Unknown | Ranges::Honoured => None,
        }
    }
}
