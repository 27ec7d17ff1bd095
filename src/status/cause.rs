//! The causes of a verdict other than `ok`: a code for scripts, the severity, and what to do about it.
//!
//! The code is what `/api/v1/status` and the overview's `?reason=` carry; it is public and does not change. The
//! action is the first step of the runbook for the same problem.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::verdict::{About, Verdict};

/// A cause of a verdict other than `ok`.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its code.
    pub code: &'static str,
    /// Which question it answers with no.
    pub about: About,
    /// The verdict it leads to.
    pub verdict: Verdict,
    /// What to do about it: one sentence.
    pub action: &'static str,
}

/// Declares each cause once: as a constant of its own, and in [`ALL`] in this order.
macro_rules! causes {
    ($($name:ident $code:literal $about:ident $verdict:ident $action:literal)*) => {
        $(pub(super) static $name: Cause = Cause { code: $code, about: About::$about, verdict: Verdict::$verdict, action: $action };)*

        /// All causes, most severe of a kind first.
        pub static ALL: &[&Cause] = &[$(&$name),*];
    };
}

causes! {
    NO_APPS "no_apps" Numbers Warning
        "Add the apps to [[projects]] in the configuration and reload."
    SERVICE_DOWN "service_down" Numbers Problem
        "Check api.base_url, DNS, the network and the service itself; pdstool check token sends one request of each kind."
    TOKEN_REFUSED "token_refused" Numbers Problem
        "Create a new token in the service's dashboard and replace the token file; the exporter rereads it automatically."
    TOKEN_UNREADABLE "token_unreadable" Numbers Problem
        "Make the token file readable by the exporter, which rereads it automatically."
    TOKEN_EXPIRED "token_expired" Numbers Problem
        "Create a new token in the service's dashboard and replace the token file; the exporter rereads it automatically."
    TOKEN_EXPIRES_SOON "token_expires_soon" Numbers Warning
        "Create a new token in the service's dashboard and replace the token file before then."
    RANGE_IGNORED "range_ignored" Numbers Problem
        "Run pdstool check service --write, which finds the names for api.query_names and writes them into the configuration, and reload."
    THROTTLED "throttled" Numbers Problem
        "Lower api.max_requests_per_second or poll less often; meanwhile the exporter slows down on its own."
    CONFIG_REFUSED "config_refused" Numbers Problem
        "Run pds-exporter --config.check, fix what it reports, and reload; the previous configuration stays active."
    WEB_CONFIG_REFUSED "web_config_refused" Numbers Problem
        "Run pdstool check web-config on the file and fix what it reports; the exporter rereads it automatically."
    STATE_NOT_WRITTEN "state_not_written" Numbers Problem
        "Free disk space for the state file, or fix its permissions; nothing is counted until it can be written."
    NOT_RESTORED "not_restored" Numbers Problem
        "Check state.prometheus_url, its credentials, headers and selector, and that Prometheus itself is healthy; the exporter retries automatically."
    CLOCKS_DIFFER "clocks_differ" Numbers Warning
        "Check time synchronisation on this machine; the exporter goes by the clock that is behind."
    POLLS_LATE "polls_late" Numbers Warning
        "Raise api.max_requests_per_second or api.max_concurrent_requests, poll less often, or shard."
    UNEXPECTED_VALUES "unexpected_values" Numbers Warning
        "Inspect the reply with pdstool call; values that make no sense count as missing."
    PANICKED "panicked" Numbers Warning
        "Report the log line of the panic; the target is polled again at its next interval."
    RESOURCE_STALE "resource_stale" Numbers Problem
        "Check the failing polls; the series are gone from /metrics until a poll succeeds."
    RESOURCE_FAILING "resource_failing" Numbers Problem
        "Check the failing polls; the last values stay on /metrics until they are stale."
    COUNTERS_BEHIND "counters_behind" Numbers Problem
        "Wait: the next polls request the missing time, and the counters return once they have caught up."
    COUNTERS_AHEAD "counters_ahead" Numbers Problem
        "Check the clocks of this machine and of the service: one of them was set back."
    APP_STATUS "app_status" Apps Problem
        "Check the app in the service's dashboard."
    APP_ERROR "app_error" Apps Warning
        "Read the error message on the app's page."
    BUILD_FAILED "build_failed" Apps Warning
        "Check the app's last build in the service's dashboard."
    RESOURCE_LATE "resource_late" Numbers Warning
        "Wait for the next poll; if this persists, check pds_exporter_poll_lag_seconds."
    RESTORING "restoring" Numbers Waiting
        "Wait until Prometheus has answered and has scraped this process; if this persists, check state.prometheus_url, headers and selector."
    WAITING "waiting" Numbers Waiting
        "Wait for the first polls."
}

/// What is found of an app.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The verdict on it and its numbers.
    pub(super) verdict: Verdict,
    /// The app's own state, whatever its numbers; waiting while it is not known.
    pub(super) state: Verdict,
    /// Most severe first.
    pub(super) problems: Vec<Problem>,
}

/// A problem of an app or a project. In JSON it is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its cause.
    pub cause: &'static Cause,
    /// The problem in words.
    pub text: String,
    /// The same without details of the app, so that apps with the same problem can be grouped.
    pub(super) summary: String,
}

/// Stands for the cause of a problem that was read as text.
static UNKNOWN: Cause = Cause { code: "", about: About::Numbers, verdict: Verdict::Problem, action: "" };

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from_text)
    }
}

impl Problem {
    /// A problem of which only the text is known.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self { cause: &UNKNOWN, text, summary: String::new() }
    }
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
