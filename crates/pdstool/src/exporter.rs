//! A running exporter, read through its `/api/v1/status`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::error::{Result, ToolError};
use pds_core::error_chain::with_sources;
use pds_diagnosis::model;
use pds_diagnosis::model::App;
use pds_diagnosis::verdict::Summary;
use pds_http::read_body;

/// The address of an exporter on this machine.
pub const DEFAULT_EXPORTER: &str = "http://127.0.0.1:10090";

/// Where an exporter serves its status, below its own path.
const STATUS_PATH: &str = "/api/v1/status";

/// How long an exporter may take: it answers from memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest status that is read: some 100,000 apps.
const MAX_STATUS: usize = 64 << 20;

/// The options that name an exporter.
#[derive(Clone, Debug, Args)]
pub struct ExporterArgs {
    /// Address of a running exporter; may contain a path, user and password.
    #[arg(
        long,
        value_name = "URL",
        value_parser = address,
        default_value = DEFAULT_EXPORTER,
        env = "PDSTOOL_EXPORTER",
        hide_env_values = true
    )]
    pub exporter: Url,
    /// Additional trust anchors (PEM), for an exporter with a private certificate authority.
    #[arg(long, value_name = "FILE")]
    pub exporter_ca_file: Option<PathBuf>,
}

/// The address of an exporter; `localhost:10090` is `http://localhost:10090`.
///
/// # Errors
/// If it is no http or https address.
pub fn address(text: &str) -> Result<Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|error| error.to_string())?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err("must be an http or https address".to_owned())
    }
}

/// A running exporter.
#[derive(Clone, Debug)]
pub struct Exporter {
    /// Its address without user, password and the path of the status.
    pub name: String,
    http: reqwest::Client,
    url: Url,
}

/// The status of an exporter, as far as the tool shows it. Fields that an exporter does not send are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields of `Status`")]
pub struct ExporterStatus {
    pub exporter: model::Exporter,
    pub service: model::Service,
    pub summary: Summary,
    pub apps: Vec<App>,
}

/// Why an exporter's status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// No successful reply.
    #[error(transparent)]
    Http(reqwest::Error),
    /// A reply beyond 64 MiB.
    #[error("the reply is too large for a status; is this the address of an exporter?")]
    TooLarge,
    /// The reply is not a status.
    #[error("the reply is not a status; is this the address of an exporter?")]
    Json(#[from] serde_json::Error),
}

/// Without the address, which the message names already and which may hold a password.
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
    /// Its status: as far as the tool reads it, and with every field that it sends.
    ///
    /// # Errors
    /// If it does not reply, refuses, or replies with something else.
    pub async fn status(&self) -> Result<(ExporterStatus, Value), ExporterError> {
        // User and password of the address become a header.
        let request = self.http.get(self.url.clone()).header(ACCEPT, "application/json");
        let reply = request.send().await?.error_for_status()?;
        let (body, true) = read_body(reply, MAX_STATUS).await? else { return Err(ExporterError::TooLarge) };
        let sent: Value = serde_json::from_slice(&body)?;
        Ok((ExporterStatus::deserialize(&sent)?, sent))
    }
}

impl ExporterArgs {
    /// The exporter that the arguments name.
    ///
    /// # Errors
    /// If no HTTP client can be set up.
    pub fn open(&self) -> Result<Exporter> {
        let reached = pds_http::Config {
            ca_key: "--exporter-ca-file",
            ca_file: self.exporter_ca_file.as_deref(),
            proxy_url: None,
            no_proxy: None,
            connect_timeout: TIMEOUT,
        };
        let http = reached.client().and_then(|client| Ok(client.timeout(TIMEOUT).build()?));
        let http = http.map_err(|error| ToolError::failed(with_sources(&error)))?;
        let path = self.exporter.path().trim_end_matches('/');
        // Without user and password.
        let name = format!("{}{path}", self.exporter.origin().ascii_serialization());
        let mut url = self.exporter.clone();
        url.set_path(&format!("{path}{STATUS_PATH}"));
        Ok(Exporter { name, http, url })
    }

    /// The name and the status of the exporter that the arguments name.
    ///
    /// # Errors
    /// If it does not reply with its status.
    pub async fn ask(&self) -> Result<(String, ExporterStatus, Value)> {
        let exporter = self.open()?;
        let (status, sent) = exporter.status().await.map_err(|error| {
            let hint =
                if error.is_connect() { "; is it running? --exporter gives another address" } else { "" };
            ToolError::failed(format!("no status from {}: {}{hint}", exporter.name, with_sources(&error)))
        })?;
        Ok((exporter.name, status, sent))
    }
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
}
