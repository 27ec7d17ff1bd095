//! The diagnosis that daemon and tool share: what can be wrong, and how it is reported.
//!
//! - [`cause`]: every cause with its remedy: the one table that page, log, `pdstool` and documentation read; `cause_text`:
//!   its texts about certain tokens, addresses and ids.
//! - `verdict`: verdicts with their problems and reasons.
//! - [`model`]: the parts of `/api/v1/status`.
//! - `incident`: what happened in the last hours.
//! - [`columns`]: an app as a row of a table.
//!
//! No I/O: the daemon fills the model, and `pdstool` reads it back.

pub mod cause;
mod cause_text;
pub mod columns;
mod incident;
pub mod model;
mod verdict;

pub use cause::{About, Cause, Scope, Verdict};
pub use cause_text::{clock_difference, mistake_in_id};
pub use columns::{Cell, Column, Listed};
pub use incident::{Disputed, GivenUp, Incident, IncidentKind, LastError};
pub use model::*;
pub use verdict::{Apps, Audited, Failing, Problem, Reason, Summary};
