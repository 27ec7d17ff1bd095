//! Requests that browsers send on behalf of pages of other sites. They must not reload or stop the daemon, and a
//! browser sends them without asking: forms cross sites, and a name that resolves to our address (DNS rebinding)
//! makes a foreign page look like one of ours.

use std::net::{IpAddr, SocketAddr};

use http::header::{self, HeaderName};

use super::route::PageRequest;
use super::{Config, listen};

/// What browsers say about where a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names and addresses under which browsers may know us.
#[derive(Debug)]
pub(super) struct OwnHosts {
    names: Vec<String>,
    ips: Vec<IpAddr>,
}

impl OwnHosts {
    /// The loopback names, the addresses `bound`, the names in the listen addresses, the external URL.
    pub(super) fn new(config: &Config, bound: &[SocketAddr]) -> Self {
        let listened =
            config.listen_addresses.iter().filter_map(|address| Some(listen::split(address).ok()?.0));
        let external = config.external_url.iter().filter_map(|url| url.host_str());
        let names = ["localhost"].into_iter().chain(listened).chain(external);
        Self {
            names: names.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            ips: bound.iter().map(|address| address.ip().to_canonical()).collect(),
        }
    }

    /// Whether a browser may send `request` to change something: it comes from no page at all, or from one of ours.
    pub(super) fn allow(&self, request: &PageRequest) -> bool {
        let (origin, site) = (request.header(header::ORIGIN), request.header(SEC_FETCH_SITE));
        if origin.is_none() && site.is_none() {
            return true;
        }
        let Some(host) = request.host() else { return false };
        let same_origin = origin
            .is_none_or(|origin| origin.split_once("://").is_some_and(|(_, authority)| authority == host));
        let same_site = site.is_none_or(|site| ["same-origin", "none"].contains(&site.as_str()));
        same_origin && same_site && self.contain(&host)
    }

    fn contain(&self, host: &str) -> bool {
        let bare = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inside, _)) => inside,
            None => host.rsplit_once(':').map_or(host, |(bare, _)| bare),
        };
        match bare.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
            // No name leads a browser to an address in the `Host` header, so any address of a wildcard is ours.
            Ok(ip) => ip.is_loopback() || self.ips.iter().any(|own| *own == ip || own.is_unspecified()),
            Err(_) => self.names.iter().any(|name| name.eq_ignore_ascii_case(bare)),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Uri};

    use super::*;

    fn allows(hosts: &OwnHosts, headers: &[(&'static str, &str)]) -> bool {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap())
        };
        let headers = HeaderMap::from_iter(headers.iter().map(header));
        let (version, uri) = (http::Version::HTTP_11, Uri::from_static("/-/quit"));
        hosts.allow(&PageRequest { version, uri, headers, segments: Vec::new(), permit: None })
    }

    #[test]
    fn only_pages_of_our_own_hosts_may_change_something() {
        let config = Config {
            listen_addresses: vec!["exporter.internal:10090".to_owned()],
            external_url: Some("https://pds.example.com/exporter".parse().unwrap()),
            ..Config::default()
        };
        let hosts = OwnHosts::new(&config, &["10.0.0.1:10090".parse().unwrap()]);
        assert!(allows(&hosts, &[]) && allows(&hosts, &[("host", "evil.example")]), "no browser");
        for host in
            ["localhost:10090", "127.0.0.1:10090", "[::1]:10090", "10.0.0.1:10090", "exporter.internal:10090"]
        {
            let origin = format!("http://{host}");
            assert!(allows(&hosts, &[("host", host), ("origin", &origin)]), "{host}");
            assert!(allows(&hosts, &[("host", host), ("sec-fetch-site", "same-origin")]), "{host}");
            assert!(!allows(&hosts, &[("host", host), ("sec-fetch-site", "cross-site")]), "{host}");
            assert!(!allows(&hosts, &[("host", host), ("origin", "null")]), "{host}");
            assert!(!allows(&hosts, &[("host", host), ("origin", "https://evil.example")]), "{host}");
        }
        assert!(allows(&hosts, &[("host", "PDS.example.com"), ("origin", "https://PDS.example.com")]));
        // A name of the attacker's that resolves to our address.
        for host in ["evil.example:10090", "10.0.0.2:10090", "localhost.evil.example", ""] {
            let origin = format!("http://{host}");
            assert!(!allows(&hosts, &[("host", host), ("origin", &origin)]), "{host}");
            assert!(!allows(&hosts, &[("host", host), ("sec-fetch-site", "same-origin")]), "{host}");
        }
        assert!(!allows(&hosts, &[("sec-fetch-site", "same-origin")]), "no host");
    }

    #[test]
    fn a_wildcard_is_every_address_and_no_name() {
        let hosts = OwnHosts::new(&Config::default(), &["[::]:10090".parse().unwrap()]);
        assert!(allows(&hosts, &[("host", "10.9.8.7:10090"), ("origin", "http://10.9.8.7:10090")]));
        assert!(!allows(&hosts, &[("host", "evil.example"), ("origin", "http://evil.example")]));
    }
}
