//! Which counters are exposed: those of ledgers that keep up.

use tokio::time::{Duration, Instant};

use pds_ledger::{HOUR, Hold, Ledger, Settled};

use super::ledger_update::phase;
use super::plan::{Context, Plan, Target};
use super::progress::Start;

/// Whether counters are exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// They are, for this long without progress.
    Shown(Duration),
    /// They are not: they are this far behind, or an earlier process may have shown more.
    Hidden(Duration),
}

/// The most polls for which a new counter is served at its starting value.
const MAX_WAITS: u8 = 2;

impl Plan {
    /// Shows the counters of `target` while they keep up, and hides them otherwise. `former` is the ledger before it
    /// changed; `None` if it has not since they were last shown.
    pub fn show_counters(
        &self,
        context: &Context,
        target: &Target,
        ledger: &Ledger,
        former: Option<&Ledger>,
    ) {
        let Some(cell) = &target.counter else { return };
        let (resource, is_shown) = (target.key.resource, cell.shows_counters(Instant::now()));
        let mut start = target.progress.take_start();
        let moved = former.is_some();
        if let (None, Some(former)) = (&start, former) {
            let is_new = if is_shown { !former.has_thresholds_of(ledger) } else { former.is_new() };
            start = is_new.then(|| Start::Waiting(Box::new(former.clone())));
        }
        let settled = self.watermark.at_present();
        match self.counters(target, ledger, context.ledgers.held_back(&target.key), settled) {
            Counters::Shown(shown_for) => {
                context.ledgers.release(&target.key);
                let rechecked = !self.watermark.ages().is_empty();
                let series = |ledger| pds_ledger::series(resource, ledger, rechecked);
                match start.take() {
                    Some(Start::Waiting(first)) => {
                        cell.put_counters(series(&first.with_thresholds_of(ledger)), Some(shown_for));
                        start = Some(Start::Shown(context.store.version(), 0));
                    }
                    Some(Start::Shown(version, waits))
                        if is_shown
                            && !(moved && (waits + 1 >= MAX_WAITS || context.store.was_read(version))) =>
                    {
                        cell.keep_counters(shown_for);
                        start = Some(Start::Shown(version, waits + u8::from(moved)));
                    }
                    waited => {
                        if moved || waited.is_some() || !is_shown {
                            cell.put_counters(series(ledger), Some(shown_for));
                        }
                    }
                }
            }
            Counters::Hidden(behind) => {
                start = start.filter(|start| matches!(start, Start::Waiting(_)));
                if settled.started.is_some() && !ledger.set_aside {
                    cell.put_counters(pds_ledger::behind(resource, behind.as_secs()), None);
                } else {
                    cell.clear();
                }
            }
        }
        target.progress.put_start(start);
    }

    /// Whether the counters of `target` are exposed while its `ledger`, what holds them back, and what has `settled` are
    /// as given.
    pub fn counters(
        &self,
        target: &Target,
        ledger: &Ledger,
        hold: Option<Hold>,
        settled: Settled,
    ) -> Counters {
        let held_back = match hold {
            Some(Hold::Unknown) => true,
            // An earlier process may have shown late data of the hours that are due, but an hour of the service's refusals
            // is long enough.
            Some(Hold::Until(step)) => {
                let due = ledger.recheck_due(self.watermark.ages(), phase(target), ledger.until);
                ledger.until < step || due.is_some() && ledger.until < step + HOUR
            }
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
