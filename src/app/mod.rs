//! Builds the daemon from a configuration, and runs it.
//!
//! ```text
//! config file + environment -> Config -> Daemon::build -> Client, Store, LedgerStore, Plan -> Poller, Pages, Server
//! ```
//!
//! - [`logging`]: the log and its lines; `log_queue`: their queue, which never waits.
//! - [`daemon`]: the daemon built from its parts, and its thread. Nothing is global; clock and shutdown are arguments.
//! - [`demo`]: the same daemon against a simulated service.
//! - [`serve`]: the daemon's side of the web server, and reloading.
//! - [`run`]: the body of `main`: runtime, signals, exit codes.

pub mod daemon;
pub mod demo;
mod log_queue;
pub mod logging;
pub mod run;
pub mod serve;
