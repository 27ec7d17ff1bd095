//! Running exporters, each read through its `/api/v1/status`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;
use url::{Host, Url};

use crate::error::{Result, ToolError};
use pds_client::{Class, ReplyStage, classify};
use pds_config::flags::{DEFAULT_LISTEN_ADDRESS, Flags};
use pds_config::parse_url;
use pds_core::error_chain::with_sources;
use pds_core::printable::excerpt;
use pds_core::redact::Redactor;
use pds_core::secret::Secret;
use pds_core::template::percent_encode;
use pds_diagnosis::{App, Summary, model};
use pds_http::read_body;
use pds_web::webconfig;

/// Path of an exporter's status, below its own path.
const STATUS_PATH: &str = "/api/v1/status";

/// Time limit of a reply, which an exporter sends from memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest status that is read: some 100,000 apps.
const MAX_STATUS: usize = 64 << 20;

/// The flags with which an exporter that requires TLS or a password is read.
pub const LOGIN: &str = "--exporter https://USER:PASSWORD@NAME (http:// without TLS), and --exporter-ca-file FILE for a private authority";

/// The variable with the addresses of exporters.
pub const VARIABLE: &str = "PDSTOOL_EXPORTER";

/// The options that name exporters.
#[derive(Clone, Debug, Args)]
pub struct ExporterArgs {
    /// Address of a running exporter; may contain a path, user and password, or is unix:FILE for a socket without TLS and
    /// password. Repeatable, or separated by commas. If a name has several addresses, all of them are queried. [default: the exporter that runs on
    /// this machine]
    #[arg(
        long = "exporter",
        value_name = "URL",
        value_delimiter = ',',
        value_parser = address,
        env = VARIABLE,
        hide_env_values = true
    )]
    pub exporters: Vec<Address>,
    /// Additional CA certificates (PEM) for the exporter.
    #[arg(long, value_name = "FILE")]
    pub exporter_ca_file: Option<PathBuf>,
}

/// The address of an exporter: its URL, and its endpoint if that is a socket file.
pub type Address = (Url, Option<Endpoint>);

/// The address of an exporter; `localhost:10090` is `http://localhost:10090`.
///
/// # Errors
/// If it is not an http or https address, or `unix:FILE`. The message does not show it: it may hold a password.
fn address(text: &str) -> Result<Address, String> {
    let (url, socket) = match text.strip_prefix("unix:") {
        Some(path) => ("localhost", Some(Endpoint::Socket(path.into()))),
        None => (text, None),
    };
    let url = if url.contains("://") { parse_url(url) } else { parse_url(&format!("http://{url}")) };
    Ok((url?, socket))
}

/// The endpoint of an exporter whose URL does not suffice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// One of the addresses of its name.
    Address(SocketAddr),
    /// The socket file on which it listens.
    Socket(PathBuf),
}

/// The exporter on this machine: the first address of `given`; if there is none, that of the `running` exporter's flags;
/// if none runs, the default. It is reached over TLS if the running exporter's web configuration requires TLS.
///
/// # Errors
/// If its address is invalid.
pub fn local_exporter(given: &[String], running: Option<&Flags>) -> Result<Address> {
    let flags = running.filter(|_| given.is_empty());
    let listens = flags.map_or(given, |flags| &flags.web_listen_address).first();
    let listens = listens.map_or(DEFAULT_LISTEN_ADDRESS, String::as_str);
    let prefix = flags.map_or("", Flags::route_prefix);
    let web_config = flags.and_then(|flags| flags.web_config_file.as_ref());
    let is_tls = web_config.is_some_and(|file| webconfig::check(file).is_ok_and(|found| found.tls));
    let scheme = if is_tls { "https" } else { "http" };
    let socket = listens.strip_prefix("unix:").map(|path| Endpoint::Socket(path.into()));
    let host = match socket {
        Some(_) => "localhost".to_owned(),
        None => {
            let local = pds_web::local_address(listens);
            local.map_err(|error| ToolError::failed(with_sources(&error)))?.to_string()
        }
    };
    Ok((parse_url(&format!("{scheme}://{host}{prefix}")).map_err(ToolError::failed)?, socket))
}

/// A running exporter.
#[derive(Clone, Debug)]
pub struct Exporter {
    /// Its address without user, password and the path of the status; `unix:/path` for a socket file.
    pub name: String,
    http: reqwest::Client,
    url: Url,
    /// Removes the password from replies and errors.
    redactor: Redactor,
}

/// The fields of an exporter's status that the tool shows. A status has a summary; other fields that an exporter does not
/// send are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the fields of `Status`")]
pub struct ExporterStatus {
    #[serde(default)]
    pub exporter: model::Exporter,
    #[serde(default)]
    pub service: model::Service,
    pub summary: Summary,
    #[serde(default)]
    pub apps: Vec<App>,
}

/// Why an exporter's status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// No reply, for a reason of this class, in the words of the library.
    #[error("{1}")]
    Http(Class, String),
    /// A reply with the status of an error. The server's own words for it are not shown.
    #[error("HTTP status {0}")]
    Refused(reqwest::StatusCode),
    /// A refusal of the user and password of the address.
    #[error("HTTP status 401: it refuses the user or password of its address")]
    Login,
    /// A reply beyond 64 MiB.
    #[error("the reply is too large for a status; is this the address of an exporter?")]
    TooLarge,
    /// The reply is not a status, for this reason.
    #[error("the reply is not a status; is this the address of an exporter?: {0}")]
    Json(String),
}

/// Shortens the error, which quotes the reply.
impl From<serde_json::Error> for ExporterError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(excerpt(&error.to_string()))
    }
}

impl ExporterError {
    /// Whether no connection could be made.
    pub fn is_connect(&self) -> bool {
        // A failed TLS handshake shows that something listens.
        matches!(self, Self::Http(class, _) if class.is_no_connection() && class.code() != "tls")
    }

    /// Whether it requires a password, TLS, or trust in its certificate.
    pub fn is_locked(&self) -> bool {
        match self {
            // A TLS alert is not HTTP.
            Self::Http(Class::Protocol, _) => true,
            Self::Http(Class::TlsPlain | Class::TlsExpired | Class::TlsNotYetValid, _) => false,
            Self::Http(class, _) => class.code() == "tls",
            error => matches!(error, Self::Refused(reqwest::StatusCode::UNAUTHORIZED)),
        }
    }

    /// The remedy, if the error reveals one.
    pub(super) fn remedy(&self) -> Option<String> {
        match self {
            Self::Http(Class::TlsPlain, _) => Some("Use http:// in --exporter.".to_owned()),
            Self::Login => Some("Correct user and password in --exporter.".to_owned()),
            _ if self.is_locked() => Some(format!("If it requires TLS or a password, use {LOGIN}.")),
            _ if self.is_connect() => Some("Start the daemon, or set --exporter to its address.".to_owned()),
            _ => None,
        }
    }
}

impl Exporter {
    /// The exporter at `url`, reached at `endpoint`.
    ///
    /// # Errors
    /// If no HTTP client can be set up.
    pub fn new(url: &Url, endpoint: Option<Endpoint>, ca_file: Option<&Path>) -> Result<Self> {
        let reached = pds_http::Config {
            ca_key: "--exporter-ca-file",
            ca_file,
            proxy_url: None,
            connect_timeout: TIMEOUT,
        };
        let http = reached.client().and_then(|client| {
            let client = match (&endpoint, url.host_str()) {
                (Some(Endpoint::Address(address)), Some(host)) => client.resolve(host, *address),
                (Some(Endpoint::Socket(path)), _) => client.unix_socket(&**path),
                _ => client,
            };
            Ok(client.timeout(TIMEOUT).build()?)
        });
        let http = http.map_err(|error| ToolError::failed(with_sources(&error)))?;
        let path = url.path().trim_end_matches('/');
        let mut named = url.clone();
        if let Some(Endpoint::Address(address)) = endpoint {
            // Cannot fail for a URL that has a host.
            let _ = named.set_ip_host(address.ip());
        }
        let name = match &endpoint {
            Some(Endpoint::Socket(path)) => format!("unix:{}", path.display()),
            // Without user and password.
            _ => format!("{}{path}", named.origin().ascii_serialization()),
        };
        let mut url = url.clone();
        url.set_path(&format!("{path}{STATUS_PATH}"));
        let redactor = Redactor::of(url.password().map(Secret::new).as_ref());
        Ok(Self { name, http, url, redactor })
    }

    /// Its status: the fields that the tool reads, and the whole reply.
    ///
    /// # Errors
    /// If it does not reply, refuses, or sends another kind of reply.
    pub async fn status(&self) -> Result<(ExporterStatus, Value), ExporterError> {
        // User and password of the address become a header.
        let request = self.http.get(self.url.clone()).header(ACCEPT, "application/json");
        let reply = request.send().await.map_err(|error| self.broken(error, ReplyStage::BeforeHead))?;
        let status = reply.status();
        if status == reqwest::StatusCode::UNAUTHORIZED && !self.url.username().is_empty() {
            return Err(ExporterError::Login);
        }
        if status.is_client_error() || status.is_server_error() {
            return Err(ExporterError::Refused(status));
        }
        let read = read_body(reply, MAX_STATUS).await;
        let (body, true) = read.map_err(|error| self.broken(error, ReplyStage::AfterHead))? else {
            return Err(ExporterError::TooLarge);
        };
        let sent: Value = serde_json::from_slice(&self.redactor.reply(body))?;
        Ok((ExporterStatus::deserialize(&sent)?, sent))
    }

    /// Why no reply arrived. Drops the address, which the message already names and which may hold a password.
    fn broken(&self, error: reqwest::Error, stage: ReplyStage) -> ExporterError {
        let class = classify(&error, stage, false);
        ExporterError::Http(class, self.redactor.error(&error.without_url()))
    }

    /// The address of an app's page.
    pub fn page_of(&self, app: &App) -> String {
        let mut url = format!("{}/apps/", self.name);
        percent_encode(&app.project, &mut url);
        url.push('/');
        percent_encode(&app.id, &mut url);
        url
    }
}

impl ExporterArgs {
    /// The exporters that the arguments name; if there are none, the [`local_exporter`] of `listens` and `running`.
    ///
    /// # Errors
    /// If no HTTP client can be set up, or, without `--exporter`, the first address of `listens` is invalid.
    pub async fn open(&self, listens: &[String], running: Option<&Flags>) -> Result<Vec<Exporter>> {
        let ca_file = self.exporter_ca_file.as_deref();
        if self.exporters.is_empty() {
            let (url, endpoint) = local_exporter(listens, running)?;
            return Ok(vec![Exporter::new(&url, endpoint, ca_file)?]);
        }
        let mut exporters = Vec::new();
        for (url, socket) in &self.exporters {
            let addresses = if socket.is_some() { Vec::new() } else { addresses(url).await };
            let endpoints = if addresses.is_empty() { vec![socket.clone()] } else { addresses };
            for endpoint in endpoints {
                exporters.push(Exporter::new(url, endpoint, ca_file)?);
            }
        }
        Ok(exporters)
    }
}

/// The addresses of the name in `url` if it has several, like the name of a headless Service.
async fn addresses(url: &Url) -> Vec<Option<Endpoint>> {
    let (Some(Host::Domain(host)), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Vec::new();
    };
    let lookup = tokio::time::timeout(TIMEOUT, tokio::net::lookup_host((host, port)));
    let Ok(Ok(found)) = lookup.await else { return Vec::new() };
    let found = several(found.map(|address| address.ip())).map(|ip| SocketAddr::new(ip, port));
    found.map(|address| Some(Endpoint::Address(address))).collect()
}

/// The addresses of one family, if it has several: one address of each family is the same host.
fn several(addresses: impl Iterator<Item = IpAddr>) -> impl Iterator<Item = IpAddr> {
    let (four, six): (BTreeSet<_>, BTreeSet<_>) = addresses.partition(IpAddr::is_ipv4);
    [four, six].into_iter().find(|family| family.len() > 1).unwrap_or_default().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme() {
        for (text, url) in [
            ("localhost:10090", "http://localhost:10090/"),
            ("127.0.0.1:10090/behind/a/proxy", "http://127.0.0.1:10090/behind/a/proxy"),
            ("exporter", "http://exporter/"),
            ("https://exporter:10090", "https://exporter:10090/"),
        ] {
            assert_eq!(address(text), Ok((url.parse().unwrap(), None)));
        }
        assert!(address("ftp://exporter").is_err() && address("http://").is_err());
        let socket = Endpoint::Socket("/run/pds exporter.sock".into());
        let (_, endpoint) = address("unix:/run/pds exporter.sock").unwrap();
        assert_eq!(endpoint, Some(socket));
    }
    #[test]
    fn a_name_with_several_addresses_of_a_family_is_several_exporters() {
        for (addresses, read) in [
            (&["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"][..], &["10.0.0.1", "10.0.0.2"][..]),
            (&["127.0.0.1", "::1"], &[]),
            (&["fd00::1", "fd00::2"], &["fd00::1", "fd00::2"]),
        ] {
            let found = several(addresses.iter().map(|text| text.parse().unwrap()));
            assert_eq!(found.map(|ip| ip.to_string()).collect::<Vec<_>>(), read);
        }
        let [url, address] = ["http://pds:10090/prefix", "10.0.0.2:10090"];
        let exporter =
            Exporter::new(&url.parse().unwrap(), address.parse().ok().map(Endpoint::Address), None).unwrap();
        assert_eq!(exporter.name, "http://10.0.0.2:10090/prefix", "its pages are linked at its address");
    }

    #[test]
    fn the_remedy_follows_from_the_error() {
        let locked = Some("If it requires TLS or a password, use --exporter https://");
        for (class, expected) in [
            (Class::ConnectRefused, Some("Start the daemon")),
            (Class::Dns, Some("Start the daemon")),
            (Class::TlsPlain, Some("Use http:// in --exporter")),
            (Class::TlsUnknownCa, locked),
            (Class::Protocol, locked),
            (Class::TlsExpired, None),
            (Class::Reset, None),
        ] {
            let given = ExporterError::Http(class, String::new()).remedy();
            let begins = |given: &str| expected.is_some_and(|expected| given.starts_with(expected));
            assert_eq!(given.as_deref().map(begins), expected.map(|_| true), "{class:?}: {given:?}");
        }
    }
}
