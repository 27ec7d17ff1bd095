//! The progress of restoring counters from Prometheus.

use std::sync::{Arc, PoisonError};

use super::{Telemetry, flag};

/// The progress of restoring counters from Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restoring {
    /// Counters that are hidden because their former value is not known yet.
    pub missing: usize,
    /// Counters that continue from Prometheus.
    pub restored: usize,
    /// Counters that continue from the state file: Prometheus has nothing later.
    pub kept: usize,
    /// Counters that begin at 0: Prometheus has scraped this process, but has no such counter.
    pub opened: usize,
    /// Why some are still missing; `None` before the first answer.
    pub obstacle: Option<Obstacle>,
}

/// Why counters are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason as text.
    pub text: Arc<str>,
    /// Whether this is expected: Prometheus has not scraped this process yet.
    pub expected: bool,
}

impl Telemetry {
    /// Records the progress of restoring. Changes are logged.
    pub fn restoring(&self, now: Restoring) {
        let mut known = self.0.restoring.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.take().unwrap_or_default();
        let (restored, kept, opened, missing) = (now.restored, now.kept, now.opened, now.missing);
        if let Some(obstacle) = now.obstacle.as_ref().filter(|new| before.obstacle.as_ref() != Some(*new)) {
            let reason = &*obstacle.text;
            if obstacle.expected {
                tracing::info!(missing, reason, "counters are not read back from Prometheus yet");
            } else {
                tracing::warn!(
                    missing,
                    reason,
                    "counters cannot be read back from Prometheus and stay hidden"
                );
            }
        }
        if missing == 0 && before.missing > 0 {
            tracing::info!(restored, kept, opened, "all counters are read back from Prometheus");
        }
        if missing == 0 || now.obstacle.is_some() {
            self.0.metrics.state_restored.set(flag(missing == 0));
        }
        *known = Some(now);
    }

    /// Restoring is no longer configured.
    pub fn not_restoring(&self) {
        *self.0.restoring.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.metrics.state_restored.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_is_absent_until_the_first_answer_and_zero_while_something_is_missing() {
        let telemetry = Telemetry::new(false).unwrap();
        let gauge = || telemetry.0.metrics.state_restored.get();
        let missing = Restoring { missing: 2, ..Restoring::default() };
        telemetry.restoring(missing.clone());
        assert_eq!(gauge(), None);
        let obstacle = Some(Obstacle { text: "gone".into(), expected: false });
        telemetry.restoring(Restoring { obstacle, ..missing });
        assert_eq!(gauge(), Some(0.0));
        telemetry.restoring(Restoring { restored: 2, ..Restoring::default() });
        assert_eq!((gauge(), telemetry.snapshot().restoring.unwrap().restored), (Some(1.0), 2));
        telemetry.not_restoring();
        assert_eq!((gauge(), telemetry.snapshot().restoring), (None, None));
    }
}
