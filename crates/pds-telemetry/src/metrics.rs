//! The table of the exporter's own metrics, and their way to the page. A row declares a family, registers it, and gives
//! its handle.

use prometheus::core::{Atomic, Collector, GenericCounterVec};
use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{CounterVec, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use pds_exposition::encode::{LabelNumber, head, labels, named_sample, sample};
use pds_exposition::{Family, Format};

/// Makes of rows `handle: Type = family;` the list [`FAMILIES`] and the struct [`Metrics`] of registered handles.
macro_rules! metrics {
    ($($handle:ident: $type:ty = $family:expr;)*) => {
        /// The families declared here, without those of the process.
        pub const FAMILIES: &[Family] = &[$($family),*];

        /// The handles, one for each row.
        #[derive(Debug)]
        pub(super) struct Metrics {
            $(pub(super) $handle: $type,)*
        }

        impl Metrics {
            /// Registers every row in `registry`.
            ///
            /// # Errors
            /// If the registry refuses a family: a mistake in its row.
            pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
                Ok(Self { $($handle: <$type>::register(&$family, registry)?,)* })
            }
        }
    };
}

metrics! {
    api_requests: IntCounterVec = Family::counter("pds_api_requests_total", &["resource", "code"],
        "Requests to the service by HTTP status or class of failure; credentials, unauthorized_paused, forbidden_paused, paused and invalid were not sent");
    api_duration: HistogramVec = Family::histogram("pds_api_request_duration_seconds", &["resource"],
        "Time from sending a request to the end of its reply");
    api_retries: IntCounterVec = Family::counter("pds_api_retries_total", &["resource"],
        "Requests retried within one poll");
    api_throttled: CounterVec = Family::counter("pds_api_throttled_seconds_total", &["resource"],
        "Time that a pause, the pace of the token, the rate limit or the limit in flight delayed requests");
    unexpected: IntCounterVec = Family::counter("pds_api_unexpected_values_total", &["resource", "field"],
        "Values in replies that violate the interface, shown as missing");
    clock_skew: Gauges = Family::gauge("pds_api_clock_skew_seconds", &[],
        "The service's clock minus the exporter's, from the Date header of the last reply");
    audit_ranges: IntCounterVec = Family::counter("pds_audit_ranges_total", &["resource", "result"],
        "Audited ranges: whether two parts equal the whole and the counters; unanswered if a request failed, a total is missing, or data arrived meanwhile");
    audit_completeness: Gauges = Family::gauge("pds_audit_completeness_ratio", &["token", "age"],
        "Counted share of the requests that the service reports for a sampled hour at that age; absent until an hour has been sampled after its last recheck");
    token_expiry: Gauges = Family::gauge("pds_token_expiry_timestamp_seconds", &["token"],
        "Unix time when the token expires; absent if unknown");
    token_read: Gauges = Family::gauge("pds_token_last_read_successful", &["token"],
        "1 if the last read of the token file succeeded; otherwise the last good one, if any, is used");
    token_accepted: Gauges = Family::gauge("pds_token_accepted", &["token"],
        "0 while the service refuses the token (401), 1 once the service has accepted it; absent before the first answer");
    range_honoured: Gauges = Family::gauge("pds_api_range_honoured", &["token"],
        "1 once a reply matches the requested range, 0 while replies ignore one of its bounds; otherwise absent");
    pace: Gauges = Family::gauge("pds_api_pace_requests_per_second", &["token"],
        "Maximum requests per second of the token after repeated 429s, 0 in a long pause until a request ends; absent otherwise");
    log_dropped: IntCounterVec = Family::counter("pds_exporter_log_lines_dropped_total", &[],
        "Log lines dropped because nobody read the log or it could not be written");
    build_info: Gauges = Family::info("pds_exporter_build_info", &["version", "revision"],
        "Version of the exporter, and its commit if known");
    shard_info: Gauges = Family::info("pds_exporter_shard_info", &["index", "count"],
        "Shard of this exporter: --shard.index of --shard.count");
    shards: Gauges = Family::gauge("pds_exporter_shards", &[],
        "Number of exporters that share the configured apps");
    config_loaded: Gauges = Family::gauge("pds_exporter_config_last_reload_successful", &[],
        "1 if the last attempt to load the configuration succeeded; otherwise the previous one stays in force");
    config_loaded_time: Gauges = Family::gauge("pds_exporter_config_last_reload_success_timestamp_seconds", &[],
        "Unix time when the configuration in force was loaded");
    web_config_loaded: Gauges = Family::gauge("pds_exporter_web_config_last_reload_successful", &[],
        "1 if the last read of the web configuration file succeeded, 0 if it failed or would protect less; then the last accepted one stays in force");
    targets: Gauges = Family::gauge("pds_exporter_targets", &[],
        "Number of polled pairs of a resource and a project or app");
    poll_lag: Gauges = Family::gauge("pds_exporter_poll_lag_seconds", &[],
        "Delay from due time to start of the last poll; grows under limits and throttling");
    connections: Gauges = Family::gauge("pds_exporter_connections", &["state"],
        "Open client connections: active during a request, idle otherwise");
    loop_stall: HistogramVec = Family::histogram("pds_exporter_loop_stall_seconds", &[],
        "Delay of a timer of the serving thread, measured ten times a second; responses are delayed by the same time");
    memory_budget: Gauges = Family::gauge("pds_exporter_memory_budget_bytes", &[],
        "Memory budget for clients, the service and Prometheus: a quarter of the cgroup's limit, from 12 MiB to 64 MiB");
    memory_budget_used: Gauges = Family::gauge("pds_exporter_memory_budget_used_bytes", &[],
        "Part of the memory budget held by connections, unread responses and replies in flight");
    panics: IntCounterVec = Family::counter("pds_exporter_panics_total", &[],
        "Panics, each a bug; only the poll or page concerned fails");
    state_committed: Gauges = Family::gauge("pds_exporter_state_last_commit_successful", &[],
        "1 if the last write to the state file succeeded; nothing is counted while writes fail");
    state_restored: Gauges = Family::gauge("pds_exporter_state_last_restore_successful", &[],
        "1 once Prometheus (state.prometheus_url) has returned all cursors, 0 while some or all are missing");
}

/// Buckets of durations of requests: from a simulator on this machine to the default timeout and beyond.
const DURATION_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// A handle that can be made from the declaration of its family.
pub(super) trait Handle: Sized {
    /// The handle on `family`, registered in `registry`.
    ///
    /// # Errors
    /// If the registry refuses the family: its name is taken or invalid.
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error>;
}

impl<P: Atomic + 'static> Handle for GenericCounterVec<P> {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        registered(registry, Self::new(Opts::new(family.name, family.help), family.labels)?)
    }
}

impl Handle for HistogramVec {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = HistogramOpts::new(family.name, family.help).buckets(DURATION_BUCKETS.to_vec());
        registered(registry, Self::new(opts, family.labels)?)
    }
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

/// A gauge for each set of label values. A series is missing until its value is known.
#[derive(Debug)]
pub(super) struct Gauges(pub(super) GaugeVec);

impl Handle for Gauges {
    fn register(family: &Family, registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = GaugeVec::new(Opts::new(family.name, family.help), family.labels)?;
        registered(registry, gauges).map(Self)
    }
}

impl Gauges {
    /// Sets the value of the series with these labels; `None` removes it.
    pub(super) fn set(&self, labels: &[&str], value: impl Into<Option<f64>>) {
        match value.into() {
            Some(value) => self.0.with_label_values(labels).set(value),
            // Fails if there is no such series, which is fine.
            None => drop(self.0.remove_label_values(labels)),
        }
    }
}

/// Writes one family of the registry if it is declared, requested and has a series.
pub(super) fn write(
    out: &mut Vec<u8>,
    format: Format,
    gathered: &MetricFamily,
    wanted: impl Fn(&Family) -> bool,
) {
    let declared = FAMILIES.iter().find(|family| family.name == gathered.name());
    let Some(family) = declared.filter(|family| wanted(family) && !gathered.get_metric().is_empty()) else {
        return;
    };
    head(out, format, family);
    for metric in gathered.get_metric() {
        // An empty label means no label.
        let pairs = metric.get_label().iter().filter(|pair| !pair.value().is_empty());
        let labels = labels(pairs.map(|pair| (pair.name(), pair.value())));
        match gathered.get_field_type() {
            MetricType::HISTOGRAM => histogram(out, family, &labels, metric.get_histogram()),
            MetricType::COUNTER => sample(out, family, &labels, "", metric.get_counter().get_value()),
            _ => sample(out, family, &labels, "", metric.get_gauge().get_value()),
        }
    }
}

fn histogram(out: &mut Vec<u8>, family: &Family, target: &str, histogram: &prometheus::proto::Histogram) {
    let bucket = |out: &mut Vec<u8>, bound: f64, count: u64| {
        let le = labels([("le", LabelNumber::default().text(bound))]);
        sample(out, family, target, &le, count as f64);
    };
    for entry in histogram.get_bucket() {
        bucket(out, entry.upper_bound(), entry.cumulative_count());
    }
    bucket(out, f64::INFINITY, histogram.get_sample_count());
    named_sample(out, family.name, "_sum", target, "", histogram.get_sample_sum());
    named_sample(out, family.name, "_count", target, "", histogram.get_sample_count() as f64);
}
