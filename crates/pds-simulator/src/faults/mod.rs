//! Faults on demand: which fault, for which requests, how often.

mod fault;

use std::sync::{Mutex, PoisonError};

use pds_interface::{Call, TimeRange};

use super::chance::{hash, unit};

pub use fault::{Fault, FaultError, Kind, RetryAfter, parse};

/// The range and the container of a metrics call.
pub(super) type AskedMetrics = (Option<TimeRange>, Option<String>);

/// The faults in force.
#[derive(Debug)]
pub struct Faults {
    seed: u64,
    armed: Mutex<Vec<Armed>>,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    /// How many requests have matched so far, and how many of them failed.
    met: u64,
    struck: u64,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, armed: Mutex::default() }
    }

    fn armed<T>(&self, read: impl FnOnce(&mut Vec<Armed>) -> T) -> T {
        read(&mut self.armed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces all faults.
    pub fn set(&self, faults: impl IntoIterator<Item = Fault>) {
        let fresh = faults.into_iter().map(|fault| Armed { fault, met: 0, struck: 0 }).collect();
        self.armed(|armed| *armed = fresh);
    }

    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.armed(|armed| armed.push(Armed { fault, met: 0, struck: 0 }));
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.set([]);
    }

    /// The faults in force.
    #[must_use]
    pub fn list(&self) -> Vec<Fault> {
        self.armed(|armed| armed.iter().map(|armed| armed.fault.clone()).collect())
    }

    /// How often each fault was applied.
    #[must_use]
    pub fn struck(&self) -> Vec<u64> {
        self.armed(|armed| armed.iter().map(|armed| armed.struck).collect())
    }

    /// The faults to apply to one request.
    pub(super) fn draw(
        &self,
        call: &Call,
        (project, app): (&str, &str),
        metrics: &AskedMetrics,
    ) -> Vec<Kind> {
        self.armed(|armed| {
            let mut drawn = Vec::new();
            for (index, armed) in armed.iter_mut().enumerate() {
                let fault = &armed.fault;
                if !fault.concerns(call, (project, app), metrics)
                    || fault.count.is_some_and(|count| armed.struck >= count)
                {
                    continue;
                }
                armed.met += 1;
                let chance = unit(hash(&[self.seed, 11, index as u64, armed.met]));
                if fault.probability.is_none_or(|share| chance < share) {
                    armed.struck += 1;
                    drawn.push(fault.kind.clone());
                }
            }
            drawn
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::{get_app, list_projects, response_time};

    #[test]
    fn a_fault_applies_only_to_the_requests_it_is_limited_to() {
        let faults = Faults::new(1);
        faults.set([Fault::status(500).on(get_app::RESOURCE).of_project("p-1").of_app("p-1-a").times(1)]);
        let struck = |call, project, app| !faults.draw(call, (project, app), &(None, None)).is_empty();
        assert!(!struck(&response_time::CALL, "p-1", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-2", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-1", "p-1-b"));
        assert!(struck(&get_app::CALL, "p-1", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-1", "p-1-a"));
        faults.set([Fault::from(Kind::Reset).on_call("list_projects")]);
        assert!(struck(&list_projects::CALL, "", ""));
        faults.clear();
        assert!(!struck(&list_projects::CALL, "", ""));
    }

    #[test]
    fn a_fault_may_be_limited_to_a_container_or_to_long_ranges() {
        let faults = Faults::new(1);
        let struck = |seconds: i64, container: Option<&str>| {
            let range = TimeRange { start: 60, end: 60 + seconds };
            let metrics = (Some(range), container.map(str::to_owned));
            !faults.draw(&response_time::CALL, ("p-1", "p-1-a"), &metrics).is_empty()
        };
        faults.set([Fault::status(404).of_container("c-1")]);
        assert!(struck(60, Some("c-1")) && !struck(60, Some("c-2")) && !struck(60, None));
        faults.set([Fault::status(504).of_ranges_longer_than(300)]);
        assert!(struck(301, None) && !struck(300, None));
        assert!(faults.draw(&get_app::CALL, ("p-1", "p-1-a"), &(None, None)).is_empty());
    }

    #[test]
    fn a_probability_is_a_share_of_the_requests_and_the_same_each_time() {
        let strikes = || {
            let faults = Faults::new(1);
            faults.add(Fault::status(503).with_probability(0.3));
            (0..1000).map(|_| faults.draw(&get_app::CALL, ("", ""), &(None, None)).len()).collect::<Vec<_>>()
        };
        let share = strikes().iter().sum::<usize>();
        assert!((250..350).contains(&share), "{share}");
        assert_eq!(strikes(), strikes());
    }
}
