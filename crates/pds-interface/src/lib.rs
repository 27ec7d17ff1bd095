//! The service's interface: requests, replies, and the metrics of a reply. No I/O.
//!
//! A file per call, named after it. Each holds the call's row of the table ([`Call`]: method, path, parameters,
//! format of the reply, how it is polled, its subcommand), its wire types and, for a polled call, the rows of metrics
//! read from the reply.
//!
//! - [`call`]: a row of the table.
//! - [`reply`]: how replies are read and written.
//! - [`param`]: query parameters and body fields with their rules.
//! - [`request`]: a call with its arguments, ready to send.
//! - [`polled`]: how a call is polled, and how its metrics are read into a [`reader`].
//! - [`resource`]: polled calls as indices into the table.
//! - [`metrics`]: what the two metrics calls share.
//! - [`number`]: numeric values in all forms that the service sends.
//! - `wire`: text, flags, lists and objects in all forms that the service sends.
//! - `prelude`: what the file of a call imports.
//! - [`range`]: half-open stretches of time.
//! - [`openapi`]: all calls as an OpenAPI document.

pub mod call;
pub mod metrics;
pub mod number;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod param;
pub mod polled;
mod prelude;
pub mod range;
pub mod reader;
pub mod reply;
pub mod request;
pub mod resource;
pub mod wire;

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
mod tests;

use pds_exposition::{Family, Kind};

pub use call::Call;
pub use number::Number;
pub use param::{QueryNames, Resolution, RuleError};
pub use polled::{Cadence, Counted, Point, Scope, Tally};
pub use range::{Ignored, RangeEnd, TimeRange};
pub use reader::{Subject, Window};
pub use reply::{DecodeError, ReplyBody};
pub use request::{Arguments, Request};
pub use resource::Resource;

/// Declares the table of calls, and the trait with a method per call.
macro_rules! calls {
    ($($call:ident),+ $(,)?) => {
        /// All calls of section 4. Polled calls come first, in the order of their families on the page.
        pub static CALLS: &[&Call] = &[$(&$call::CALL),+];

        /// The place of each call in [`CALLS`].
        #[allow(non_camel_case_types, dead_code, reason = "only constants of polled calls name theirs")]
        #[derive(Clone, Copy)]
        enum Place {
            $($call),+
        }

        /// Answers every call: a method per call, so that none can be forgotten.
        pub trait Service {
            /// Why the service refuses a call.
            type Error;
            $(
                #[doc = concat!("Answers [`", stringify!($call), "`](mod@", stringify!($call), ").")]
                ///
                /// # Errors
                /// If the service refuses the call.
                fn $call(&self) -> Result<$call::Reply, Self::Error>;
            )+
        }

        /// Each call with the method of `S` that answers it; the reply comes as it is written on the wire.
        pub fn handlers<S: Service>() -> Vec<(&'static Call, Handler<S>)> {
            vec![$((&$call::CALL, |service| Ok(service.$call()?.encode()))),+]
        }

        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($call)),+];
    };
}

/// Answers one call: the reply as it is written, or the refusal.
pub type Handler<S> = fn(&S) -> Result<Result<Vec<u8>, serde_json::Error>, <S as Service>::Error>;

// The table: one line per call.
calls! {
    list_projects,
    list_domains,
    volume_alerts,
    get_app,
    response_time,
    run_execution_time,
    create_api_key,
    change_plan,
    file_tree,
    zip_contents,
    validate_domain,
    branches,
    payment_url,
    unassign_domain,
    delete_domain,
    delete_app,
}

/// The families of all polled calls, in the order of the page.
pub fn families() -> impl Iterator<Item = Family> {
    Resource::all().flat_map(|resource| resource.polled().families())
}

/// Label names that a configured label must not repeat: those of the info families that it would be added to, and the
/// target's own.
pub fn taken_labels() -> Vec<&'static str> {
    let infos = families().filter(|family| family.kind == Kind::Info);
    infos.flat_map(|family| family.labels).copied().chain(["project", "app"]).collect()
}
