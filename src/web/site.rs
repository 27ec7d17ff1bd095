//! One request, one answer: finds the route, checks who asks and whether there is room, and adds what all
//! answers have in common.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use super::Config;
use super::body::{Body, Outgoing};
use super::compress::Compressor;
use super::negotiate;
use super::response::Response;
use super::route::{Ask, Route};

/// Everything that is reachable, and the conditions.
pub(super) struct Site {
    routes: Vec<Route>,
    enable_lifecycle: bool,
    max_requests: u32,
    /// One permit for each scrape that may be under way; `None` is no limit.
    scrapes: Option<Arc<Semaphore>>,
}

impl Site {
    pub(super) fn new(config: &Config, routes: Vec<Route>) -> Self {
        let permits = usize::try_from(config.max_requests).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            routes,
            enable_lifecycle: config.enable_lifecycle,
            max_requests: config.max_requests,
            scrapes: (permits > 0).then(|| Arc::new(Semaphore::new(permits))),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> http::Response<Outgoing> {
        let (parts, _body) = request.into_parts();
        let ask = Ask { uri: parts.uri, headers: parts.headers, segments: Vec::new() };
        let if_none_match = ask.header(header::IF_NONE_MATCH);
        let accept_encoding = ask.header(header::ACCEPT_ENCODING);
        let (response, permit) = match self.route(&parts.method, ask) {
            Ok(Found { route, ask, permit }) => ((route.handler)(ask).await, permit),
            Err(refusal) => (refusal, None),
        };
        let mut answer = finish(response.unless_known(if_none_match.as_deref()), accept_encoding.as_deref());
        if let Some(permit) = permit {
            answer.body_mut().hold(permit);
        }
        answer
    }

    fn route(&self, method: &http::Method, mut ask: Ask) -> Result<Found<'_>, Response> {
        let found = self.routes.iter().find_map(|route| Some((route, route.matches(ask.path())?)));
        let Some((route, segments)) = found else {
            return Err(Response::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n"));
        };
        if !route.methods.contain(method) {
            let allow = route.methods.allow();
            return Err(Response::text(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("Only {allow} are answered here.\n"),
            )
            .header(header::ALLOW, HeaderValue::from_static(allow)));
        }
        if route.lifecycle && !self.enable_lifecycle {
            let sentence = "The lifecycle API is not enabled: start with --web.enable-lifecycle.\n";
            return Err(Response::text(StatusCode::FORBIDDEN, sentence));
        }
        if route.lifecycle && from_another_site(&ask) {
            return Err(Response::text(
                StatusCode::FORBIDDEN,
                "Pages of other sites may not ask for this.\n",
            ));
        }
        let permit = match &self.scrapes {
            Some(scrapes) if route.counted => {
                let permit = Arc::clone(scrapes).try_acquire_owned();
                Some(permit.map_err(|_| self.too_many())?)
            }
            _ => None,
        };
        ask.segments = segments;
        Ok(Found { route, ask, permit })
    }

    fn too_many(&self) -> Response {
        let limit = self.max_requests;
        let sentence = format!("Limit of concurrent requests reached ({limit}), try again later.\n");
        Response::text(StatusCode::SERVICE_UNAVAILABLE, sentence)
    }
}

struct Found<'a> {
    route: &'a Route,
    ask: Ask,
    permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

/// Whether a browser says that a page of another site sent this: forms cross sites without asking, and behind a
/// password the browser adds it by itself.
fn from_another_site(ask: &Ask) -> bool {
    let Some(origin) = ask.header(header::ORIGIN) else { return false };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let host = ask.header(header::HOST).or_else(|| ask.uri.authority().map(ToString::to_string));
    authority.is_none() || authority != host.as_deref()
}

/// What all answers have in common.
fn finish(response: Response, accept_encoding: Option<&str>) -> http::Response<Outgoing> {
    let Response { status, mut headers, body, mut encoding } = response;
    let mut compressor = None;
    if encoding == negotiate::Encoding::Identity && worth_encoding(&body) {
        let wanted = negotiate::encoding(accept_encoding);
        // An encoder that can't be made leaves the answer as it is, which every client can read.
        if let Ok(made @ Some(_)) = Compressor::new(wanted) {
            (compressor, encoding) = (made, wanted);
        }
    }
    if encoding != negotiate::Encoding::Identity {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str()));
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    let mut answer = http::Response::new(Outgoing::new(body, compressor));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

/// Below one network packet there is nothing to gain.
fn worth_encoding(body: &Body) -> bool {
    const PACKET: usize = 1400;
    !matches!(body, Body::Whole(bytes) if bytes.len() <= PACKET)
}
