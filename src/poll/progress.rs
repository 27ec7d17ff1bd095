//! State that one poll of a target passes to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use pds_diagnosis::GivenUp;
use pds_ledger::Ledger;

use super::datapoints::Datapoints;

/// The number of refusals of a range that starts the search for a hole.
const MIN_REFUSALS: u32 = 3;
/// The minimum number of poll intervals between the first and the last of them.
const MIN_INTERVALS: u32 = 5;

/// The most steps of a hole that are requested one by one.
pub(super) const MAX_SINGLE: i64 = 8;

/// How long a range must be refused if the refusal is a server error, which may be an outage.
const SERVER_ERRORS: Duration = Duration::from_secs(1800);

/// An app is busy after so many steps in a row with so many requests each.
const BUSY_STEPS: u8 = 10;
const BUSY_REQUESTS: u64 = 10;
/// Maximum time for which zeros of busy apps are treated as an outage of the service.
const MAX_SILENCE: Duration = Duration::from_secs(600);

/// A counter whose total or thresholds are new. Prometheus must scrape them before they grow, so the page shows their
/// starting values until it has been read once, for two polls at most.
#[derive(Debug)]
pub(crate) struct Start {
    /// The ledger as it was before it grew.
    pub(super) first: Box<Ledger>,
    /// `None` while it is not on the page.
    pub(super) shown: Option<Standing>,
}

/// A counter on the page at its starting value.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Pages from this version of the store on show it.
    pub(super) version: u64,
    pub(super) since: Instant,
    /// Polls since then that changed its ledger.
    pub(super) polls: u8,
}

impl Start {
    pub(super) fn new(first: Ledger) -> Box<Self> {
        Box::new(Self { first: Box::new(first), shown: None })
    }

    /// Records that the counter is on the page. The first call keeps the store's `version`; later calls count the polls
    /// in which its ledger `moved`.
    pub(super) fn stand(&mut self, version: u64, moved: bool) {
        match &mut self.shown {
            Some(standing) => standing.polls += u8::from(moved),
            None => self.shown = Some(Standing { version, since: Instant::now(), polls: 0 }),
        }
    }
}

/// State that a poll passes to the next poll of its target. Three per app, so rare parts are boxed.
#[derive(Debug, Default)]
pub struct Progress {
    /// When the next poll is due, or the running poll was; `None` before the first is scheduled.
    pub due: Option<Instant>,
    /// How many times the range to count is halved, because longer ranges failed.
    pub(super) halvings: u8,
    /// Whether the log already reports that time was given up.
    pub(super) gave_up: bool,
    /// Index of the first window that the last poll did not reach; 0 if it reached all.
    pub(super) unreached_window: u16,
    /// Whether the last poll did not reach the range to count.
    pub(super) unreached_counted: bool,
    /// Whether the last poll did not add a reply because no check of the service has passed yet.
    pub(super) awaits_check: bool,
    /// Facts about the datapoints of a call with a series.
    pub(super) datapoints: Option<Box<Datapoints>>,
    /// When a busy app fell silent, while its zeros are not counted yet.
    silent_since: Option<Instant>,
    /// The number of steps for which it has been busy.
    busy: u8,
    /// The period that was audited last; 0 before the first.
    audited: u32,
    pub(super) refusals: Option<Box<Refusals>>,
    /// The time that was given up last because the service does not answer for it.
    pub hole: Option<Box<GivenUp>>,
    /// The first second that the service answered for when all time before it was given up; 0 if none was. It may no
    /// longer have older data of this app.
    pub(super) answers_from: i64,
    #[expect(clippy::box_collection, reason = "most apps have no containers")]
    containers: Option<Box<BTreeMap<Arc<str>, Container>>>,
    /// A counter that waits for a page to be read.
    pub(super) start: Option<Box<Start>>,
    /// The smallest rounding step of shares seen, for an app with an objective.
    pub share_step: Option<f64>,
}

/// A container of an app.
#[derive(Debug, Default)]
struct Container {
    /// Whether the service refused the last request about it.
    fails: bool,
    /// The number of consecutive polls in which its reply equalled the reply for the whole app.
    equal_polls: u32,
}

/// Refusals of the range at a cursor.
#[derive(Debug)]
pub(super) struct Refusals {
    /// The cursor.
    until: i64,
    count: u32,
    since: Instant,
}

impl Progress {
    /// Records whether the reply for `container` equals the reply for the whole app. Returns for how many consecutive
    /// polls it did.
    pub(super) fn note_equal(&mut self, container: &Arc<str>, equal: bool) -> u32 {
        let polls = &mut self.container(container).equal_polls;
        *polls = if equal { polls.saturating_add(1) } else { 0 };
        *polls
    }

    /// Records whether the service refused the last request about `container`. Returns whether this is the first
    /// refusal in a row.
    pub(super) fn container_fails(&mut self, container: &Arc<str>, fails: bool) -> bool {
        let before = std::mem::replace(&mut self.container(container).fails, fails);
        fails && !before
    }

    fn container(&mut self, id: &Arc<str>) -> &mut Container {
        self.containers.get_or_insert_default().entry(Arc::clone(id)).or_default()
    }

    /// For a busy app, when it fell silent, if it has. `None` for other apps.
    pub(crate) fn busy(&self) -> Option<Option<Instant>> {
        (self.busy >= BUSY_STEPS).then_some(self.silent_since)
    }

    /// Records that the service refused the range at the cursor `until`, perhaps with a server error. Returns whether
    /// to look for a hole.
    pub(super) fn refused(&mut self, until: i64, interval: Duration, server_error: bool) -> bool {
        let known = self.refusals.take().filter(|known| known.until == until);
        let begun = || Box::new(Refusals { until, count: 0, since: Instant::now() });
        let known = self.refusals.insert(known.unwrap_or_else(begun));
        known.count = known.count.saturating_add(1);
        let least = if server_error { SERVER_ERRORS } else { Duration::ZERO };
        known.count >= MIN_REFUSALS && known.since.elapsed() >= least.max(interval * MIN_INTERVALS)
    }

    /// Records the audit period. Returns whether it is later than the last recorded period; false for the first.
    pub(super) fn begin_period(&mut self, period: u32) -> bool {
        let before = std::mem::replace(&mut self.audited, period);
        before != 0 && before < period
    }
}

/// Records the total of a range of `steps`. Returns whether it is a zero that is not counted yet: if a busy app has
/// no requests, its range is requested once more, and then again while there `is_outage`.
pub(super) fn record_total(
    progress: &Mutex<Progress>,
    total: Option<u64>,
    steps: u64,
    is_outage: impl FnOnce() -> bool,
) -> bool {
    let Some(total) = total else { return false };
    let mut known = progress.lock();
    if total > 0 {
        let is_busy = total >= BUSY_REQUESTS.saturating_mul(steps);
        let busy = known.busy.saturating_add(u8::try_from(steps).unwrap_or(u8::MAX));
        known.busy = if is_busy { busy.min(BUSY_STEPS) } else { 0 };
        known.silent_since = None;
        return false;
    }
    if known.busy < BUSY_STEPS {
        known.busy = 0;
        return false;
    }
    let Some(since) = known.silent_since else {
        known.silent_since = Some(Instant::now());
        return true;
    };
    // An outage shows in the state of all targets.
    drop(known);
    if since.elapsed() < MAX_SILENCE && is_outage() {
        return true;
    }
    let mut known = progress.lock();
    (known.busy, known.silent_since) = (0, None);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_every_target_is_small() {
        // With lock and counts 160 bytes, which the allocator has a size for.
        assert!(size_of::<Progress>() <= 136, "{}", size_of::<Progress>());
        assert!(size_of::<Start>() <= 48, "{}", size_of::<Start>());
    }
}
