//! Refuses requests that browsers send on behalf of other sites. Forms may be sent across sites, and a foreign name
//! that resolves to our address (DNS rebinding) makes a foreign page look like ours: it could read everything that a
//! browser on this machine may.

use std::net::{IpAddr, SocketAddr};

use http::Method;
use http::header::{self, HeaderName};

use super::route::{Kind, PageRequest};
use super::{Config, listen};

/// Origin of a request, as browsers report it over TLS and to loopback addresses.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The names under which browsers may reach the exporter. Every IP address is allowed, as no other site is at ours.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    /// Whether only programs on this machine reach the exporter, so that other sites must not reach it through them.
    loopback_only: bool,
}

impl Hosts {
    /// Collects the names of the loopback and the machine, and those in the listen addresses, the external URL and
    /// `--web.allowed-hosts`. `bound` are the addresses listened on.
    pub(super) fn new(config: &Config, bound: &[SocketAddr]) -> Self {
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let listened =
            config.listen_addresses.iter().filter_map(|address| Some(listen::split(address).ok()?.0));
        let external = config.external_url.iter().filter_map(|url| url.host_str());
        let allowed = config.allowed_hosts.iter().map(|host| bare(host));
        let names = ["localhost", &machine].into_iter().chain(listened).chain(external).chain(allowed);
        let is_loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        Self {
            names: names.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            loopback_only: !bound.is_empty() && bound.iter().all(is_loopback),
        }
    }

    /// Why a request of this kind is refused, if it is.
    pub(super) fn refusal(&self, kind: Kind, request: &PageRequest) -> Option<&'static str> {
        let site = request.header(SEC_FETCH_SITE);
        let is_navigation = request.parts.method == Method::GET
            && request.header(SEC_FETCH_MODE).as_deref() == Some("navigate")
            && request.header(SEC_FETCH_DEST).as_deref() == Some("document");
        let is_foreign = match kind {
            Kind::Probe => return None,
            Kind::Page => site.as_deref() == Some("cross-site") && !is_navigation,
            Kind::Lifecycle => !self.sends_own_page(request, site.as_deref()),
        };
        if is_foreign {
            return Some("Pages of other sites may not request this.\n");
        }
        // HTTP/1.0 allows requests without a host; browsers always send it.
        let is_known = request.host().is_none_or(|host| self.contain(&host));
        (self.loopback_only && !is_known).then_some(
            "The exporter listens only on loopback, and the Host of this request is unknown; --web.allowed-hosts adds \
             it.\n",
        )
    }

    /// Whether the request comes from no page, or from a page of this exporter.
    fn sends_own_page(&self, request: &PageRequest, site: Option<&str>) -> bool {
        let origin = request.header(header::ORIGIN);
        if origin.is_none() && site.is_none() {
            return true;
        }
        let Some(host) = request.host() else { return false };
        let is_same_origin = origin
            .is_none_or(|origin| origin.split_once("://").is_some_and(|(_, authority)| authority == host));
        is_same_origin
            && site.is_none_or(|site| ["same-origin", "none"].contains(&site))
            && self.contain(&host)
    }

    fn contain(&self, host: &str) -> bool {
        let host = bare(host);
        host.parse::<IpAddr>().is_ok() || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// A host without port, brackets and final dot.
fn bare(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) if port.is_empty() || port.starts_with(':') => address,
        _ => host.rsplit_once(':').map_or(host, |(name, _)| name).trim_end_matches('.'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(bound: &str) -> Hosts {
        let config = Config {
            listen_addresses: vec!["exporter.internal:10090".to_owned()],
            external_url: Some("https://pds.example.com/exporter".parse().unwrap()),
            allowed_hosts: vec!["allowed.example".to_owned(), "ported.example:80".to_owned()],
            ..Config::default()
        };
        Hosts::new(&config, &[bound.parse().unwrap()])
    }

    /// Whether `hosts` answer a request of this kind with these headers.
    fn answers(hosts: &Hosts, kind: Kind, headers: &[(&str, &str)]) -> bool {
        let method = if kind == Kind::Lifecycle { Method::POST } else { Method::GET };
        let request = http::Request::builder().method(method).uri("/");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = PageRequest::new(request.body(()).unwrap().into_parts().0);
        hosts.refusal(kind, &request).is_none()
    }

    const KNOWN: [&str; 12] = [
        "localhost:10090",
        "LocalHost",
        "localhost.:10090",
        "127.0.0.1:10090",
        "[::1]:10090",
        "[::1]",
        "10.0.0.1:10090",
        "exporter.internal:10090",
        "PDS.example.com",
        "allowed.example:1",
        "ported.example",
        "10.9.8.7",
    ];

    const UNKNOWN: [&str; 6] = [
        "evil.example:10090",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[evil.example]:1",
        "[::1].evil.example",
        "",
    ];

    #[test]
    fn pages_on_the_loopback_know_their_hosts_and_probes_need_not() {
        let (loopback, open) = (hosts("127.0.0.1:10090"), hosts("0.0.0.0:10090"));
        for host in KNOWN {
            assert!(answers(&loopback, Kind::Page, &[("host", host)]), "{host}");
        }
        for host in UNKNOWN {
            let headers = [("host", host)];
            assert!(!answers(&loopback, Kind::Page, &headers), "{host}");
            assert!(!answers(&loopback, Kind::Lifecycle, &headers), "{host}");
            assert!(answers(&loopback, Kind::Probe, &headers), "{host}");
            assert!(answers(&open, Kind::Page, &headers), "{host}: a scraper behind any name");
        }
        assert!(answers(&loopback, Kind::Page, &[]), "HTTP/1.0");
        assert!(hosts("[::ffff:127.0.0.1]:1").refusal(Kind::Page, &evil()).is_some());
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        assert!(answers(&loopback, Kind::Page, &[("host", &machine)]));
    }

    /// A request over HTTP/2, whose host is `:authority`.
    fn evil() -> PageRequest {
        let request = http::Request::get("https://evil.example:10090/").version(http::Version::HTTP_2);
        PageRequest::new(request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn other_sites_may_link_to_pages_and_nothing_else() {
        let hosts = hosts("0.0.0.0:10090");
        let from = |site, mode, dest| {
            [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ]
        };
        assert!(answers(&hosts, Kind::Page, &from("cross-site", "navigate", "document")));
        for (mode, dest) in [("navigate", "iframe"), ("no-cors", "image"), ("cors", "empty")] {
            assert!(!answers(&hosts, Kind::Page, &from("cross-site", mode, dest)), "{mode}");
            assert!(answers(&hosts, Kind::Page, &from("same-origin", mode, dest)), "{mode}");
        }
        assert!(!answers(&hosts, Kind::Lifecycle, &from("cross-site", "navigate", "document")), "a form");
        assert!(answers(&hosts, Kind::Probe, &from("cross-site", "no-cors", "image")));
    }

    #[test]
    fn only_pages_of_our_own_hosts_may_change_something() {
        let hosts = hosts("10.0.0.1:10090");
        let allows = |headers: &[(&str, &str)]| answers(&hosts, Kind::Lifecycle, headers);
        assert!(allows(&[]) && allows(&[("host", "evil.example")]), "no browser");
        for host in KNOWN {
            let origin = format!("http://{host}");
            assert!(allows(&[("host", host), ("origin", &origin)]), "{host}");
            assert!(allows(&[("host", host), ("sec-fetch-site", "same-origin")]), "{host}");
            assert!(!allows(&[("host", host), ("sec-fetch-site", "cross-site")]), "{host}");
            assert!(!allows(&[("host", host), ("origin", "null")]), "{host}");
            assert!(!allows(&[("host", host), ("origin", "https://evil.example")]), "{host}");
        }
        // A name of the attacker's that resolves to our address.
        for host in UNKNOWN {
            let origin = format!("http://{host}");
            assert!(!allows(&[("host", host), ("origin", &origin)]), "{host}");
            assert!(!allows(&[("host", host), ("sec-fetch-site", "same-origin")]), "{host}");
        }
        assert!(!allows(&[("sec-fetch-site", "same-origin")]), "no host");
    }
}
