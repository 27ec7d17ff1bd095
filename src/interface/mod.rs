//! The service's interface: what is sent, what comes back, and which metrics a reply holds. No I/O.
//!
//! One file per call, named after it; each holds the call's [`Spec`] (method, path, parameters, the shape of
//! its reply), its wire types, and - for the calls that are polled - the rows of metrics read from the reply.
//!
//! - [`spec`]: how a call is described, and a request made ready to send.
//! - [`number`]: numeric values as the service sends them, in any of their forms.
//! - [`range`]: half-open stretches of time.
//! - [`endpoint`]: a polled call as a row: resource, cadence, families, and how its reply is read.

pub mod endpoint;
pub mod number;
pub mod range;
pub mod spec;

pub mod get_app;
pub mod response_time;
pub mod run_execution_time;

pub use endpoint::{Endpoint, Resource};
pub use number::Number;
pub use range::TimeRange;
pub use spec::{Call, Request, Spec};

/// All calls of section 4, in its order.
pub static CALLS: &[&Spec] = &[&get_app::SPEC, &response_time::SPEC, &run_execution_time::SPEC];

/// The calls that are polled, in the order of their families on the page.
pub static ENDPOINTS: &[&dyn Endpoint] =
    &[&get_app::ENDPOINT, &response_time::ENDPOINT, &run_execution_time::ENDPOINT];
