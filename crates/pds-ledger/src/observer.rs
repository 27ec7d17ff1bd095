//! What the ledgers report while they work.

use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;

/// Shows how commits and restoring go. The lines that are logged about it are the ledgers' own.
pub trait Observer: Debug + Send + Sync {
    /// A commit ended: the state file could be written, or not.
    fn committed(&self, good: bool);

    /// The progress of restoring; `None` if it is not configured any more.
    fn restoring(&self, now: Option<Restoring>);

    /// When this process loaded its configuration, as its page says: Prometheus knows the process by it.
    fn config_loaded(&self) -> Option<Timestamp>;
}

/// An observer that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn committed(&self, _: bool) {}

    fn restoring(&self, _: Option<Restoring>) {}

    fn config_loaded(&self) -> Option<Timestamp> {
        None
    }
}

/// The progress of restoring counters from Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restoring {
    /// Counters that are hidden because their former value is not known yet.
    pub missing: usize,
    /// Counters that continue from Prometheus.
    pub restored: usize,
    /// Counters that continue from the state file: Prometheus has nothing later.
    pub kept: usize,
    /// Counters that begin at 0: Prometheus has scraped this process, but has no such counter.
    pub opened: usize,
    /// Why some are still missing; `None` before the first answer.
    pub obstacle: Option<Obstacle>,
}

/// Why counters are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason as text.
    pub text: Arc<str>,
    /// Whether this is expected: Prometheus has not scraped this process yet.
    pub expected: bool,
}
