//! Running exporters, each read through its `/api/v1/status`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;
use url::{Host, Url};

use crate::error::{Result, ToolError};
use crate::report::{first_few, grouped};
use crate::service::flags_of_exporter;
use pds_config::flags::{DEFAULT_LISTEN_ADDRESS, Flags};
use pds_core::error_chain::with_sources;
use pds_core::redact::Redactor;
use pds_core::secret::Secret;
use pds_core::template::percent_encode;
use pds_diagnosis::{App, Summary, model};
use pds_http::read_body;

/// Path of an exporter's status, below its own path.
const STATUS_PATH: &str = "/api/v1/status";

/// Time limit of a reply, which an exporter sends from memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest status that is read: some 100,000 apps.
const MAX_STATUS: usize = 64 << 20;

/// Missing shards are searched below this number: an exporter may report any number of shards.
const MAX_SHARDS: u32 = 10_000;

/// The variable with the addresses of exporters.
pub const VARIABLE: &str = "PDSTOOL_EXPORTER";

/// The options that name exporters.
#[derive(Clone, Debug, Args)]
pub struct ExporterArgs {
    /// Address of a running exporter; may contain a path, user and password. Repeatable, or separated by commas. If a
    /// name has several addresses, all of them are queried. [default: the exporter that runs on this machine]
    #[arg(
        long = "exporter",
        value_name = "URL",
        value_delimiter = ',',
        value_parser = address,
        env = VARIABLE,
        hide_env_values = true
    )]
    pub exporters: Vec<Url>,
    /// Additional CA certificates (PEM) for the exporter.
    #[arg(long, value_name = "FILE")]
    pub exporter_ca_file: Option<PathBuf>,
}

/// The address of an exporter; `localhost:10090` is `http://localhost:10090`.
///
/// # Errors
/// If it is not an http or https address.
pub fn address(text: &str) -> Result<Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|error| error.to_string())?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err("must be an http or https address".to_owned())
    }
}

/// The address of the exporter on this machine: the first of `given`; if there is none, that of the running exporter's
/// flags; if none runs, the default.
///
/// # Errors
/// If its first listen address has no port, such as a socket file.
pub fn local_exporter(given: &[String]) -> Result<Url> {
    let flags = flags_of_exporter().filter(|_| given.is_empty());
    let listens = flags.as_ref().map_or(given, |flags| &flags.web_listen_address).first();
    let listens = listens.map_or(DEFAULT_LISTEN_ADDRESS, String::as_str);
    let prefix = flags.as_ref().map_or("", Flags::route_prefix);
    let local = pds_web::local_address(listens).map_err(|error| ToolError::failed(with_sources(&error)))?;
    address(&format!("http://{local}{prefix}")).map_err(ToolError::failed)
}

/// A running exporter.
#[derive(Clone, Debug)]
pub struct Exporter {
    /// Its address without user, password and the path of the status.
    pub name: String,
    http: reqwest::Client,
    url: Url,
    /// Removes the password from replies.
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
    /// No reply.
    #[error(transparent)]
    Http(reqwest::Error),
    /// A reply with the status of an error. The server's own words for it are not shown.
    #[error("HTTP status {0}")]
    Refused(reqwest::StatusCode),
    /// A reply beyond 64 MiB.
    #[error("the reply is too large for a status; is this the address of an exporter?")]
    TooLarge,
    /// The reply is not a status.
    #[error("the reply is not a status; is this the address of an exporter?")]
    Json(#[from] serde_json::Error),
}

/// Drops the address, which the message already names and which may hold a password.
impl From<reqwest::Error> for ExporterError {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error.without_url())
    }
}

impl ExporterError {
    /// Whether no connection could be made.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Http(error) if error.is_connect())
    }
}

impl Exporter {
    /// The exporter at `url`, reached at `address` if the name in `url` has several.
    ///
    /// # Errors
    /// If no HTTP client can be set up.
    pub fn new(url: &Url, address: Option<SocketAddr>, ca_file: Option<&Path>) -> Result<Self> {
        let reached = pds_http::Config {
            ca_key: "--exporter-ca-file",
            ca_file,
            proxy_url: None,
            connect_timeout: TIMEOUT,
        };
        let mut named = url.clone();
        let http = reached.client().and_then(|mut client| {
            if let (Some(address), Some(host)) = (address, url.host_str()) {
                client = client.resolve(host, address);
            }
            Ok(client.timeout(TIMEOUT).build()?)
        });
        let http = http.map_err(|error| ToolError::failed(with_sources(&error)))?;
        if let Some(address) = address {
            // Cannot fail for a URL that has a host.
            let _ = named.set_ip_host(address.ip());
        }
        let path = url.path().trim_end_matches('/');
        // Without user and password.
        let name = format!("{}{path}", named.origin().ascii_serialization());
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
        let reply = request.send().await?;
        let status = reply.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(ExporterError::Refused(status));
        }
        let (body, true) = read_body(reply, MAX_STATUS).await? else { return Err(ExporterError::TooLarge) };
        let sent: Value = serde_json::from_slice(&self.redactor.reply(body))?;
        Ok((ExporterStatus::deserialize(&sent)?, sent))
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

/// Replies of exporters.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Each exporter with its status and the whole reply.
    pub replies: Vec<(Exporter, ExporterStatus, Value)>,
    /// The addresses of the others, and why they have no status.
    pub failures: Vec<(String, String)>,
}

impl Fleet {
    /// The number of exporters.
    pub fn count(&self) -> usize {
        self.replies.len() + self.failures.len()
    }

    /// Succeeds if every exporter replied.
    ///
    /// # Errors
    /// The first failure.
    pub fn complete(&self) -> Result<()> {
        self.failures.first().map_or(Ok(()), |(_, failure)| Err(ToolError::failed(failure)))
    }

    /// For each service and number of shards: the number, and how often each shard replied.
    fn shards(&self) -> Vec<(u32, BTreeMap<u32, u32>)> {
        let exporters = self.replies.iter().map(|(_, status, _)| {
            let exporter = &status.exporter;
            ((&*status.service.base_url, exporter.shards), exporter.shard)
        });
        let times = |((_, count), shards): ((&str, u32), Vec<u32>)| {
            let mut times: BTreeMap<u32, u32> = (0..count.min(MAX_SHARDS)).map(|shard| (shard, 0)).collect();
            shards.into_iter().for_each(|shard| *times.entry(shard).or_default() += 1);
            (count, times)
        };
        grouped(exporters).into_iter().map(times).filter(|(count, _)| *count > 1).collect()
    }

    /// Whether a shard did not reply.
    pub fn lacks_shards(&self) -> bool {
        self.shards().iter().any(|(_, times)| times.values().any(|times| *times == 0))
    }

    /// Shards of the same service that are missing, or replied more than once, in a sentence.
    pub fn gaps(&self) -> Option<String> {
        let text = |(count, times): (u32, BTreeMap<u32, u32>)| {
            let part = |what: &str, is_gap: fn(u32) -> bool| {
                let found = times.iter().filter(|(_, times)| is_gap(**times));
                let found: Vec<String> = found.map(|(shard, _)| shard.to_string()).collect();
                (!found.is_empty()).then(|| format!("of {count} shards, {what}: {}", first_few(&found)))
            };
            [part("missing", |times| times == 0), part("queried more than once", |times| times > 1)]
        };
        let gaps: Vec<String> = self.shards().into_iter().flat_map(text).flatten().collect();
        let mut names: Vec<&str> = self.replies.iter().map(|(exporter, ..)| &*exporter.name).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first());
        let twice = twice.map(|name| format!("{name} is queried more than once"));
        let gaps: Vec<String> = gaps.into_iter().chain(twice).collect();
        (!gaps.is_empty()).then(|| gaps.join("; "))
    }
}

impl ExporterArgs {
    /// The exporters that the arguments name.
    ///
    /// # Errors
    /// If no HTTP client can be set up.
    pub async fn open(&self) -> Result<Vec<Exporter>> {
        let mut exporters = Vec::new();
        let local = if self.exporters.is_empty() { Some(local_exporter(&[])?) } else { None };
        for url in self.exporters.iter().chain(&local) {
            let addresses = addresses(url).await;
            let addresses = if addresses.is_empty() { vec![None] } else { addresses };
            for address in addresses {
                exporters.push(Exporter::new(url, address, self.exporter_ca_file.as_deref())?);
            }
        }
        Ok(exporters)
    }
}

/// The statuses of `exporters`, requested at once.
///
/// # Errors
/// If none replies with its status.
pub async fn read_all(exporters: &[Exporter]) -> Result<Fleet> {
    let mut fleet = Fleet::default();
    let replies = join_all(exporters.iter().map(Exporter::status)).await;
    for (exporter, reply) in exporters.iter().zip(replies) {
        match reply {
            Ok((status, sent)) => fleet.replies.push((exporter.clone(), status, sent)),
            Err(error) => {
                let hint =
                    if error.is_connect() { "; is it running? --exporter sets another address" } else { "" };
                let why = with_sources(&error);
                let failure = format!("no status from {}: {why}{hint}", exporter.name);
                fleet.failures.push((exporter.name.clone(), failure));
            }
        }
    }
    if fleet.replies.is_empty() { fleet.complete().map(|()| fleet) } else { Ok(fleet) }
}

/// The addresses of the name in `url` if it has several, like the name of a headless Service.
async fn addresses(url: &Url) -> Vec<Option<SocketAddr>> {
    let (Some(Host::Domain(host)), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Vec::new();
    };
    let lookup = tokio::time::timeout(TIMEOUT, tokio::net::lookup_host((host, port)));
    let Ok(Ok(found)) = lookup.await else { return Vec::new() };
    several(found.map(|address| address.ip())).map(|ip| Some(SocketAddr::new(ip, port))).collect()
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
            assert_eq!(address(text).map(String::from), Ok(url.to_owned()));
        }
        assert!(address("ftp://exporter").is_err() && address("http://").is_err());
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
        let exporter = Exporter::new(&url.parse().unwrap(), address.parse().ok(), None).unwrap();
        assert_eq!(exporter.name, "http://10.0.0.2:10090/prefix", "its pages are linked at its address");
    }
}
