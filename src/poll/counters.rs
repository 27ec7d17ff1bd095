//! Which counters are exposed: those of ledgers that keep up.

use tokio::time::{Duration, Instant};

use crate::accounting::ledger_store::Hold;
use crate::accounting::{self, Ledger, LedgerStore, Settled};

use super::plan::{Context, Plan, Target};

impl Plan {
    /// Shows the counters of `target` while they keep up, and hides them otherwise. `moved` tells whether the ledger has
    /// changed since they were last shown.
    pub fn show_counters(&self, context: &Context, target: &Target, ledger: &Ledger, moved: bool) {
        let Some(cell) = &target.counter else { return };
        match self.shown_for(&context.ledgers, target, ledger, self.watermark.at_present()) {
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
    fn shown_for(
        &self,
        ledgers: &LedgerStore,
        target: &Target,
        ledger: &Ledger,
        settled: Settled,
    ) -> Option<Duration> {
        let held_back = match ledgers.held_back(&target.key) {
            Some(Hold::Unknown) => true,
            Some(Hold::Until(step)) => ledger.until < step,
            None => false,
        };
        let shown = settled.shown_for(ledger.until, self.interval(target));
        shown.filter(|_| !held_back && !ledger.set_aside)
    }

    /// How far the cursor of `ledger` is behind what has `settled`, if the counters of its `target` are hidden.
    #[must_use]
    pub fn behind(
        &self,
        ledgers: &LedgerStore,
        target: &Target,
        ledger: &Ledger,
        settled: Settled,
    ) -> Option<Duration> {
        if self.shown_for(ledgers, target, ledger, settled).is_some() {
            return None;
        }
        let behind = settled.step_end().saturating_sub(ledger.until);
        Some(Duration::from_secs(u64::try_from(behind).unwrap_or_default()))
    }
}
