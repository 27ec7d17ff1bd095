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
use pds_interface::polled::Terms;
use pds_interface::{QueryNames, RangeEnd, Resolution, Resource, TimeRange};

section! {
    /// The whole configuration.
    pub struct Config {
        /// Patterns of files that hold further projects.
        include: Vec<String> = default(list(text()), "[]",
            "Files with further [[projects]], for example \"projects.d/*.toml\". Their paths are relative to this file, paths in them to their own folder."),
        /// How the service is reached.
        api: Api = inner,
        /// What is polled, and how often.
        poll: Poll = inner,
        /// Exact counters from consecutive ranges.
        accounting: Accounting = inner,
        /// How counters survive a restart.
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
            "The address of the service. May have a path, but no query and no credentials."),
        token: Option<TokenSource> = tokens(
            ("\"/run/secrets/pds/token\"",
                "A file that holds the service account token. It is read again whenever it changes. Excludes `token`."),
            "The token itself. Better set as PDS_EXPORTER__API__TOKEN than written here.",
        ),
        timeout: Duration = default(milliseconds(), "\"10s\"", "Time limit of a whole request, body included."),
        connect_timeout: Duration = default(milliseconds(), "\"3s\"",
            "Time limit of name lookup, TCP connect and TLS handshake."),
        max_concurrent_requests: NonZeroU32 = default(positive(10_000), "32",
            "Maximum number of requests in flight, over all targets."),
        max_requests_per_second: Option<NonZeroU32> = default(limit(1_000_000), "50",
            "Maximum number of requests per second, over all targets; 0 means no limit."),
        max_response_bytes: u64 = default(size(1 << 10, 1 << 30), "\"2MiB\"",
            "Maximum size of a reply; a larger one fails the poll."),
        max_retries: u32 = default(count(0, 10), "2",
            "How often a failed request is retried within one poll."),
        ca_file: Option<PathBuf> = default(empty_is_none(file()), "\"\"",
            "Additional trust anchors (PEM), for a service with a private certificate authority; empty means none."),
        proxy_url: Option<Url> = default(empty_is_none(http_url(None)), "\"\"",
            "The http or https proxy to the service; HTTPS_PROXY and the like are not used. Empty means none."),
        proxy_variables: Vec<String> = fixed(Vec::new()),
        domain_status_field: Option<String> = default(empty_is_none(text()), "\"\"",
            "The field of a custom domain with its validation status, which is not documented; empty means the first of validationStatus, validation_status, status and state."),
        query_names: QueryNames = inner,
    }
}

section! {
    for QueryNames {
        start: String = default(text(), "\"start\"",
            "Query parameter for the start of a range. The service does not document these names."),
        end: String = default(text(), "\"end\"", "Query parameter for the end of a range."),
        container: String = default(text(), "\"container_id\"", "Query parameter for the container filter."),
        resolution: String = default(text(), "\"resolution\"", "Query parameter for the data resolution."),
        key_name: String = default(text(), "\"name\"",
            "Query parameter for the name of a new API key. Only pdstool sends this one and those below."),
        key_description: String = default(text(), "\"description\"",
            "Query parameter for the description of a new API key."),
        key_expires_at: String = default(text(), "\"expiresAt\"",
            "Query parameter for the expiration date of a new API key."),
        tree_ref: String = default(text(), "\"ref\"", "Query parameter for the branch or commit of a file tree."),
        tree_path: String = default(text(), "\"path\"", "Query parameter for the directory of a file tree."),
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
            "What is polled. Without run_execution_time, an app costs about half the requests."),
        /// Between polls of response time and of run execution time.
        interval: Duration = default(seconds(), "\"60s\"",
            "How often response times and run execution times are polled."),
        /// Between polls of app, volume alerts, domains and projects.
        settings_interval: Duration = default(seconds(), "\"5m\"",
            "How often apps, volume alerts, domains and projects are polled."),
        /// Trailing ranges shown as gauges; at least one, each once, whole seconds.
        windows: Vec<Duration> = default(non_empty_list(seconds()), "[\"5m\"]",
            "Trailing ranges shown as gauges, in whole seconds. Each costs one more request per metrics call."),
        /// How far behind now every range ends.
        settle: Duration = default(seconds(), "\"30s\"",
            "How far behind now every range ends, so that it includes late data."),
        /// Data resolution of the metrics calls.
        resolution: Resolution = default(word(Resolution::WORDS), "\"standard\"",
            "How many data points the service returns: standard, medium or high."),
        /// Whether the share of each window's requests within each threshold has a series.
        within_ratio: bool = default(flag(), "true",
            "Whether pds_app_response_time_within_ratio is exposed. Nothing shipped needs it but a note in SLO alerts."),
        /// The thresholds of the distribution that are exposed; empty means all. Those of objectives are always kept.
        thresholds: Vec<Duration> = default(list(milliseconds()), "[]",
            "Thresholds of pds_app_request_duration_seconds and pds_app_response_time_within_ratio, for example [\"250ms\", \"1s\"]; those of objectives are always kept. Empty means all that the service sends."),
        /// After this time without a successful poll a target's series vanish (never before 3 intervals).
        stale_after: Duration = default(seconds(), "\"5m\"",
            "A target's series vanish after this time without a successful poll, but not before 3 of its intervals."),
    }
}

impl Config {
    /// What replies about `range` of `app` are read with.
    pub fn terms(&self, app: Option<&App>, range: Option<TimeRange>) -> Terms {
        let mut thresholds = self.poll.thresholds.clone();
        if !thresholds.is_empty() {
            thresholds.extend(app.and_then(|app| app.objective).map(|objective| objective.threshold));
        }
        Terms {
            range,
            domain_status: self.api.domain_status_field.clone(),
            thresholds: thresholds.iter().map(Duration::as_secs_f64).collect(),
            without_ratio: !self.poll.within_ratio,
        }
    }
}

const HOUR: u64 = 3600;

section! {
    /// `[accounting]`: exact counters.
    pub struct Accounting {
        /// Whether counters are kept.
        enabled: bool = default(flag(), "true", "Keep exact counters: ask for every second in exactly one range."),
        /// Ranges are aligned to whole steps of UTC; whole seconds that divide an hour.
        step: Duration = default(step(), "\"60s\"",
            "Ranges of the counters are aligned to this: whole seconds that divide an hour, or a day without recheck_after."),
        /// How far back to ask after an outage.
        max_catch_up: Duration = default(seconds(), "\"24h\"",
            "How far back to ask after an outage. Older time is counted as unaccounted."),
        /// The ages at which each whole hour is counted again; empty means never.
        recheck_after: Vec<Duration> = default(list(seconds()), "[\"1h\"]",
            "Each whole hour is counted again at these ages, and late data is added; [] never does."),
        /// Whether the service counts a range's last instant.
        range_end: RangeEnd = default(word(RangeEnd::WORDS), "\"exclusive\"",
            "Whether the service counts a range's last instant (inclusive), or the whole second it ends in (inclusive-second)."),
        /// Whether the service's replies are audited.
        audit: bool = default(flag(), "true",
            "About once an hour, compare an hour of each app with its two parts and with the counters."),
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
            && reach < step
        {
            let step = humantime::format_duration(step);
            table.position("max_catch_up").refuse::<()>(format!(
                "shorter than accounting.step, so nothing would be counted; must be at least {step}"
            ));
        }
    }
}

section! {
    /// `[web]`: links of the status pages to other programs.
    pub struct Web {
        /// The Prometheus that scrapes the exporter.
        prometheus_url: Option<Url> = default(empty_is_none(http_url(Some("a URL without them"))), "\"\"",
            "The Prometheus that scrapes this exporter: app pages link to its queries and to the app's alerts; empty means no links."),
        /// The Grafana with the exporter's dashboards.
        grafana_url: Option<Url> = default(empty_is_none(http_url(Some("a URL without them"))), "\"\"",
            "The Grafana with the dashboards of deploy/grafana: app pages link to the app there; empty means no links."),
        /// The service's own page of an app.
        service_url: Option<UrlTemplate> = default(empty_is_none(app_url()), "\"\"",
            "The service's own page of an app, with {project} and {app} in it; empty means no links."),
    }
}

section! {
    /// `[log]`: log messages.
    pub struct Log {
        /// Minimum severity; `None` follows the command line.
        level: Option<Level> = default(word(Level::WORDS), "\"\"",
            "Minimum severity of log messages: error, warn, info, debug or trace; empty follows --log.level."),
    }
}
