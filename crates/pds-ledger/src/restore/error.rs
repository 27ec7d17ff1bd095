//! Errors of reading back from Prometheus.

use std::path::PathBuf;
use std::time::Duration;

/// Why Prometheus gave no usable answer. No counter is opened or shown then, and Prometheus is asked again.
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
    /// The reply holds more samples than allowed.
    #[error("{url} answered more than {limit} samples")]
    TooMany {
        /// What was asked.
        url: String,
        /// The most samples of a reply.
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
    /// The reply says that the query failed.
    #[error("{url} failed: {message}")]
    Failed {
        /// What was asked.
        url: String,
        /// What it said.
        message: String,
    },
    /// The reply says that it may be incomplete.
    #[error("the answer of {url} may be incomplete: {warning}")]
    Incomplete {
        /// What was asked.
        url: String,
        /// What it said.
        warning: String,
    },
    /// The ledgers could not be written to the state file.
    #[error("what was read back from Prometheus cannot be kept")]
    NotKept(#[from] crate::NotCommitted),
}

impl Error {
    /// Whether smaller queries may succeed. Engines refuse queries beyond their limits with 422.
    pub(super) fn is_of_size(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooMany { .. } | Self::Status { status: 422, .. })
    }
}
