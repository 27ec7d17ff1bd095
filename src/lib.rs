//! A Prometheus exporter for the Project Deployment Service.
//!
//! A poller asks the service about the configured projects and apps; `/metrics` shows its last answers. The service
//! only answers "how many, and how slow, between start and end"; `accounting` turns that into exact counters by asking
//! for every second in exactly one range.
//!
//! # Layers
//!
//! Each imports only from those before it (`tests/it/house.rs` checks this):
//!
//! | layer | what it is |
//! | --- | --- |
//! | [`error_chain`], [`clock`], [`secret`] | errors for people; time as an argument; text that redacts itself |
//! | [`catalogue`] | metric families, and how they are written |
//! | [`interface`] | the service's 16 calls, one file each, with the rows of metrics read from their replies |
//! | [`config`] | the configuration |
//! | [`telemetry`] | the exporter's metrics about itself |
//! | [`client`], [`simulator`] | asking the service; being the service. Neither sees the other |
//! | [`store`], [`accounting`] | the last answer of each target, assembled into pages; exact counters |
//! | [`restore`] | counters that come back from Prometheus |
//! | [`poll`] | when each target is asked |
//! | [`status`] | the state of everything, for people |
//! | [`web`] | who may read, and in which form |
//! | [`app`] | builds all of it from a configuration |
//! | [`tool`] | `pdstool` |
//!
//! A call is a row of [`interface::CALLS`]. Schedule, request budget, simulator, exposition, `pdstool call`, OpenAPI
//! document, metric catalogue and status page are loops over it. A metric is one row in the file of its call; a call
//! is one file, its line in the table, and the simulator's answer to it.

pub mod accounting;
pub mod app;
pub mod catalogue;
pub mod client;
pub mod clock;
pub mod config;
pub mod error_chain;
pub mod interface;
pub mod plain_file;
pub mod poll;
pub mod printable;
pub mod restore;
pub mod secret;
pub mod simulator;
pub mod status;
pub mod store;
pub mod telemetry;
#[cfg(feature = "tool")]
pub mod tool;
pub mod web;
