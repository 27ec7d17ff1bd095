//! How commits and restoring of the ledgers go.

use std::sync::PoisonError;

use jiff::Timestamp;
use pds_ledger::observer::{Observer, Restoring};

use super::{Telemetry, flag};

impl Observer for Telemetry {
    fn committed(&self, good: bool) {
        self.0.metrics.state_committed.set(flag(good));
    }

    fn restoring(&self, now: Option<Restoring>) {
        match &now {
            None => self.0.metrics.state_restored.clear(),
            // Absent before the first answer.
            Some(now) if now.missing > 0 && now.obstacle.is_none() => {}
            Some(now) => self.0.metrics.state_restored.set(flag(now.missing == 0)),
        }
        *self.0.restoring.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn config_loaded(&self) -> Option<Timestamp> {
        self.snapshot().config_loaded
    }
}

#[cfg(test)]
mod tests {
    use pds_ledger::observer::Obstacle;

    use super::*;

    #[test]
    fn the_gauge_is_absent_until_the_first_answer_and_zero_while_something_is_missing() {
        let telemetry = Telemetry::new(false).unwrap();
        let gauge = || telemetry.0.metrics.state_restored.get();
        let missing = Restoring { missing: 2, ..Restoring::default() };
        telemetry.restoring(Some(missing.clone()));
        assert_eq!(gauge(), None);
        let obstacle = Some(Obstacle { text: "gone".into(), expected: false });
        telemetry.restoring(Some(Restoring { obstacle, ..missing }));
        assert_eq!(gauge(), Some(0.0));
        telemetry.restoring(Some(Restoring { restored: 2, ..Restoring::default() }));
        assert_eq!((gauge(), telemetry.snapshot().restoring.unwrap().restored), (Some(1.0), 2));
        telemetry.restoring(None);
        assert_eq!((gauge(), telemetry.snapshot().restoring), (None, None));
    }
}
