//! Whether replies are about the requested ranges.

use std::sync::Arc;

use super::Account;

/// Whether the service honours the ranges that an account requests.
#[derive(Debug, Default)]
pub(super) enum RangeSupport {
    /// No reply has stated a range.
    #[default]
    Unknown,
    /// A reply was about the requested range. No later failure is due to the names of query parameters.
    Honoured,
    /// No reply was, with the text of the report.
    Ignored(Arc<str>),
}

impl Account {
    /// Records that a reply is about the requested range.
    pub fn range_honoured(&self) {
        match std::mem::replace(&mut self.inner.state.lock().ranges, RangeSupport::Honoured) {
            RangeSupport::Honoured => return,
            RangeSupport::Ignored(_) => {
                tracing::info!(token = self.name(), "the service honours the requested range");
            }
            RangeSupport::Unknown => {}
        }
        self.reporter().fact(|observer, name| observer.range_honoured(name, None));
    }

    /// Records that a reply is about another range than requested; `explanation` is the text of the report. Returns
    /// whether no reply so far was about the requested range: the service does not know the query parameters.
    pub fn range_ignored(&self, explanation: &str) -> bool {
        let mut state = self.inner.state.lock();
        if matches!(state.ranges, RangeSupport::Unknown) {
            state.ranges = RangeSupport::Ignored(explanation.into());
            self.reporter().fact(|observer, name| observer.range_honoured(name, Some(explanation)));
        }
        !matches!(state.ranges, RangeSupport::Honoured)
    }

    /// Why no reply was about the requested range; `None` if one was, or nothing is known yet.
    pub fn ignored_range(&self) -> Option<Arc<str>> {
        match &self.inner.state.lock().ranges {
            RangeSupport::Ignored(explanation) => Some(Arc::clone(explanation)),
            _ => None,
        }
    }
}
