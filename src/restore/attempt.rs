//! Types of one attempt to read ledgers back.

use std::collections::BTreeMap;

use crate::accounting::{Ledger, Watermark};
use crate::store::Key;

use super::source::Source;

/// The source, and the clocks.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub source: Source,
    pub watermark: Watermark,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Job {
    pub followed: Followed,
    pub missing: BTreeMap<Key, Missing>,
    pub generation: u64,
}

/// A counter whose ledger is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// The step that had settled when it was configured; `None` if that was before two clocks agreed.
    pub since: Option<i64>,
    /// Whether Prometheus knew nothing of it.
    pub unknown: bool,
}

/// What to do with the ledger of a counter.
#[derive(Debug)]
pub(super) enum Decision {
    /// Take this one.
    Take(Ledger),
    /// Continue with that of the state file.
    Keep,
    /// Open it at this step.
    Open(i64),
}

/// Whether `restored` replaces the ledger of the state file. A ledger that is later and yet holds less is another count
/// of the same app: taking it would take back what was shown.
#[must_use]
pub fn is_later(restored: &Ledger, known: &Ledger) -> bool {
    restored.until > known.until && (known.set_aside || restored.total >= known.total)
}
