//! The table of causes: one row per problem, with its remedy. Status pages, `/api/v1/status`, `pdstool`, the log, the
//! runbooks and `docs/troubleshooting.md` read this table.
//!
//! `/api/v1/status` and the overview's `?reason=` carry the code, which is public and does not change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pds_core::worded! {
    /// The verdict on an app and its numbers, most severe first.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict {
        /// Something is missing or wrong.
        Problem = "problem",
        /// Something needs attention.
        Warning = "warning",
        /// Not every resource has been polled yet.
        #[default]
        Waiting = "waiting",
        /// No problem or warning.
        Ok = "ok",
    }
}

/// The two questions: can the numbers be trusted, and are the apps healthy?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The numbers.
    #[default]
    Numbers,
    /// The apps themselves; their numbers are good.
    Apps,
}

/// The part at fault, which decides what else a cause stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The service.
    Service,
    /// The way to the service.
    Network,
    /// The proxy on the way to the service.
    Proxy,
    /// A service account.
    Token,
    /// A single reply, app or project: the service answers.
    Target,
    /// The exporter itself.
    Exporter,
    /// None: it ends with the cause that it follows from.
    Consequence,
}

impl Scope {
    /// Whether it affects all service accounts.
    pub fn is_of_service(self) -> bool {
        matches!(self, Self::Service | Self::Network | Self::Proxy)
    }
}

/// A cause of a verdict other than `ok`.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its code.
    pub code: &'static str,
    /// The question that it answers with no.
    pub about: About,
    /// The verdict it leads to.
    pub verdict: Verdict,
    /// The part at fault.
    pub scope: Scope,
    /// The error classes of polls that it explains.
    pub classes: &'static [&'static str],
    /// The problem as a clause; `{token}` stands for the service account's token.
    pub says: &'static str,
    /// The remedy as a sentence; `{file}` stands for the place of the token, `{then}` for how the exporter gets a new
    /// token.
    pub remedy: &'static str,
    /// The page with details, for a cause that stops neither apps nor projects.
    pub page: &'static str,
}

/// Declares each cause once: as a constant of its own, and in [`ALL`] in this order.
macro_rules! causes {
    ($($name:ident $code:literal $about:ident $verdict:ident $scope:ident [$($class:literal)*] $says:literal $remedy:literal $(=> $page:literal)?)*) => {
        $(#[doc = $says] pub static $name: Cause = Cause {
            code: $code, about: About::$about, verdict: Verdict::$verdict, scope: Scope::$scope,
            classes: &[$($class),*], says: $says, remedy: $remedy, page: [$($page,)? "/config"][0],
        };)*

        /// All causes: those of a verdict in the order in which they are reported.
        pub static ALL: &[&Cause] = &[$(&$name),*];
    };
}

causes! {
    NO_APPS "no_apps" Numbers Warning Exporter []
        "no apps are configured"
        "Add the apps to [[projects]] in the configuration and reload."
    WRONG_ADDRESS "wrong_address" Numbers Problem Service ["address"]
        "the service is not at api.base_url, which returns no list of projects"
        "Set api.base_url to the part of the service's URLs before /v2."
    PROXY_DOWN "proxy_down" Numbers Problem Proxy ["proxy_connect"]
        "the proxy cannot be reached, or cannot reach the service"
        "Check host, port and scheme in api.proxy_url, and the proxy itself; if there is no proxy, leave the key empty."
    PROXY_TLS "proxy_tls" Numbers Problem Proxy ["proxy_tls"]
        "the TLS connection to the proxy fails"
        "Correct scheme and name in api.proxy_url, renew the proxy's certificate, or set api.ca_file."
    PROXY_LOGIN "proxy_login" Numbers Problem Proxy ["proxy_login" "407"]
        "the proxy requires a login"
        "Write user and password into api.proxy_url: http://user:password@proxy:3128."
    PROXY_REFUSES "proxy_refuses" Numbers Problem Proxy ["proxy_refuses"]
        "the proxy refuses a tunnel to the service"
        "Check the proxy's log: the proxy must speak HTTP, and allow and reach the host of api.base_url. If no proxy is needed, leave api.proxy_url empty."
    NAME_UNKNOWN "name_unknown" Numbers Problem Network ["dns"]
        "the service's name cannot be resolved"
        "Check the name in api.base_url, and this machine's DNS (/etc/resolv.conf)."
    CONNECTION_REFUSED "connection_refused" Numbers Problem Network ["connect_refused"]
        "nothing listens at the service's address"
        "Check host and port in api.base_url, and that the service runs."
    CONNECTION_SILENT "connection_silent" Numbers Problem Network ["connect_timeout"]
        "connecting to the service times out"
        "Check routes and firewalls between this machine and api.base_url; if a proxy is needed, set api.proxy_url."
    CERTIFICATE_EXPIRED "certificate_expired" Numbers Problem Network ["tls_expired"]
        "the service's certificate has expired"
        "Renew the service's certificate; if it is still valid, correct this machine's clock."
    CERTIFICATE_EARLY "certificate_early" Numbers Problem Network ["tls_not_yet_valid"]
        "the service's certificate is not valid yet"
        "Correct this machine's clock; if it is right, replace the service's certificate."
    CERTIFICATE_UNTRUSTED "certificate_untrusted" Numbers Problem Network ["tls_unknown_ca"]
        "the service's certificate is signed by an authority that is not trusted"
        "Set api.ca_file to a file with that authority's certificate."
    CERTIFICATE_SELF_SIGNED "certificate_self_signed" Numbers Problem Network ["tls_self_signed"]
        "the service's certificate is self-signed"
        "Set api.ca_file to a file with that certificate."
    CERTIFICATE_NAME "certificate_name" Numbers Problem Network ["tls_name"]
        "the service's certificate is for another name"
        "Set api.base_url to a name that the certificate covers."
    NO_TLS "no_tls" Numbers Problem Network ["tls_plain"]
        "the service's port does not speak TLS, but api.base_url says https"
        "Set api.base_url to the TLS port, or to http://, which exposes the token to the network."
    NO_HTTP "no_http" Numbers Problem Network ["protocol"]
        "the service's port does not speak plain HTTP"
        "Use https:// in api.base_url if the port speaks TLS; otherwise correct the port."
    TLS_FAILED "tls_failed" Numbers Problem Network ["tls"]
        "the TLS connection to the service fails"
        "Check the service's TLS, and firewalls that cut connections; if a proxy is needed, set api.proxy_url."
    SERVICE_DOWN "service_down" Numbers Problem Network ["connect"]
        "the service cannot be reached"
        "Check api.base_url, and the network between this machine and the service: connections fail or have no route."
    REPLY_CUT "reply_cut" Numbers Problem Service ["reset" "body"]
        "replies of the service break off"
        "Check the service, and the proxies and firewalls in front of it."
    SERVICE_SLOW "service_slow" Numbers Problem Service ["timeout" "408"]
        "requests to the service time out"
        "Check the service; if it is only slow, raise api.timeout."
    SERVICE_ERROR "service_error" Numbers Problem Service ["500" "501" "502" "503" "504" "5xx" "interim" "error_reply"]
        "the service returns errors"
        "Wait, or report it to the owner of the service; the exporter polls again at each interval."
    NOT_THE_SERVICE "not_the_service" Numbers Problem Service ["3xx"]
        "the service returns a redirect"
        "Use https:// in api.base_url if the redirect leads to https://; otherwise set api.base_url to the service itself, not to a login page."
    GATEWAY_REFUSES "gateway_refuses" Numbers Problem Service ["web_page"]
        "a web page answers instead of the service"
        "Check api.base_url, and the login, gateway or proxy in front of the service."
    THROTTLED "throttled" Numbers Problem Token ["429" "paused"]
        "the service throttles {token}"
        "Lower api.max_requests_per_second or poll less often; meanwhile the exporter slows down on its own."
    TOKEN_ELSEWHERE "token_elsewhere" Numbers Problem Token []
        "{token} may only read another project"
        "Set the project's own token, or correct the project's id."
    TOKEN_REFUSED "token_refused" Numbers Problem Token ["401" "unauthorized_paused"]
        "the service refuses {token}"
        "Create a new token in the service's dashboard and replace {file}; {then}."
    TOKEN_UNREADABLE "token_unreadable" Numbers Problem Token ["credentials"]
        "{token} cannot be used"
        "Write only the token into {file}, and let the exporter read it; {then}."
    TOKEN_EXPIRED "token_expired" Numbers Problem Token []
        "{token} expired"
        "Create a new token in the service's dashboard and replace {file}; {then}."
    TOKEN_EXPIRES_SOON "token_expires_soon" Numbers Warning Token []
        "{token} will expire"
        "Create a new token in the service's dashboard and replace {file} before then; {then}."
    RANGE_IGNORED "range_ignored" Numbers Problem Token ["range_ignored"]
        "the service ignores the requested ranges"
        "Run pdstool check service, add the lines for api.query_names that it prints to the configuration, and reload."
    RANGE_DIFFERS "range_differs" Numbers Problem Target ["refused"]
        "replies cannot be added to the counters"
        "Run pdstool check service, which names the key, if any; until then nothing is counted."
    AUDIT_DIFFERS "audit_differs" Numbers Problem Exporter []
        "an audit found ranges that do not add up"
        "Do what the audit advises." => "/metrics-catalogue#pds_audit_ranges_total"
    NO_REQUESTS "no_requests" Numbers Warning Service []
        "nearly all busy apps of a token suddenly have no requests"
        "Check the service's backend. Zeros are counted after ten minutes; late data is added."
    FORBIDDEN "forbidden" Numbers Problem Target ["403" "forbidden_paused"]
        "the token may not read this resource"
        "Let the service account read it, or set the project's token_file to the file of a token that may read it."
    NOT_FOUND "not_found" Numbers Problem Target ["404" "410"]
        "the service does not know the id"
        "Correct the id in the configuration, or remove it if it was deleted in the service. If the service knows none of the ids, correct api.base_url."
    CALL_MISSING "call_missing" Numbers Problem Target []
        "the service knows the id, but not the call"
        "Check api.base_url, and that the gateway in front of the service forwards the call."
    PAYMENT_REQUIRED "payment_required" Numbers Problem Target ["402"]
        "the service requires payment"
        "Pay, or change the plan."
    REPLY_TOO_LARGE "reply_too_large" Numbers Problem Target ["too_large"]
        "replies are too large"
        "Raise api.max_response_bytes if the replies are legitimate."
    REPLY_UNREADABLE "reply_unreadable" Numbers Problem Service ["decode"]
        "replies do not match the interface"
        "Check api.base_url, and look at the reply with pdstool call; if the address is right, report the reply to the service's owner."
    REQUEST_REFUSED "request_refused" Numbers Problem Target
        ["400" "405" "409" "422" "1xx" "4xx" "other" "identifier" "invalid"]
        "the service refuses the request"
        "Look at the reply with pdstool call; check the id and api.query_names."
    CLOCK_DISPUTED "clock_disputed" Numbers Problem Target ["unsettled" "clock"]
        "the clocks of the service and of this machine disagree about the requested time"
        "Check the service's Date header, proxies that set it, and the time on this machine; polls continue once the new time has advanced for a minute."
    CONFIG_REFUSED "config_refused" Numbers Warning Exporter []
        "the last reload of the configuration was refused"
        "Fix what pds-exporter --config.check reports, and reload; a new state.path needs a restart."
    WEB_CONFIG_REFUSED "web_config_refused" Numbers Warning Exporter []
        "the web configuration is refused; the last accepted one stays in force"
        "Fix what pdstool check web-config reports. If it reports nothing, restart the exporter to drop TLS or logins."
    STATE_NOT_WRITTEN "state_not_written" Numbers Problem Exporter []
        "the state file cannot be written"
        "Free disk space, or fix the permissions or the file system; nothing is counted until then."
    NOT_RESTORED "not_restored" Numbers Problem Exporter []
        "the cursors of counters cannot be read from Prometheus"
        "Check state.prometheus_url, its credentials, headers and selector, and that Prometheus itself is healthy; the exporter retries automatically."
    NO_CURSORS "no_cursors" Numbers Warning Exporter []
        "all counters began anew"
        "At the first start, wait for two scrapes. Otherwise every restart loses the time before it: check the tenant in state.prometheus_headers and state.prometheus_selector, and set honor_labels in the scrape job of the exporter."
    CLOCKS_DIFFER "clocks_differ" Numbers Warning Exporter []
        "the clocks of the service and of this machine differ"
        "Synchronise the clocks of this machine and of the service; the exporter uses the clock that is behind." => "/metrics-catalogue#pds_api_clock_skew_seconds"
    OVERLOADED "overloaded" Numbers Problem Exporter []
        "the configuration needs more requests than api.max_requests_per_second allows"
        "Raise api.max_requests_per_second, poll less often, or shard."
    POLLS_LATE "polls_late" Numbers Warning Exporter []
        "polls start late"
        "Raise api.max_requests_per_second or api.max_concurrent_requests, poll less often, or shard."
    UNEXPECTED_VALUES "unexpected_values" Numbers Warning Exporter []
        "values violate the interface"
        "Inspect the reply with pdstool call; invalid values count as missing." => "/metrics-catalogue#pds_api_unexpected_values_total"
    PANICKED "panicked" Numbers Warning Exporter ["panic"]
        "a part of the exporter panicked within the last hour"
        "Report the log line of the panic; only the poll or page concerned failed." => "/metrics-catalogue#pds_exporter_panics_total"
    COUNTERS_AHEAD "counters_ahead" Numbers Problem Target []
        "counters stand still, because a clock was set back or poll.settle was raised"
        "Check this machine's clock and the service's, unless poll.settle was raised."
    COUNTERS_BEHIND "counters_behind" Numbers Problem Consequence []
        "counters are catching up"
        "Wait: the next polls request the missing time, and the counters return once they have caught up."
    RESOURCE_STALE "resource_stale" Numbers Problem Consequence []
        "the last reply is too old to be shown"
        "Wait for the next poll; if this persists, check pds_exporter_poll_lag_seconds."
    APP_STATUS "app_status" Apps Problem Target []
        "the app's status is an error"
        "Check the app in the service's dashboard."
    APP_ERROR "app_error" Apps Warning Target []
        "the service reports an error"
        "Check the app and its logs in the service's dashboard."
    BUILD_FAILED "build_failed" Apps Warning Target []
        "the last build failed"
        "Check the app's last build in the service's dashboard."
    OBJECTIVE_UNKNOWN "objective_unknown" Numbers Warning Target []
        "no reply has the objective's threshold"
        "Set the threshold to an `le` value of pds_app_request_duration_seconds."
    RESOURCE_LATE "resource_late" Numbers Warning Consequence []
        "the next poll is overdue"
        "Wait for the next poll; if this persists, check pds_exporter_poll_lag_seconds."
    COUNTERS_WAIT "counters_wait" Numbers Waiting Exporter []
        "counters wait until the time is certain"
        "Wait a minute; if this persists, check the time on this machine and the service's Date header."
    RESTORING "restoring" Numbers Waiting Exporter []
        "the exporter is reading the cursors of counters from Prometheus"
        "Wait until Prometheus has answered and has scraped this process, or until another shard has stopped counting; if this persists, check state.prometheus_url, headers and selector."
    ANSWERED_SINCE "answered_since" Numbers Waiting Consequence ["answered_since"]
        "waiting to be polled again after failures"
        "Wait for the next polls."
    WAITING "waiting" Numbers Waiting Consequence []
        "not polled yet"
        "Wait for the first polls."
}

impl Cause {
    /// The cause of polls that fail with this class.
    pub fn of_class(class: &str) -> &'static Self {
        ALL.iter().find(|cause| cause.classes.contains(&class)).copied().unwrap_or(&REQUEST_REFUSED)
    }

    /// The cause of polls that fail with this class. A wrong address knows no id, the right one may lack the list of
    /// projects, and a token that is for another project or `has_expired` may read nothing.
    pub fn within(
        class: &str,
        at_wrong_address: bool,
        with_other_token: bool,
        has_expired: impl FnOnce() -> bool,
    ) -> &'static Self {
        match Self::of_class(class) {
            cause if *cause == NOT_FOUND && at_wrong_address => &WRONG_ADDRESS,
            cause if *cause == WRONG_ADDRESS && !at_wrong_address => &CALL_MISSING,
            cause if [&NOT_FOUND, &FORBIDDEN, &TOKEN_REFUSED].contains(&cause) && with_other_token => {
                &TOKEN_ELSEWHERE
            }
            cause if *cause == TOKEN_REFUSED && has_expired() => &TOKEN_EXPIRED,
            cause => cause,
        }
    }

    /// Whether it may stop all requests of a service account, and the next one does no harm.
    pub fn stops_account(&self) -> bool {
        self.scope.is_of_service() || [&TOKEN_REFUSED, &TOKEN_UNREADABLE].contains(&self)
    }

    /// Whether an answer to any request of the service account shows that it has ended.
    pub fn ends_with_an_answer(&self) -> bool {
        self.stops_account() && self.scope != Scope::Service
    }

    /// The cause for a token that expires in this many seconds, if within a week. An accepted one has not expired.
    pub fn of_expiry(seconds: i64, is_accepted: bool) -> Option<&'static Self> {
        match seconds {
            ..=0 if !is_accepted => Some(&TOKEN_EXPIRED),
            ..604_800 => Some(&TOKEN_EXPIRES_SOON),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_words_and_remedies_are_sentences() {
        let codes: HashSet<_> = ALL.iter().map(|cause| cause.code).collect();
        assert_eq!(codes.len(), ALL.len());
        for cause in ALL {
            assert!(cause.code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", cause.code);
            assert!(cause.remedy.ends_with('.') && cause.verdict != Verdict::Ok, "{}", cause.code);
            assert!(
                !cause.says.ends_with('.') && !cause.says.starts_with(char::is_uppercase),
                "{}",
                cause.code
            );
        }
    }
}
