//! Warnings about settings that are valid but hardly intended.

use std::net::IpAddr;

use url::{Host, Url};

use super::{Config, Prometheus};

impl Config {
    /// One sentence per setting that is valid but hardly intended.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let overload = self.requests_per_minute().exceeds(&self.api).map(|overload| overload.to_string());
        let restore = self.state.prometheus.iter().flat_map(|prometheus| self.of_restore(prometheus));
        overload.into_iter().chain(restore).collect()
    }

    fn of_restore(&self, prometheus: &Prometheus) -> Vec<String> {
        let span = humantime::format_duration;
        let (lookback, reach) = (prometheus.lookback, self.accounting.max_catch_up);
        let mut warnings = Vec::new();
        if !self.accounting.enabled {
            warnings.push("state.prometheus_url has no effect while accounting.enabled = false".to_owned());
        } else if lookback > reach {
            warnings.push(format!(
                "state.lookback is {}, but accounting.max_catch_up is {}: counters older than that are read back, \
                 and the time between is unaccounted; set both to the same",
                span(lookback),
                span(reach)
            ));
        }
        let secrets = prometheus.login.is_some() || !prometheus.headers.is_empty();
        if secrets && is_open(&prometheus.url) {
            warnings.push(format!(
                "state.prometheus_url {} is plain http: anyone on the network path can read the credentials; use https",
                prometheus.url
            ));
        }
        warnings
    }
}

/// Whether others can read requests to `url`: it is plain http to another machine.
#[must_use]
pub fn is_open(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).to_canonical().is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !loopback
}
