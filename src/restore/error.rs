//! Why nothing could be learned from a Prometheus.

use std::path::PathBuf;
use std::time::Duration;

/// Why nothing could be learned from a Prometheus. No counter is opened or shown because of it; it is asked again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file with credentials cannot be read.
    #[error("cannot read {}, which state.{key} names", path.display())]
    Login {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A header cannot be sent.
    #[error("{0} holds characters that no HTTP header can carry")]
    Unsendable(String),
    /// The connection failed or broke off.
    #[error("{url} cannot be reached")]
    Unreachable {
        /// What was asked.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// No whole reply within the time allowed.
    #[error("{url} did not answer within {}", humantime::format_duration(*limit))]
    Timeout {
        /// What was asked.
        url: String,
        /// The time allowed.
        limit: Duration,
    },
    /// A reply with another status than 200.
    #[error("{url} answered {status}: {message}")]
    Status {
        /// What was asked.
        url: String,
        /// The status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The reply is larger than allowed.
    #[error("{url} answered more than {} MiB", limit >> 20)]
    TooLarge {
        /// What was asked.
        url: String,
        /// The most bytes of a reply.
        limit: usize,
    },
    /// The reply is not one of Prometheus' HTTP API.
    #[error("the answer of {url} is not one of Prometheus' HTTP API: {problem}")]
    NotPrometheus {
        /// What was asked.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It says itself that it failed.
    #[error("{url} failed: {message}")]
    Failed {
        /// What was asked.
        url: String,
        /// What it said.
        message: String,
    },
    /// It says itself that its answer may lack something.
    #[error("the answer of {url} may be incomplete: {warning}")]
    Incomplete {
        /// What was asked.
        url: String,
        /// What it said.
        warning: String,
    },
    /// What was read back could not be written to the state file.
    #[error("what was read back from Prometheus cannot be kept")]
    NotKept(#[from] crate::accounting::ledger_store::NotCommitted),
}

impl Error {
    /// Whether smaller questions may be answered: 422 is how engines refuse a query that is beyond their limits.
    pub(super) fn is_of_size(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Status { status: 422, .. })
    }
}
