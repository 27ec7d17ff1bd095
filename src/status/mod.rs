//! The state of the exporter and of everything it polls, for people: one model behind the status pages and
//! `/api/v1/status`.
//!
//! A [`Source`] reads it from the plan, the store and the exporter's own metrics, and never calls the service.
//! The model holds points in time, not ages, so it changes only when something happens; the pages
//! compute ages from the current time.
//!
//! - [`document`]: the content of `/api/v1/status`, its schema, and apps that are read when they are shown; its parts
//!   are [`pds_diagnosis::model`].
//! - [`detail`]: one app in full.
//! - [`source`]: reads the model, at most once per second, and logs the reasons of its verdict.
//! - `view`: the model's input: targets, and the values of their samples.
//! - `overview`: turns plan and store into the model.
//! - `judge`: the problems of an app and of a project; `reasons`: those of the whole.
//! - `service`: the service's part of the model.
//! - `exporter`: the exporter's own part of the model.
//! - [`incidents`]: incidents of the last hours.
//! - [`settings`]: an app's settings in groups, with their meaning, and their changes.

pub mod detail;
pub mod document;
mod exporter;
pub mod incidents;
mod judge;
mod overview;
mod reasons;
mod service;
pub mod settings;
pub mod source;
mod view;

#[cfg(test)]
pub(crate) mod tests;

pub use detail::Detail;
pub use document::{LazyApp, Status};
pub use source::{Refused, Source};
