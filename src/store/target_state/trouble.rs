//! What only few targets have: a failure that lasts, and a text for people.

use std::sync::Arc;

use super::Failure;

/// Eight bytes for each of the many targets that have neither.
#[derive(Debug, Default)]
pub(super) struct Trouble(Option<Box<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    failing: Option<Arc<Failure>>,
    message: Option<Arc<String>>,
}

impl Trouble {
    /// Why polls fail, if they do.
    pub(super) fn failing(&self) -> Option<&Arc<Failure>> {
        self.0.as_ref()?.failing.as_ref()
    }

    /// The last poll failed.
    pub(super) fn begin_failing(&mut self, failure: Failure) {
        self.0.get_or_insert_default().failing = Some(Arc::new(failure));
    }

    /// Removes and returns the failure.
    pub(super) fn end_failing(&mut self) -> Option<Arc<Failure>> {
        self.0.as_mut()?.failing.take()
    }

    /// Text of the last reply for people, not a metric.
    pub(super) fn message(&self) -> Option<&Arc<String>> {
        self.0.as_ref()?.message.as_ref()
    }

    /// Replaces that text.
    pub(super) fn set_message(&mut self, message: Option<String>) {
        if message.is_some() || self.message().is_some() {
            self.0.get_or_insert_default().message = message.map(Arc::new);
        }
    }
}
