//! Faults on demand: which fault, for which requests, how often.

mod fault;

use parking_lot::Mutex;

use pds_interface::Call;

use super::chance::{hash, unit};
use super::journal::Entry;

pub use fault::{Fault, FaultError, Kind, RetryAfter, parse};

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

    /// Replaces all faults.
    pub fn set(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.armed.lock() = faults.into_iter().map(|fault| Armed { fault, met: 0, struck: 0 }).collect();
    }

    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.armed.lock().push(Armed { fault, met: 0, struck: 0 });
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.armed.lock().clear();
    }

    /// The faults in force.
    pub fn list(&self) -> Vec<Fault> {
        self.armed.lock().iter().map(|armed| armed.fault.clone()).collect()
    }

    /// How often each fault was applied.
    pub fn struck(&self) -> Vec<u64> {
        self.armed.lock().iter().map(|armed| armed.struck).collect()
    }

    /// The faults to apply to one request.
    pub(super) fn draw(&self, call: &Call, asked: &Entry) -> Vec<Kind> {
        let mut drawn = Vec::new();
        for (index, armed) in self.armed.lock().iter_mut().enumerate() {
            let fault = &armed.fault;
            if !fault.concerns(call, asked) || fault.count.is_some_and(|count| armed.struck >= count) {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::{TimeRange, get_app, list_projects, response_time};

    /// Whether a fault is drawn for a request of this project and app.
    fn strikes(faults: &Faults, call: &Call, project: &str, app: &str) -> bool {
        let asked = Entry { project: Some(project.into()), app: Some(app.into()), ..Entry::default() };
        !faults.draw(call, &asked).is_empty()
    }

    #[test]
    fn a_fault_applies_only_to_the_requests_it_is_limited_to() {
        let faults = Faults::new(1);
        faults.set([Fault::status(500).on(get_app::RESOURCE).of_project("p-1").of_app("p-1-a").times(1)]);
        let struck = |call, project, app| strikes(&faults, call, project, app);
        assert!(!struck(&response_time::CALL, "p-1", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-2", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-1", "p-1-b"));
        assert!(struck(&get_app::CALL, "p-1", "p-1-a"));
        assert!(!struck(&get_app::CALL, "p-1", "p-1-a"));
        faults.set([Fault { call: Some("list_projects".into()), ..Kind::Reset.into() }]);
        assert!(struck(&list_projects::CALL, "", ""));
        faults.clear();
        assert!(!struck(&list_projects::CALL, "", ""));
    }

    #[test]
    fn a_fault_may_be_limited_to_a_container_or_to_long_ranges() {
        let faults = Faults::new(1);
        let struck = |seconds: i64, container: Option<&str>| {
            let range = Some(TimeRange { start: 60, end: 60 + seconds });
            let asked = Entry { range, container: container.map(str::to_owned), ..Entry::default() };
            !faults.draw(&response_time::CALL, &asked).is_empty()
        };
        faults.set([Fault::status(404).of_container("c-1")]);
        assert!(struck(60, Some("c-1")) && !struck(60, Some("c-2")) && !struck(60, None));
        faults.set([Fault::status(504).of_ranges_longer_than(300)]);
        assert!(struck(301, None) && !struck(300, None));
        assert!(!strikes(&faults, &get_app::CALL, "p-1", "p-1-a"));
    }

    #[test]
    fn a_probability_is_a_share_of_the_requests_and_the_same_each_time() {
        let struck = || {
            let faults = Faults::new(1);
            faults.add(Fault::status(503).with_probability(0.3));
            (0..1000).map(|_| strikes(&faults, &get_app::CALL, "", "")).collect::<Vec<_>>()
        };
        let share = struck().iter().filter(|struck| **struck).count();
        assert!((250..350).contains(&share), "{share}");
        assert_eq!(struck(), struck());
    }
}
