//! Routes: path, methods, conditions and handler of everything the server answers.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Version};
use pds_core::template::Template;
use url::form_urlencoded;

use super::response::Response;

/// The future of a handler, or of a method of [`Backend`](super::Backend): `Box::pin(async move { ... })`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Purpose of a route, which decides its methods and conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something to read.
    Page,
    /// Uses no slot of `--web.max-requests`, and with `--web.probes-without-auth` requires no password.
    Probe,
    /// Changes something; refused without `--web.enable-lifecycle`.
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

/// A row of the table of routes.
#[derive(Clone)]
pub struct Route {
    /// The path. A segment `{name}` matches any segment, which [`PageRequest::segment`] returns.
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

    pub(super) fn new<F, A>(kind: Kind, path: impl Into<String>, handler: F) -> Self
    where
        F: Fn(PageRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        Self { path: path.into(), kind, handler: Arc::new(move |request| Box::pin(handler(request))) }
    }

    /// The decoded `{name}` segments, if the path is this route's.
    pub(super) fn matches(&self, path: &str) -> Option<Vec<(String, String)>> {
        let values = Template(&self.path).values(path)?;
        Some(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// A request as handlers see it.
#[derive(Clone, Debug)]
pub struct PageRequest {
    pub(super) parts: Parts,
    pub(super) segments: Vec<(String, String)>,
    /// Counts the request while it is in progress, even if its client has disconnected.
    pub(super) permit: Option<Arc<dyn Any + Send + Sync>>,
}

impl PageRequest {
    /// A request whose route is not found yet.
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts, segments: Vec::new(), permit: None }
    }

    /// Whether it names exactly one host (in HTTP/1.0 at most one) and at most one credential. Proxies differ in which
    /// of two they use, so neither can be trusted.
    pub(super) fn is_unambiguous(&self) -> bool {
        let Parts { headers, uri, version, .. } = &self.parts;
        let single = |name| headers.get_all(name).iter().nth(1).is_none();
        let authority = uri.authority().map(|authority| authority.as_str());
        let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
        (host.is_some() || *version != Version::HTTP_11)
            && host.is_none_or(<[u8]>::is_ascii)
            && single(header::HOST)
            && single(header::AUTHORIZATION)
            && authority.is_none_or(|authority| host.is_none_or(|host| host == authority.as_bytes()))
    }

    /// The requested host, with its port if there is one.
    pub(super) fn host(&self) -> Option<String> {
        self.header(header::HOST).or_else(|| self.parts.uri.authority().map(ToString::to_string))
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
}
