//! Restores cursors from Prometheus when there is no state file.
//!
//! A restart reads the cursor of each counter from the Prometheus that scrapes the exporter. The counter begins at 0
//! there, an ordinary reset, and requests the time since from the service. Time before it that was pending becomes
//! unaccounted.
//!
//! ```text
//! Restorer ── which cursors are missing? ──► Source ── POST /api/v1/query ──► Prometheus
//!    │                                         │
//!    │   ◄── the greatest cursor, or none ─────┘
//!    ▼
//! LedgerStore: begun at the cursor, opened, or held back until that is known
//! ```
//!
//! - [`restorer`]: when cursors are read, and the effect of the answers; [`progress`]: reports about that.
//! - [`Source`]: the cursors in a Prometheus; `query`: the PromQL; `http`: the requests, and why there is no usable
//!   answer; `reply`: the answers.

mod http;
pub mod progress;
mod query;
mod reply;
pub mod restorer;
pub mod source;

pub use http::{Error, Login, Prometheus};
pub use progress::Restoring;
pub use restorer::{Followed, Restorer};
pub use source::{Answer, Cursor, Source, Targets};
