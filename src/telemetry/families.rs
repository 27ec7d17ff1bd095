//! The families of the exporter's own metrics.

use crate::catalogue::Family;

pub(super) const API_REQUESTS: Family = Family::counter(
    "pds_api_requests_total",
    &["resource", "code"],
    "Requests to the service, by HTTP status or class of failure; those of class credentials, unauthorized_paused, paused and invalid were not sent",
);
pub(super) const API_DURATION: Family = Family::histogram(
    "pds_api_request_duration_seconds",
    &["resource"],
    "Time from sending a request to having read its reply",
);
pub(super) const API_RETRIES: Family =
    Family::counter("pds_api_retries_total", &["resource"], "Requests that were sent again inside one poll");
pub(super) const API_THROTTLED: Family = Family::counter(
    "pds_api_throttled_seconds_total",
    &["resource"],
    "Time requests waited for the configured rate or for a pause the service asked for",
);
pub(super) const UNEXPECTED: Family = Family::counter(
    "pds_api_unexpected_values_total",
    &["resource", "field"],
    "Values of replies that were not what the interface says and are shown as missing",
);
pub(super) const CLOCK_SKEW: Family = Family::gauge(
    "pds_api_clock_skew_seconds",
    &[],
    "The service's clock minus ours, from the Date header of its last reply",
);
pub(super) const TOKEN_EXPIRY: Family = Family::gauge(
    "pds_token_expiry_timestamp_seconds",
    &["token"],
    "When the service account token expires, Unix time; absent for a token that does not say",
);
pub(super) const TOKEN_READ: Family = Family::gauge(
    "pds_token_last_read_successful",
    &["token"],
    "1 where the token file could be read when it was last looked at; the last good token stays in use otherwise",
);
pub(super) const PACE: Family = Family::gauge(
    "pds_api_pace_requests_per_second",
    &["token"],
    "The pace to which a service account was slowed down by repeated 429s; absent while it is not",
);
pub(super) const BUILD_INFO: Family =
    Family::info("pds_exporter_build_info", &["version"], "The version of this exporter");
pub(super) const RELOAD_SUCCESSFUL: Family = Family::gauge(
    "pds_exporter_config_last_reload_successful",
    &[],
    "1 where the last attempt to load the configuration succeeded; the one before stays in force otherwise",
);
pub(super) const RELOAD_TIME: Family = Family::gauge(
    "pds_exporter_config_last_reload_success_timestamp_seconds",
    &[],
    "When the configuration in force was loaded, Unix time",
);
pub(super) const WEB_RELOAD_SUCCESSFUL: Family = Family::gauge(
    "pds_exporter_web_config_last_reload_successful",
    &[],
    "1 where the web configuration file could be read when it was last looked at; the last good one stays in force otherwise",
);
pub(super) const TARGETS: Family =
    Family::gauge("pds_exporter_targets", &[], "How many (resource, project or app) are polled");
pub(super) const POLL_LAG: Family = Family::gauge(
    "pds_exporter_poll_lag_seconds",
    &[],
    "How late the last poll began after it was due: large where the limits cannot carry the load",
);
pub(super) const PANICS: Family = Family::counter(
    "pds_exporter_panics_total",
    &[],
    "Polls that ended in a bug of the exporter and were contained",
);
pub(super) const STATE_COMMITTED: Family = Family::gauge(
    "pds_exporter_state_last_commit_successful",
    &[],
    "1 where the last write to the state file succeeded; counters stand still while it does not",
);

/// The families declared here, without those of the process.
pub const FAMILIES: &[Family] = &[
    API_REQUESTS,
    API_DURATION,
    API_RETRIES,
    API_THROTTLED,
    UNEXPECTED,
    CLOCK_SKEW,
    TOKEN_EXPIRY,
    TOKEN_READ,
    PACE,
    BUILD_INFO,
    RELOAD_SUCCESSFUL,
    RELOAD_TIME,
    WEB_RELOAD_SUCCESSFUL,
    TARGETS,
    POLL_LAG,
    PANICS,
    STATE_COMMITTED,
];

/// The families of the `prometheus` crate's process collector, as every exporter has them.
pub const PROCESS_FAMILIES: &[Family] = &[
    Family::counter("process_cpu_seconds_total", &[], "Total user and system CPU time spent in seconds."),
    Family::gauge("process_max_fds", &[], "Maximum number of open file descriptors."),
    Family::gauge("process_open_fds", &[], "Number of open file descriptors."),
    Family::gauge("process_resident_memory_bytes", &[], "Resident memory size in bytes."),
    Family::gauge(
        "process_start_time_seconds",
        &[],
        "Start time of the process since unix epoch in seconds.",
    ),
    Family::gauge("process_threads", &[], "Number of OS threads in the process."),
    Family::gauge("process_virtual_memory_bytes", &[], "Virtual memory size in bytes."),
];
