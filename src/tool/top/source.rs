//! Where rows come from: a running exporter's `/api/v1/status`, or the service itself.

use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::task::JoinSet;
use url::Url;

use crate::config::Config;
use crate::error_chain::with_sources;
use crate::interface::reader::Unexpected;
use crate::interface::response_time::ResponseTime;
use crate::interface::{Arguments, Number, ReplyBody as _, TimeRange, get_app, response_time};
use crate::tool::error::ToolError;
use crate::tool::service::Service;

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
    /// What an exporter makes of it: ok, warning, problem, waiting.
    pub verdict: String,
    /// Why that is not ok, the gravest first.
    pub problems: Vec<String>,
    /// Requests a minute.
    pub requests_per_minute: Option<f64>,
    /// Response times.
    pub response_time: Percentiles,
    /// Fewest replicas.
    pub min_replicas: Option<f64>,
    /// Most replicas.
    pub max_replicas: Option<f64>,
    /// What a replica costs while it runs, in US dollars an hour.
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

/// The rows, or why there are none, in a sentence.
pub type Answer = Result<Vec<Row>, String>;

/// Where rows come from.
#[derive(Debug)]
pub enum Source {
    /// A running exporter.
    Exporter {
        /// Asks it.
        http: reqwest::Client,
        /// Its `/api/v1/status`.
        url: Url,
    },
    /// The service.
    Service(Box<Service>),
}

/// How long an exporter may take: it answers from memory.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Status {
    apps: Vec<Row>,
}

impl Source {
    /// The exporter at `base`, which may carry a path.
    ///
    /// # Errors
    /// Where no HTTP client can be set up.
    pub fn exporter(base: &Url) -> Result<Self, ToolError> {
        let failed =
            |error: &dyn std::error::Error| ToolError::Failed { message: with_sources(error), code: 1 };
        let mut anchors = rustls::RootCertStore::empty();
        anchors.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(anchors)
            .with_no_client_auth();
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls).timeout(TIMEOUT).no_proxy();
        let http = http.build().map_err(|error| failed(&error))?;
        let mut url = base.clone();
        url.set_path(&format!("{}/api/v1/status", base.path().trim_end_matches('/')));
        Ok(Self::Exporter { http, url })
    }

    /// The service itself, about the apps of its configuration.
    #[must_use]
    pub fn service(service: Service) -> Self {
        Self::Service(Box::new(service))
    }

    /// Where that is, for people.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Exporter { url, .. } => {
                let mut url = url.clone();
                // Neither fails for a URL with a host.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.to_string()
            }
            Self::Service(service) => service.config.api.base_url.to_string(),
        }
    }

    /// Asks for all rows.
    ///
    /// # Errors
    /// Where there is no answer; of the service a single app that gives none is a row that says so.
    pub async fn ask(&self) -> Answer {
        match self {
            Self::Exporter { http, url } => {
                ask_exporter(http, url).await.map_err(|error| with_sources(&error))
            }
            Self::Service(service) => Ok(ask_service(service).await),
        }
    }
}

async fn ask_exporter(http: &reqwest::Client, url: &Url) -> Result<Vec<Row>, ExporterError> {
    let mut request = http.get(url.clone()).header(ACCEPT, "application/json");
    if !url.username().is_empty() {
        request = request.basic_auth(url.username(), url.password());
    }
    let reply = request.send().await?.error_for_status()?.bytes().await?;
    Ok(serde_json::from_slice::<Status>(&reply)?.apps)
}

#[derive(Debug, thiserror::Error)]
enum ExporterError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("what answers is no exporter's status")]
    Json(#[from] serde_json::Error),
}

/// Asks about every app at once; the client's limits keep that gentle.
async fn ask_service(service: &Service) -> Vec<Row> {
    let mut asking = JoinSet::new();
    let mut rows = Vec::new();
    for project in &service.config.projects {
        for app in &project.apps {
            let index = rows.len();
            rows.push(Row { project: project.id.to_string(), id: app.id.to_string(), ..Row::default() });
            let (service, project, app) = (service.clone(), Arc::clone(&project.id), Arc::clone(&app.id));
            asking.spawn(async move { (index, ask_app(&service, &project, &app).await) });
        }
    }
    while let Some(answered) = asking.join_next().await {
        if let Ok((index, answered)) = answered
            && let Some(row) = rows.get_mut(index)
        {
            *row = answered;
        }
    }
    rows
}

async fn ask_app(service: &Service, project: &str, app: &str) -> Row {
    let mut row = Row { project: project.to_owned(), id: app.to_owned(), ..Row::default() };
    let account = service.client.account(project);
    let names = &service.config.api.query_names;
    let settings = match get_app::CALL.request(&Arguments::about(project, app), names) {
        Ok(request) => service.client.call(&account, &request).await.map_err(|error| with_sources(&error)),
        Err(error) => Err(with_sources(&error)),
    };
    let settings =
        settings.and_then(|reply| get_app::Reply::decode(&reply.body).map_err(|error| with_sources(&error)));
    match settings {
        Ok(settings) => row.settings(&settings),
        Err(problem) => row.problems.push(problem),
    }
    let range = window(&service.config);
    let arguments =
        Arguments::about(project, app).in_range(range).at_resolution(service.config.poll.resolution);
    let times = match response_time::CALL.request(&arguments, names) {
        Ok(request) => service.client.call(&account, &request).await.map_err(|error| with_sources(&error)),
        Err(error) => Err(with_sources(&error)),
    };
    let times = times
        .and_then(|reply| response_time::Reply::decode(&reply.body).map_err(|error| with_sources(&error)));
    match times {
        Ok(times) => row.times(&times.data, range),
        Err(problem) => row.problems.push(problem),
    }
    row.verdict = if row.problems.is_empty() { "ok" } else { "problem" }.to_owned();
    row
}

/// The first configured window, as it ends now.
fn window(config: &Config) -> TimeRange {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(0);
    let end = Timestamp::now().as_second() - seconds(config.poll.settle);
    let length = config.poll.windows.first().map_or(300, |window| seconds(*window));
    TimeRange { start: end - length, end }
}

impl Row {
    fn settings(&mut self, app: &get_app::App) {
        self.status = Some(app.status.to_lowercase());
        self.min_replicas = app.min_replica_count.value();
        self.max_replicas = app.max_replica_count.value();
        self.dollars_per_replica_hour = app.cost_per_second_cents.value().map(|cents| cents * 36.0);
        if !app.error_message.is_empty() {
            self.problems.push(app.error_message.clone());
        }
    }

    fn times(&mut self, times: &ResponseTime, range: TimeRange) {
        let mut unexpected = Unexpected::default();
        let total = unexpected.check("total_requests", times.total_requests, 0.0, f64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "a window is far below 2^53 seconds")]
        let minutes = range.seconds() as f64 / 60.0;
        self.requests_per_minute = total.map(|total| total / minutes);
        if total == Some(0.0) {
            return;
        }
        let mut percentile = |name: &str| {
            let found = times.percentiles.0.iter().find(|(known, _)| known == name);
            let number = found.map_or(Number::Missing, |(_, number)| *number);
            unexpected.check("percentiles", number, 0.0, f64::MAX).map(|millis| millis / 1e3)
        };
        self.response_time = Percentiles {
            p50: percentile("p50"),
            p90: percentile("p90"),
            p95: percentile("p95"),
            p99: percentile("p99"),
        };
    }
}
