//! Exposes the counters of ledgers that keep up, and hides the others.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

use pds_interface::Resource;
use pds_ledger::{Hold, Ledger, Settled};

use super::plan::{Context, Plan, Target};
use super::progress::Start;

/// Whether counters are exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// Exposed, for this long if they make no progress.
    Shown(Duration),
    /// Hidden: they are this far behind, or their cursor is not known yet.
    Hidden(Duration),
}

/// The most polls for which a new counter is served at its starting value.
const MAX_WAITS: u8 = 2;
/// Minimum and maximum time for which a counter that began at a cursor of Prometheus is served at 0: about two scrapes,
/// and two minutes.
const BEGUN: std::ops::Range<Duration> = Duration::from_secs(60)..Duration::from_secs(120);

/// Busy apps by account and call, and how many of them are silent.
#[derive(Debug, Default)]
pub struct Silence<'a>(BTreeMap<(&'a str, Resource), (usize, usize)>);

impl<'a> Silence<'a> {
    /// Adds the app of `target`.
    pub fn add(&mut self, target: &'a Target) {
        if let Some(since) = target.progress.busy() {
            let key = (target.account.name(), target.key.resource);
            let (busy, silent) = self.0.entry(key).or_default();
            (*busy, *silent) = (*busy + 1, *silent + usize::from(since.is_some()));
        }
    }

    /// Adds the apps of `other`.
    pub fn merge(&mut self, other: Self) {
        for (key, of) in other.0 {
            let (busy, silent) = self.0.entry(key).or_default();
            (*busy, *silent) = (*busy + of.0, *silent + of.1);
        }
    }

    /// The number of apps whose zeros are not counted because the service seems to be down: the most of any account and
    /// call without a relevant part of busy apps that still have requests.
    pub fn apps(&self) -> usize {
        const MIN_SILENT: usize = 3;
        let is_outage = |(busy, silent): &&(usize, usize)| *silent >= MIN_SILENT && silent * 10 >= busy * 9;
        self.0.values().filter(is_outage).map(|(_, silent)| *silent).max().unwrap_or_default()
    }
}

impl Plan {
    /// Shows the counters of `target` while they keep up, and hides them otherwise. `former` is the ledger before it
    /// changed; `None` if it did not.
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
            start = is_new.then(|| Start::from(former.clone()));
        }
        let settled = self.watermark.at_present();
        let hold = context.ledgers.hidden_by(&target.key);
        let behind = settled.step_end().saturating_sub(ledger.until);
        let behind = Duration::from_secs(u64::try_from(behind).unwrap_or_default());
        match self.counters(target, ledger, hold, settled) {
            Counters::Shown(shown_for) => {
                let rechecked = !self.watermark.ages().is_empty();
                let series = |ledger| pds_ledger::series(resource, ledger, rechecked);
                if let Some(Hold::Begun { until, pending }) = hold {
                    start.get_or_insert_with(|| Start::from(Ledger::open_after(until, pending)));
                }
                let stands =
                    start.as_ref().is_some_and(|start| !self.has_stood(context, target, start, moved));
                if let Some(start) = start.as_mut().filter(|_| stands) {
                    // It stays on the page until the next poll at least, so that it can be read.
                    let shown_for = shown_for.max(self.stale_after(target));
                    let first = start.first.with_thresholds_of(ledger);
                    cell.put_counters(series(&first), Some(shown_for), behind);
                    start.stand(context.store.version(), moved);
                } else {
                    if let Some(Hold::Begun { .. }) = hold {
                        context.ledgers.release(&target.key);
                    }
                    if start.take().is_some() || moved || !is_shown {
                        cell.put_counters(series(ledger), Some(shown_for), behind);
                    } else {
                        cell.keep_counters(shown_for, behind);
                    }
                }
            }
            Counters::Hidden(_) => {
                start.iter_mut().for_each(|start| start.shown = None);
                if settled.started.is_some() && !ledger.set_aside {
                    cell.put_counters(pds_ledger::behind(resource, behind.as_secs()), None, behind);
                } else {
                    cell.clear();
                }
            }
        }
        target.progress.put_start(start);
    }

    /// Whether the service seems to be down for the account of `target`, although it answers: nine tenths of the busy
    /// apps, and at least three, no longer have requests.
    pub(super) fn is_silent(&self, target: &Target) -> bool {
        let mut known = self.silences.lock();
        let key = (target.account.name().into(), target.key.resource);
        if let Some((at, is_silent)) = known.get(&key)
            && at.elapsed() < Duration::from_secs(1)
        {
            return *is_silent;
        }
        let is_alike = |other: &Target| {
            other.key.resource == target.key.resource && other.account.name() == target.account.name()
        };
        let mut alike = Silence::default();
        self.targets.iter().filter(|target| is_alike(target)).for_each(|target| alike.add(target));
        let silent = alike.apps();
        let is_silent = silent > 0;
        let before = known.insert(key, (Instant::now(), is_silent));
        if is_silent && before.is_none_or(|(_, was_silent)| !was_silent) {
            tracing::warn!(
                token = target.account.name(),
                resource = target.key.resource.as_str(),
                apps = silent,
                "nearly all busy apps suddenly have no requests, so the service seems to be down; the newest ranges are \
                 requested again, for ten minutes at most"
            );
        }
        is_silent
    }

    /// Whether nothing is counted until a check shows that the service's replies can be trusted.
    fn waits_for_audit(&self, target: &Target, ledger: &Ledger) -> bool {
        ledger.total == 0 && self.evidence(target).is_checking()
    }

    /// Whether a counter has stood at its starting value for long enough; its ledger may have `moved` since the last poll.
    fn has_stood(&self, context: &Context, target: &Target, start: &Start, moved: bool) -> bool {
        let Some(shown) = &start.shown else { return false };
        let was_read = context.store.was_read(shown.version);
        if !matches!(context.ledgers.hidden_by(&target.key), Some(Hold::Begun { .. })) {
            return moved && (was_read || shown.polls + 1 >= MAX_WAITS);
        }
        let stood = shown.since.elapsed();
        // Rounds to the nearest poll.
        let most = BEGUN.end.saturating_sub(self.interval(target) / 2);
        stood >= most || (stood >= BEGUN.start && was_read)
    }

    /// Whether the counters of `target` are exposed, given its `ledger`, the hold on it, and the `settled` time.
    pub fn counters(
        &self,
        target: &Target,
        ledger: &Ledger,
        hold: Option<Hold>,
        settled: Settled,
    ) -> Counters {
        let held_back = hold == Some(Hold::Unknown) || ledger.set_aside;
        // While the service seems to be down, zeros are not counted, and the cursor does not move.
        let silent = target.progress.busy().flatten().map_or(0, |since| since.elapsed().as_secs());
        let mut answered = settled;
        answered.second = settled.second.saturating_sub_unsigned(silent);
        match answered.shown_for(ledger.until, self.interval(target)) {
            // Counters stand at 0 until a check has passed.
            None if !held_back && settled.started.is_some() && self.waits_for_audit(target, ledger) => {
                Counters::Shown(self.stale_after(target))
            }
            Some(shown_for) if !held_back => Counters::Shown(shown_for.min(self.stale_after(target))),
            _ => {
                let behind = settled.step_end().saturating_sub(ledger.until);
                Counters::Hidden(Duration::from_secs(u64::try_from(behind).unwrap_or_default()))
            }
        }
    }
}
