//! Exact counters from an interface that reports only totals and percentiles between a start and an end.
//!
//! Each app has a [`Ledger`] for each of the two metrics calls: a cursor in time, and the counts up to it. Each poll
//! requests the range from the cursor to the last whole step that has settled, and adds the reply. So every second is
//! in exactly one added range.
//!
//! ```text
//! first reply           cursor (accounted_until)      now - settle      now
//!     |---- added, once ----|---- due: one request ----|-- unsettled --|
//! ```
//!
//! A failed request moves nothing: the next poll requests the same range, which has grown by then, in one request of
//! up to [`MAX_MERGED`]. A ledger is on disk before it is shown, so a crash at most repeats a request.
//!
//! It serves no requests and sends none to the service: replies go in, and series come out. It knows no call by name.
//!
//! - [`key`]: the targets.
//! - [`counters`]: the counter families, for page, file and restore.
//! - [`watermark`]: which time has settled, by our clock and the service's, and which ranges are counted.
//! - [`ledger`]: the arithmetic; no clock, no I/O.
//! - [`recheck`]: counting an hour again, and late data; [`sample`]: how much arrives even later.
//! - [`ledger_store`]: all ledgers; `commits`: how they are written to disk, and reports about that.
//! - [`state`]: the state file; [`error`]: why it cannot be used, and why a reply is not added; [`record`]: a ledger as
//!   bytes; `log`: the file of any keys and values.
//! - [`restore`]: counters that continue from the Prometheus that scrapes them.

mod buckets;
mod commits;
pub mod counters;
pub mod error;
pub mod key;
pub mod ledger;
pub mod ledger_store;
mod log;
pub mod recheck;
pub mod record;
pub mod restore;
pub mod sample;
pub mod state;
mod stretch;
mod varint;
pub mod watermark;

use std::time::Duration;

pub use commits::{Committer, Observer, SILENT, Unobserved};
pub use counters::{FAMILIES, behind, series};
pub use error::{NotCommitted, Refusal, StateError};
pub use key::{Key, Owner};
pub use ledger::{Hold, Ledger, RangeLimits};
pub use ledger_store::{COMMIT_INTERVAL, LedgerStore, Opening};
pub use stretch::{Completeness, HOUR, Sample};
pub use watermark::{Config, Settled, Watermark};

/// The longest range of one request after an outage. Longer ranges would need fewer requests, but the distribution
/// comes as percentages: the more requests in a range, the coarser the counts.
pub const MAX_MERGED: Duration = Duration::from_secs(6 * 3600);

/// The most thresholds of a ledger. The service has about 25; without a limit, labels that drift would fill the disk.
pub const MAX_THRESHOLDS: usize = 256;

/// How long the ledgers of a removed app are kept after the last range added; `max_catch_up` if that is longer. An app
/// that is removed and added again continues where it stopped.
pub const KEPT_AFTER_REMOVAL: Duration = Duration::from_secs(7 * 86_400);
