//! Schedules polls and processes their replies.
//!
//! A [`Plan`] lists the targets of a configuration: one [`plan::Target`] per endpoint and app, project or service
//! account. The [`Poller`] runs it: one loop holds all due times and starts a bounded number of concurrent polls. A
//! panic stays inside its poll; missed ticks are skipped.
//!
//! - [`plan`]: the targets of a configuration, and their cells in the store.
//! - `progress`: state that one poll passes to the next.
//! - [`counters`]: exposes and hides counters.
//! - [`schedule`]: when each target is due.
//! - [`poller`]: the loop.
//! - [`execute`]: one poll of one target; `request`: one request of it; [`error`]: why it fails.
//! - [`metrics`]: one poll of a metrics call.
//! - [`transition_log`]: log lines about failures and recoveries.
//! - [`datapoints`]: which datapoint of a series is complete; [`shown`]: conclusions from all replies of one poll.
//! - [`ranges`]: which ranges a metrics target needs.
//! - [`audit`]: checks that the service counts as assumed, `distribution` that shares belong to their range; [`evidence`]:
//!   the results; `completeness`: how much was counted in time; [`holes`]: time that the service does not answer for.
//! - [`ledger_update`]: how a poll updates its ledger.

pub mod audit;
mod completeness;
pub mod counters;
pub mod datapoints;
mod distribution;
pub mod error;
pub mod evidence;
pub mod execute;
pub mod holes;
pub mod ledger_update;
pub mod metrics;
pub mod plan;
pub mod poller;
mod progress;
pub mod ranges;
mod request;
pub mod schedule;
pub mod shown;
pub mod transition_log;

pub use plan::{Context, Plan};
pub use poller::Poller;
