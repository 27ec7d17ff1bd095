//! The table of the exporter's own metrics. A row declares a family, registers it, and gives its handle.

use prometheus::{CounterVec, HistogramVec, IntCounterVec, Registry};

use pds_exposition::Family;

use super::registry::{Gauges, Handle};

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
        "Requests to the service, by HTTP status or class of failure; those of class credentials, unauthorized_paused, forbidden_paused, paused and invalid were not sent");
    api_duration: HistogramVec = Family::histogram("pds_api_request_duration_seconds", &["resource"],
        "Time from sending a request to having read its reply");
    api_retries: IntCounterVec = Family::counter("pds_api_retries_total", &["resource"],
        "Requests that were sent again inside one poll");
    api_throttled: CounterVec = Family::counter("pds_api_throttled_seconds_total", &["resource"],
        "Time that requests waited to be sent: for a pause or slower pace of their token, the rate limit, or a place in flight");
    unexpected: IntCounterVec = Family::counter("pds_api_unexpected_values_total", &["resource", "field"],
        "Values in replies that violate the interface; shown as missing");
    clock_skew: Gauges = Family::gauge("pds_api_clock_skew_seconds", &[],
        "The service's clock minus ours, from the Date header of its last reply");
    audit_ranges: IntCounterVec = Family::counter("pds_audit_ranges_total", &["resource", "result"],
        "Audited ranges: whether the service's counts of two parts equal the whole and the counters; unanswered ones are repeated");
    audit_completeness: Gauges = Family::gauge("pds_audit_completeness_ratio", &["token", "age"],
        "Counted part of a sampled hour, by what the service knew of it at that age; absent until an hour after its last recheck was asked about again");
    token_expiry: Gauges = Family::gauge("pds_token_expiry_timestamp_seconds", &["token"],
        "When the service account token expires, Unix time; absent for a token that does not say");
    token_read: Gauges = Family::gauge("pds_token_last_read_successful", &["token"],
        "1 if the last read of the token file succeeded; otherwise the last good token stays in use");
    token_accepted: Gauges = Family::gauge("pds_token_accepted", &["token"],
        "0 while the service refuses the token (401), 1 once it has accepted it; absent before the first answer");
    range_honoured: Gauges = Family::gauge("pds_api_range_honoured", &["token"],
        "1 once a reply was about the range asked for, 0 while none is: check api.query_names; absent where replies state no range");
    pace: Gauges = Family::gauge("pds_api_pace_requests_per_second", &["token"],
        "Requests per second that this token sends at most after repeated 429s; absent while nothing slows it down");
    log_dropped: IntCounterVec = Family::counter("pds_exporter_log_lines_dropped_total", &[],
        "Log lines that were dropped, because nobody read the log or it could not be written");
    build_info: Gauges = Family::info("pds_exporter_build_info", &["version", "revision"],
        "The version of this exporter and the commit it was built from, if that is known");
    shard_info: Gauges = Family::info("pds_exporter_shard_info", &["index", "count"],
        "The part of the configured apps this exporter polls: --shard.index of --shard.count");
    shards: Gauges = Family::gauge("pds_exporter_shards", &[],
        "Number of exporters that share the configured apps");
    config_loaded: Gauges = Family::gauge("pds_exporter_config_last_reload_successful", &[],
        "1 if the last attempt to load the configuration succeeded; otherwise the previous one stays in force");
    config_loaded_time: Gauges = Family::gauge("pds_exporter_config_last_reload_success_timestamp_seconds", &[],
        "When the configuration in force was loaded, Unix time");
    web_config_loaded: Gauges = Family::gauge("pds_exporter_web_config_last_reload_successful", &[],
        "1 if the last read of the web configuration file succeeded; otherwise the last good one stays in force");
    targets: Gauges = Family::gauge("pds_exporter_targets", &[],
        "Number of polled targets: pairs of a resource and a project or app");
    poll_lag: Gauges = Family::gauge("pds_exporter_poll_lag_seconds", &[],
        "Delay between the due time and the start of the last poll; grows if the limits cannot carry the load");
    connections: Gauges = Family::gauge("pds_exporter_connections", &["state"],
        "Open connections of clients: active while a request is being answered, idle otherwise");
    loop_stall: HistogramVec = Family::histogram("pds_exporter_loop_stall_seconds", &[],
        "How late a timer of the serving thread fires, ten times a second; answers are delayed by as much");
    memory_budget: Gauges = Family::gauge("pds_exporter_memory_budget_bytes", &[],
        "Memory that clients, the service and Prometheus can make this exporter hold: a quarter of its cgroup's limit, 64 MiB at most");
    memory_budget_used: Gauges = Family::gauge("pds_exporter_memory_budget_used_bytes", &[],
        "How much of the memory budget connections, unread answers and replies in flight hold");
    panics: IntCounterVec = Family::counter("pds_exporter_panics_total", &[],
        "Panics because of a bug in the exporter; polls and pages other than the one concerned go on");
    state_committed: Gauges = Family::gauge("pds_exporter_state_last_commit_successful", &[],
        "1 if the last write to the state file succeeded; counters stand still while writes fail");
    state_restored: Gauges = Family::gauge("pds_exporter_state_last_restore_successful", &[],
        "1 once Prometheus (state.prometheus_url) has said where counters continue, 0 while some wait or it has no cursor of any");
}
