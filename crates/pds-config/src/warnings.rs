//! Warnings about settings that are valid but hardly intended.

use std::time::Duration;

use pds_client::{TokenSource, plain_http_warning, read_token};
use pds_core::error_chain::with_sources;
use pds_http::{BuildError, is_exposed_plaintext, tls_config};
use pds_ledger::restore::{Login, Prometheus};

use super::{App, Config, LoadError, Problem};

/// The longest time between steps of a counter at which rates over five minutes are right.
const MAX_PERIOD_OF_RATES: Duration = Duration::from_secs(120);

const QUARTER: Duration = Duration::from_secs(900);

impl Config {
    /// A sentence per setting that is valid but hardly intended.
    pub fn warnings(&self) -> Vec<String> {
        let overload = self.requests_per_minute().overload(&self.api).map(|set| {
            format!("the configuration needs more requests than api.max_requests_per_second allows: {set}")
        });
        let restore = self.state.prometheus.iter().flat_map(|prometheus| self.restore_warnings(prometheus));
        let api = overload.into_iter().chain(self.base_url_warning()).chain(self.proxy_warning());
        let included = self.include_warnings.iter().cloned();
        api.chain(included).chain(self.rate_warning()).chain(restore).collect()
    }

    /// The [`warnings`](Self::warnings), plain HTTP, and the tokens that cannot be used. These are no errors: a token may
    /// appear later, or be readable only where the daemon runs.
    pub fn check_warnings(&self) -> impl Iterator<Item = String> {
        let warnings = plain_http_warning(&self.api.base_url).into_iter().chain(self.warnings());
        warnings.chain(self.unusable_tokens())
    }

    /// The tokens that cannot be sent, by key.
    fn unusable_tokens(&self) -> impl Iterator<Item = String> {
        let projects = self.projects.iter().enumerate();
        let projects =
            projects.map(|(index, project)| (format!("projects[{index}]."), project.token.clone()));
        let of_prometheus = self.state.prometheus.iter().filter_map(|prometheus| match &prometheus.login {
            Some(Login::Token(path)) => Some(TokenSource::File(path.clone())),
            _ => None,
        });
        let of_prometheus = of_prometheus.map(|source| ("state.prometheus_".to_owned(), Some(source)));
        let api = std::iter::once(("api.".to_owned(), self.api.token.clone()));
        api.chain(projects).chain(of_prometheus).filter_map(|(start, source)| {
            let source = source?;
            let key = match source {
                TokenSource::File(_) => "token_file",
                TokenSource::Inline(_) => "token",
            };
            Some(format!("{start}{key}: {}", with_sources(&read_token(&source).err()?)))
        })
    }

    /// Reads the CA files. Without them, the daemon does not start.
    ///
    /// # Errors
    /// All that cannot be used.
    pub fn check_ca_files(&self) -> Result<(), LoadError> {
        let of_prometheus = self.state.prometheus.iter().map(|prometheus| &prometheus.ca_file);
        let files = of_prometheus.map(|file| ("state.prometheus_ca_file", file));
        let files = std::iter::once(("api.ca_file", &self.api.ca_file)).chain(files);
        let problems = files.filter_map(|(key, file)| {
            let message = match tls_config(key, file.as_deref()).err()? {
                BuildError::Ca { problem, .. } => problem,
                error => with_sources(&error),
            };
            Some(Problem { key: key.to_owned(), message })
        });
        match problems.collect::<Vec<_>>() {
            problems if problems.is_empty() => Ok(()),
            problems => Err(LoadError::Problems { file: None, problems }),
        }
    }

    /// A warning if the base URL ends in a version, as requests add it themselves.
    pub fn base_url_warning(&self) -> Option<String> {
        let url = &self.api.base_url;
        let last = url.path_segments()?.rfind(|segment| !segment.is_empty())?;
        let base = url.as_str().trim_end_matches('/').strip_suffix(last)?.trim_end_matches('/');
        let is_version = matches!(last, "v1" | "v2" | "v3" | "v4" | "api");
        is_version.then(|| {
            format!("api.base_url ends in /{last}, but requests add /v2 or /v4 themselves; set it to {base}, unless the gateway has that path")
        })
    }

    /// A warning if the environment sets a proxy: only `api.proxy_url` does.
    pub fn proxy_warning(&self) -> Option<String> {
        let names = self.api.proxy_variables.join(", ");
        let set = self.api.proxy_url.as_ref().map_or("is empty", |_| "is set");
        (!names.is_empty())
            .then(|| format!("set but not used: {names}; only api.proxy_url, which {set}, sets a proxy"))
    }

    /// A warning if counters grow more rarely than every two minutes: the five minutes of the shipped rules and
    /// dashboards may then hold fewer than two steps.
    fn rate_warning(&self) -> Option<String> {
        let apps = self.projects.iter().flat_map(|project| &project.apps);
        let interval = |app: &App| app.interval.unwrap_or(self.poll.interval);
        let rarest = apps.max_by_key(|app| interval(app))?;
        let (key, period) = match (self.accounting.step, interval(rarest)) {
            (step, interval) if step >= interval => ("accounting.step".to_owned(), step),
            (_, interval) if rarest.interval.is_none() => ("poll.interval".to_owned(), interval),
            (_, interval) => (format!("the interval of app {}", rarest.id), interval),
        };
        let quarters = (3 * period).as_secs().div_ceil(QUARTER.as_secs());
        let range = QUARTER * u32::try_from(quarters).unwrap_or(u32::MAX);
        (self.accounting.enabled && period > MAX_PERIOD_OF_RATES).then(|| {
            format!(
                "{key} is {}: counters grow only that often, so rate() over 5m, as in the shipped rules and dashboards, \
                 misses steps; use [{}m]",
                humantime::format_duration(period),
                range.as_secs() / 60
            )
        })
    }

    fn restore_warnings(&self, prometheus: &Prometheus) -> Vec<String> {
        let span = humantime::format_duration;
        let (lookback, reach) = (prometheus.lookback, self.accounting.max_catch_up);
        let mut warnings = Vec::new();
        if !self.accounting.enabled {
            warnings.push("state.prometheus_url has no effect while accounting.enabled = false".to_owned());
        } else if lookback > reach {
            warnings.push(format!(
                "state.lookback is {}, but accounting.max_catch_up is {}: cursors older than that are used, \
                 and the time between is unaccounted; set both to the same value",
                span(lookback),
                span(reach)
            ));
        }
        let secrets = prometheus.login.is_some() || !prometheus.headers.is_empty();
        if secrets && is_exposed_plaintext(&prometheus.url) {
            warnings.push(format!(
                "state.prometheus_url {} is plain http: anyone on the network path can read the credentials; use https",
                prometheus.url
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn a_base_url_that_ends_in_a_version_is_named() {
        for (url, base) in [
            ("https://a.example.com/v2", Some("set it to https://a.example.com,")),
            ("https://a.example.com/gateway/api/", Some("set it to https://a.example.com/gateway,")),
            ("https://a.example.com/v4", Some("set it to https://a.example.com,")),
            ("https://a.example.com/gateway", None),
            ("https://v2", None),
        ] {
            let text = format!("[api]\nbase_url = \"{url}\"\ntoken = \"t\"\n[[projects]]\nid = \"p\"\n");
            let warnings = crate::load_text(Path::new("test.toml"), &text).unwrap().config.warnings();
            assert_eq!(warnings.len(), usize::from(base.is_some()), "{url}: {warnings:?}");
            assert!(warnings.iter().all(|text| text.contains(base.unwrap_or_default())), "{warnings:?}");
        }
    }

    #[test]
    fn counters_that_grow_rarely_need_longer_rates() {
        let warnings_of = |settings: &str, interval: &str| {
            let text = format!(
                "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"t\"\n{settings}\n[[projects]]\nid = \"p\"\n\
                 apps = [\"a\", {{ id = \"b\", interval = \"{interval}\" }}]\n"
            );
            crate::load_text(Path::new("test.toml"), &text).unwrap().config.warnings()
        };
        let warnings = |settings: &str| warnings_of(settings, "2m");
        assert_eq!(warnings(""), [""; 0], "two minutes are enough");
        let of_app = warnings_of("", "5m").concat();
        assert!(of_app.starts_with("the interval of app b is 5m: counters grow"), "{of_app}");
        for (settings, said) in [
            ("[poll]\ninterval = \"150s\"", "poll.interval is 2m 30s"),
            ("[poll]\ninterval = \"5m\"", "use [15m]"),
            ("[accounting]\nstep = \"10m\"", "accounting.step is 10m"),
            ("[accounting]\nstep = \"10m\"", "use [30m]"),
        ] {
            let warnings = warnings(settings);
            assert!(warnings.len() == 1 && warnings[0].contains(said), "{settings}: {warnings:?}");
        }
        let nothing_counted = "[poll]\ninterval = \"5m\"\n[accounting]\nenabled = false";
        assert_eq!(warnings(nothing_counted), [""; 0]);
    }
}
