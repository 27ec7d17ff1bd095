//! A Prometheus exporter for the Project Deployment Service.
//!
//! A poller queries the service about the configured projects and apps, and `/metrics` exposes the last replies. The
//! service reports only totals and percentiles between a start and an end. [`pds_ledger`] derives exact counters from
//! that by requesting every second in exactly one range.
//!
//! `docs/ARCHITECTURE.md` maps the modules; each imports only from those above it in that table.
//!
//! A call is a row of [`pds_interface::CALLS`]. Schedule, request budget, simulator, exposition, `pdstool call`,
//! OpenAPI document, metric catalogue and status page are loops over it. A metric is one row in the file of its call; a
//! call is one file, its line in the table, and the simulator's reply.

#[cfg(not(target_os = "linux"))]
compile_error!("the daemon runs on Linux only: it reads /proc, cgroups and systemd's sockets");

pub mod app;
pub mod pages;
pub mod poll;
pub mod status;
pub mod store;
