//! The web configuration file (`--web.config.file`), in the exporter toolkit's format: TLS, client
//! certificates, passwords, headers and a rate limit.
//!
//! [`check`] reads a file once and says what is wrong or what it means. A running server follows its file: a change
//! takes effect once the file has been left alone for a second, from the next handshake or request on.
//!
//! - `file`: the YAML, strictly.
//! - `names`: Go's names of TLS versions, cipher suites and curves, and which of them we have.
//! - `tls`, `client_cert`: what rustls makes of them.
//! - `sources`: the files a configuration was read from, and whether they have changed.
//! - `live`: the active configuration.
//!
//! # Where it differs from the toolkit
//!
//! rustls has no TLS 1.0 or 1.1, no CBC cipher suites and no P-521. Naming them beside others is allowed and reported
//! ([`Summary::notes`]), as is naming P-521 alone; a file that leaves no version or no cipher suite is refused. So
//! are files that would not do what they seem to, though the toolkit takes them: a CA file without certificates,
//! `min_version` above `max_version`, a rate limit without a burst, allowed names in certificates that are not
//! required or not verified. `RequireAnyClientCert` with a client CA verifies against it.
//!
//! While running, TLS, passwords and demands on client certificates are never given up, even if the file says so: an
//! empty file is valid, and it is also what an editor leaves for a moment. Giving them up takes a restart.

mod client_cert;
mod error;
mod file;
mod live;
mod names;
mod sources;
mod tls;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};

use pds_core::secret::Secret;

use client_cert::Demands;
pub use error::WebConfigError;
pub use file::Rate;
pub(super) use live::{Current, Live};
use sources::Sources;

/// What a web configuration file means.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// No certificate is asked for.
    #[default]
    NoClientCert,
    /// One is asked for; any will do, and none.
    RequestClientCert,
    /// Any certificate will do.
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
    load(path, &mut Sources::default()).map(|loaded| loaded.summary())
}

/// Parses the text of a file without looking at the files it names.
///
/// # Errors
/// Its first problem.
pub fn parse(text: &str) -> Result<(), WebConfigError> {
    file::parse(text).map(drop)
}

/// A configuration ready for use.
#[derive(Debug)]
struct Loaded {
    tls: Option<Arc<rustls::ServerConfig>>,
    http2: bool,
    client_auth: ClientAuth,
    demands: Demands,
    headers: Vec<(HeaderName, HeaderValue)>,
    users: BTreeMap<String, Secret>,
    rate: Option<Rate>,
    notes: Vec<String>,
}

impl Loaded {
    fn summary(&self) -> Summary {
        Summary {
            tls: self.tls.is_some(),
            http2: self.tls.is_some() && self.http2,
            client_auth: self.client_auth,
            users: self.users.len(),
            rate: self.rate,
            notes: self.notes.clone(),
        }
    }
}

fn load(path: &Path, sources: &mut Sources) -> Result<Loaded, WebConfigError> {
    let text = sources.read("the file", path)?.bytes;
    let text = String::from_utf8(text).map_err(|_| WebConfigError::Yaml("it is not UTF-8".to_owned()))?;
    let file = file::parse(&text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut notes = Vec::new();
    let (tls, demands) = tls::build(&file, folder, sources, &mut notes)?.unzip();
    Ok(Loaded {
        demands: demands.unwrap_or_default(),
        client_auth: if tls.is_some() { file.tls.client_auth } else { ClientAuth::default() },
        tls: tls.map(Arc::new),
        http2: file.http2,
        headers: file.headers,
        users: file.users,
        rate: file.rate,
        notes,
    })
}
