//! The causes of a verdict other than `ok`: a code for scripts, how grave it is, and what to do about it.
//!
//! The code is what `/api/v1/status` and the overview's `?reason=` carry; it is public and does not change. The
//! action is the first step of the runbook of the same trouble.

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

        /// All causes, the gravest of a kind first.
        pub static ALL: &[&Cause] = &[$(&$name),*];
    };
}

causes! {
    NO_APPS "no_apps" Warning
        "Add the apps to [[projects]] in the configuration and reload."
    SERVICE_DOWN "service_down" Problem
        "Check api.base_url, DNS, the network and the service itself; pdstool check token makes one request of each kind."
    TOKEN_REFUSED "token_refused" Problem
        "Create a new token in the service's dashboard and replace the token file; it is read again by itself."
    TOKEN_UNREADABLE "token_unreadable" Problem
        "Make the token file readable for the exporter; it is read again by itself."
    TOKEN_EXPIRED "token_expired" Problem
        "Create a new token in the service's dashboard and replace the token file; it is read again by itself."
    TOKEN_EXPIRES_SOON "token_expires_soon" Warning
        "Create a new token in the service's dashboard and replace the token file before then."
    THROTTLED "throttled" Problem
        "Lower api.max_requests_per_second, or poll less often; the exporter slows down by itself meanwhile."
    CONFIG_REFUSED "config_refused" Problem
        "Run pds-exporter --config.check, mend what it names, and reload; the former configuration stays in force."
    WEB_CONFIG_REFUSED "web_config_refused" Problem
        "Run pdstool check web-config on the file and mend what it names; it is read again by itself."
    STATE_NOT_WRITTEN "state_not_written" Problem
        "Free space on the disk of the state file, or mend its permissions; nothing is counted until it can be written."
    NOT_RESTORED "not_restored" Problem
        "Check state.prometheus_url, its credentials, headers and selector, and that Prometheus itself is well; it is asked again by itself."
    CLOCKS_DIFFER "clocks_differ" Warning
        "Check time synchronisation on this machine; numbers go by the clock that is behind."
    POLLS_LATE "polls_late" Warning
        "Raise api.max_requests_per_second or api.max_concurrent_requests, poll less often, or shard."
    UNEXPECTED_VALUES "unexpected_values" Warning
        "Look at the reply with pdstool call; a value outside its meaning counts as missing."
    PANICKED "panicked" Warning
        "Report the log line of the panic; the target is polled again by itself."
    RESOURCE_STALE "resource_stale" Problem
        "Look at the failing polls; their series are gone from /metrics until a poll succeeds."
    RESOURCE_FAILING "resource_failing" Problem
        "Look at the failing polls; the last values stay on /metrics until they are stale."
    COUNTERS_BEHIND "counters_behind" Problem
        "Wait: the missing time is asked for by the next polls, and the counters return once they have caught up."
    COUNTERS_AHEAD "counters_ahead" Problem
        "Check the clocks of this machine and of the service: one of them was set back."
    APP_STATUS "app_status" Problem
        "Look at the app in the service's dashboard."
    APP_ERROR "app_error" Warning
        "Look at the error message on the app's page."
    BUILD_FAILED "build_failed" Warning
        "Look at the app's last build in the service's dashboard."
    RESOURCE_LATE "resource_late" Warning
        "Wait for the next poll; if it stays, see pds_exporter_poll_lag_seconds."
    RESTORING "restoring" Waiting
        "Wait until Prometheus has answered and has scraped this process; if that stays, check state.prometheus_url, headers and selector."
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
