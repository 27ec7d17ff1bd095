//! Where rows come from: a running exporter's `/api/v1/status`, or the service itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::error_chain::with_sources;
use crate::interface::reader::Unexpected;
use crate::interface::response_time::ResponseTime;
use crate::interface::{Arguments, Number, ReplyBody as _, TimeRange, get_app, response_time};
use crate::tool::exporter::{Exporter, Percentiles, Row, Summary};
use crate::tool::service::Service;

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The apps.
    pub rows: Vec<Row>,
    /// The exporter's verdict with its reasons; empty for the service itself.
    pub summary: Summary,
}

/// What is shown, or the error as one sentence.
pub type Answer = Result<Shown, String>;

/// Where rows come from.
#[derive(Debug)]
pub enum Source {
    /// A running exporter.
    Exporter(Exporter),
    /// The service.
    Service(Box<Service>),
}

impl Source {
    /// The service itself, about the apps of its configuration.
    #[must_use]
    pub fn service(service: Service) -> Self {
        Self::Service(Box::new(service))
    }

    /// Its name for people.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Exporter(exporter) => exporter.name(),
            Self::Service(service) => service.config.api.base_url.to_string(),
        }
    }

    /// Fetches all rows.
    ///
    /// # Errors
    /// If the exporter does not answer. Asked at the service, an app that does not answer is a row with the error.
    pub async fn ask(&self) -> Answer {
        match self {
            Self::Exporter(exporter) => match exporter.status().await {
                Ok(status) => Ok(Shown { rows: status.apps, summary: status.summary }),
                Err(error) => Err(with_sources(&error)),
            },
            Self::Service(service) => {
                Ok(Shown { rows: ask_service(service).await, summary: Summary::default() })
            }
        }
    }
}

/// Asks about all apps at once, within the client's limits.
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
    let arguments = Arguments::about(project, app)
        .in_range_to(range, service.config.accounting.range_end)
        .at_resolution(service.config.poll.resolution);
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

/// The first configured window, ending now.
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
