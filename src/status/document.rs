//! The content of `/api/v1/status`. The comments here are the descriptions in its schema.

use schemars::JsonSchema;
use serde::Serialize;

use super::lazy::LazyApp;
use super::model::{App, Exporter, Project, Service};
use super::verdict::Summary;

/// The exporter, the service and all configured projects and apps at one moment. Times are RFC 3339 in UTC; a missing
/// value is null, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// The exporter itself.
    pub exporter: Exporter,
    /// The polled service.
    pub service: Service,
    /// The verdict, its reasons, and the number of apps in each state.
    pub summary: Summary,
    /// The projects, in the order of the configuration.
    pub projects: Vec<Project>,
    /// The apps, in the order of the configuration.
    #[schemars(with = "Vec<App>")]
    pub apps: Vec<LazyApp>,
    /// How many resources of projects and apps are failing now.
    #[serde(skip)]
    pub failing: usize,
}

impl Status {
    /// The JSON schema of `/api/v1/status`. The text, because what makes it takes 250 kB of a program.
    pub const SCHEMA: &str = include_str!("schema.json");

    /// What [`Status::SCHEMA`] is made by.
    #[must_use]
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }
}
