//! Counters that come back from the Prometheus that scrapes them.
//!
//! A scraped page holds everything a ledger is: the cursor, the total, the buckets, the unaccounted seconds, all of one
//! moment. So an exporter that starts without a state file, or that gets an app from another shard, reads its ledgers
//! back from there, asks the service for what came since, and goes on exactly.
//!
//! ```text
//! Restorer ── which ledgers are missing? ──► Source ── POST /api/v1/query ──► Prometheus
//!    │                                          │
//!    │   ◄── a ledger, a refusal, or nothing ───┘  samples ─► groups ─► ledger
//!    ▼
//! LedgerStore: taken, opened, or held back until that is known
//! ```
//!
//! - [`Source`]: which ledgers a Prometheus knows; `query`: the PromQL; `http`: the requests; `reply`: the answers.
//! - `look_back`: the search for pages that were scraped more than an hour ago; `search`: what was found so far.
//! - `series`: samples by the target they were scraped from.
//! - [`ledger`]: the series of one target about one counter, as a ledger, if they belong together.
//! - [`restorer`]: which ledgers are asked for, and what happens to the answers; `attempt`: its types.
//! - [`error`]: why Prometheus gave no usable answer.

mod attempt;
pub mod error;
mod http;
pub mod ledger;
mod look_back;
mod query;
mod reply;
pub mod restorer;
mod search;
mod series;
pub mod source;

pub use attempt::is_later;
pub use error::Error;
pub use ledger::InvalidLedger;
pub use restorer::Restorer;
pub use search::Answer;
pub use source::Source;
