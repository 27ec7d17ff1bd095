//! Which counters are exposed: those of ledgers that keep up.

use tokio::time::{Duration, Instant};

use crate::accounting::ledger_store::Hold;
use crate::accounting::{self, Ledger, Settled};

use super::plan::{Context, Plan, Target};

/// Whether counters are exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// They are, for this long without progress.
    Shown(Duration),
    /// They are not: they are this far behind, or an earlier process may have shown more.
    Hidden(Duration),
}

impl Plan {
    /// Shows the counters of `target` while they keep up, and hides them otherwise. `moved` tells whether the ledger has
    /// changed since they were last shown.
    pub fn show_counters(&self, context: &Context, target: &Target, ledger: &Ledger, moved: bool) {
        let Some(cell) = &target.counter else { return };
        let hold = context.ledgers.held_back(&target.key);
        match self.counters(target, ledger, hold, self.watermark.at_present()) {
            Counters::Shown(shown_for) => {
                context.ledgers.release(&target.key);
                if moved || !cell.shows_counters(Instant::now()) {
                    let rechecked = !self.watermark.ages().is_empty();
                    let series = accounting::series(target.key.resource, ledger, rechecked);
                    cell.show_counters(series, shown_for);
                }
            }
            Counters::Hidden(_) => cell.hide_counters(),
        }
    }

    /// Whether the counters of `target` are exposed while its `ledger`, what holds them back, and what has `settled` are
    /// as given.
    #[must_use]
    pub fn counters(
        &self,
        target: &Target,
        ledger: &Ledger,
        hold: Option<Hold>,
        settled: Settled,
    ) -> Counters {
        let held_back = match hold {
            Some(Hold::Unknown) => true,
            Some(Hold::Until(step)) => ledger.until < step,
            None => false,
        };
        match settled.shown_for(ledger.until, self.interval(target)) {
            Some(shown_for) if !held_back && !ledger.set_aside => Counters::Shown(shown_for),
            _ => {
                let behind = settled.step_end().saturating_sub(ledger.until);
                Counters::Hidden(Duration::from_secs(u64::try_from(behind).unwrap_or_default()))
            }
        }
    }
}
