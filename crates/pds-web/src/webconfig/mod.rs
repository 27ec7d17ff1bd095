//! The web configuration file (`--web.config.file`), in the exporter toolkit's format: TLS, client
//! certificates, passwords, headers and a rate limit.
//!
//! [`check`] reads a file once and says what is wrong or what it means. A running server follows its file: a change
//! takes effect once the file has been left alone for a second, from the next handshake or request on.
//!
//! - `file`: the YAML, strictly, with Go's names of TLS versions, cipher suites and curves.
//! - `tls`, `client_cert`: what rustls makes of them.
//! - `sources`: the files a configuration was read from, and whether they have changed.
//! - `live`: the active configuration.
//!
//! # Where it differs from the toolkit
//!
//! rustls has no TLS 1.0 or 1.1, no CBC cipher suites and no P-521. Naming them beside others is allowed and reported
//! ([`Summary::notes`]); a file that leaves no version, no cipher suite or no curve is refused. So are files that would not do what they seem to, though the toolkit takes them: a CA file without certificates,
//! `min_version` above `max_version`, a rate limit without a burst, allowed names in certificates that are not
//! required or not verified. `RequireAnyClientCert` with a client CA verifies against it.
//!
//! While running, TLS, passwords and demands on client certificates are never given up, even if the file says so: an
//! empty file is valid, and it is also what an editor leaves for a moment. Giving them up takes a restart.

mod client_cert;
mod error;
mod file;
mod live;
mod sources;
mod tls;

use std::path::Path;

use serde::Deserialize;

pub use error::WebConfigError;
pub use file::Rate;
pub(super) use live::{Current, Live};
use sources::Sources;

/// What a web configuration file means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whether connections need TLS.
    pub tls: bool,
    /// Whether TLS connections may speak HTTP/2.
    pub http2: bool,
    /// The active `client_auth_type`.
    pub client_auth: ClientAuth,
    /// How many users there are; without one no password is asked for.
    pub users: usize,
    /// The limit on requests.
    pub rate: Option<Rate>,
    /// Settings that have no effect or another one than they seem to, and keys that are not kept secret.
    pub notes: Vec<String>,
}

/// `client_auth_type`, as Go names its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ClientAuth {
    /// No certificate is asked for.
    #[default]
    NoClientCert,
    /// One is asked for; any will do, and none.
    RequestClientCert,
    /// Any certificate will do. Its old name is `RequireClientCert`.
    #[serde(alias = "RequireClientCert")]
    RequireAnyClientCert,
    /// One from our CA, or none.
    VerifyClientCertIfGiven,
    /// One from our CA.
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
