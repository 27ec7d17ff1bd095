//! What a poll leaves to the next one of the same target.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::datapoints::Datapoints;

/// What a poll leaves to the next one of the same target.
#[derive(Debug, Default)]
pub struct Progress {
    /// How often the range to be counted is to be halved, because longer ones failed.
    pub halvings: AtomicU32,
    /// Whether it was said that time is being given up on.
    pub gave_up: AtomicBool,
    /// When the next poll is due.
    due: Mutex<Option<Instant>>,
    /// What was learned of the datapoints of a call with a series.
    datapoints: Mutex<Option<Box<Datapoints>>>,
    /// For how many polls on end the replies for a container have equalled those for the whole app.
    equal: Mutex<Vec<(Arc<str>, u32)>>,
}

impl Progress {
    /// What was learned of the datapoints so far.
    pub(crate) fn datapoints<T>(&self, learn: impl FnOnce(&mut Datapoints) -> T) -> T {
        let mut datapoints = self.datapoints.lock().unwrap_or_else(PoisonError::into_inner);
        learn(datapoints.get_or_insert_default())
    }

    /// Notes whether the replies for `container` equal those for the whole app; returns for how many polls on end.
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

    /// When the next poll is due; `None` while one is under way that was never due before.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_due(&self, due: Instant) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(due);
    }
}
