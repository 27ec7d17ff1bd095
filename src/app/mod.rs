//! Builds the daemon from a configuration, and runs it.
//!
//! ```text
//! config file + environment -> Config -> Daemon::build -> Client, Store, LedgerStore, Plan -> Poller, Pages, Server
//! ```
//!
//! - [`flags`]: the command line.
//! - [`logging`]: the log.
//! - [`daemon`]: the daemon built from its parts, and its thread. Nothing is global; clock and shutdown are arguments.
//! - [`demo`]: the same daemon against a simulated service.
//! - [`serve`]: what the web server asks of the daemon, and reloading.
//! - [`run`]: what `main` does: the runtime, signals, exit codes.

pub mod daemon;
pub mod demo;
pub mod flags;
mod log_writer;
pub mod logging;
pub mod run;
pub mod serve;

use crate::store::{LAST_SUCCESS, OBJECTIVE, UP};
use crate::telemetry;
use pds_exposition::Group;
use pds_interface::Resource;

/// Every family that can be on the page, in its order and by section.
pub fn catalogue() -> Vec<Group> {
    let of_service = Resource::all()
        .map(|resource| Group { title: resource.call().purpose, families: resource.polled().families() });
    let rest = [
        Group { title: "exact counters", families: pds_ledger::FAMILIES.to_vec() },
        Group { title: "objectives", families: vec![OBJECTIVE] },
        Group { title: "targets", families: vec![UP, LAST_SUCCESS] },
        Group { title: "the exporter itself", families: telemetry::FAMILIES.to_vec() },
        Group { title: "its process", families: telemetry::process_families().copied().collect() },
    ];
    of_service.chain(rest).collect()
}
