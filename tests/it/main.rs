//! All integration tests in one binary: one link, and shared ways to start the parts. A module per theme.
#![allow(clippy::zombie_processes, reason = "a process whose test fails is ended by the test runner")]
#![allow(clippy::cast_possible_truncation, reason = "figures of tests are small")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails; clippy knows only functions marked #[test]"
)]

mod accounting;
mod catalogue;
mod client;
mod command_line;
mod config;
mod counts;
mod deploy;
mod docs;
mod faults;
mod field;
mod first_contact;
mod fuzz;
mod gauges;
mod given_up;
mod golden;
mod house;
mod logging;
mod openapi;
mod poller;
mod polls;
mod process;
mod readme;
mod real_backfill;
mod real_deploy;
mod real_flood;
mod real_kill;
mod real_lifecycle;
mod real_memory;
mod real_outage;
mod real_prometheus;
mod real_queries;
mod real_readme;
mod real_restore;
mod real_soak;
mod real_state;
mod real_ui;
mod recipes;
mod releases;
mod reload;
mod restore;
mod rig;
mod server;
mod shards;
mod simulator;
mod status;
mod tool;
mod tools;
mod troubleshooting;
mod web;
mod whole;
