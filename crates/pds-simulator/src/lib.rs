//! The service, complete: all calls of the interface, with state, rules, tokens, errors and traffic.
//!
//! A [`World`] holds the service's data: projects, apps, domains, keys, and the traffic of each app. Traffic is a pure
//! function of (seed, app, second), so the exact figures of any past range are known: [`World::truth`] in the process,
//! `GET /simulator/truth` beside the calls. [`serve`] puts a world on a listener.
//!
//! - [`world`]: the world, which tests and `--demo` create, query and disturb; `settings`: its size, and how its
//!   metrics calls differ from ideal ones.
//! - `traffic`: how many requests and runs in which second; `latency`: their durations.
//! - `blueprint`: the properties of each app.
//! - `state`: state that calls change: domains, keys, plans, deleted apps; service accounts.
//! - `routes`: finds the call of a request in [`pds_interface::CALLS`], and checks the request. `calls` implements
//!   [`pds_interface::Service`], a method per call, with `metrics`; `control` answers requests below `/simulator`;
//!   `answer` holds replies and refusals.
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

pub use faults::{Fault, Kind};
pub use latency::THRESHOLDS;
pub use server::serve;
pub use settings::{Quirks, Settings};
pub use world::{Truth, World};
