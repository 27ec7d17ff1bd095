//! When each target is asked, and what becomes of the answer.
//!
//! A [`Plan`] is what a configuration wants asked: one [`plan::Target`] for each endpoint and app, project or service
//! account. The [`Poller`] runs it: one loop holds all due times, and starts a bounded number of polls at once. A
//! poll that panics is contained; a tick that was missed is skipped.
//!
//! - [`plan`]: the targets of a configuration; `objective`: what it promises of apps.
//! - [`progress`]: what a poll leaves to the next one.
//! - [`counters`]: which counters are on the page.
//! - [`schedule`]: when each of them is due.
//! - [`poller`]: the loop.
//! - [`execute`]: one poll of one target; `ask`: one request of it; [`error`]: why it fails.
//! - [`metrics`]: the ranges that one poll of a metrics call asks for.
//! - [`transition_log`]: what the log says of it.
//! - [`slots`]: how many of them at once.
//! - [`datapoints`]: which datapoint of a series is complete; [`shown`]: what the replies of one poll show together.
//! - [`ranges`]: which ranges a metrics target asks for, each once.
//! - [`ledger_update`]: what becomes of its ledger.

mod ask;
pub mod counters;
pub mod datapoints;
pub mod error;
pub mod execute;
pub mod ledger_update;
pub mod metrics;
mod objective;
pub mod plan;
pub mod poller;
pub mod progress;
pub mod ranges;
pub mod schedule;
pub mod shown;
pub mod slots;
pub mod transition_log;

pub use plan::{Context, Plan};
pub use poller::Poller;
