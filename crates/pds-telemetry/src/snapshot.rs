//! The exporter's own figures at one moment, for the status page.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use pds_client::TokenFacts;
use pds_ledger::restore::Restoring;

use super::{AuditSnapshot, Telemetry};

/// The figures. `None` means not known yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Whether the last attempt to load the configuration succeeded.
    pub config_good: Option<bool>,
    /// When the configuration in force was loaded.
    pub config_loaded: Option<Timestamp>,
    /// Whether the web configuration file could be read when it last changed.
    pub web_config_good: Option<bool>,
    /// Whether the last write to the state file succeeded.
    pub state_good: Option<bool>,
    /// Why that write failed, if it did.
    pub state_error: Option<Arc<str>>,
    /// The progress of restoring counters from Prometheus, if configured.
    pub restoring: Option<Restoring>,
    /// How late the last poll began.
    pub poll_lag_seconds: Option<f64>,
    /// Requests sent in the last minutes.
    pub recent: RecentRequests,
    /// The service's clock minus ours.
    pub clock_skew_seconds: Option<f64>,
    /// When anything last panicked.
    pub last_panic: Option<Instant>,
    /// The last unexpected value by resource and field; a field that is in here was logged.
    pub unexpected: BTreeMap<(&'static str, &'static str), UnexpectedValue>,
    /// Results of audits of the service's replies.
    pub audit: AuditSnapshot,
    /// The service accounts, by name.
    pub tokens: BTreeMap<String, TokenFacts>,
}

/// A value that violates the interface.
#[derive(Clone, Debug, PartialEq)]
pub struct UnexpectedValue {
    /// The project or app of the reply.
    pub target: String,
    /// When it was received.
    pub at: Instant,
}

impl Telemetry {
    /// The figures of this moment.
    pub fn snapshot(&self) -> Snapshot {
        self.0.figures.lock().clone()
    }
}

/// Minutes kept, the current one included.
const MINUTES: usize = 5;

/// Requests sent in the last minutes, by minute, for the status page; Prometheus computes its own rates.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentRequests {
    began: Instant,
    minutes: [Minute; MINUTES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Minute {
    /// Since the beginning.
    number: u64,
    requests: u32,
    failures: u32,
}

/// The rate over the last four minutes, or since the start if that is less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestRate {
    /// Requests per minute.
    pub requests_per_minute: f64,
    /// Failed requests per minute.
    pub failures_per_minute: f64,
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self { began: Instant::now(), minutes: [Minute::default(); MINUTES] }
    }
}

impl RecentRequests {
    pub(super) fn count(&mut self, failed: bool) {
        let number = self.began.elapsed().as_secs() / 60;
        if let Some(minute) = self.minutes.get_mut((number % MINUTES as u64) as usize) {
            if minute.number != number {
                *minute = Minute { number, ..Minute::default() };
            }
            minute.requests = minute.requests.saturating_add(1);
            minute.failures = minute.failures.saturating_add(u32::from(failed));
        }
    }

    /// The rate over whole minutes, so that it changes once a minute; before the first has passed, what it has so far.
    pub fn rate(&self) -> RequestRate {
        let now = self.began.elapsed().as_secs() / 60;
        let oldest = now.saturating_sub(MINUTES as u64 - 1);
        let past = || self.minutes.iter().filter(|of| now == 0 || (oldest..now).contains(&of.number));
        let span = f64::from(u32::try_from(now - oldest).unwrap_or(1).max(1));
        let rate = |of: fn(&Minute) -> u32| past().map(|minute| f64::from(of(minute))).sum::<f64>() / span;
        RequestRate {
            requests_per_minute: rate(|minute| minute.requests),
            failures_per_minute: rate(|minute| minute.failures),
        }
    }
}

#[cfg(test)]
mod tests {
    use pds_client::Observer as _;
    use pds_interface::get_app;
    use tokio::time::{Duration, advance};

    use super::*;

    #[test]
    fn a_snapshot_holds_only_what_was_recorded() {
        let telemetry = Telemetry::new(false).unwrap();
        let began = telemetry.snapshot().recent;
        assert_eq!(telemetry.snapshot(), Snapshot { recent: began.clone(), ..Snapshot::default() });
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        telemetry.config_loaded(Some(now));
        telemetry.config_loaded(None);
        telemetry.clock_skew(-2.5);
        let expiring = TokenFacts { expires: Some(now), ..TokenFacts::default() };
        telemetry.token("default", Some(expiring));
        let expected = Snapshot {
            config_good: Some(false),
            config_loaded: Some(now),
            clock_skew_seconds: Some(-2.5),
            tokens: [("default".to_owned(), expiring)].into(),
            recent: began,
            ..Snapshot::default()
        };
        assert_eq!(telemetry.snapshot(), expected);
    }

    #[test]
    fn a_request_that_is_not_sent_is_not_in_the_rate() {
        let telemetry = Telemetry::new(false).unwrap();
        telemetry.request_not_sent(get_app::RESOURCE, "paused");
        assert_eq!(telemetry.snapshot().recent.rate(), RequestRate::default());
        telemetry.request_done(get_app::RESOURCE, "200", Duration::ZERO);
        assert_eq!(telemetry.snapshot().recent.rate().requests_per_minute, 1.0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_of_the_last_whole_minutes() {
        let mut recent = RecentRequests::default();
        for second in 0..600 {
            recent.count(second >= 450);
            advance(Duration::from_secs(1)).await;
        }
        let rate = recent.rate();
        assert_eq!((rate.requests_per_minute, rate.failures_per_minute), (60.0, 37.5));
        advance(Duration::from_secs(600)).await;
        assert_eq!(recent.rate(), RequestRate::default());
    }
}
