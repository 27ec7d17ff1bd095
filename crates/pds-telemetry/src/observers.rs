//! Reports of client, ledgers and web server, counted and logged.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use pds_client::TokenFacts;
use pds_diagnosis::{Cause, cause};
use pds_interface::Resource;
use pds_ledger::restore::Restoring;

use super::{Telemetry, seconds};

impl pds_client::Observer for Telemetry {
    fn request_done(&self, resource: Resource, code: &str, took: Duration) {
        let (resource, metrics) = (resource.as_str(), &self.0.metrics);
        metrics.api_requests.with_label_values(&[resource, code]).inc();
        metrics.api_duration.with_label_values(&[resource]).observe(took.as_secs_f64());
        self.0.figures.lock().recent.count(!code.starts_with('2'));
    }

    fn request_not_sent(&self, resource: Resource, code: &str) {
        self.0.metrics.api_requests.with_label_values(&[resource.as_str(), code]).inc();
    }

    fn retried(&self, resource: Resource) {
        self.0.metrics.api_retries.with_label_values(&[resource.as_str()]).inc();
    }

    fn throttled(&self, resource: Resource, waited: Duration) {
        let throttled = self.0.metrics.api_throttled.with_label_values(&[resource.as_str()]);
        throttled.inc_by(waited.as_secs_f64());
    }

    fn clock_skew(&self, seconds: f64) {
        self.0.figures.lock().clock_skew_seconds = Some(seconds);
        self.0.metrics.clock_skew.set(&[], seconds);
    }

    fn token(&self, token: &str, facts: Option<TokenFacts>) {
        let metrics = &self.0.metrics;
        let TokenFacts { expires, readable, accepted, range_honoured, pace } = facts.unwrap_or_default();
        metrics.token_expiry.set(&[token], expires.map(seconds));
        metrics.token_read.set(&[token], readable.map(f64::from));
        metrics.token_accepted.set(&[token], accepted.map(f64::from));
        metrics.range_honoured.set(&[token], range_honoured.map(f64::from));
        metrics.pace.set(&[token], pace);
        match facts {
            Some(facts) => drop(self.0.figures.lock().tokens.insert(token.to_owned(), facts)),
            None => {
                self.0.figures.lock().tokens.remove(token);
                self.forget_audits(token);
            }
        }
    }

    fn token_refused(&self, token: &str, status: u16, said: &str) {
        let cause = cause::TOKEN_REFUSED.says_of(&[token]);
        tracing::warn!(token, status, said, "{cause}; retried when the token changes or after some time");
    }

    fn token_unreadable(&self, token: &str, file: Option<&Path>, error: &str, consequence: &str) {
        let (cause, remedy) = problem_and_remedy(&cause::TOKEN_UNREADABLE, token, file);
        tracing::warn!(token, error, consequence, remedy, "{cause}");
    }

    fn paused(&self, token: &str, wait: &str) {
        tracing::warn!(token, wait, "the service requests a pause; nothing is sent meanwhile");
    }

    fn range_ignored(&self, token: &str, explanation: &str) {
        let (cause, remedy) = problem_and_remedy(&cause::RANGE_IGNORED, token, None);
        tracing::warn!(token, error = explanation, remedy, "{cause}");
    }
}

impl pds_ledger::Observer for Telemetry {
    fn committed(&self, written: Result<(), &str>) {
        self.0.metrics.state_committed.set(&[], f64::from(written.is_ok()));
        let figures = &mut self.0.figures.lock();
        (figures.state_good, figures.state_error) = (Some(written.is_ok()), written.err().map(Into::into));
    }

    fn restoring(&self, now: Option<Restoring>) {
        match &now {
            None => self.0.metrics.state_restored.0.reset(),
            // Absent before the first answer.
            Some(now) if now.missing > 0 && now.obstacle.is_none() => {}
            Some(now) => {
                self.0.metrics.state_restored.set(&[], f64::from(now.missing == 0 && now.obstacle.is_none()));
            }
        }
        self.0.figures.lock().restoring = now;
    }

    fn config_load_time(&self) -> Option<Timestamp> {
        self.0.figures.lock().config_loaded
    }
}

impl pds_web::Observer for Telemetry {
    fn connections(&self, active: i32, idle: i32) {
        for (state, more) in [("active", active), ("idle", idle)] {
            self.0.metrics.connections.0.with_label_values(&[state]).add(more.into());
        }
    }

    fn web_config_read(&self, good: bool) {
        self.0.figures.lock().web_config_good = Some(good);
        self.0.metrics.web_config_loaded.set(&[], f64::from(good));
    }
}

/// The problem that `cause` is for `token`, and its remedy.
fn problem_and_remedy(cause: &Cause, token: &str, file: Option<&Path>) -> (String, String) {
    (cause.says_of(&[token]), cause.remedy_for(token, file.and_then(Path::to_str)))
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector as _;

    use super::*;
    use pds_ledger::Observer as _;

    #[test]
    fn the_gauge_is_absent_until_the_first_answer_and_zero_while_something_is_missing_or_in_doubt() {
        let telemetry = Telemetry::new(false).unwrap();
        let gauge = || {
            let family = telemetry.0.metrics.state_restored.0.collect().remove(0);
            family.get_metric().first().map(|metric| metric.get_gauge().get_value())
        };
        let missing = Restoring { missing: 2, ..Restoring::default() };
        telemetry.restoring(Some(missing.clone()));
        assert_eq!(gauge(), None);
        let obstacle = Some(std::sync::Arc::from("gone"));
        telemetry.restoring(Some(Restoring { obstacle: obstacle.clone(), ..missing }));
        assert_eq!(gauge(), Some(0.0));
        telemetry.restoring(Some(Restoring { obstacle, opened: 2, ..Restoring::default() }));
        assert_eq!(gauge(), Some(0.0), "no cursor is found for any app");
        telemetry.restoring(Some(Restoring { restored: 2, ..Restoring::default() }));
        assert_eq!((gauge(), telemetry.snapshot().restoring.unwrap().restored), (Some(1.0), 2));
        telemetry.restoring(None);
        assert_eq!((gauge(), telemetry.snapshot().restoring), (None, None));
    }
}
