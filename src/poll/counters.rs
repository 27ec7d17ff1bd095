//! Exposes the counters of ledgers that keep up, and hides the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::{Duration, Instant};

use pds_interface::Resource;
use pds_ledger::{Hold, Ledger, Settled};

use super::plan::{Context, Plan, Target};
use super::progress::Start;

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
        if let Some(since) = target.progress.lock().busy() {
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

    /// The number of silent apps by account and call, if no relevant part of the busy apps still has requests.
    fn outages(&self) -> impl Iterator<Item = ((&'a str, Resource), usize)> {
        const MIN_SILENT: usize = 3;
        let is_outage = |(busy, silent): (usize, usize)| silent >= MIN_SILENT && silent * 10 >= busy * 9;
        self.0.iter().filter(move |(_, counts)| is_outage(**counts)).map(|(of, (_, silent))| (*of, *silent))
    }

    /// The number of apps whose zeros are not counted because the service seems to be down: the most of any account and
    /// call.
    pub fn apps(&self) -> usize {
        self.outages().map(|(_, apps)| apps).max().unwrap_or_default()
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
        let hold = context.ledgers.hold(&target.key);
        let moved = former.is_some();
        let lacks_thresholds = |former: &&Ledger| !former.has_thresholds_of(ledger);
        let is_new = |former: &&Ledger| lacks_thresholds(former) || (!is_shown && former.is_new());
        let first = || match hold {
            Some(Hold::Begun { until, pending }) => Some(Ledger::open_after(until, pending)),
            _ => former.filter(is_new).cloned(),
        };
        let start = target.progress.lock().start.take();
        let mut start = start.or_else(|| first().map(Start::new));
        let settled = self.watermark.at_present();
        let behind = settled.behind(ledger.until);
        match self.shown_for(target, ledger, hold, settled) {
            Some(shown_for) => {
                let rechecked = !self.watermark.ages().is_empty();
                let series = |ledger| pds_ledger::series(resource, ledger, rechecked);
                let stood = start.take_if(|start| self.has_stood(context, target, start, hold, moved));
                if stood.is_some() {
                    if hold.is_some() {
                        context.ledgers.release(&target.key);
                    }
                    // A threshold that appears in this very poll must be scraped before it grows, too.
                    start = former.filter(lacks_thresholds).map(|former| Start::new(former.clone()));
                }
                if let Some(start) = &mut start {
                    // It stays on the page until the next poll at least, so that it can be read.
                    let shown_for = shown_for.max(self.stale_after(target));
                    let first = start.first.with_thresholds_of(ledger);
                    cell.put_counters(series(&first), Some(shown_for), behind);
                    start.stand(context.store.version(), moved);
                } else if stood.is_some() || moved || !is_shown {
                    cell.put_counters(series(ledger), Some(shown_for), behind);
                } else {
                    cell.keep_counters(shown_for, behind);
                }
            }
            None => {
                start.iter_mut().for_each(|start| start.shown = None);
                if settled.started.is_some() && !ledger.set_aside {
                    cell.put_counters(pds_ledger::behind(resource, behind.as_secs()), None, behind);
                } else {
                    cell.clear();
                }
            }
        }
        target.progress.lock().start = start;
    }

    /// Looks once a second for accounts for which the service seems to be down, although it answers: nine tenths of the
    /// busy apps, and at least three, no longer have requests. Returns whether that of `target` is one.
    pub(super) fn check_outage(&self, target: &Target) -> bool {
        let (at, known) = &mut *self.silences.lock();
        if at.is_none_or(|at| at.elapsed() >= Duration::from_secs(1)) {
            let now = *at.insert(Instant::now());
            let mut all = Silence::default();
            self.targets.iter().for_each(|target| all.add(target));
            for ((account, resource), apps) in all.outages() {
                // Only busy apps without requests look here, so nothing records the end of an outage.
                let last = known.insert((Arc::from(account), resource), now);
                if last.is_none_or(|last| now - last >= self.stale_after(target)) {
                    tracing::warn!(
                        token = account,
                        resource = resource.as_str(),
                        apps,
                        "nearly all busy apps suddenly have no requests, so the service seems to be down; the newest \
                         ranges are requested again, for ten minutes at most"
                    );
                }
            }
        }
        let last = known.get(&(target.account.name().into(), target.key.resource));
        last.is_some_and(|last| Some(*last) == *at)
    }

    /// Whether a counter has stood at its starting value for long enough; its ledger may have `moved` since the last poll.
    fn has_stood(
        &self,
        context: &Context,
        target: &Target,
        start: &Start,
        hold: Option<Hold>,
        moved: bool,
    ) -> bool {
        let Some(shown) = &start.shown else { return false };
        let was_read = context.store.was_read(shown.version);
        if hold.is_none() {
            return moved && (was_read || shown.polls + 1 >= MAX_WAITS);
        }
        let stood = shown.since.elapsed();
        // Rounds to the nearest poll.
        let most = BEGUN.end.saturating_sub(self.interval(target) / 2);
        stood >= most || (stood >= BEGUN.start && was_read)
    }

    /// How long the counters of `target` are exposed if they make no progress, given its `ledger`, the hold on it, and
    /// the `settled` time. `None` if they are hidden: they are behind, or their cursor is not known yet.
    pub fn shown_for(
        &self,
        target: &Target,
        ledger: &Ledger,
        hold: Option<Hold>,
        settled: Settled,
    ) -> Option<Duration> {
        let held_back = hold == Some(Hold::Unknown) || ledger.set_aside;
        // While the service seems to be down, zeros are not counted, and the cursor does not move.
        let (silent, awaits_check) = {
            let progress = target.progress.lock();
            (progress.busy().flatten().map_or(0, |since| since.elapsed().as_secs()), progress.awaits_check)
        };
        let mut answered = settled;
        answered.second = settled.second.saturating_sub_unsigned(silent);
        let shown_for = answered.shown_for(ledger.until, self.interval(target)).or_else(|| {
            // Counters stand at 0 until a check has passed.
            let stands = settled.started.is_some() && ledger.total == 0 && awaits_check;
            stands.then_some(Duration::MAX)
        });
        shown_for.filter(|_| !held_back).map(|shown_for| shown_for.min(self.stale_after(target)))
    }
}
