//! Incidents of the last hours, as `/api/v1/status` reports them. The comments here are the descriptions in its schema.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pds_core::worded! {
    /// The kind of an incident.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum IncidentKind {
        /// Polls failed.
        #[default]
        Outage = "outage",
        /// Polls succeeded, but counters were behind.
        CatchUp = "catch-up",
        /// The exporter started.
        Restart = "restart",
        /// The configuration was loaded again.
        Reload = "reload",
        /// A reload was refused.
        ReloadRefused = "reload refused",
        /// A build became ready.
        Build = "new build",
    }
}

/// Something that happened to the service, a token or an app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Incident {
    /// Its kind.
    pub kind: IncidentKind,
    /// When it began.
    pub start: Timestamp,
    /// When it ended, to half a minute; null while it lasts.
    pub end: Option<Timestamp>,
    /// The cause of an outage, or the id of a build; null if there is neither.
    pub detail: Option<String>,
}

/// Time for which the service later reported far fewer requests than were counted. The counters keep the first count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disputed {
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// The number of missing requests.
    pub lacks: u64,
}

impl Disputed {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (start, end) = (self.start.min(other.start), self.end.max(other.end));
        Self { start, end, lacks: self.lacks.saturating_add(other.lacks) }
    }
}

/// Time that the service always refused although it answered for later time. Its requests are in no counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GivenUp {
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// How the service refused it.
    pub reason: Arc<str>,
}

/// A failed poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LastError {
    /// When it failed.
    pub at: Timestamp,
    /// The resource.
    pub resource: Cow<'static, str>,
    /// The class of the failure.
    pub class: Cow<'static, str>,
    /// The failure in words.
    pub message: Arc<str>,
}
