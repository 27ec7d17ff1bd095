//! State that one poll of a target passes to the next. What is public of it is part of `/api/v1/status`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};

use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, Instant};

use pds_interface::TimeRange;
use pds_ledger::{Ledger, recheck::Recheck};

use super::datapoints::Datapoints;

/// Consecutive polls in which a window holds less than its parts. Late data may come between the requests of one.
const MAX_SHORT: u8 = 3;

/// Refusals of a range before a hole is looked for.
const MIN_REFUSALS: u32 = 3;
/// Poll intervals over which they are spread.
const MIN_INTERVALS: u32 = 5;

/// Delay after a failed recheck.
const RECHECK_PAUSE: Duration = Duration::from_secs(600);

/// A counter whose total or thresholds are new. Prometheus has to see them before they grow, so the page shows them at
/// their starting value until it was read once, for two polls at the most.
#[derive(Debug)]
pub enum Start {
    /// Not shown yet; the ledger as it was before it grew.
    Waiting(Box<Ledger>),
    /// On the page since the store had this version, for so many polls.
    Shown(u64, u8),
}

/// State that one poll passes to the next one of the same target. Three per app, so what most targets lack is boxed.
#[derive(Debug, Default)]
pub struct Progress {
    /// How often to halve the range to count, because longer ones failed.
    pub halvings: AtomicU8,
    /// Whether giving up time was logged.
    pub gave_up: AtomicBool,
    /// Index of the first window that the last poll did not reach; 0 if it reached all.
    pub unreached_window: AtomicU32,
    /// Whether the last poll did not reach the range to count.
    pub unreached_counted: AtomicBool,
    remembered: Mutex<Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    /// When the next poll is due.
    due: Option<Instant>,
    /// What was learned about the datapoints of a call with a series.
    datapoints: Option<Box<Datapoints>>,
    /// None before the first recheck, for targets without containers.
    more: Option<Box<More>>,
}

/// State that some targets have, and most only after an hour.
#[derive(Debug, Default)]
struct More {
    /// When to try again after a failed recheck.
    recheck_again_at: Option<Instant>,
    rechecked: CountedAgain,
    /// The period that was audited last; 0 before the first.
    audited: u32,
    /// For how many consecutive polls a window has held less than its parts.
    short: u8,
    /// The range counted last, and how many there were.
    counted: Option<(TimeRange, u64)>,
    hole: Option<Box<Holes>>,
    containers: Option<Box<Containers>>,
    /// A counter that waits for a page to be read.
    start: Option<Box<Start>>,
}

/// What the service refuses to count.
#[derive(Debug, Default)]
struct Holes {
    refusals: Option<Refusals>,
    found: Option<GivenUp>,
}

/// What is known about the containers of an app.
#[derive(Debug, Default)]
struct Containers {
    /// Those whose last request the service refused.
    failing: BTreeSet<Arc<str>>,
    /// For how many consecutive polls the replies for a container have equalled those for the whole app.
    equal: Vec<(Arc<str>, u32)>,
}

/// Requests or runs counted again since the exporter started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct CountedAgain {
    /// How many were counted again.
    pub counted: u64,
    /// How many of them the service knew of only after they were first counted.
    pub late: u64,
    /// How many fewer there were than first counted; they stay in the counters.
    pub overcounted: u64,
}

impl CountedAgain {
    /// The share that came late; `None` before anything was counted again.
    pub fn late_share(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        (self.counted > 0).then(|| self.late as f64 / self.counted as f64)
    }

    /// Adds what else was counted again.
    pub(crate) fn add(&mut self, Self { counted, late, overcounted }: Self) {
        self.counted += counted;
        self.late += late;
        self.overcounted += overcounted;
    }
}

/// Refusals of the range at a cursor.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    /// The cursor.
    until: i64,
    count: u32,
    since: Instant,
}

impl Refusals {
    /// One more refusal at the cursor `until`. Returns whether they are enough to look for a hole.
    fn add(refusals: &mut Option<Self>, until: i64, interval: Duration) -> bool {
        let known = refusals.filter(|known| known.until == until);
        let known = refusals.insert(known.unwrap_or_else(|| Self { until, count: 0, since: Instant::now() }));
        known.count = known.count.saturating_add(1);
        known.count >= MIN_REFUSALS && known.since.elapsed() >= interval * MIN_INTERVALS
    }
}

/// Time that the service always refused, while it answered for later time. Its requests are in no counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct GivenUp {
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// How the service refused it.
    pub reason: Arc<str>,
}

impl Progress {
    /// What was learned about the datapoints so far.
    pub(crate) fn datapoints<T>(&self, learn: impl FnOnce(&mut Datapoints) -> T) -> T {
        learn(self.remembered.lock().datapoints.get_or_insert_default())
    }

    /// Records whether the replies for `container` equal those for the whole app; returns for how many consecutive polls.
    pub(crate) fn equals(&self, container: &Arc<str>, equal: bool) -> u32 {
        let mut remembered = self.remembered.lock();
        let known = &mut remembered.containers().equal;
        known.retain(|(id, _)| id != container || equal);
        if !equal {
            return 0;
        }
        match known.iter_mut().find(|(id, _)| id == container) {
            Some((_, polls)) => {
                *polls = polls.saturating_add(1);
                *polls
            }
            None => {
                known.push((Arc::clone(container), 1));
                1
            }
        }
    }

    /// When the next poll is due; `None` during the very first poll.
    pub fn due(&self) -> Option<Instant> {
        self.remembered.lock().due
    }

    /// The service refused a request about `container`. Returns whether this is new.
    pub(super) fn container_fails(&self, container: &Arc<str>) -> bool {
        self.remembered.lock().containers().failing.insert(Arc::clone(container))
    }

    /// The service answered a request about `container`.
    pub(super) fn container_answers(&self, container: &str) {
        let mut remembered = self.remembered.lock();
        if let Some(containers) = remembered.more.as_mut().and_then(|more| more.containers.as_mut()) {
            containers.failing.remove(container);
        }
    }

    /// A recheck failed: the next try waits a while, and counting goes on.
    pub(super) fn recheck_failed(&self) {
        let at = Instant::now() + RECHECK_PAUSE;
        self.remembered.lock().more.get_or_insert_default().recheck_again_at = Some(at);
    }

    /// Whether a recheck may be tried.
    pub(super) fn may_recheck(&self) -> bool {
        let at = self.remembered.lock().more.as_ref().and_then(|more| more.recheck_again_at);
        at.is_none_or(|at| at <= Instant::now())
    }

    /// An hour was rechecked.
    pub(super) fn add_recheck(&self, Recheck { counted, late, overcounted, .. }: Recheck) {
        let again = CountedAgain { counted, late, overcounted };
        self.remembered.lock().more.get_or_insert_default().rechecked.add(again);
    }

    /// What was counted again since the process started.
    pub fn rechecked(&self) -> CountedAgain {
        self.remembered.lock().more.as_ref().map(|more| more.rechecked).unwrap_or_default()
    }

    /// The time that was given up last because the service does not answer for it.
    pub fn hole(&self) -> Option<GivenUp> {
        self.remembered.lock().more.as_ref()?.hole.as_ref()?.found.clone()
    }

    /// The service refused the range at the cursor `until`. Returns whether to look for a hole.
    pub(super) fn is_refused(&self, until: i64, interval: Duration) -> bool {
        let mut remembered = self.remembered.lock();
        let hole = remembered.more.get_or_insert_default().hole.get_or_insert_default();
        Refusals::add(&mut hole.refusals, until, interval)
    }

    /// The refusals so far prove nothing.
    pub(super) fn forget_refusals(&self) {
        let mut remembered = self.remembered.lock();
        if let Some(hole) = remembered.more.as_mut().and_then(|more| more.hole.as_mut()) {
            hole.refusals = None;
        }
    }

    /// A hole was given up.
    pub(super) fn found(&self, hole: GivenUp) {
        self.remembered.lock().more.get_or_insert_default().hole.get_or_insert_default().found = Some(hole);
    }

    /// An audit is due once in each `period`. Returns whether this is another one than before.
    pub(super) fn begins_period(&self, period: u32) -> bool {
        let mut remembered = self.remembered.lock();
        let before = std::mem::replace(&mut remembered.more.get_or_insert_default().audited, period);
        before != 0 && before < period
    }

    /// A range was counted, and before it a window that held `in_window`. Returns whether the window has held less than
    /// the counted ranges within it for several polls.
    pub(super) fn is_short(&self, window: TimeRange, in_window: u64, counted: (TimeRange, u64)) -> bool {
        let mut remembered = self.remembered.lock();
        let more = remembered.more.get_or_insert_default();
        let (range, total) = counted;
        let before = more.counted.replace(counted);
        let within = |range: TimeRange| window.start <= range.start && range.end <= window.end;
        if !within(range) {
            return false;
        }
        let before = before.filter(|before| before.0.end == range.start && within(before.0));
        let parts = total.saturating_add(before.map_or(0, |before| before.1));
        more.short = if parts > in_window { more.short.saturating_add(1) } else { 0 };
        more.short >= MAX_SHORT
    }

    /// Removes and returns the counter that waits for a page to be read.
    pub(super) fn take_start(&self) -> Option<Start> {
        self.remembered.lock().more.as_mut().and_then(|more| more.start.take()).map(|start| *start)
    }

    /// A counter waits for a page to be read.
    pub(super) fn put_start(&self, start: Option<Start>) {
        if let Some(start) = start {
            self.remembered.lock().more.get_or_insert_default().start = Some(Box::new(start));
        }
    }

    pub(crate) fn set_due(&self, due: Instant) {
        self.remembered.lock().due = Some(due);
    }
}

impl Remembered {
    fn containers(&mut self) -> &mut Containers {
        self.more.get_or_insert_default().containers.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_every_target_is_small() {
        assert!(size_of::<Progress>() <= 48, "{}", size_of::<Progress>());
        assert!(size_of::<More>() <= 112, "{}", size_of::<More>());
        assert!(size_of::<Start>() <= 16, "{}", size_of::<Start>());
    }
}
