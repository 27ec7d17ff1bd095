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
use pds_ledger::Key;

use super::error::PollError;
use pds_diagnosis::incident::GivenUp;

/// Lines about single targets per period and class.
pub const LINES: u32 = 10;
/// The period over which lines of a class are counted.
pub const PERIOD: Duration = Duration::from_secs(60);

/// The transitions of all targets.
#[derive(Debug, Default)]
pub struct TransitionLog {
    /// The changes of the current period.
    present: Mutex<BTreeMap<LogClass, Logged>>,
}

/// Changes that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LogClass {
    /// Began to fail with this class.
    Failing(&'static str),
    Recovered,
    GaveUp,
    Hole,
    Container,
}

#[derive(Debug, Default)]
struct Logged {
    lines: u32,
    /// Changes without a line of their own.
    further: u64,
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

    /// Logs that the counters of the target `key` gave up `seconds`.
    pub fn gave_up(&self, key: &Key, seconds: u64) {
        if self.take_line(LogClass::GaveUp) {
            tracing::warn!(
                resource = key.resource.as_str(),
                project = %key.owner.project,
                app = %key.owner.app,
                seconds,
                "gave up time older than accounting.max_catch_up; pds_app_unaccounted_seconds_total counts further seconds"
            );
        }
    }

    /// Logs that the counters of the target `key` give up a stretch of time that the service refuses.
    pub fn hole(&self, key: &Key, hole: &GivenUp) {
        if self.take_line(LogClass::Hole) {
            tracing::warn!(
                resource = key.resource.as_str(),
                project = %key.owner.project,
                app = %key.owner.app,
                start = hole.start.to_string(),
                end = hole.end.to_string(),
                reason = &*hole.reason,
                "gave up time that the service refuses although it answers later ranges"
            );
        }
    }

    /// Logs that the service begins to refuse requests about a container of the app `key`.
    pub fn container_failed(&self, key: &Key, container: &str, error: &PollError) {
        if self.take_line(LogClass::Container) {
            tracing::warn!(
                resource = key.resource.as_str(),
                project = %key.owner.project,
                app = %key.owner.app,
                container,
                class = error.class(),
                "the service refuses requests for a container; the app itself is not affected"
            );
        }
    }

    /// Ends the period, and logs how many changes had no line of their own.
    pub fn sum_up(&self) {
        for (class, logged) in std::mem::take(&mut *self.present.lock()) {
            log_further(class, logged.further);
        }
    }

    /// Counts a change. Returns whether it gets a line of its own.
    fn take_line(&self, class: LogClass) -> bool {
        let mut present = self.present.lock();
        let logged = present.entry(class).or_default();
        let is_logged = logged.lines < LINES;
        if is_logged {
            logged.lines += 1;
        } else {
            logged.further += 1;
        }
        is_logged
    }
}

fn log_further(class: LogClass, targets: u64) {
    match class {
        _ if targets == 0 => {}
        LogClass::Failing(class) => {
            tracing::warn!(class, targets, "polling of further targets began to fail")
        }
        LogClass::Recovered => tracing::info!(targets, "polling of further targets recovered"),
        LogClass::Container => {
            tracing::warn!(targets, "the service refuses requests for further containers")
        }
        LogClass::Hole => {
            tracing::warn!(targets, "gave up time of further targets that the service refuses")
        }
        LogClass::GaveUp => tracing::warn!(targets, "gave up old time of further targets"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_lines_in_each_period_and_the_rest_is_summed_up_when_it_ends() {
        let transitions = TransitionLog::default();
        let lines = |class, times: u32| (0..times).filter(|_| transitions.take_line(class)).count();
        assert_eq!(lines(LogClass::Failing("500"), LINES + 7), 10);
        assert_eq!(lines(LogClass::Failing("connect"), 12), 10, "another reason is told");
        assert_eq!(lines(LogClass::Recovered, 1), 1);
        assert_eq!(lines(LogClass::GaveUp, 11), 10);
        let further = |class| transitions.present.lock().get(&class).map(|logged| logged.further);
        assert_eq!(further(LogClass::Failing("500")), Some(7));
        assert_eq!(further(LogClass::Recovered), Some(0), "each had its line");
        transitions.sum_up();
        assert_eq!(further(LogClass::Failing("500")), None);
        assert_eq!(lines(LogClass::Failing("500"), 11), 10, "a period of its own");
    }
}
