//! A running exporter, read through its `/api/v1/status`.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::error_chain::with_sources;
use crate::tool::error::ToolError;

/// Where an exporter serves its status, below its own path.
const STATUS_PATH: &str = "/api/v1/status";

/// How long an exporter may take: it answers from memory.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest status that is read: some 100,000 apps.
const MAX_STATUS: usize = 256 << 20;

/// The options that name an exporter.
#[derive(Clone, Debug, Args)]
pub struct ExporterArgs {
    /// Address of a running exporter; may contain a path, user and password.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:10090",
        env = "PDSTOOL_EXPORTER",
        hide_env_values = true
    )]
    pub exporter: Url,
}

/// A running exporter.
#[derive(Clone, Debug)]
pub struct Exporter {
    http: reqwest::Client,
    url: Url,
}

/// The status of an exporter, as far as the tool shows it. Fields that an exporter does not send are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ExporterStatus {
    /// The exporter itself.
    pub exporter: About,
    /// The service that it asks.
    pub service: About,
    /// The verdict on all of it.
    pub summary: Summary,
    /// The apps, in the order of the configuration.
    pub apps: Vec<Row>,
}

/// The exporter, or the service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct About {
    /// The exporter's version.
    pub version: String,
    /// When the exporter started, RFC 3339.
    pub started: String,
    /// The service's address.
    pub base_url: String,
    /// When the service last answered, RFC 3339.
    pub last_success: Option<String>,
    /// Why the service is silent.
    pub reason: Option<String>,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// `ok`, `warning`, `problem` or `waiting`.
    pub verdict: String,
    /// Why it is not `ok`, worst first.
    pub reasons: Vec<Reason>,
    /// How many apps there are.
    pub apps: usize,
    /// How many of them are ok.
    pub ok: usize,
}

/// Why the verdict is not `ok`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Reason {
    /// Its code.
    pub code: String,
    /// Its severity.
    pub verdict: String,
    /// The reason in words.
    pub text: String,
    /// What to do about it.
    pub action: String,
}

/// One app.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Its project's id.
    pub project: String,
    /// Its id.
    pub id: String,
    /// Its status, as the service says.
    pub status: Option<String>,
    /// The exporter's verdict: `ok`, `warning`, `problem`, `waiting`.
    pub verdict: String,
    /// Why the verdict is not `ok`, worst first.
    pub problems: Vec<String>,
    /// Requests per minute.
    pub requests_per_minute: Option<f64>,
    /// Response times.
    pub response_time: Percentiles,
    /// Fewest replicas.
    pub min_replicas: Option<f64>,
    /// Most replicas.
    pub max_replicas: Option<f64>,
    /// What it runs on.
    pub hardware: Option<String>,
    /// The cost of a running replica in US dollars per hour.
    pub dollars_per_replica_hour: Option<f64>,
}

/// Response time percentiles in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the percentiles that their names say")]
pub struct Percentiles {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// Why an exporter's status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// No successful reply.
    #[error(transparent)]
    Http(reqwest::Error),
    /// A reply beyond 256 MiB.
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
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Http(error) if error.is_connect())
    }
}

impl Exporter {
    /// The exporter at `base`, which may carry a path.
    ///
    /// # Errors
    /// If no HTTP client can be set up.
    pub fn new(base: &Url) -> Result<Self, ToolError> {
        let failed =
            |error: &dyn std::error::Error| ToolError::Failed { message: with_sources(error), code: 1 };
        let mut anchors = rustls::RootCertStore::empty();
        anchors.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(anchors)
            .with_no_client_auth();
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls).timeout(TIMEOUT).no_proxy();
        let http = http.build().map_err(|error| failed(&error))?;
        let mut url = base.clone();
        url.set_path(&format!("{}{STATUS_PATH}", base.path().trim_end_matches('/')));
        Ok(Self { http, url })
    }

    /// Its address without user, password and the path of the status.
    #[must_use]
    pub fn name(&self) -> String {
        let mut url = self.url.clone();
        // Neither fails for a URL with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.as_str().trim_end_matches(STATUS_PATH).to_owned()
    }

    /// Its status.
    ///
    /// # Errors
    /// If it does not reply, refuses, or replies with something else.
    pub async fn status(&self) -> Result<ExporterStatus, ExporterError> {
        Ok(serde_json::from_slice(&self.fetch().await?)?)
    }

    /// Its status as JSON, with every field it sends.
    ///
    /// # Errors
    /// As [`Exporter::status`].
    pub async fn status_json(&self) -> Result<Value, ExporterError> {
        Ok(serde_json::from_slice(&self.fetch().await?)?)
    }

    async fn fetch(&self) -> Result<Vec<u8>, ExporterError> {
        let mut request = self.http.get(self.url.clone()).header(ACCEPT, "application/json");
        if !self.url.username().is_empty() {
            request = request.basic_auth(self.url.username(), self.url.password());
        }
        let mut reply = request.send().await?.error_for_status()?;
        let mut body = Vec::new();
        while let Some(chunk) = reply.chunk().await? {
            if body.len() + chunk.len() > MAX_STATUS {
                return Err(ExporterError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

impl ExporterArgs {
    /// The exporter that the arguments name.
    ///
    /// # Errors
    /// If no HTTP client can be set up.
    pub fn open(&self) -> Result<Exporter, ToolError> {
        Exporter::new(&self.exporter)
    }
}
