//! The sections `[api]`, `[poll]`, `[accounting]`, `[web]` and `[log]`: a row is a key.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::Level;
use super::projects::{App, Project, projects};
use super::reader::{
    count, empty_is_none, file, flag, limit, list, milliseconds, non_empty_list, positive, resource, seconds,
    size, step, text, word,
};
use super::section::{default, fixed, inner, required, section, tokens};
use super::shard::Shard;
use super::state::State;
use super::url::{UrlTemplate, app_url, http_url};
use pds_client::{Config as Api, TokenSource};
use pds_core::units::as_seconds;
use pds_interface::polled::Terms;
use pds_interface::{QueryNames, RangeEnd, Resolution, Resource, TimeRange};

section! {
    /// The whole configuration.
    pub struct Config {
        /// Patterns of files that hold further projects.
        include: Vec<String> = default(list(text()), "[]",
            "Files with further [[projects]], such as \"projects.d/*.toml\", relative to this file. A path in such a file is relative to that file."),
        /// A sentence per pattern that matches no file.
        include_warnings: Vec<String> = fixed(Vec::new()),
        /// Access to the service.
        api: Api = inner,
        /// Polled resources and intervals.
        poll: Poll = inner,
        /// Exact counters from consecutive ranges.
        accounting: Accounting = inner,
        /// Persistence of counters over a restart.
        state: State = inner,
        /// Links of the status pages to other programs.
        web: Web = inner,
        /// Log messages.
        log: Log = inner,
        /// The projects, without duplicates.
        projects: Vec<Project> = projects,
        /// The shard that these projects belong to.
        shard: Shard = fixed(Shard::WHOLE),
    }
}

section! {
    for Api {
        base_url: Url = required(http_url(Some("token_file")), "\"https://api.example.com\"",
            "The service's address, without query or credentials. May have a path."),
        token: Option<TokenSource> = tokens(
            ("\"/run/secrets/pds/token\"",
                "File with the service account token, reread when it changes. Not together with `token`."),
            "The token itself. Prefer PDS_EXPORTER__API__TOKEN.",
        ),
        timeout: Duration = default(milliseconds(), "\"10s\"", "Time limit of a request, body included."),
        connect_timeout: Duration = default(milliseconds(), "\"3s\"",
            "Time limit of name lookup, TCP connect and TLS handshake."),
        max_concurrent_requests: NonZeroU32 = default(positive(10_000), "32",
            "Maximum requests in flight, over all targets."),
        max_requests_per_second: Option<NonZeroU32> = default(limit(1_000_000), "50",
            "Maximum requests per second, over all targets; 0 means no limit."),
        max_response_bytes: u64 = default(size(1 << 10, 1 << 30), "\"2MiB\"",
            "Maximum size of a reply; a larger one fails the poll."),
        max_retries: u32 = default(count(0, 10), "2",
            "Maximum retries of a request within one poll."),
        ca_file: Option<PathBuf> = default(empty_is_none(file()), "\"\"",
            "Additional CA certificates (PEM) for the service."),
        proxy_url: Option<Url> = default(empty_is_none(http_url(None)), "\"\"",
            "HTTP or HTTPS proxy to the service. HTTP_PROXY and HTTPS_PROXY are ignored."),
        proxy_variables: Vec<String> = fixed(Vec::new()),
        domain_status_field: Option<String> = default(empty_is_none(text()), "\"\"",
            "Undocumented field with the validation status of a custom domain. Empty means the first of validationStatus, validation_status, status, state."),
        query_names: QueryNames = inner,
    }
}

section! {
    for QueryNames {
        start: String = default(text(), "\"start\"",
            "Parameter for the start of a range. The service does not document these names."),
        end: String = default(text(), "\"end\"", "Parameter for the end of a range."),
        container: String = default(text(), "\"container_id\"", "Parameter for the container filter."),
        resolution: String = default(text(), "\"resolution\"", "Parameter for the data resolution."),
        key_name: String = default(text(), "\"name\"",
            "Parameter for the name of a new API key. Only pdstool uses this key and those below."),
        key_description: String = default(text(), "\"description\"",
            "Parameter for the description of a new API key."),
        key_expires_at: String = default(text(), "\"expiresAt\"",
            "Parameter for the expiration date of a new API key."),
        tree_ref: String = default(text(), "\"ref\"", "Parameter for the branch or commit of a file tree."),
        tree_path: String = default(text(), "\"path\"", "Parameter for the directory of a file tree."),
    }
    check(table) {
        // Names in the same list are used in the same URL.
        for names in [
            &[("start", &start), ("end", &end), ("container", &container), ("resolution", &resolution)][..],
            &[("key_name", &key_name), ("key_description", &key_description), ("key_expires_at", &key_expires_at)],
            &[("tree_ref", &tree_ref), ("tree_path", &tree_path)],
        ] {
            for (index, (key, name)) in names.iter().enumerate() {
                let same = names.iter().take(index).find(|(_, other)| name.is_some() && other == name);
                if let Some((other, _)) = same {
                    table.position(key).refuse::<()>(format!("duplicate of {other}; use a different name for each"));
                }
            }
        }
    }
}

section! {
    /// `[poll]`: what is polled, and how often.
    pub struct Poll {
        /// The polled resources; not empty, without duplicates.
        resources: Vec<Resource> = default(non_empty_list(resource()),
            Resource::all_as_toml(),
            "Polled resources. run_execution_time costs as many requests as response_time."),
        /// Between polls of response time and of run execution time.
        interval: Duration = default(seconds(), "\"60s\"",
            "Poll interval of response times and run execution times."),
        /// Between polls of the other resources.
        settings_interval: Duration = default(seconds(), "\"5m\"",
            "Poll interval of the other resources."),
        /// Trailing ranges shown as gauges; at least one, each once, whole seconds.
        windows: Vec<Duration> = default(non_empty_list(seconds()), "[\"5m\"]",
            "Trailing ranges shown as gauges. Each costs a request per metrics call."),
        /// How far behind now every range ends.
        settle: Duration = default(seconds(), "\"30s\"",
            "Every range ends this long before now, because data arrives late."),
        /// Data resolution of the metrics calls.
        resolution: Resolution = default(word(Resolution::ALL.map(|it| (it.as_str(), it))), "\"standard\"",
            "Number of datapoints that the service returns."),
        /// Whether the share of each window's requests within each threshold has a series.
        within_ratio: bool = default(flag(), "true",
            "Whether pds_app_response_time_within_ratio is exposed. Only a note in SLO alerts reads it."),
        /// The thresholds of the distribution that are exposed; empty means all. Those of objectives are always kept.
        thresholds: Vec<Duration> = default(list(milliseconds()), "[]",
            "Exposed thresholds of pds_app_request_duration_seconds and pds_app_response_time_within_ratio, such as [\"250ms\", \"1s\"], besides those of objectives. Empty means all."),
        /// After this time without a successful poll a target's series vanish (never before 3 intervals).
        stale_after: Duration = default(seconds(), "\"5m\"",
            "A target's series vanish this long, or 3 intervals if longer, after its last successful poll."),
    }
}

impl Config {
    /// Terms for reading replies about `range` of `app`, but for its ids.
    pub fn terms(&self, app: Option<&App>, range: Option<TimeRange>) -> Terms {
        let mut thresholds = self.poll.thresholds.clone();
        if !thresholds.is_empty() {
            thresholds.extend(app.and_then(|app| app.objective).map(|objective| objective.threshold));
        }
        Terms {
            range,
            domain_status: self.api.domain_status_field.clone(),
            thresholds: thresholds.into_iter().map(as_seconds).collect(),
            without_ratio: !self.poll.within_ratio,
            ..Terms::default()
        }
    }
}

const HOUR: u64 = 3600;

section! {
    /// `[accounting]`: exact counters.
    pub struct Accounting {
        /// Whether counters are kept.
        enabled: bool = default(flag(), "true", "Keep exact counters: every second is in exactly one range."),
        /// Whole seconds that divide an hour, or a day if `recheck_after` is empty.
        step: Duration = default(step(), "\"60s\"",
            "Length to which counted ranges are aligned. Must divide an hour, or a day if recheck_after is empty."),
        /// How far back requests go after an outage.
        max_catch_up: Duration = default(seconds(), "\"24h\"",
            "How far counters catch up after an outage. Older time is given up."),
        /// The ages at which each whole hour is counted again; empty means never.
        recheck_after: Vec<Duration> = default(list(seconds()), "[\"1h\"]",
            "Each whole hour is counted again at these ages, to add late data. [] means never."),
        /// Whether the service counts a range's last instant.
        range_end: RangeEnd = default(word(RangeEnd::ALL.map(|it| (it.as_str(), it))), "\"exclusive\"",
            "Whether the service counts the last instant of a range (inclusive) or its last whole second (inclusive-second)."),
        /// Whether the service's replies are audited.
        audit: bool = default(flag(), "true",
            "Compare an hour of each app with its two parts and the counters, at most once an hour."),
    }
    check(table) {
        if let (Some(step), Some(ages)) = (step, &recheck_after)
            && !ages.is_empty()
            && !HOUR.is_multiple_of(step.as_secs())
        {
            table.position("step").refuse::<()>(
                "does not divide an hour, so hours cannot be counted again; use for example \"60s\" or \"5m\", or set accounting.recheck_after = []",
            );
        }
        if let (Some(step), Some(reach)) = (step, max_catch_up)
            && reach < 2 * step
        {
            // The newest step has settled for a while when it is requested.
            let least = humantime::format_duration(2 * step);
            table.position("max_catch_up").refuse::<()>(format!(
                "shorter than twice accounting.step, so nothing would be counted; must be at least {least}"
            ));
        }
    }
}

section! {
    /// `[web]`: links of the status pages to other programs.
    pub struct Web {
        /// The Prometheus that scrapes the exporter.
        prometheus_url: Option<Url> = default(empty_is_none(http_url(Some("a URL without them"))), "\"\"",
            "Prometheus that scrapes this exporter. App pages link to its queries and alerts."),
        /// The Grafana with the exporter's dashboards.
        grafana_url: Option<Url> = default(empty_is_none(http_url(Some("a URL without them"))), "\"\"",
            "Grafana with the dashboards of deploy/grafana. App pages link to it."),
        /// The service's own page of an app.
        service_url: Option<UrlTemplate> = default(empty_is_none(app_url()), "\"\"",
            "The service's own page of an app, with {project} and {app}. App pages link to it."),
    }
}

section! {
    /// `[log]`: log messages.
    pub struct Log {
        /// Minimum severity; `None` follows the command line.
        level: Option<Level> = default(word(levels()), "\"\"",
            "Minimum severity of log messages; empty follows --log.level."),
    }
}

/// The words of `log.level`; empty leaves it to the command line.
fn levels() -> Vec<(&'static str, Option<Level>)> {
    [("", None)].into_iter().chain(Level::ALL.map(|it| (it.as_str(), Some(it)))).collect()
}
