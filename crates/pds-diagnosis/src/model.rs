//! The parts of `/api/v1/status`. The comments here are the descriptions in its schema. `pdstool` reads the parts back,
//! and leaves fields empty that an exporter does not send.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use pds_ledger::restore::Restoring;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::Verdict;
use super::incident::{Disputed, GivenUp, Incident, LastError};
use super::verdict::{Failing, Problem};

/// The exporter itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Exporter {
    /// Its version.
    pub version: Cow<'static, str>,
    /// When it started.
    pub started: Timestamp,
    /// The index of its shard, from 0.
    pub shard: u32,
    /// How many shards there are; 1 if it polls everything.
    pub shards: u32,
    /// Whether the last load of the configuration succeeded; otherwise the previous one is active.
    pub configuration_good: Option<bool>,
    /// When the active configuration was loaded.
    pub configuration_loaded: Option<Timestamp>,
    /// Whether the web configuration file could be read when it last changed; null if there is none.
    pub web_configuration_good: Option<bool>,
    /// Whether anything panicked within the last hour; other polls and pages are not affected.
    pub panicked: bool,
    /// Fields whose last replies held invalid values, such as `response_time.percentiles`.
    pub unexpected: Vec<Unexpected>,
    /// Whether the last write to the state file succeeded; null if counters are kept in memory.
    pub state_file_good: Option<bool>,
    /// Progress of reading cursors from Prometheus; null without `state.prometheus_url`.
    pub restoring: Option<Restoring>,
    /// When the next poll of any target is due.
    pub next_poll: Option<Timestamp>,
    /// How long after its due time the last poll started, in seconds; null before the first, and without targets.
    pub poll_lag_seconds: Option<f64>,
    /// The service accounts' tokens.
    pub tokens: Vec<Token>,
}

/// A field whose last replies held invalid values; such values count as missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unexpected {
    /// The polled resource.
    pub resource: Cow<'static, str>,
    /// The field of the reply.
    pub field: Cow<'static, str>,
    /// The project or app of the last such reply.
    pub target: String,
}

/// A service account's token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Token {
    /// "default", or the id of the first project that uses it.
    pub name: String,
    /// Its expiry; null if unknown.
    pub expires: Option<Timestamp>,
    /// The file it is read from; null for a token written in the configuration.
    pub file: Option<String>,
    /// Whether its file was readable at the last check; null for a token written in the configuration.
    pub readable: Option<bool>,
    /// Why the last check found no usable token; null if it found one.
    pub problem: Option<Arc<str>>,
    /// Why all replies are about other ranges than requested; null if they are not.
    pub range_ignored: Option<Arc<str>>,
    /// Incidents of the last six hours that concern this token but not the whole service, oldest first.
    pub incidents: Vec<Incident>,
}

/// The polled service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Service {
    /// Its base URL.
    pub base_url: String,
    /// Its state.
    pub state: ServiceState,
    /// When a poll of any target last succeeded.
    pub last_success: Option<Timestamp>,
    /// Since when the metrics polls of every target have failed, for any reason; null unless it is `down`.
    pub down_since: Option<Timestamp>,
    /// The last of those failures.
    pub reason: Option<String>,
    /// Its clock minus ours in whole seconds, as of its last reply; null before the first reply, or if it sends no
    /// date.
    pub clock_skew_seconds: Option<i64>,
    /// Whether the clocks are more than 15 s apart. Values and counters follow the clock that is behind.
    pub clocks_differ: bool,
    /// Requests per minute over the last four whole minutes.
    pub requests_per_minute: f64,
    /// Failed requests among them.
    pub failures_per_minute: f64,
    /// Incidents of the last six hours that concern all tokens and apps, or the exporter, oldest first.
    pub incidents: Vec<Incident>,
}

/// The state of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceState {
    /// Nothing has been polled yet.
    #[default]
    Waiting,
    /// It answers.
    Up,
    /// All metrics polls fail because of the service or a token; `summary.reasons` name the cause.
    Down,
}

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Project {
    /// Its id.
    pub id: Arc<str>,
    /// Its name in the service.
    pub name: Option<String>,
    /// The role of its service account.
    pub role: Option<String>,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Why the verdict is not `ok`, most severe first.
    pub problems: Vec<Problem>,
    /// How many of its apps are configured.
    pub apps: usize,
    /// How many custom domains it has.
    pub custom_domains: Option<f64>,
    /// Percentages of storage at which its owner is warned; null if not known.
    pub volume_alerts: Option<Vec<String>>,
    /// The resources polled for it.
    pub resources: Vec<Resource>,
}

/// An app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct App {
    /// The id of its project.
    pub project: Arc<str>,
    /// Its id.
    pub id: Arc<str>,
    /// Its name in the service.
    pub name: Option<String>,
    /// Whether the name is the last known one: its settings are stale.
    pub name_is_old: bool,
    /// Its status in the service, in lower case.
    pub status: Option<String>,
    /// The error message in its settings, cut to one line of 1000 characters; null if there is none.
    pub error_message: Option<String>,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Why the verdict is not `ok`, most severe first.
    pub problems: Vec<Problem>,
    /// The window of the values: the first one configured.
    pub window: String,
    /// Response times in the window; null without requests.
    pub response_time: ResponseTime,
    /// The smallest step to which the service has rounded shares since the exporter started (0.01 is a whole percent);
    /// null without an objective, or if shares are not rounded.
    pub share_step: Option<f64>,
    /// A sentence if that step is too coarse for the objective.
    pub share_note: Option<String>,
    /// Requests a minute over the window.
    pub requests_per_minute: Option<f64>,
    /// The minimum number of replicas.
    pub min_replicas: Option<f64>,
    /// The maximum number of replicas.
    pub max_replicas: Option<f64>,
    /// The hardware it runs on.
    pub hardware: Option<String>,
    /// The cost of a running replica in US dollars per hour.
    pub dollars_per_replica_hour: Option<f64>,
    /// The resources polled for it.
    pub resources: Vec<Resource>,
    /// Incidents of the last six hours that concern the app but not its token or the service, oldest first.
    pub incidents: Vec<Incident>,
    /// The last failed poll, even if later ones succeeded.
    pub last_error: Option<LastError>,
    /// The window's highest values in the last 30 time slots with a poll, oldest first. A slot is 15 s to 15 min long;
    /// more apps mean longer slots.
    pub trend: Vec<TrendPoint>,
}

/// Response time percentiles in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are the percentiles that their names say")]
pub struct ResponseTime {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// A point of a trend, to 0.03 percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrendPoint {
    /// 95th percentile of response times, seconds.
    pub p95: Option<f64>,
    /// Requests a minute over the window.
    pub requests_per_minute: Option<f64>,
}

/// A resource of a project or app: one kind of reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resource {
    /// Its name, the value of the label `resource`.
    pub resource: Cow<'static, str>,
    /// How fresh it is.
    pub state: State,
    /// When a poll of it last succeeded.
    pub last_success: Option<Timestamp>,
    /// Since when and why it fails; null if it does not.
    pub failing: Option<Failing>,
    /// End of the last range added to its counters; null if it has none.
    pub accounted_until: Option<Timestamp>,
    /// Whether its counters keep up; null if it has none.
    pub counting: Option<Counting>,
    /// How far its counters are behind the settled time, in seconds; null unless they are `behind`.
    pub behind_seconds: Option<u64>,
    /// End of the last rechecked hour; null before the first.
    pub rechecked_until: Option<Timestamp>,
    /// The last hole given up since the exporter started; null if there is none.
    pub given_up: Option<GivenUp>,
    /// Seconds given up that will be requested again.
    pub pending_seconds: u64,
    /// Requests that the service no longer has, within hours that are still rechecked; null if it has all.
    pub disputed: Option<Disputed>,
}

impl Resource {
    /// Whether a poll of it has ended since the exporter started.
    pub fn is_polled(&self) -> bool {
        self.last_success.is_some() || self.failing.is_some()
    }
}

/// The name of a resource for people: `response time`, and `settings` for an app's.
pub fn resource_title(resource: &str) -> String {
    match resource {
        "app" => "settings".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The class of a failure for people: an HTTP status, or words.
pub fn class_title(class: &str) -> Cow<'_, str> {
    match class {
        "unauthorized_paused" => "not requested: token refused".into(),
        "forbidden_paused" => "not requested: not allowed".into(),
        "paused" => "not requested: paused".into(),
        "connect" => "no connection".into(),
        "credentials" => "no token".into(),
        "decode" => "unreadable reply".into(),
        "address" => "404".into(),
        "answered_since" => "the service answered".into(),
        other => other.replace('_', " ").into(),
    }
}

/// Whether counters keep up with the settled time, by the clock that is behind: ours or the service's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// They keep up.
    Current,
    /// They lack time that had settled two polls ago; they return to the metrics page once they have caught up.
    Behind,
    /// Their cursor is not known yet; they return once Prometheus has answered.
    Restoring,
    /// Their cursor is ahead of the settled time, because a clock was set back or `poll.settle` was raised; they stand
    /// still until then.
    Ahead,
}

pds_core::worded! {
    /// How fresh a resource is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum State {
        /// The last success is so long ago that its series are no longer exposed.
        Stale = "stale",
        /// The last poll failed; the values before it are still exposed.
        Failing = "failing",
        /// The last poll succeeded, but the next one is overdue.
        Late = "late",
        /// It has not been polled yet, or not since a reload changed the first window.
        #[default]
        Waiting = "waiting",
        /// The last poll succeeded.
        Fresh = "fresh",
    }
}
