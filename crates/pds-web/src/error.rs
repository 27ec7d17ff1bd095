//! Errors before the first request.

use std::io;
use std::path::PathBuf;

use super::webconfig::WebConfigError;

/// Descriptors that the process needs. A quarter of them is for everything but connections: listening sockets, files,
/// and its own requests.
pub(super) const MIN_DESCRIPTORS: u64 = 64;

/// Why the server cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value of a flag.
    #[error("{flag} {value:?}: {problem}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// The written text.
        value: String,
        /// The problem.
        problem: String,
        /// Error of the system.
        source: Option<io::Error>,
    },
    /// No address to listen on.
    #[error("no address to listen on: set --web.listen-address or --web.systemd-socket")]
    NoAddress,
    /// Too few file descriptors.
    #[error("the limit of open files is {0}; the exporter needs {MIN_DESCRIPTORS} (ulimit -n, LimitNOFILE=)")]
    Descriptors(u64),
    /// `--web.systemd-socket` without sockets.
    #[error("--web.systemd-socket: systemd passed no listening TCP or unix socket (LISTEN_FDS)")]
    NoSystemdSocket,
    /// A socket from systemd that cannot be used.
    #[error("--web.systemd-socket: socket {number} cannot be used")]
    SystemdSocket {
        /// Its number, from 0.
        number: usize,
        /// Error of the system.
        source: io::Error,
    },
    /// The web configuration file.
    #[error("--web.config.file {}", path.display())]
    WebConfig {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: WebConfigError,
    },
    /// A health check got no answer.
    #[error("no answer from {address}")]
    Unreachable {
        /// The address that was queried.
        address: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A health check got an answer that this exporter does not send.
    #[error("{address} does not answer like a healthy exporter: {answer:?}")]
    Unhealthy {
        /// The address that was queried.
        address: String,
        /// The first line of its answer.
        answer: String,
    },
    /// The system provides no randomness.
    #[error("the system provides no random numbers")]
    NoRandomness,
}

impl Error {
    /// For the `value` of a `flag`.
    pub(super) fn flag(flag: &'static str, value: &str, problem: &str) -> Self {
        Self::Flag { flag, value: value.to_owned(), problem: problem.to_owned(), source: None }
    }

    /// For `--web.listen-address`.
    pub(super) fn address(address: &str, problem: impl Into<String>, source: Option<io::Error>) -> Self {
        let (value, problem) = (address.to_owned(), problem.into());
        Self::Flag { flag: "--web.listen-address", value, problem, source }
    }
}
