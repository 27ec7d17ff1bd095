//! The state of the exporter and of everything it polls, for people: one model behind the status pages and
//! `/api/v1/status`.
//!
//! A [`Source`] reads it from the plan, the store and the exporter's own metrics, and never calls the service.
//! The model holds points in time, not ages, so it changes only when something happens; the pages
//! compute ages from the current time.
//!
//! - [`document`]: the content of `/api/v1/status` and its schema; [`model`]: its parts.
//! - [`columns`]: what is shown of each app in tables.
//! - [`verdict`]: whether the numbers can be trusted, and why not.
//! - [`detail`]: one app in full.
//! - [`source`]: reads the model, at most once per second.
//! - [`lazy`]: apps that are judged at once and read when they are shown.
//! - `view`: what the model is read from.
//! - `overview`: turns plan and store into the model.
//! - `judge`: what is wrong with an app and with a project; [`problem`]: one thing of it; `reasons`: and with the whole.
//! - `service`: the service's part of the model.
//! - `exporter`: the exporter's own part of the model.
//! - [`incidents`]: what happened in the last hours.
//! - `examples`: a live sample of each metric family.
//! - `read`: values of samples by family and label.
//! - [`settings`]: an app's settings in groups, with their meaning; [`changes`]: what changed in them.

pub mod changes;
pub mod columns;
pub mod detail;
pub mod document;
mod examples;
mod exporter;
pub mod incidents;
mod judge;
pub mod lazy;
pub mod model;
mod overview;
pub mod problem;
mod read;
pub(crate) mod reasons;
mod service;
pub mod settings;
pub mod source;
pub mod verdict;
mod view;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::cause::Verdict;
pub use detail::Detail;
pub use document::Status;
pub use incidents::{Incident, IncidentKind};
pub use lazy::{LazyApp, Listed};
pub use model::{App, Project, Resource, State};
pub use problem::Problem;
pub use source::{Refused, Source};
