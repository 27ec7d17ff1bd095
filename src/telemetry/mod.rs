//! The exporter's metrics about itself.
//!
//! They live in a `prometheus` registry of ours, are declared as [`Family`] like all others, and are written by
//! the same encoder. Whoever has something to count calls a method here; a log line that belongs to a counter is
//! written by that same method, so the two can't drift apart.

mod encode;
mod families;
mod recent;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGaugeVec, Opts, Registry,
};

use crate::catalogue::{Family, Format};
use crate::interface::Resource;

use families::{
    API_DURATION, API_REQUESTS, API_RETRIES, API_THROTTLED, BUILD_INFO, CLOCK_SKEW, PACE, PANICS, POLL_LAG,
    RELOAD_SUCCESSFUL, RELOAD_TIME, STATE_COMMITTED, TARGETS, TOKEN_EXPIRY, TOKEN_READ, UNEXPECTED,
    WEB_RELOAD_SUCCESSFUL,
};
pub use families::{FAMILIES, PROCESS_FAMILIES};
use recent::Recent;
pub use recent::RequestRate;

/// Buckets of request durations: from a local simulator to the default timeout and beyond.
const DURATION_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The exporter's own metrics. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Telemetry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    api_requests: IntCounterVec,
    api_duration: HistogramVec,
    api_retries: IntCounterVec,
    api_throttled: CounterVec,
    unexpected: IntCounterVec,
    /// Of which values it was already said in the log that they are unexpected.
    unexpected_logged: Mutex<HashSet<(Resource, &'static str)>>,
    recent: Mutex<Recent>,
    known: [Known; Resource::ALL.len()],
    // Gauges are vectors, even those without labels, so that they are absent until their fact is known.
    clock_skew: GaugeVec,
    token_expiry: GaugeVec,
    token_read: IntGaugeVec,
    pace: GaugeVec,
    reload_successful: IntGaugeVec,
    reload_time: GaugeVec,
    web_reload_successful: IntGaugeVec,
    targets: IntGaugeVec,
    poll_lag: Gauge,
    panics: IntCounterVec,
    state_committed: IntGaugeVec,
}

/// What each request of a resource counts on, looked up once.
#[derive(Debug, Default)]
struct Known {
    /// With status 200.
    answered: OnceLock<IntCounter>,
    took: OnceLock<Histogram>,
    throttled: OnceLock<Counter>,
}

impl Telemetry {
    /// The metrics, all in a registry of their own; with the process's where `process` is set
    /// (`--web.disable-exporter-metrics` unsets it).
    ///
    /// # Errors
    /// Where the registry refuses a family: a mistake in the declarations above.
    pub fn new(process: bool) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let build_info = GaugeVec::new(opts(&BUILD_INFO), BUILD_INFO.labels)?;
        build_info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        register(&registry, &build_info)?;
        let duration =
            HistogramOpts::new(API_DURATION.name, API_DURATION.help).buckets(DURATION_BUCKETS.to_vec());
        let poll_lag = Gauge::with_opts(opts(&POLL_LAG))?;
        let inner = Inner {
            api_requests: IntCounterVec::new(opts(&API_REQUESTS), API_REQUESTS.labels)?,
            api_duration: HistogramVec::new(duration, API_DURATION.labels)?,
            api_retries: IntCounterVec::new(opts(&API_RETRIES), API_RETRIES.labels)?,
            api_throttled: CounterVec::new(opts(&API_THROTTLED), API_THROTTLED.labels)?,
            unexpected: IntCounterVec::new(opts(&UNEXPECTED), UNEXPECTED.labels)?,
            unexpected_logged: Mutex::default(),
            recent: Mutex::new(Recent::new()),
            known: Default::default(),
            clock_skew: GaugeVec::new(opts(&CLOCK_SKEW), CLOCK_SKEW.labels)?,
            token_expiry: GaugeVec::new(opts(&TOKEN_EXPIRY), TOKEN_EXPIRY.labels)?,
            token_read: IntGaugeVec::new(opts(&TOKEN_READ), TOKEN_READ.labels)?,
            pace: GaugeVec::new(opts(&PACE), PACE.labels)?,
            reload_successful: IntGaugeVec::new(opts(&RELOAD_SUCCESSFUL), RELOAD_SUCCESSFUL.labels)?,
            reload_time: GaugeVec::new(opts(&RELOAD_TIME), RELOAD_TIME.labels)?,
            web_reload_successful: IntGaugeVec::new(opts(&WEB_RELOAD_SUCCESSFUL), &[])?,
            targets: IntGaugeVec::new(opts(&TARGETS), TARGETS.labels)?,
            poll_lag,
            panics: IntCounterVec::new(opts(&PANICS), PANICS.labels)?,
            state_committed: IntGaugeVec::new(opts(&STATE_COMMITTED), &[])?,
            registry,
        };
        inner.panics.with_label_values::<&str>(&[]);
        let registry = &inner.registry;
        register(registry, &inner.api_requests)?;
        register(registry, &inner.api_duration)?;
        register(registry, &inner.api_retries)?;
        register(registry, &inner.api_throttled)?;
        register(registry, &inner.unexpected)?;
        register(registry, &inner.clock_skew)?;
        register(registry, &inner.token_expiry)?;
        register(registry, &inner.token_read)?;
        register(registry, &inner.pace)?;
        register(registry, &inner.reload_successful)?;
        register(registry, &inner.reload_time)?;
        register(registry, &inner.web_reload_successful)?;
        register(registry, &inner.targets)?;
        register(registry, &inner.poll_lag)?;
        register(registry, &inner.panics)?;
        register(registry, &inner.state_committed)?;
        if process {
            registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// A request to the service ended: `code` is its HTTP status or the class of its failure.
    pub fn request_done(&self, resource: Resource, code: &str, took: Duration) {
        let (name, known) = (resource.as_str(), self.known(resource));
        let requests = || self.0.api_requests.with_label_values(&[name, code]);
        if code == "200" {
            known.answered.get_or_init(requests).inc();
        } else {
            requests().inc();
        }
        known.took.get_or_init(|| self.0.api_duration.with_label_values(&[name])).observe(took.as_secs_f64());
        self.recent().note(!code.starts_with('2'));
    }

    /// A request was not sent at all; `code` is the class of what stood against it.
    pub fn request_not_sent(&self, resource: Resource, code: &str) {
        self.0.api_requests.with_label_values(&[resource.as_str(), code]).inc();
        self.recent().note(true);
    }

    /// A request is about to be sent again inside one poll.
    pub fn retried(&self, resource: Resource) {
        self.0.api_retries.with_label_values(&[resource.as_str()]).inc();
    }

    /// A request waited `waited` for its turn under the rate limit or for a pause to end.
    pub fn throttled(&self, resource: Resource, waited: Duration) {
        let throttled = || self.0.api_throttled.with_label_values(&[resource.as_str()]);
        self.known(resource).throttled.get_or_init(throttled).inc_by(waited.as_secs_f64());
    }

    fn known(&self, resource: Resource) -> &Known {
        &self.0.known[resource as usize]
    }

    /// A reply held values that are not what the interface says; logged once for each field.
    pub fn unexpected(&self, resource: Resource, fields: &[&'static str], target: &str) {
        for field in fields {
            self.0.unexpected.with_label_values(&[resource.as_str(), field]).inc();
            let mut logged = self.0.unexpected_logged.lock().unwrap_or_else(PoisonError::into_inner);
            if logged.insert((resource, field)) {
                tracing::warn!(
                    resource = resource.as_str(),
                    field,
                    target_id = target,
                    "a value is not what the interface says and counts as missing; further ones are only counted"
                );
            }
        }
    }

    /// The service's clock is `seconds` ahead of ours (behind where negative).
    pub fn clock_skew(&self, seconds: f64) {
        self.0.clock_skew.with_label_values::<&str>(&[]).set(seconds);
    }

    /// The token of service account `token` ("default" or a project's id) expires then; `None` where it does
    /// not say.
    pub fn token_expiry(&self, token: &str, expiry: Option<Timestamp>) {
        match expiry {
            Some(expiry) => {
                self.0.token_expiry.with_label_values(&[token]).set(expiry.as_duration().as_secs_f64());
            }
            // The series may not exist, which is what is wanted.
            None => drop(self.0.token_expiry.remove_label_values(&[token])),
        }
    }

    /// The file of service account `token` was looked at, and could be read or not.
    pub fn token_read(&self, token: &str, good: bool) {
        self.0.token_read.with_label_values(&[token]).set(i64::from(good));
    }

    /// Service account `token` was slowed down to so many requests a second; `None` where it no longer is.
    pub fn pace(&self, token: &str, per_second: Option<f64>) {
        match per_second {
            Some(per_second) => self.0.pace.with_label_values(&[token]).set(per_second),
            // The series may not exist, which is what is wanted.
            None => drop(self.0.pace.remove_label_values(&[token])),
        }
    }

    /// The service accounts change: what is known of those so far is forgotten.
    pub fn forget_tokens(&self) {
        self.0.token_expiry.reset();
        self.0.token_read.reset();
        self.0.pace.reset();
    }

    /// The configuration was loaded at `loaded`, or could not be and the old one stays.
    pub fn config_loaded(&self, loaded: Option<Timestamp>) {
        self.0.reload_successful.with_label_values::<&str>(&[]).set(i64::from(loaded.is_some()));
        if let Some(time) = loaded {
            self.0.reload_time.with_label_values::<&str>(&[]).set(time.as_duration().as_secs_f64());
        }
    }

    /// The web configuration file was read, or could not be and the last good one stays.
    pub fn web_config_loaded(&self, good: bool) {
        self.0.web_reload_successful.with_label_values::<&str>(&[]).set(i64::from(good));
    }

    /// So many targets are polled.
    pub fn targets(&self, count: usize) {
        self.0.targets.with_label_values::<&str>(&[]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A poll began `late` after it was due.
    pub fn poll_lag(&self, late: Duration) {
        self.0.poll_lag.set(late.as_secs_f64());
    }

    /// A poll panicked; it was contained.
    pub fn panicked(&self, what: &str) {
        self.0.panics.with_label_values::<&str>(&[]).inc();
        tracing::error!(what, "a poll panicked and was contained: a bug of the exporter, please report it");
    }

    /// The state file was written, or could not be; `good` is how it stood before and now. Logged on change.
    pub fn state_committed(&self, written: &Result<(), String>, good: &mut bool) {
        self.0.state_committed.with_label_values::<&str>(&[]).set(i64::from(written.is_ok()));
        match (written, *good) {
            (Err(error), true) => {
                tracing::error!(error, "the state cannot be written; counters stand still until it can")
            }
            (Ok(()), false) => tracing::info!("the state can be written again"),
            _ => {}
        }
        *good = written.is_ok();
    }

    /// A family of a part that has its own reason to be counted here; see [`FAMILIES`] for what is.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Writes the families that are wanted and have a series, in the given format.
    pub fn write(&self, out: &mut Vec<u8>, format: Format, wanted: impl Fn(&Family) -> bool) {
        for family in self.0.registry.gather() {
            encode::family(out, format, &family, &wanted);
        }
    }
}

fn opts(family: &Family) -> Opts {
    Opts::new(family.name, family.help)
}

fn register<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: &C,
) -> Result<(), prometheus::Error> {
    registry.register(Box::new(collector.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_not_known_yet_is_a_missing_series() {
        let telemetry = Telemetry::new(false).unwrap();
        let page = |telemetry: &Telemetry| {
            let mut out = Vec::new();
            telemetry.write(&mut out, Format::Text, |_| true);
            String::from_utf8(out).unwrap()
        };
        assert!(!page(&telemetry).contains("pds_api_clock_skew_seconds"));
        telemetry.clock_skew(-2.5);
        telemetry.token_expiry("default", Some(Timestamp::from_second(1_800_000_000).unwrap()));
        assert!(page(&telemetry).contains("\npds_api_clock_skew_seconds -2.5\n"));
        assert!(
            page(&telemetry).contains("\npds_token_expiry_timestamp_seconds{token=\"default\"} 1800000000\n")
        );
        telemetry.token_expiry("default", None);
        assert!(!page(&telemetry).contains("pds_token_expiry"));
    }

    #[test]
    fn histograms_and_infos_are_written_as_the_formats_want_them() {
        let telemetry = Telemetry::new(true).unwrap();
        telemetry.request_done(Resource::App, "200", Duration::from_millis(20));
        let mut out = Vec::new();
        telemetry.write(&mut out, Format::OpenMetrics, |_| true);
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains(
            "# TYPE pds_api_requests counter\npds_api_requests_total{code=\"200\",resource=\"app\"} 1\n"
        ));
        assert!(page.contains("pds_api_request_duration_seconds_bucket{resource=\"app\",le=\"+Inf\"} 1\n"));
        assert!(page.contains("pds_api_request_duration_seconds_count{resource=\"app\"} 1\n"));
        assert!(page.contains("# TYPE pds_exporter_build info\npds_exporter_build_info{version="));
        assert!(page.contains("# UNIT process_resident_memory_bytes bytes\n"));
    }

    #[test]
    fn the_process_families_are_those_the_collector_has() {
        let telemetry = Telemetry::new(true).unwrap();
        let found: Vec<(String, String)> = telemetry
            .registry()
            .gather()
            .iter()
            .filter(|f| f.name().starts_with("process_"))
            .map(|f| (f.name().to_owned(), f.help().to_owned()))
            .collect();
        let declared: Vec<(String, String)> =
            PROCESS_FAMILIES.iter().map(|f| (f.name.to_owned(), f.help.to_owned())).collect();
        assert_eq!(found, declared);
    }
}
