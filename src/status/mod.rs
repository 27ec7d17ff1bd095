//! How the exporter and everything it asks about fares, for people: one model behind the status pages and
//! `/api/v1/status`.
//!
//! A [`Source`] reads it from what is there anyway (plan, store, the exporter's own metrics) and asks the service
//! nothing. The model holds points in time and never ages, so that it changes only when something happened; whoever
//! shows it knows what time it is.
//!
//! - [`model`]: what `/api/v1/status` says; its schema is derived from here.
//! - [`verdict`]: whether the numbers can be trusted, and why not.
//! - [`detail`]: one app in full.
//! - [`source`]: where it is read from, at most once a second.
//! - `overview`: plan and store into the model.
//! - [`cause`]: what can be wrong, and what to do about it.
//! - `judge`: what is wrong with an app, a project, and all of it.
//! - `service`: the service's part of it.
//! - `exporter`: the exporter's own part of it.
//! - `examples`: a live sample of each metric family.
//! - `read`: values of samples by family name.
//! - [`settings`]: an app's settings in groups, with their meaning.

pub mod cause;
pub mod detail;
mod examples;
mod exporter;
mod judge;
pub mod model;
mod overview;
mod read;
mod service;
pub mod settings;
pub mod source;
pub mod verdict;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use detail::Detail;
pub use model::{App, Project, Resource, State, Status};
pub use source::Source;
pub use verdict::Verdict;
