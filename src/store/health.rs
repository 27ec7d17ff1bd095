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

/// What few targets have, so it is boxed.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Why polls fail, if they do.
    pub(super) failing: Option<Arc<Failure>>,
    /// Text of the last reply for people, not a metric.
    pub(super) message: Option<Arc<String>>,
}
