//! The HTTP client of every part: trust anchors, a proxy, no redirects, bounded bodies.
//!
//! It does not know the requests. Retries, pace and tokens belong to its callers.

mod connector;
mod interim;
mod resolver;
mod verifier;

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use pds_core::certificate::NOT_PEM;
use pds_core::plain_file;
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Proxy, Response};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::{Host, Url};

pub use connector::{Connector, Held, connector};
pub use interim::{MAX_INTERIM, MAX_INTERIM_BYTES};

use resolver::Resolver;
use verifier::Verifier;

/// The size of a file of trust anchors; all of Mozilla's take a quarter of a megabyte.
const MAX_CA_BYTES: u64 = 16 * 1024 * 1024;

/// The name and version in requests.
pub const USER_AGENT: &str = concat!("pds-exporter/", env!("CARGO_PKG_VERSION"));

/// Access to a server.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// The key of the configuration, or the flag, that names `ca_file`; for error texts.
    pub ca_key: &'static str,
    /// Trust anchors (PEM) beside the built-in ones.
    pub ca_file: Option<&'a Path>,
    /// An http or https proxy.
    pub proxy_url: Option<&'a Url>,
    /// Limit of name lookup, TCP connect and TLS handshake.
    pub connect_timeout: Duration,
}

impl Config<'_> {
    /// A client that follows no redirect, so that credentials are sent only to the configured host, and that retries
    /// nothing. Only the configuration sets a proxy; no variable of the environment does.
    ///
    /// # Errors
    /// If CA file, proxy or TLS cannot be set up.
    pub fn client(&self) -> Result<ClientBuilder, BuildError> {
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls_config(self.ca_key, self.ca_file)?)
            .user_agent(USER_AGENT)
            .redirect(Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(self.connect_timeout)
            // Shorter than the whole, so that the error names the lookup.
            .dns_resolver(Resolver::new(self.connect_timeout.mul_f64(0.9)))
            .no_proxy();
        let Some(url) = self.proxy_url else { return Ok(builder) };
        Ok(builder.proxy(Proxy::all(url.clone()).map_err(BuildError::Proxy)?))
    }

    /// The proxy's login, if a request to `url` carries it itself: plain HTTP has no tunnel.
    pub fn proxy_login(&self, url: &Url) -> Option<HeaderValue> {
        let proxies = Matcher::builder().http(self.proxy_url?.as_str()).build();
        proxies.intercept(&url.as_str().parse().ok()?)?.basic_auth().cloned()
    }

    /// Host and port of the proxy, if there is one.
    pub fn proxy(&self) -> Option<String> {
        host_and_port(self.proxy_url?)
    }
}

/// Host and port of a URL, as people write them.
pub fn host_and_port(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// TLS that trusts Mozilla's anchors, built in because a container may have none, and the certificates of `ca_file`, as
/// anchors and as certificates of servers. The configuration names that file by `key`.
///
/// # Errors
/// If that file cannot be used.
pub fn tls_config(key: &'static str, ca_file: Option<&Path>) -> Result<rustls::ClientConfig, BuildError> {
    let mut anchors = rustls::RootCertStore::empty();
    anchors.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let mut configured = Vec::new();
    if let Some(path) = ca_file {
        let file = path.display();
        let unreadable = |error| BuildError::Ca { key, problem: format!("cannot read {file}: {error}") };
        let pem = plain_file::read(path, MAX_CA_BYTES).map_err(unreadable)?.bytes;
        let bad = |problem: &dyn Display| BuildError::Ca {
            key,
            problem: format!("{file} must hold CA certificates in PEM form: {problem}"),
        };
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|_| bad(&NOT_PEM))?;
            anchors.add(certificate.clone()).map_err(|error| bad(&error))?;
            configured.push(certificate);
        }
        if configured.is_empty() {
            return Err(bad(&"no certificate in it"));
        }
    }
    // Set here instead of for the process: nothing is global.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new(anchors, configured, Arc::clone(&provider))
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

/// A client that cannot be built from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The CA file cannot be read, or holds no certificate, or one that cannot be a trust anchor.
    #[error("{key}: {problem}")]
    Ca {
        /// The key or flag that names the file.
        key: &'static str,
        /// The problem, with the path.
        problem: String,
    },
    /// The URL of the proxy is invalid.
    #[error("api.proxy_url: not the URL of an http or https proxy")]
    Proxy(#[source] reqwest::Error),
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("cannot set up the HTTP client")]
    Http(#[from] reqwest::Error),
}

/// Reads at most `limit` bytes of a body. Returns them, and whether they are all of it.
///
/// # Errors
/// If the connection breaks before the end.
pub async fn read_body(mut response: Response, limit: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let left = limit - bytes.len();
        bytes.extend_from_slice(chunk.get(..left).unwrap_or(&chunk));
        if chunk.len() > left {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

/// Whether others can read requests to `url`: it is plain http to another machine.
pub fn is_exposed_plaintext(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).to_canonical().is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !loopback
}
