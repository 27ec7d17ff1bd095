//! The exporter's metrics about itself.
//!
//! They live in a `prometheus` registry of their own, are declared as [`Family`] like all others, and are written by
//! the same encoder. To count something, call a method of [`Telemetry`]; the log line that belongs to a counter is
//! written by that method, so the two cannot drift apart.
//!
//! - [`catalogue`]: every family of the page, and those about targets.
//! - `metrics`: the table of metrics; a row declares, registers and gives the handle. From the registry to the page.
//! - [`Snapshot`]: the figures for the status page, with request rates of the last minutes.
//! - [`AuditSnapshot`]: what audits of the service's replies found.
//! - `process`: `process_*`, from `/proc/self`.
//! - `observers`: what client, ledgers and web server report, counted and logged.

mod audit;
pub mod catalogue;
mod metrics;
mod observers;
mod process;
mod snapshot;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus::{IntCounter, Registry};
use tokio::time::Instant;

use pds_core::memory::MemoryBudget;
use pds_exposition::{Family, Format};
use pds_interface::Resource;
use pds_interface::reader::named_by;

pub use audit::{AuditResult, AuditSnapshot, Difference};
pub use metrics::FAMILIES;
use metrics::Metrics;
pub use process::process_families;
pub use snapshot::{RequestRate, Snapshot, UnexpectedValue};

/// Codes of `pds_api_requests_total` that exist from the start: alerts read their increase, which a series that
/// begins at 1 does not have.
const ALERTED_CODES: &[&str] = &["401", "403", "429"];

/// How often a timer is set to measure stalls. A stall that lasts as long is always seen; an idle processor is rarely
/// woken.
const STALLS_SAMPLED_EVERY: Duration = Duration::from_millis(100);

/// The exporter's own metrics. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Telemetry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    metrics: Metrics,
    /// Whether the metrics of the process are written, too.
    process: bool,
    memory: MemoryBudget,
    /// Facts for the status page.
    figures: Mutex<Snapshot>,
}

impl Telemetry {
    /// Counts log lines that were dropped.
    pub fn log_lines_dropped(&self) -> IntCounter {
        self.0.metrics.log_dropped.with_label_values::<&str>(&[])
    }

    /// The registry, for collectors of other parts.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// The metrics in a registry of their own; with those of the process if `process` is set
    /// (`--web.disable-exporter-metrics` unsets it).
    ///
    /// # Errors
    /// If the registry refuses a family: a mistake in its declaration.
    pub fn new(process: bool) -> Result<Self, prometheus::Error> {
        Self::within(MemoryBudget::default(), process)
    }

    /// Like [`Telemetry::new`], in a process with this budget.
    ///
    /// # Errors
    /// Same as [`Telemetry::new`].
    pub fn within(memory: MemoryBudget, process: bool) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry)?;
        for resource in Resource::all().map(Resource::as_str) {
            for code in ALERTED_CODES {
                metrics.api_requests.with_label_values(&[resource, code]);
            }
            metrics.api_retries.with_label_values(&[resource]);
        }
        for state in ["active", "idle"] {
            metrics.connections.set(&[state], 0.0);
        }
        metrics.panics.with_label_values::<&str>(&[]);
        metrics.log_dropped.with_label_values::<&str>(&[]);
        metrics.memory_budget.set(&[], memory.bytes() as f64);
        let build = [env!("CARGO_PKG_VERSION"), pds_config::REVISION];
        metrics.build_info.set(&build, 1.0);
        let telemetry =
            Self(Arc::new(Inner { registry, metrics, process, memory, figures: Mutex::default() }));
        telemetry.start_audits_at_zero();
        Ok(telemetry)
    }

    /// A reply held values that violate the interface, in a distribution perhaps this `label`; logged once per field.
    pub fn unexpected(&self, resource: Resource, fields: &[&'static str], target: &str, label: Option<&str>) {
        for field in fields {
            self.0.metrics.unexpected.with_label_values(&[resource.as_str(), field]).inc();
            let value = UnexpectedValue { target: target.to_owned(), at: Instant::now() };
            if self.0.figures.lock().unexpected.insert((resource.as_str(), field), value).is_some() {
                continue;
            }
            let problem = named_by(field).map_or_else(
                || "a value violates the interface and counts as missing; further values are counted without a log line".to_owned(),
                |key| format!("no field of the reply contains this; set {key} to the name of the field that does"),
            );
            let label = label.filter(|_| *field == "distribution");
            tracing::warn!(resource = resource.as_str(), field, target_id = target, label, "{problem}");
        }
    }

    /// This exporter is shard `index` of `count`.
    pub fn shard(&self, index: u32, count: u32) {
        let metrics = &self.0.metrics;
        metrics.shard_info.set(&[&index.to_string(), &count.to_string()], 1.0);
        metrics.shards.set(&[], f64::from(count));
    }

    /// The configuration was loaded at `loaded`; `None` if it could not be, and the old one stays.
    pub fn config_loaded(&self, loaded: Option<Timestamp>) {
        let figures = &mut self.0.figures.lock();
        figures.config_good = Some(loaded.is_some());
        self.0.metrics.config_loaded.set(&[], f64::from(loaded.is_some()));
        if let Some(time) = loaded {
            figures.config_loaded = loaded;
            self.0.metrics.config_loaded_time.set(&[], seconds(time));
        }
    }

    /// How many targets are polled.
    pub fn targets(&self, count: usize) {
        self.0.metrics.targets.set(&[], count as f64);
    }

    /// A poll began `late` after it was due; `None` if there is nothing to poll.
    pub fn poll_lag(&self, late: Option<Duration>) {
        let seconds = late.map(|late| late.as_secs_f64());
        self.0.figures.lock().poll_lag_seconds = seconds;
        self.0.metrics.poll_lag.set(&[], seconds);
    }

    /// The budget of this process.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }

    /// Measures how late timers of this thread fire, for ever.
    pub async fn watch_stalls(self) {
        let stalls = self.0.metrics.loop_stall.with_label_values::<&str>(&[]);
        loop {
            let due = Instant::now() + STALLS_SAMPLED_EVERY;
            tokio::time::sleep_until(due).await;
            stalls.observe(due.elapsed().as_secs_f64());
        }
    }

    /// A thread panicked; the panic hook logs it.
    pub fn panicked(&self) {
        self.0.metrics.panics.with_label_values::<&str>(&[]).inc();
        // The thread may have panicked while it held the lock.
        if let Some(mut figures) = self.0.figures.try_lock() {
            figures.last_panic = Some(Instant::now());
        }
    }

    /// Writes the requested families that have a series, in `format`.
    pub fn write(&self, out: &mut Vec<u8>, format: Format, wanted: impl Fn(&Family) -> bool) {
        self.0.metrics.memory_budget_used.set(&[], self.0.memory.used() as f64);
        for family in self.0.registry.gather() {
            metrics::write(out, format, &family, &wanted);
        }
        if self.0.process {
            process::write(out, format, wanted);
        }
    }
}

fn seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use pds_client::{Observer as _, TokenFacts};

    use super::*;
    use pds_interface::get_app;

    /// The families whose names contain `part`.
    fn page(telemetry: &Telemetry, part: &str) -> String {
        let mut out = Vec::new();
        telemetry.write(&mut out, Format::Text, |family| family.name.contains(part));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_fact_not_known_yet_is_a_missing_series() {
        let telemetry = Telemetry::new(false).unwrap();
        assert_eq!(["clock_skew", "poll_lag"].map(|part| page(&telemetry, part)), ["", ""]);
        telemetry.clock_skew(-2.5);
        let expires = Some(Timestamp::from_second(1_800_000_000).unwrap());
        telemetry.token("default", Some(TokenFacts { expires, ..TokenFacts::default() }));
        assert!(page(&telemetry, "skew").ends_with("\npds_api_clock_skew_seconds -2.5\n"));
        let expiry = page(&telemetry, "pds_token_expiry");
        assert!(expiry.ends_with("_timestamp_seconds{token=\"default\"} 1800000000\n"), "{expiry}");
        telemetry.token("default", Some(TokenFacts::default()));
        assert_eq!(page(&telemetry, "pds_token_expiry"), "");
    }

    #[test]
    fn counters_that_alerts_read_start_at_zero() {
        let telemetry = Telemetry::new(false).unwrap();
        let page = page(&telemetry, "pds_api");
        for resource in Resource::all().map(Resource::as_str) {
            let retries = format!("\npds_api_retries_total{{resource=\"{resource}\"}} 0\n");
            assert!(page.contains(&retries), "{retries}");
            let codes =
                ["401", "403", "429"].map(|code| format!("{{code=\"{code}\",resource=\"{resource}\"}} 0\n"));
            assert!(codes.iter().all(|series| page.contains(series)), "{codes:?}{page}");
        }
    }

    #[test]
    fn a_token_is_accepted_or_refused_once_the_service_has_answered() {
        let telemetry = Telemetry::new(false).unwrap();
        let page = || page(&telemetry, "pds_token_accepted");
        assert_eq!(page(), "");
        let accept = |accepted| {
            let accepted = Some(accepted);
            telemetry.token("default", Some(TokenFacts { accepted, ..TokenFacts::default() }));
        };
        accept(false);
        assert!(page().ends_with("pds_token_accepted{token=\"default\"} 0\n"), "{}", page());
        accept(true);
        assert!(page().ends_with("pds_token_accepted{token=\"default\"} 1\n"), "{}", page());
        let (what, remedy) = ("".into(), "".into());
        let difference = Difference { what, remedy, target: String::new() };
        telemetry.audit_differs("default", pds_interface::response_time::RESOURCE, difference);
        telemetry.token("default", None);
        assert_eq!(page(), "");
        assert!(telemetry.snapshot().audit.differences.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_fires_late_is_a_stall() {
        let telemetry = Telemetry::new(false).unwrap();
        let watching = tokio::spawn(telemetry.clone().watch_stalls());
        tokio::task::yield_now().await;
        for after in [100, 130, 400] {
            tokio::time::advance(Duration::from_millis(after)).await;
            tokio::task::yield_now().await;
        }
        watching.abort();
        let page = page(&telemetry, "stall");
        for (le, count) in [("0.005", 1), ("0.025", 1), ("0.05", 2), ("0.25", 2), ("0.5", 3)] {
            let bucket = format!("pds_exporter_loop_stall_seconds_bucket{{le=\"{le}\"}} {count}\n");
            assert!(page.contains(&bucket), "{bucket}{page}");
        }
    }

    #[test]
    fn a_shard_exposes_its_index_and_the_count() {
        let telemetry = Telemetry::new(false).unwrap();
        telemetry.shard(1, 3);
        let page = page(&telemetry, "shard");
        assert!(page.contains("\npds_exporter_shards 3\n"), "{page}");
        assert!(page.contains("\npds_exporter_shard_info{count=\"3\",index=\"1\"} 1\n"), "{page}");
    }

    #[test]
    fn histograms_and_infos_are_written_as_the_formats_want_them() {
        let telemetry = Telemetry::new(true).unwrap();
        telemetry.request_done(get_app::RESOURCE, "200", Duration::from_millis(20));
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
}
