//! What the client reports, counted and logged.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::cause::{self, Cause};
use pds_client::Observer;
use pds_interface::Resource;

use super::{Telemetry, flag, seconds};

impl Observer for Telemetry {
    fn request_done(&self, resource: Resource, code: &str, took: Duration) {
        let (name, known, metrics) = (resource.as_str(), self.known(resource), &self.0.metrics);
        let requests = || metrics.api_requests.with_label_values(&[name, code]);
        if code == "200" {
            known.answered.get_or_init(requests).inc();
        } else {
            requests().inc();
        }
        known
            .took
            .get_or_init(|| metrics.api_duration.with_label_values(&[name]))
            .observe(took.as_secs_f64());
        self.recent().count(!code.starts_with('2'));
    }

    fn request_not_sent(&self, resource: Resource, code: &str) {
        self.0.metrics.api_requests.with_label_values(&[resource.as_str(), code]).inc();
        self.recent().count(true);
    }

    fn retried(&self, resource: Resource) {
        self.0.metrics.api_retries.with_label_values(&[resource.as_str()]).inc();
    }

    fn throttled(&self, resource: Resource, waited: Duration) {
        let throttled = || self.0.metrics.api_throttled.with_label_values(&[resource.as_str()]);
        self.known(resource).throttled.get_or_init(throttled).inc_by(waited.as_secs_f64());
    }

    fn clock_skew(&self, seconds: f64) {
        self.0.metrics.clock_skew.set(seconds);
    }

    fn token_expiry(&self, token: &str, expiry: Option<Timestamp>) {
        self.0.metrics.token_expiry.set(token, expiry.map(seconds));
    }

    fn token_read(&self, token: &str, good: bool) {
        self.0.metrics.token_read.set(token, flag(good));
    }

    fn token_accepted(&self, token: &str, accepted: bool) {
        self.0.metrics.token_accepted.set(token, flag(accepted));
    }

    fn token_refused(&self, token: &str, file: Option<&Path>, status: u16, said: &str) {
        let (cause, remedy) = told(&cause::TOKEN_REFUSED, token, file);
        tracing::warn!(
            token,
            status,
            said,
            remedy,
            "{cause}; it is asked again when the token changes or after some time"
        );
    }

    fn token_unreadable(&self, token: &str, file: Option<&Path>, error: &str, consequence: &str) {
        let (cause, remedy) = told(&cause::TOKEN_UNREADABLE, token, file);
        tracing::warn!(token, error, consequence, remedy, "{cause}");
    }

    fn paused(&self, token: &str, wait: &str) {
        let (cause, remedy) = told(&cause::THROTTLED, token, None);
        tracing::warn!(token, wait, remedy, "{cause}; nothing is sent meanwhile");
    }

    fn range_honoured(&self, token: &str, ignored: Option<&str>) {
        self.0.metrics.range_honoured.set(token, flag(ignored.is_none()));
        if let Some(error) = ignored {
            let (cause, remedy) = told(&cause::RANGE_IGNORED, token, None);
            tracing::warn!(token, error, remedy, "{cause}");
        }
    }

    fn pace(&self, token: &str, per_second: Option<f64>) {
        self.0.metrics.pace.set(token, per_second);
    }

    fn forget_tokens(&self) {
        let metrics = &self.0.metrics;
        for facts in [
            &metrics.token_expiry,
            &metrics.token_read,
            &metrics.token_accepted,
            &metrics.range_honoured,
            &metrics.pace,
        ] {
            facts.clear();
        }
    }
}

/// What is wrong with `token`, and what to do about it.
fn told(cause: &Cause, token: &str, file: Option<&Path>) -> (String, String) {
    (cause.says_of(&[token]), cause.remedy_at(file.and_then(Path::to_str)))
}
