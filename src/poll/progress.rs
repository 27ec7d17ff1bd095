//! State that one poll of a target passes to the next.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Duration, Instant};

use crate::accounting::recheck::Recheck;

use super::datapoints::Datapoints;

/// Delay after a failed recheck.
const RECHECK_PAUSE: Duration = Duration::from_secs(600);

/// State that one poll passes to the next one of the same target.
#[derive(Debug, Default)]
pub struct Progress {
    /// How often to halve the range to count, because longer ones failed.
    pub halvings: AtomicU32,
    /// Whether giving up time was logged.
    pub gave_up: AtomicBool,
    /// Index of the first window that the last poll did not reach; 0 if it reached all.
    pub unreached_window: AtomicUsize,
    /// Whether the last poll did not reach the range to count.
    pub unreached_counted: AtomicBool,
    /// Containers whose last request the service refused. Most targets have none.
    failing_containers: Mutex<BTreeSet<Arc<str>>>,
    /// None before the first recheck.
    rechecks: Mutex<Option<Box<Rechecks>>>,
    /// When the next poll is due.
    due: Mutex<Option<Instant>>,
    /// What was learned about the datapoints of a call with a series.
    datapoints: Mutex<Option<Box<Datapoints>>>,
    /// For how many consecutive polls the replies for a container have equalled those for the whole app.
    equal: Mutex<Vec<(Arc<str>, u32)>>,
}

/// Results of rechecks since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rechecked {
    /// Hours rechecked.
    pub counted: u64,
    /// Late requests or runs.
    pub late: u64,
    /// Requests or runs counted too often.
    pub overcounted: u64,
}

#[derive(Debug, Default)]
struct Rechecks {
    /// When to try again after a failed recheck.
    again_at: Option<Instant>,
    rechecked: Rechecked,
}

impl Progress {
    /// What was learned about the datapoints so far.
    pub(crate) fn datapoints<T>(&self, learn: impl FnOnce(&mut Datapoints) -> T) -> T {
        let mut datapoints = self.datapoints.lock().unwrap_or_else(PoisonError::into_inner);
        learn(datapoints.get_or_insert_default())
    }

    /// Records whether the replies for `container` equal those for the whole app; returns for how many consecutive polls.
    pub(crate) fn equals(&self, container: &Arc<str>, equal: bool) -> u32 {
        let mut known = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
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
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The service refused a request about `container`. Returns whether this is new.
    pub(super) fn container_fails(&self, container: &Arc<str>) -> bool {
        self.failing_containers.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(container))
    }

    /// The service answered a request about `container`.
    pub(super) fn container_answers(&self, container: &str) {
        self.failing_containers.lock().unwrap_or_else(PoisonError::into_inner).remove(container);
    }

    /// A recheck failed: the next try waits a while, and counting goes on.
    pub(super) fn recheck_failed(&self) {
        let at = Instant::now() + RECHECK_PAUSE;
        self.rechecks().get_or_insert_default().again_at = Some(at);
    }

    /// Whether a recheck may be tried.
    pub(super) fn may_recheck(&self) -> bool {
        let at = self.rechecks().as_ref().and_then(|rechecks| rechecks.again_at);
        at.is_none_or(|at| at <= Instant::now())
    }

    /// An hour was rechecked.
    pub(super) fn add_recheck(&self, recheck: Recheck) {
        let mut rechecks = self.rechecks();
        let rechecked = &mut rechecks.get_or_insert_default().rechecked;
        rechecked.counted += recheck.counted;
        rechecked.late += recheck.late;
        rechecked.overcounted += recheck.overcounted;
    }

    /// Results of rechecks since the process started.
    #[must_use]
    pub fn rechecked(&self) -> Rechecked {
        self.rechecks().as_ref().map(|rechecks| rechecks.rechecked).unwrap_or_default()
    }

    fn rechecks(&self) -> MutexGuard<'_, Option<Box<Rechecks>>> {
        self.rechecks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_due(&self, due: Instant) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(due);
    }
}
