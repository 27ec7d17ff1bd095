//! The causes of a verdict other than `ok`: a code for scripts, the severity, and what to do about it.
//!
//! The code is what `/api/v1/status` and the overview's `?reason=` carry; it is public and does not change. The
//! action is the first step of the runbook for the same problem.

use super::verdict::Verdict;

/// A cause of a verdict other than `ok`.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its code.
    pub code: &'static str,
    /// The verdict it leads to.
    pub verdict: Verdict,
    /// What to do about it: one sentence.
    pub action: &'static str,
}

/// Declares each cause once: as a constant of its own, and in [`ALL`] in this order.
macro_rules! causes {
    ($($name:ident $code:literal $verdict:ident $action:literal)*) => {
        $(pub(super) static $name: Cause = Cause { code: $code, verdict: Verdict::$verdict, action: $action };)*

        /// All causes, most severe of a kind first.
        pub static ALL: &[&Cause] = &[$(&$name),*];
    };
}

causes! {
    NO_APPS "no_apps" Warning
        "Add the apps to [[projects]] in the configuration and reload."
    SERVICE_DOWN "service_down" Problem
        "Check api.base_url, DNS, the network and the service itself; pdstool check token sends one request of each kind."
    TOKEN_REFUSED "token_refused" Problem
        "Create a new token in the service's dashboard and replace the token file; the exporter rereads it automatically."
    TOKEN_UNREADABLE "token_unreadable" Problem
        "Make the token file readable by the exporter, which rereads it automatically."
    TOKEN_EXPIRED "token_expired" Problem
        "Create a new token in the service's dashboard and replace the token file; the exporter rereads it automatically."
    TOKEN_EXPIRES_SOON "token_expires_soon" Warning
        "Create a new token in the service's dashboard and replace the token file before then."
    THROTTLED "throttled" Problem
        "Lower api.max_requests_per_second or poll less often; meanwhile the exporter slows down on its own."
    CONFIG_REFUSED "config_refused" Problem
        "Run pds-exporter --config.check, fix what it reports, and reload; the previous configuration stays active."
    WEB_CONFIG_REFUSED "web_config_refused" Problem
        "Run pdstool check web-config on the file and fix what it reports; the exporter rereads it automatically."
    STATE_NOT_WRITTEN "state_not_written" Problem
        "Free disk space for the state file, or fix its permissions; nothing is counted until it can be written."
    NOT_RESTORED "not_restored" Problem
        "Check state.prometheus_url, its credentials, headers and selector, and that Prometheus itself is healthy; the exporter retries automatically."
    CLOCKS_DIFFER "clocks_differ" Warning
        "Check time synchronisation on this machine; the exporter goes by the clock that is behind."
    POLLS_LATE "polls_late" Warning
        "Raise api.max_requests_per_second or api.max_concurrent_requests, poll less often, or shard."
    UNEXPECTED_VALUES "unexpected_values" Warning
        "Inspect the reply with pdstool call; values that make no sense count as missing."
    PANICKED "panicked" Warning
        "Report the log line of the panic; the target is polled again at its next interval."
    RESOURCE_STALE "resource_stale" Problem
        "Check the failing polls; the series are gone from /metrics until a poll succeeds."
    RESOURCE_FAILING "resource_failing" Problem
        "Check the failing polls; the last values stay on /metrics until they are stale."
    COUNTERS_BEHIND "counters_behind" Problem
        "Wait: the next polls request the missing time, and the counters return once they have caught up."
    COUNTERS_AHEAD "counters_ahead" Problem
        "Check the clocks of this machine and of the service: one of them was set back."
    APP_STATUS "app_status" Problem
        "Check the app in the service's dashboard."
    APP_ERROR "app_error" Warning
        "Read the error message on the app's page."
    BUILD_FAILED "build_failed" Warning
        "Check the app's last build in the service's dashboard."
    RESOURCE_LATE "resource_late" Warning
        "Wait for the next poll; if this persists, check pds_exporter_poll_lag_seconds."
    RESTORING "restoring" Waiting
        "Wait until Prometheus has answered and has scraped this process; if this persists, check state.prometheus_url, headers and selector."
    WAITING "waiting" Waiting
        "Wait for the first polls."
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_words_and_actions_are_sentences() {
        let codes: HashSet<_> = ALL.iter().map(|cause| cause.code).collect();
        assert_eq!(codes.len(), ALL.len());
        for cause in ALL {
            assert!(cause.code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", cause.code);
            assert!(cause.action.ends_with('.') && cause.verdict != Verdict::Ok, "{}", cause.code);
        }
    }
}
