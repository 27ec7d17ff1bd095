//! What one attempt to read ledgers back is about.

use std::collections::BTreeMap;

use crate::accounting::{Ledger, Watermark};
use crate::store::Key;

use super::source::Source;

/// What is asked, and the clocks by which.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub source: Source,
    pub watermark: Watermark,
}

/// What one attempt is about.
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
    /// Whether the Prometheus knew nothing of it.
    pub unknown: bool,
}

/// What is to be done with the ledger of a counter.
#[derive(Debug)]
pub(super) enum Decision {
    /// Take this one.
    Take(Ledger),
    /// Go on from that of the state file.
    Keep,
    /// Open it at this step.
    Open(i64),
}

/// Whether `restored` takes the place of the ledger of the state file. One that is later and yet holds less is another
/// count of the same app: to take it would take back what was shown here.
#[must_use]
pub fn is_later(restored: &Ledger, known: &Ledger) -> bool {
    restored.until > known.until && (known.set_aside || restored.total >= known.total)
}
