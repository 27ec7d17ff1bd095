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
//! - [`restorer`]: which ledgers are asked for, and what happens to the answers; `attempt`: what one asks for and learns.
//! - [`Source`]: the search for ledgers, also on pages that were scraped more than an hour ago; `query`: the PromQL;
//!   `http`: the requests, and why there is no usable answer; `reply`: the answers.
//! - `series`: samples by the target they were scraped from.
//! - [`ledger`]: the series of one target about one counter, as a ledger, if they belong together.

mod attempt;
mod http;
pub mod ledger;
mod query;
mod reply;
pub mod restorer;
mod series;
pub mod source;

pub use attempt::is_later;
pub use http::{Error, Login, Prometheus};
pub use ledger::{Answer, InvalidLedger};
pub use restorer::{Obstacle, Restorer, Restoring};
pub use source::Source;
