//! The service's interface: what is sent, what comes back, and which metrics a reply holds. No I/O.
//!
//! One file per call, named after it; each holds the call's [`Spec`] (method, path, parameters, the shape of
//! its reply), its wire types, and - for the calls that are polled - the rows of metrics read from the reply.
//!
//! - [`spec`]: how a call is described, and a request made ready to send.
//! - [`number`]: numeric values as the service sends them, in any of their forms.
//! - `lenient`: replies with values that no JSON reader holds.
//! - [`range`]: half-open stretches of time.
//! - [`endpoint`]: a polled call as a row: resource, cadence, families, and how its reply is read.
//! - [`openapi`]: all calls as an OpenAPI document.

pub mod endpoint;
mod lenient;
pub mod number;
pub mod openapi;
pub mod range;
pub mod spec;

pub mod branches;
pub mod change_plan;
pub mod create_api_key;
pub mod delete_app;
pub mod delete_domain;
pub mod file_tree;
pub mod get_app;
pub mod list_domains;
pub mod list_projects;
pub mod payment_url;
pub mod response_time;
pub mod run_execution_time;
pub mod unassign_domain;
pub mod validate_domain;
pub mod volume_alerts;
pub mod zip_contents;

#[cfg(test)]
pub(crate) mod recorded;

pub use endpoint::{Endpoint, Resource};
pub use number::Number;
pub use range::TimeRange;
pub use spec::{Call, Request, Spec};

/// All calls of section 4, in its order.
pub static CALLS: &[&Spec] = &[
    &create_api_key::SPEC,
    &change_plan::SPEC,
    &get_app::SPEC,
    &response_time::SPEC,
    &run_execution_time::SPEC,
    &file_tree::SPEC,
    &list_projects::SPEC,
    &zip_contents::SPEC,
    &validate_domain::SPEC,
    &volume_alerts::SPEC,
    &list_domains::SPEC,
    &branches::SPEC,
    &payment_url::SPEC,
    &unassign_domain::SPEC,
    &delete_domain::SPEC,
    &delete_app::SPEC,
];

/// The calls that are polled, in the order of their families on the page.
pub static ENDPOINTS: &[&dyn Endpoint] = &[
    &list_projects::ENDPOINT,
    &list_domains::ENDPOINT,
    &volume_alerts::ENDPOINT,
    &get_app::ENDPOINT,
    &response_time::ENDPOINT,
    &run_execution_time::ENDPOINT,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::interface::spec::Method;

    #[test]
    fn the_calls_stand_in_the_order_of_the_interface() {
        assert!(CALLS.iter().map(|call| call.number).eq(1..=16));
        let ids: HashSet<_> = CALLS.iter().map(|call| call.id).collect();
        assert_eq!(ids.len(), CALLS.len());
    }

    #[test]
    fn every_resource_is_polled_once_and_only_reads() {
        let polled: HashSet<_> = ENDPOINTS.iter().map(|endpoint| endpoint.resource()).collect();
        assert_eq!((polled.len(), ENDPOINTS.len()), (Resource::ALL.len(), Resource::ALL.len()));
        for endpoint in ENDPOINTS {
            assert_eq!(endpoint.spec().method, Method::Get);
            assert!(CALLS.iter().any(|call| std::ptr::eq(*call, endpoint.spec())));
        }
    }

    #[test]
    fn no_family_is_declared_twice() {
        let names: Vec<_> =
            ENDPOINTS.iter().flat_map(|endpoint| endpoint.families()).map(|family| family.name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }
}
