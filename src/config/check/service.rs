//! `[api]`, `[poll]` and `[accounting]`.

use std::num::NonZeroU32;
use std::time::Duration;

use config::ValueKind;

use super::{Checker, Section};
use crate::config::{Accounting, Api, Poll, QueryNames, Resolution, value};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Checker<'_> {
    pub(super) fn api(&mut self, at: &Section<'_>) -> Option<Api> {
        let base_url = self.base_url(at);
        let token = self.token(at);
        let timeout = self.duration(at, "timeout");
        let connect_timeout = self.duration(at, "connect_timeout");
        let max_concurrent_requests = self.count(at, "max_concurrent_requests");
        let max_requests_per_second = self.count(at, "max_requests_per_second");
        let max_response_bytes = self.read(at, "max_response_bytes", value::size);
        let max_retries = self.count(at, "max_retries");
        let ca_file = self.path(at, "ca_file");
        let proxy_url = self.read(at, "proxy_url", |raw| match &raw.kind {
            ValueKind::String(text) if text.is_empty() => Ok(None),
            _ => value::url(raw).map(Some),
        });
        let query_names = self.query_names(&at.inner("query_names", "api.query_names"));
        Some(Api {
            base_url: base_url?,
            token,
            timeout: timeout?,
            connect_timeout: connect_timeout?,
            max_concurrent_requests: NonZeroU32::new(max_concurrent_requests?)?,
            max_requests_per_second: NonZeroU32::new(max_requests_per_second?),
            max_response_bytes: max_response_bytes?,
            max_retries: max_retries?,
            ca_file,
            proxy_url: proxy_url?,
            no_proxy: None,
            query_names: query_names?,
        })
    }

    fn base_url(&mut self, at: &Section<'_>) -> Option<url::Url> {
        if at.get("base_url").is_none() {
            self.refuse(
                at.key("base_url"),
                "is missing; write where the service is, such as \"https://api.example.com\"",
            );
        }
        self.read(at, "base_url", |raw| {
            let url = value::url(raw)?;
            if !url.username().is_empty() || url.password().is_some() {
                return Err("must not hold credentials; write the token to token_file".to_owned());
            }
            Ok(url)
        })
    }

    fn query_names(&mut self, at: &Section<'_>) -> Option<QueryNames> {
        let mut seen: Vec<(&str, String)> = Vec::new();
        let mut name = |key: &'static str| {
            let name = self.read(at, key, |raw| match value::text(raw)? {
                "" => Err("is empty; write the name of the query parameter".to_owned()),
                name => match seen.iter().find(|(_, other)| other == name) {
                    Some((other, _)) => {
                        Err(format!("is {name:?} like {other}; each parameter needs a name of its own"))
                    }
                    None => Ok(name.to_owned()),
                },
            });
            seen.extend(name.clone().map(|name| (key, name)));
            name
        };
        let [start, end, container, resolution] = ["start", "end", "container", "resolution"].map(&mut name);
        Some(QueryNames { start: start?, end: end?, container: container?, resolution: resolution? })
    }

    pub(super) fn poll(&mut self, at: &Section<'_>) -> Option<Poll> {
        let interval = self.duration(at, "interval");
        let settings_interval = self.duration(at, "settings_interval");
        let windows = self.list(at, "windows", |raw| whole_seconds(value::duration(raw)?));
        if windows.as_ref().is_some_and(Vec::is_empty) && !self.has_problem_at(&at.key("windows")) {
            self.refuse(at.key("windows"), "is empty; write at least one window, such as [\"5m\"]");
        }
        let settle = self.duration(at, "settle");
        let resolution = self.word(at, "resolution");
        let stale_after = self.duration(at, "stale_after");
        Some(Poll {
            interval: interval?,
            settings_interval: settings_interval?,
            windows: windows?,
            settle: settle?,
            resolution: resolution.map(Resolution::from_word)?,
            stale_after: stale_after?,
        })
    }

    fn has_problem_at(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.key.starts_with(key))
    }

    pub(super) fn accounting(&mut self, at: &Section<'_>) -> Option<Accounting> {
        let enabled = self.flag(at, "enabled");
        let step = self.read(at, "step", |raw| {
            let step = whole_seconds(value::duration(raw)?)?;
            if step <= DAY && DAY.as_secs().is_multiple_of(step.as_secs()) {
                return Ok(step);
            }
            let step = humantime::format_duration(step);
            Err(format!("is {step}, which does not divide a day; write such as \"60s\", \"5m\" or \"1h\""))
        });
        let max_catch_up = self.duration(at, "max_catch_up");
        if let (Some(step), Some(reach)) = (step, max_catch_up)
            && reach < step
        {
            let step = humantime::format_duration(step);
            self.refuse(
                at.key("max_catch_up"),
                format!("is shorter than accounting.step, so nothing would be counted; write {step} or more"),
            );
        }
        Some(Accounting { enabled: enabled?, step: step?, max_catch_up: max_catch_up? })
    }
}

fn whole_seconds(duration: Duration) -> Result<Duration, String> {
    if duration.subsec_nanos() == 0 {
        return Ok(duration);
    }
    let duration = humantime::format_duration(duration);
    Err(format!("is {duration}, but must be whole seconds, such as \"60s\" or \"5m\""))
}
