//! What counting and restoring are configured by.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use url::Url;

use pds_core::secret::Secret;

/// Which ranges are counted. All durations are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How far behind now every range ends.
    pub settle: Duration,
    /// Ranges are aligned to whole steps of UTC.
    pub step: Duration,
    /// How far back is asked after an outage; what is older is given up.
    pub max_catch_up: Duration,
    /// The ages at which each whole hour is counted again.
    pub recheck_after: Vec<Duration>,
}

/// A server with the Prometheus HTTP API that scrapes this exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prometheus {
    /// http or https. `/api/v1` is appended to its path.
    pub url: Url,
    /// The credentials, if any.
    pub login: Option<Login>,
    /// Additional trust anchors (PEM).
    pub ca_file: Option<PathBuf>,
    /// Sent with every query.
    pub headers: Vec<(HeaderName, Secret)>,
    /// Label matchers for every query, without braces; may be empty.
    pub selector: String,
    /// How far back the counters are looked for.
    pub lookback: Duration,
}

/// Credentials for a [`Prometheus`]. Files are read again whenever they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// The file holds a bearer token.
    Token(PathBuf),
    /// Basic authentication.
    Basic {
        /// The user.
        username: String,
        /// The file holds the password.
        password_file: PathBuf,
    },
}
