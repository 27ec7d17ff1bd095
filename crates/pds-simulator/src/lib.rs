//! The service, complete: all calls of the interface, with state, rules, tokens, errors and traffic.
//!
//! A [`World`] holds the service's data: projects, apps, domains, keys, and the traffic of each app. Traffic is a pure
//! function of (seed, app, second), so the exact figures of any past range are known: [`World::truth`] in the process,
//! `GET /simulator/truth` beside the calls. [`serve`] puts a world on a listener.
//!
//! - [`world`]: the world: what a test or `--demo` makes, asks and disturbs; `settings`: how large it is, and how the
//!   metrics calls differ from ideal ones.
//! - `traffic`: how many requests and runs in which second; `latency`: their durations.
//! - `blueprint`: the properties of each app.
//! - `state`: state that calls change: domains, keys, plans, deleted apps; service accounts.
//! - `routes`: from a request to its call, by a loop over [`pds_interface::CALLS`], and to a request that may be
//!   answered. `calls` implements [`pds_interface::Service`] for it, a method per call, with `metrics`; `control`
//!   answers what is below `/simulator`; `answer` is what goes back.
//! - [`faults`]: faults on demand; `disturb` applies them.
//! - [`journal`]: the received requests, for tests.
//! - `server`: connections.

pub mod faults;
pub mod journal;
pub mod world;

mod answer;
mod blueprint;
mod calls;
mod chance;
mod control;
mod disturb;
mod latency;
mod metrics;
mod routes;
mod server;
mod settings;
mod state;
mod traffic;

pub use faults::{Fault, Kind, RetryAfter};
pub use latency::THRESHOLDS;
pub use server::serve;
pub use settings::{DEVIATIONS, Quirks, Settings};
pub use world::{Truth, World};
