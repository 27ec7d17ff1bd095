//! Routes: path, methods, conditions and handler of everything the server answers.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Version};
use pds_core::template::Template;
use url::form_urlencoded;

use super::response::Response;
use super::{Config, listen};

/// The future of a handler, or of a method of [`Backend`](super::Backend): `Box::pin(async move { ... })`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a route is for, and so which methods it answers and under which conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something to read.
    Page,
    /// As [`Kind::Page`], for browsers if no other route answers.
    Fallback,
    /// It takes no slot of `--web.max-requests`, and with `--web.probes-without-auth` no password.
    Probe,
    /// It changes something; refused without `--web.enable-lifecycle`.
    Lifecycle,
}

impl Kind {
    /// The value of `Allow`.
    pub(super) fn methods(self) -> &'static str {
        if self == Self::Lifecycle { "POST, PUT" } else { "GET, HEAD" }
    }

    pub(super) fn answers(self, method: &Method) -> bool {
        self.methods().split(", ").any(|answered| method == answered)
    }
}

/// One row of the table of routes.
#[derive(Clone)]
pub struct Route {
    /// The path; a segment `{name}` matches any one segment, which [`PageRequest::segment`] gives the handler.
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) handler: Arc<dyn Fn(PageRequest) -> BoxFuture<'static, Response> + Send + Sync>,
}

impl Route {
    /// A page: GET and HEAD, with the conditions that all pages share.
    pub fn page<F, A>(path: impl Into<String>, handler: F) -> Self
    where
        F: Fn(PageRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        Self::new(Kind::Page, path, handler)
    }

    /// The page that browsers get for unknown paths.
    pub fn fallback<F, A>(handler: F) -> Self
    where
        F: Fn(PageRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        Self::new(Kind::Fallback, "", handler)
    }

    pub(super) fn new<F, A>(kind: Kind, path: impl Into<String>, handler: F) -> Self
    where
        F: Fn(PageRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        Self { path: path.into(), kind, handler: Arc::new(move |request| Box::pin(handler(request))) }
    }

    /// The decoded `{name}` segments, if the path is this route's.
    pub(super) fn matches(&self, path: &str) -> Option<Vec<(String, String)>> {
        let values = Template(&self.path).values(path).filter(|_| self.kind != Kind::Fallback)?;
        Some(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// A request as handlers see it.
#[derive(Clone, Debug)]
pub struct PageRequest {
    pub(super) parts: Parts,
    pub(super) segments: Vec<(String, String)>,
    /// Counts the request while it is worked on, also if its client has left.
    pub(super) permit: Option<Arc<dyn Any + Send + Sync>>,
}

impl PageRequest {
    /// A request whose route is not found yet.
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts, segments: Vec::new(), permit: None }
    }

    /// Whether it names one host (in HTTP/1.0 perhaps none) and at most one credential. Proxies differ in which of two
    /// they use, so neither can be trusted.
    pub(super) fn is_unambiguous(&self) -> bool {
        let Parts { headers, uri, version, .. } = &self.parts;
        let single = |name| headers.get_all(name).iter().nth(1).is_none();
        let authority = uri.authority().map(|authority| authority.as_str());
        let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
        (host.is_some() || *version != Version::HTTP_11)
            && single(header::HOST)
            && single(header::AUTHORIZATION)
            && authority.is_none_or(|authority| host.is_none_or(|host| host == authority.as_bytes()))
    }

    /// The host that is asked, with its port if there is one.
    pub(super) fn host(&self) -> Option<String> {
        self.header(header::HOST).or_else(|| self.parts.uri.authority().map(ToString::to_string))
    }

    /// Whether a browser asks: it names HTML, which scrapers and scripts do not.
    pub(super) fn wants_html(&self) -> bool {
        self.header(header::ACCEPT).is_some_and(|accept| accept.contains("text/html"))
    }

    /// The path as sent.
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// The query string as sent.
    pub fn raw_query(&self) -> Option<&str> {
        self.parts.uri.query()
    }

    /// The first value of a query parameter, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.raw_query()?.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }

    /// The segment `{name}`, decoded; empty if the route has no such segment.
    pub fn segment(&self, name: &str) -> &str {
        self.segments.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// A header's value, if it was sent and is text; several lines of one header are one list.
    pub fn header(&self, name: HeaderName) -> Option<String> {
        let lines = self.parts.headers.get_all(name).iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        (!lines.is_empty()).then(|| lines.join(","))
    }
}

/// What browsers say about where a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names and addresses under which browsers may know us. Browsers send requests on behalf of pages of other sites,
/// too, which must not reload or stop the daemon, and they do so without asking: forms cross sites, and a name that
/// resolves to our address (DNS rebinding) makes a foreign page look like one of ours.
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
    use super::*;

    fn asked(request: http::request::Builder) -> PageRequest {
        PageRequest::new(request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_path_matches_segment_by_segment() {
        let route = Route::page("/apps/{project}/{app}", |_| async { unreachable!() });
        assert_eq!(
            route.matches("/apps/p-1/a%2Fb%22"),
            Some(vec![("project".into(), "p-1".into()), ("app".into(), "a/b\"".into())])
        );
        for other in
            ["/apps/p-1", "/apps/p-1/", "/apps/p-1/a/", "/apps//a", "/app/p/a", "/apps/p/%ff", "apps/p/a"]
        {
            assert_eq!(route.matches(other), None, "{other}");
        }
        let root = Route::page("/", |_| async { unreachable!() });
        assert!(root.matches("/").is_some() && root.matches("//").is_none() && root.matches("/x").is_none());
    }

    #[test]
    fn a_request_names_one_host_and_only_http_1_0_may_name_none() {
        let names_one = |version, hosts: &[&str]| {
            let request = http::Request::builder().version(version);
            asked(hosts.iter().fold(request, |request, host| request.header(header::HOST, *host)))
                .is_unambiguous()
        };
        assert!(names_one(Version::HTTP_11, &["a"]) && names_one(Version::HTTP_10, &[]));
        assert!(!names_one(Version::HTTP_11, &[]) && !names_one(Version::HTTP_11, &["a", "b"]));
    }

    #[test]
    fn queries_and_headers_are_read_leniently() {
        let request = http::Request::get("/x?project=p%201&project=p2&y");
        let request = asked(request.header(header::ACCEPT, "a/b").header(header::ACCEPT, "c/d;q=0.5"));
        assert_eq!(request.query("project").as_deref(), Some("p 1"));
        assert_eq!((request.query("y").as_deref(), request.query("z")), (Some(""), None));
        assert_eq!(request.header(http::header::ACCEPT).as_deref(), Some("a/b,c/d;q=0.5"));
        assert_eq!((request.header(http::header::HOST), request.segment("app")), (None, ""));
    }

    fn allows(hosts: &OwnHosts, headers: &[(&'static str, &str)]) -> bool {
        let request = http::Request::post("/-/quit");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        hosts.allow(&asked(request))
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
