//! Faults of the simulated service, and the requests that they are limited to.

use pds_interface::Resource;
use pds_simulator::{Fault, Kind};

/// A web page with this status.
pub(crate) fn html(status: u16) -> Kind {
    let text = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
    Kind::RawError { status, text }
}

/// An additional field, nested this deeply.
pub(crate) fn nested(depth: usize) -> Kind {
    let [open, close] = ["[", "]"].map(|bracket| bracket.repeat(depth));
    Kind::Insert { text: format!("\"deep\":{open}{close},") }
}

/// Short forms of faults.
pub(crate) trait FaultExt {
    /// Every request fails with this status.
    fn status(status: u16) -> Self;

    /// The field of this name has the value `json` in every reply.
    fn value(field: &str, json: &str) -> Self;

    /// Limited to the call that polls `resource`.
    fn on(self, resource: Resource) -> Self;

    /// Limited to this project.
    fn of_project(self, project: &str) -> Self;

    /// Limited to this app.
    fn of_app(self, app: &str) -> Self;

    /// Limited to this container of a metrics call.
    fn of_container(self, container: &str) -> Self;

    /// Limited to ranges of a metrics call that are longer than this many seconds.
    fn of_ranges_longer_than(self, seconds: u32) -> Self;

    /// Limited to this share of the requests.
    fn with_probability(self, probability: f64) -> Self;

    /// Limited to the first `count` requests.
    fn times(self, count: u64) -> Self;
}

impl FaultExt for Fault {
    fn status(status: u16) -> Self {
        Kind::Status { status, retry_after: None }.into()
    }

    fn value(field: &str, json: &str) -> Self {
        Kind::Value { field: field.to_owned(), json: json.to_owned() }.into()
    }

    fn on(self, resource: Resource) -> Self {
        Self { call: Some(resource.as_str().to_owned()), ..self }
    }

    fn of_project(self, project: &str) -> Self {
        Self { project: Some(project.to_owned()), ..self }
    }

    fn of_app(self, app: &str) -> Self {
        Self { app: Some(app.to_owned()), ..self }
    }

    fn of_container(self, container: &str) -> Self {
        Self { container: Some(container.to_owned()), ..self }
    }

    fn of_ranges_longer_than(self, seconds: u32) -> Self {
        Self { longer_than: Some(seconds), ..self }
    }

    fn with_probability(self, probability: f64) -> Self {
        Self { probability: Some(probability), ..self }
    }

    fn times(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }
}
