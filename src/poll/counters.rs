//! Which counters are exposed: those of ledgers that keep up.

use tokio::time::{Duration, Instant};

use crate::accounting::ledger_store::Hold;
use crate::accounting::{self, Ledger, LedgerStore};

use super::plan::{Context, Plan, Target};

/// A ledger whose counters are hidden because they are behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchingUp {
    /// Its cursor, Unix seconds.
    pub until: i64,
    /// How far the cursor is behind the settled time.
    pub behind: Duration,
}

impl Plan {
    /// Shows the counters of `target` while they keep up, and hides them otherwise. `moved` tells whether the ledger has
    /// changed since they were last shown.
    pub fn show_counters(&self, context: &Context, target: &Target, ledger: &Ledger, moved: bool) {
        let Some(cell) = &target.counter else { return };
        match self.shown_for(&context.ledgers, target, ledger) {
            Some(shown_for) => {
                context.ledgers.release(&target.key);
                if moved || !cell.shows_counters(Instant::now()) {
                    let rechecked = !self.watermark.ages().is_empty();
                    let series = accounting::series(target.key.resource, ledger, rechecked);
                    cell.show_counters(series, shown_for);
                }
            }
            None => cell.hide_counters(),
        }
    }

    /// How long the counters of `target` stay visible without progress; `None` if they are hidden: they are behind, or
    /// an earlier process may have shown more.
    fn shown_for(&self, ledgers: &LedgerStore, target: &Target, ledger: &Ledger) -> Option<Duration> {
        let held_back = match ledgers.held_back(&target.key) {
            Some(Hold::Unknown) => true,
            Some(Hold::Until(step)) => ledger.until < step,
            None => false,
        };
        let shown = self.watermark.shown_for(ledger.until, self.interval(target));
        shown.filter(|_| !held_back && !ledger.set_aside)
    }

    /// The progress of the counters of `target`, if they are kept but hidden.
    #[must_use]
    pub fn catching_up(&self, ledgers: &LedgerStore, target: &Target) -> Option<CatchingUp> {
        target.counter.as_ref()?;
        let ledger = ledgers.ledger(&target.key)?;
        if self.shown_for(ledgers, target, &ledger).is_some() {
            return None;
        }
        let behind = self.watermark.settled_step().saturating_sub(ledger.until);
        let behind = Duration::from_secs(u64::try_from(behind).unwrap_or_default());
        Some(CatchingUp { until: ledger.until, behind })
    }
}
