//! What `/api/v1/status` says. The comments here are the descriptions in its schema.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::rechecked::CountedAgain;
use super::verdict::{Summary, Verdict};

/// The exporter, the service and all configured projects and apps at one moment. Times are RFC 3339 in UTC; a missing
/// value is null, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// The exporter itself.
    pub exporter: Exporter,
    /// The service that is asked.
    pub service: Service,
    /// How many apps are in which state.
    pub summary: Summary,
    /// The projects, in the order of the configuration.
    pub projects: Vec<Project>,
    /// The apps, in the order of the configuration.
    pub apps: Vec<App>,
}

/// The exporter itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Exporter {
    /// Its version.
    pub version: &'static str,
    /// When it started.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Whether the last attempt to load the configuration succeeded; otherwise the one before is in force.
    pub configuration_good: Option<bool>,
    /// When the configuration in force was loaded.
    #[schemars(with = "Option<String>")]
    pub configuration_loaded: Option<Timestamp>,
    /// Whether the web configuration file could be read when it last changed; null if there is none.
    pub web_configuration_good: Option<bool>,
    /// Whether a poll panicked within the last hour; it was contained.
    pub panicked: bool,
    /// Fields whose last replies held values outside their meaning, such as `response_time.percentiles`.
    pub unexpected: Vec<Unexpected>,
    /// Whether the last write to the state file succeeded; null where counters are kept in memory.
    pub state_file_good: Option<bool>,
    /// Counters that are read back from Prometheus; null without `state.prometheus_url`.
    pub restoring: Option<Restoring>,
    /// When the next poll of any target is due.
    #[schemars(with = "Option<String>")]
    pub next_poll: Option<Timestamp>,
    /// How late the last poll began after it was due, in seconds.
    pub poll_lag_seconds: Option<f64>,
    /// The service accounts' tokens.
    pub tokens: Vec<Token>,
}

/// How reading counters back from Prometheus stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restoring {
    /// Counters that are hidden until it is known what was counted before.
    pub missing: usize,
    /// Counters that continue from what Prometheus knew.
    pub restored: usize,
    /// Counters that continue from the state file, because Prometheus knew nothing later.
    pub kept: usize,
    /// Counters that began at 0, because Prometheus knew this process and nothing of them.
    pub opened: usize,
    /// Why some are missing; null before the first answer.
    pub obstacle: Option<Arc<str>>,
    /// Whether that is as expected: Prometheus has not scraped this process yet.
    pub expected: bool,
}

/// A field whose last replies held values outside their meaning; such values count as missing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unexpected {
    /// What was polled.
    pub resource: &'static str,
    /// The field of the reply.
    pub field: &'static str,
    /// The project or app of the last such reply.
    pub target: String,
}

/// A service account's token.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Token {
    /// "default", or the id of the first project that uses it.
    pub name: String,
    /// When it expires; null for a token that does not say.
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
    /// Whether its file could be read when it was last looked at; null for a token that stands in the configuration.
    pub readable: Option<bool>,
}

/// The service that is asked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Service {
    /// Its base URL.
    pub base_url: String,
    /// How it fares.
    pub state: ServiceState,
    /// When a poll of any target last succeeded.
    #[schemars(with = "Option<String>")]
    pub last_success: Option<Timestamp>,
    /// Since when every target's metrics fail, for whatever reason; null while it is `waiting` or `up`.
    #[schemars(with = "Option<String>")]
    pub down_since: Option<Timestamp>,
    /// The last of those failures.
    pub reason: Option<String>,
    /// Its clock minus ours in whole seconds, as of its last reply; null before that, or where it sends no date.
    pub clock_skew_seconds: Option<i64>,
    /// Whether they are more than 15 s apart. Values and counters follow the clock that is behind.
    pub clocks_differ: bool,
    /// Requests a minute over the last four whole minutes.
    pub requests_per_minute: f64,
    /// Of them, those that failed.
    pub failures_per_minute: f64,
}

/// How the service fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceState {
    /// Nothing was asked yet.
    Waiting,
    /// It answers.
    Up,
    /// Every target's metrics fail because there is no token: the service is not even asked.
    NotAsked,
    /// Every target's metrics fail because the service refuses the token.
    TokenRefused,
    /// Every target's metrics fail because the service asks us to slow down.
    Throttled,
    /// Every target's metrics fail, for other reasons.
    Down,
}

/// A project.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Project {
    /// Its id.
    pub id: Arc<str>,
    /// Its name, as the service says.
    pub name: Option<String>,
    /// The role of its service account.
    pub role: Option<String>,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Why the verdict is not `ok`, the gravest first.
    #[schemars(with = "Vec<String>")]
    pub problems: Vec<Problem>,
    /// How many of its apps are configured.
    pub apps: usize,
    /// How many custom domains it has.
    pub custom_domains: Option<f64>,
    /// Percentages of storage at which its owner is warned; null if it is not known.
    pub volume_alerts: Option<Vec<String>>,
    /// The resources asked about it.
    pub resources: Vec<Resource>,
}

/// An app.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct App {
    /// The id of its project.
    pub project: Arc<str>,
    /// Its id.
    pub id: Arc<str>,
    /// Its name, as the service says.
    pub name: Option<String>,
    /// Its status, as the service says, in lower case.
    pub status: Option<String>,
    /// Its own error text, as its settings have it: one line of at most 1000 characters; null if there is none.
    pub error_message: Option<String>,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Why the verdict is not `ok`, the gravest first.
    #[schemars(with = "Vec<String>")]
    pub problems: Vec<Problem>,
    /// The window that the values are of: the first one configured.
    pub window: String,
    /// Response times of the window; null while it has no request.
    pub response_time: ResponseTime,
    /// Requests a minute over the window.
    pub requests_per_minute: Option<f64>,
    /// Fewest replicas that autoscaling keeps.
    pub min_replicas: Option<f64>,
    /// Most replicas that autoscaling starts.
    pub max_replicas: Option<f64>,
    /// What it runs on.
    pub hardware: Option<String>,
    /// The cost of a running replica in US dollars per hour.
    pub dollars_per_replica_hour: Option<f64>,
    /// The resources asked about it.
    pub resources: Vec<Resource>,
    /// The last failed poll, however many have succeeded since.
    pub last_error: Option<LastError>,
    /// The window's values at the last polls, the oldest first.
    pub trend: Vec<TrendPoint>,
}

/// Response time percentiles in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the percentiles that their names say")]
pub struct ResponseTime {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// A point of a trend, to 0.03 percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrendPoint {
    /// 95th percentile of response times, seconds.
    pub p95: Option<f64>,
    /// Requests a minute over the window.
    pub requests_per_minute: Option<f64>,
}

/// A resource of a project or app: one kind of reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Resource {
    /// Its name, the value of the label `resource`.
    pub resource: &'static str,
    /// How fresh it is.
    pub state: State,
    /// When it was last polled with success.
    #[schemars(with = "Option<String>")]
    pub last_success: Option<Timestamp>,
    /// Since when and why it fails, if it does.
    pub failing: Option<Failing>,
    /// End of the last range added to its counters; null where it has none.
    #[schemars(with = "Option<String>")]
    pub accounted_until: Option<Timestamp>,
    /// Whether its counters keep up; null where it has none.
    pub counting: Option<Counting>,
    /// How far its counters lie behind what has settled, in seconds; null unless they are `behind`.
    pub behind_seconds: Option<u64>,
    /// End of the last hour counted again; null before the first.
    #[schemars(with = "Option<String>")]
    pub rechecked_until: Option<Timestamp>,
    /// What came of counting again; null before that.
    pub rechecked: Option<CountedAgain>,
}

/// The name of a resource for people: `response time`, and `settings` for an app's.
#[must_use]
pub fn resource_title(resource: &str) -> String {
    match resource {
        "app" => "settings".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Whether counters keep up with the settled time, by the clock that is behind: ours or the service's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// They do.
    Current,
    /// They lack time that had settled two polls ago: they are not on the metrics page until they have caught up.
    Behind,
    /// They end in the future, because a clock was set back; they stand still until then.
    Ahead,
}

/// How fresh a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its last success is so long ago that nothing is exposed any more.
    Stale,
    /// The last poll failed; what was said before is still exposed.
    Failing,
    /// The last poll succeeded, but the next one is overdue.
    Late,
    /// It was not asked yet.
    Waiting,
    /// The last poll succeeded.
    Fresh,
}

/// Since when and why a resource fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failing {
    /// When it began to fail.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// The class of the last failure.
    pub class: &'static str,
    /// The last failure in words.
    pub message: Arc<str>,
}

/// A failed poll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastError {
    /// When it failed.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Of what.
    pub resource: &'static str,
    /// The class of the failure.
    pub class: &'static str,
    /// In words.
    pub message: Arc<str>,
}

impl State {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Failing => "failing",
            Self::Late => "late",
            Self::Waiting => "waiting",
            Self::Fresh => "fresh",
        }
    }
}

impl Status {
    /// The JSON schema of what `/api/v1/status` says.
    #[must_use]
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }
}
