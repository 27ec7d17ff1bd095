//! State that one poll of a target passes to the next.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Duration, Instant};

use crate::accounting::recheck::Recheck;

use super::datapoints::Datapoints;

/// Delay after a failed recheck.
const RECHECK_PAUSE: Duration = Duration::from_secs(600);

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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
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
    rechecked: Rechecked,
    containers: Option<Box<Containers>>,
}

/// What is known about the containers of an app.
#[derive(Debug, Default)]
struct Containers {
    /// Those whose last request the service refused.
    failing: BTreeSet<Arc<str>>,
    /// For how many consecutive polls the replies for a container have equalled those for the whole app.
    equal: Vec<(Arc<str>, u32)>,
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

impl Progress {
    /// What was learned about the datapoints so far.
    pub(crate) fn datapoints<T>(&self, learn: impl FnOnce(&mut Datapoints) -> T) -> T {
        learn(self.state().datapoints.get_or_insert_default())
    }

    /// Records whether the replies for `container` equal those for the whole app; returns for how many consecutive polls.
    pub(crate) fn equals(&self, container: &Arc<str>, equal: bool) -> u32 {
        let mut state = self.state();
        let known = &mut state.containers().equal;
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
        self.state().due
    }

    /// The service refused a request about `container`. Returns whether this is new.
    pub(super) fn container_fails(&self, container: &Arc<str>) -> bool {
        self.state().containers().failing.insert(Arc::clone(container))
    }

    /// The service answered a request about `container`.
    pub(super) fn container_answers(&self, container: &str) {
        let mut state = self.state();
        if let Some(containers) = state.more.as_mut().and_then(|more| more.containers.as_mut()) {
            containers.failing.remove(container);
        }
    }

    /// A recheck failed: the next try waits a while, and counting goes on.
    pub(super) fn recheck_failed(&self) {
        let at = Instant::now() + RECHECK_PAUSE;
        self.state().more.get_or_insert_default().recheck_again_at = Some(at);
    }

    /// Whether a recheck may be tried.
    pub(super) fn may_recheck(&self) -> bool {
        let at = self.state().more.as_ref().and_then(|more| more.recheck_again_at);
        at.is_none_or(|at| at <= Instant::now())
    }

    /// An hour was rechecked.
    pub(super) fn add_recheck(&self, recheck: Recheck) {
        let mut state = self.state();
        let rechecked = &mut state.more.get_or_insert_default().rechecked;
        rechecked.counted += recheck.counted;
        rechecked.late += recheck.late;
        rechecked.overcounted += recheck.overcounted;
    }

    /// Results of rechecks since the process started.
    #[must_use]
    pub fn rechecked(&self) -> Rechecked {
        self.state().more.as_ref().map(|more| more.rechecked).unwrap_or_default()
    }

    pub(crate) fn set_due(&self, due: Instant) {
        self.state().due = Some(due);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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
        assert!(size_of::<More>() <= 48, "{}", size_of::<More>());
    }
}
