//! The health of a target.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Duration;

/// The health of a target.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Whether the last poll succeeded; `None` before the first.
    pub up: Option<bool>,
    /// When it last succeeded.
    pub last_success: Option<Timestamp>,
    /// Since when it has been failing, and why.
    pub failing: Option<Arc<Failure>>,
}

/// A failing target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When it began to fail.
    pub since: Timestamp,
    /// The class of the last failure: a word of the closed set of `pds_api_requests_total`'s label `code`.
    pub class: &'static str,
    /// The text of the last failure.
    pub message: Arc<str>,
    /// The class of the last [`Transition::Failing`]; `None` if the service account logged the failure.
    pub(super) told: Option<&'static str>,
}

/// What a poll's outcome changed. Logged unless it is `Same`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Nothing.
    Same,
    /// The first failure, or the first for another reason.
    Failing,
    /// The first success after failures of its own.
    Recovered {
        /// How long it was failing, by the wall clock.
        after: Duration,
    },
}

/// A failure that lasts, and a text for people. Eight bytes for each of the many targets that have neither.
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
