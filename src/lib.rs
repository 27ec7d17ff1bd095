//! A Prometheus exporter for the Project Deployment Service.
//!
//! A poller asks the service about the configured projects and apps; `/metrics` shows what it last learned.
//! The service answers only "how many, and how slow, between start and end"; `accounting` turns that into
//! exact counters by asking for every stretch of time exactly once.
//!
//! # The map of the house
//!
//! Layers, each importing only from those before it (`tests/it/house.rs` holds this):
//!
//! | layer | what it is |
//! | --- | --- |
//! | [`error_chain`], [`clock`], [`secret`] | errors for people; time as an argument; text that redacts itself |
//! | [`catalogue`], [`config`] | metric families and how they are written; what the user wants |
//! | [`interface`], [`telemetry`] | the service's 16 calls, one file each, with the rows of metrics read from their replies; the exporter's metrics about itself |
//! | [`client`], [`simulator`] | asking the service; being the service. Neither sees the other |
//! | [`store`], [`accounting`] | what each target last said, assembled into pages; exact counters |
//! | [`poll`] | when each target is asked |
//! | [`status`] | how all of it fares, for people |
//! | [`web`] | who may read, and in which form |
//! | [`app`] | builds all of it from a configuration |
//! | [`tool`] | `pdstool`, beside it |
//!
//! An endpoint is a row: client, simulator, schedule, exposition, documentation and status page are loops over
//! [`interface::ENDPOINTS`] and [`interface::CALLS`]. Adding a metric is one row in the file of its endpoint;
//! adding an endpoint is one file and one line.

pub mod accounting;
pub mod app;
pub mod catalogue;
pub mod client;
pub mod clock;
pub mod config;
pub mod error_chain;
pub mod interface;
pub mod poll;
pub mod secret;
pub mod simulator;
pub mod status;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod web;
