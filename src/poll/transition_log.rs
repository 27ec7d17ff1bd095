//! Log lines about targets that begin to fail, recover, or give up time.
//!
//! When the service is down, ten thousand apps fail within a minute for the same reason. So only the first [`LINES`] of
//! each class in a [`PERIOD`] get a line each; a summary at its end counts the others. A failure that stops a whole
//! service account is logged once, by the account. `pds_up` and the status page name every target. The reasons of the
//! verdict have their own lines, with cause and remedy: one failure alone does not show its cause.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::time::Duration;

use crate::store::{PollFailure, Transition};
use pds_interface::TimeRange;
use pds_interface::range::rfc3339;
use pds_ledger::Key;

use super::error::PollError;

/// Lines about single targets per period and class.
pub const LINES: u64 = 10;
/// The period over which lines of a class are counted.
pub const PERIOD: Duration = Duration::from_secs(60);

/// The transitions of all targets.
#[derive(Debug, Default)]
pub struct TransitionLog {
    /// The number of changes in the current period.
    present: Mutex<BTreeMap<LogClass, u64>>,
}

/// Changes that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LogClass {
    /// Began to fail with this class.
    Failing(&'static str),
    Recovered,
    GaveUp,
    Container,
}

impl TransitionLog {
    /// Logs the end of a poll of the target `key`, with its failure if it failed.
    pub fn polled(&self, key: &Key, transition: &Transition, failure: Option<&PollFailure>) {
        let (resource, project, app) = (key.resource.as_str(), &*key.owner.project, &*key.owner.app);
        match (transition, failure) {
            (Transition::Failing, Some(PollFailure { class, message, .. }))
                if self.take_line(LogClass::Failing(class)) =>
            {
                tracing::warn!(resource, project, app, class, error = &**message, "polling began to fail");
            }
            (Transition::Recovered { after }, _) if self.take_line(LogClass::Recovered) => {
                let after = humantime::format_duration(Duration::from_secs(after.as_secs())).to_string();
                tracing::info!(resource, project, app, after, "polling recovered");
            }
            _ => {}
        }
    }

    /// Logs that the counters of the target `key` give up `range`.
    pub fn gave_up(&self, key: &Key, range: TimeRange, reason: &str) {
        if self.take_line(LogClass::GaveUp) {
            tracing::warn!(
                resource = key.resource.as_str(),
                project = %key.owner.project,
                app = %key.owner.app,
                start = rfc3339(range.start),
                end = rfc3339(range.end),
                reason,
                "gave up time"
            );
        }
    }

    /// Logs that requests about a container of the app `key` begin to fail.
    pub fn container_failed(&self, key: &Key, container: &str, error: &PollError) {
        if self.take_line(LogClass::Container) {
            tracing::warn!(
                resource = key.resource.as_str(),
                project = %key.owner.project,
                app = %key.owner.app,
                container,
                class = error.class(),
                "requests for a container fail; the app itself is not affected"
            );
        }
    }

    /// Ends the period, and logs how many changes had no line of their own.
    pub fn sum_up(&self) {
        for (class, changes) in std::mem::take(&mut *self.present.lock()) {
            let targets = changes.saturating_sub(LINES);
            match class {
                _ if targets == 0 => {}
                LogClass::Failing(class) => {
                    tracing::warn!(class, targets, "polling of further targets began to fail");
                }
                LogClass::Recovered => tracing::info!(targets, "polling of further targets recovered"),
                LogClass::Container => {
                    tracing::warn!(targets, "the service refuses requests for further containers");
                }
                LogClass::GaveUp => tracing::warn!(targets, "gave up time of further targets"),
            }
        }
    }

    /// Counts a change. Returns whether it gets a line of its own.
    fn take_line(&self, class: LogClass) -> bool {
        let mut present = self.present.lock();
        let changes = present.entry(class).or_default();
        *changes += 1;
        *changes <= LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_lines_in_each_period_and_the_rest_is_summed_up_when_it_ends() {
        let transitions = TransitionLog::default();
        let lines = |class, times: u64| (0..times).filter(|_| transitions.take_line(class)).count();
        assert_eq!(lines(LogClass::Failing("500"), LINES + 7), 10);
        assert_eq!(lines(LogClass::Failing("connect"), 12), 10, "another reason is told");
        assert_eq!(lines(LogClass::Recovered, 1), 1);
        assert_eq!(lines(LogClass::GaveUp, 11), 10);
        let further =
            |class| transitions.present.lock().get(&class).map(|changes| changes.saturating_sub(LINES));
        assert_eq!(further(LogClass::Failing("500")), Some(7));
        assert_eq!(further(LogClass::Recovered), Some(0), "each had its line");
        transitions.sum_up();
        assert_eq!(further(LogClass::Failing("500")), None);
        assert_eq!(lines(LogClass::Failing("500"), 11), 10, "a period of its own");
    }
}
