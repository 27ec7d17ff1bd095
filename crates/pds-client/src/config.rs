//! The section `[api]`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use pds_interface::QueryNames;
use url::Url;

use super::TokenSource;

/// The service and its limits: the section `[api]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// http or https. May have a path; never a query, fragment or credentials.
    pub base_url: Url,
    /// The default service account; `None` only if every project has its own.
    pub token: Option<TokenSource>,
    /// Limit of a whole request, body included.
    pub timeout: Duration,
    /// Limit of name lookup, TCP connect and TLS handshake.
    pub connect_timeout: Duration,
    /// Requests in flight, over all targets.
    pub max_concurrent_requests: NonZeroU32,
    /// Requests per second, over all targets; `None` means unlimited.
    pub max_requests_per_second: Option<NonZeroU32>,
    /// Maximum size of a reply in bytes, after decompression.
    pub max_response_bytes: u64,
    /// Retries of one request within one poll.
    pub max_retries: u32,
    /// Additional trust anchors (PEM).
    pub ca_file: Option<PathBuf>,
    /// An http or https proxy.
    pub proxy_url: Option<Url>,
    /// Names of the environment's variables for proxies, such as `HTTPS_PROXY`. They are not used.
    pub proxy_variables: Vec<String>,
    /// The field of a custom domain that holds its validation status; `None` means the usual ones.
    pub domain_status_field: Option<String>,
    /// Names of the query parameters.
    pub query_names: QueryNames,
}

impl Config {
    /// The path to the service: trust anchors, proxy and time to connect.
    pub fn reached(&self) -> pds_http::Config<'_> {
        pds_http::Config {
            ca_key: "api.ca_file",
            ca_file: self.ca_file.as_deref(),
            proxy_url: self.proxy_url.as_ref(),
            connect_timeout: self.connect_timeout,
        }
    }
}
