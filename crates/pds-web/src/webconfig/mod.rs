//! The web configuration file (`--web.config.file`), in the exporter toolkit's format: TLS, client
//! certificates, passwords, headers and a rate limit.
//!
//! [`check`] reads a file once and reports its problem or its meaning. A running server follows its file: a change
//! takes effect once the file has not changed for a second, from the next handshake or request on.
//!
//! - `file`: the YAML, strictly, with Go's names of TLS versions, cipher suites and curves.
//! - `tls`, `client_cert`: the values converted for rustls.
//! - `live`: the active configuration.
//!
//! # Differences from the toolkit
//!
//! rustls has no TLS 1.0 or 1.1, no CBC cipher suites and no P-521. Naming them besides others is allowed and reported
//! ([`Summary::notes`]); a file that leaves no version, no cipher suite or no curve is refused. So are misleading
//! files, although the toolkit accepts them: a CA file without certificates, `min_version` above `max_version`, a rate
//! limit without a burst, allowed names in certificates that are not required or not verified. `RequireAnyClientCert`
//! with a client CA verifies against it.
//!
//! A running server never drops TLS, passwords or demands on client certificates, even if the file does: an empty file
//! is valid, but may also be an editor's intermediate state. Dropping them takes a restart.

mod client_cert;
mod file;
mod live;
mod tls;

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use client_cert::Demands;
pub use file::Rate;
pub(super) use file::{MAX_HIDDEN_COST, bcrypt_cost};
pub(super) use live::{Client, Current, Live};
use pds_core::plain_file::{PlainFile, Sources};

/// A valid web configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whether connections need TLS.
    pub tls: bool,
    /// Whether TLS connections may speak HTTP/2.
    pub http2: bool,
    /// The demands on client certificates.
    pub demands: Demands,
    /// The number of users; without any, no password is required.
    pub users: usize,
    /// The limit on requests.
    pub rate: Option<Rate>,
    /// Settings without effect or with a misleading effect, and keys that others can read.
    pub notes: Vec<String>,
}

/// `client_auth_type`, as Go names its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum ClientAuth {
    /// No certificate is requested.
    NoClientCert,
    /// A certificate is requested; any or none is accepted.
    RequestClientCert,
    /// Any certificate is accepted. Its old name is `RequireClientCert`.
    #[serde(alias = "RequireClientCert")]
    RequireAnyClientCert,
    /// A certificate of our CA, or none.
    VerifyClientCertIfGiven,
    /// A certificate of our CA.
    RequireAndVerifyClientCert,
}

/// Reads a file, its certificates and keys, as the server would.
///
/// # Errors
/// Its first problem.
pub fn check(path: &Path) -> Result<Summary, WebConfigError> {
    live::load(path, &mut Sources::default()).map(|loaded| loaded.summary)
}

/// Parses the text of a file without looking at the files it names.
///
/// # Errors
/// Its first problem.
pub fn parse(text: &str) -> Result<(), WebConfigError> {
    file::parse(text).map(drop)
}

/// The first problem of a web configuration file, in the toolkit's words if they are clear.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebConfigError {
    /// A file cannot be read.
    #[error("cannot read {what} {}", path.display())]
    Read {
        /// The key that names it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Not valid YAML of this format; the text holds no values, as they may be secret.
    #[error("{0}")]
    Yaml(String),
    /// A value that is invalid, misleading, or in conflict with others.
    #[error("{key}: {problem}")]
    Value {
        /// The key or section.
        key: String,
        /// The problem.
        problem: String,
    },
    /// Valid settings with which TLS does not work.
    #[error("tls_server_config: {problem}")]
    Tls {
        /// The problem.
        problem: &'static str,
        /// Error of rustls.
        source: rustls::Error,
    },
    /// Client certificates cannot be verified.
    #[error("tls_server_config: the client CA cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
}

impl WebConfigError {
    pub(super) fn value(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Value { key: key.into(), problem: problem.into() }
    }

    /// For a key of `tls_server_config`.
    pub(super) fn tls(key: &str, problem: impl Into<String>) -> Self {
        Self::value(format!("tls_server_config.{key}"), problem)
    }

    /// For `tls_server_config` as a whole.
    pub(super) fn section(problem: impl Into<String>) -> Self {
        Self::value("tls_server_config", problem)
    }
}

/// The maximum size of a configuration, certificate chain or CA bundle.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Reads the file at `path`, which the key `what` names.
fn read(sources: &mut Sources, what: &'static str, path: &Path) -> Result<PlainFile, WebConfigError> {
    let failed = |source| WebConfigError::Read { what, path: path.to_owned(), source };
    sources.read(path, MAX_FILE_BYTES).map_err(failed)
}
