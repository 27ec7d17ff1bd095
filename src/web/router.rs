//! One request, one answer: finds the route, checks who asks and whether there is room, and adds what all
//! answers have in common.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Config;
use super::auth::{Auth, AuthOutcome};
use super::body::{Outgoing, ResponseBody};
use super::compress::Compressor;
use super::negotiate;
use super::response::Response;
use super::route::{PageRequest, Route};
use super::webconfig::{Current, Live};

/// Everything that is reachable, and the conditions.
pub(super) struct Router {
    routes: Vec<Route>,
    live: Arc<Live>,
    auth: Arc<Auth>,
    probes_without_auth: bool,
    enable_lifecycle: bool,
    max_requests: u32,
    /// One permit for each scrape that may be under way; `None` is no limit.
    scrapes: Option<Arc<Semaphore>>,
}

impl Router {
    pub(super) fn new(config: &Config, routes: Vec<Route>, live: Arc<Live>, auth: Arc<Auth>) -> Self {
        let permits = usize::try_from(config.max_requests).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            routes,
            live,
            auth,
            probes_without_auth: config.probes_without_auth,
            enable_lifecycle: config.enable_lifecycle,
            max_requests: config.max_requests,
            scrapes: (permits > 0).then(|| Arc::new(Semaphore::new(permits))),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> http::Response<Outgoing> {
        let (parts, _body) = request.into_parts();
        let ask = PageRequest { uri: parts.uri, headers: parts.headers, segments: Vec::new() };
        let if_none_match = ask.header(header::IF_NONE_MATCH);
        let accept_encoding = ask.header(header::ACCEPT_ENCODING);
        let current = self.live.current();
        let (response, place) = match self.admit(&current, &parts.method, ask).await {
            Ok(Found { route, ask, place }) => ((route.handler)(ask).await, place),
            Err(refusal) => (*refusal, None),
        };
        let response = response.unless_known(if_none_match.as_deref());
        let mut answer = finish(response, accept_encoding.as_deref());
        for (name, value) in &current.headers {
            answer.headers_mut().insert(name, value.clone());
        }
        if let Some(place) = place {
            answer.body_mut().hold(place);
        }
        answer
    }

    /// Finds the route of a request that may be answered; else why not.
    async fn admit(
        &self,
        current: &Current,
        method: &Method,
        ask: PageRequest,
    ) -> Result<Found<'_>, Box<Response>> {
        if !current.allows_one_more() {
            return Err(refusal(
                StatusCode::TOO_MANY_REQUESTS,
                "The rate limit of this server is reached.\n",
            ));
        }
        let found = self.routes.iter().find_map(|route| Some((route, route.matches(ask.path())?)));
        let open = self.probes_without_auth && found.as_ref().is_some_and(|(route, _)| route.probe);
        if !open {
            // Before anything else is said: who may not enter need not learn which paths there are.
            self.authenticate(current, &ask).await?;
        }
        self.allow(found, method, ask)
    }

    async fn authenticate(&self, current: &Current, ask: &PageRequest) -> Result<(), Box<Response>> {
        let authorization = ask.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        match self.auth.check(&current.users, authorization).await {
            AuthOutcome::Welcome => Ok(()),
            AuthOutcome::Refused => {
                let response = Response::text(StatusCode::UNAUTHORIZED, "A user and password are needed.\n");
                let challenge = HeaderValue::from_static("Basic realm=\"pds-exporter\", charset=\"UTF-8\"");
                Err(Box::new(response.header(header::WWW_AUTHENTICATE, challenge)))
            }
            AuthOutcome::Busy => Err(refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many passwords are being checked, try again later.\n",
            )),
        }
    }

    /// Whether method, lifecycle and room allow what was found.
    fn allow<'a>(
        &self,
        found: Option<(&'a Route, Vec<(String, String)>)>,
        method: &Method,
        mut ask: PageRequest,
    ) -> Result<Found<'a>, Box<Response>> {
        let Some((route, segments)) = found else {
            return Err(refusal(StatusCode::NOT_FOUND, "There is nothing at this path.\n"));
        };
        if !route.methods.contain(method) {
            let allow = route.methods.allow();
            let sentence = format!("Only {allow} are answered here.\n");
            let response = Response::text(StatusCode::METHOD_NOT_ALLOWED, sentence);
            return Err(Box::new(response.header(header::ALLOW, HeaderValue::from_static(allow))));
        }
        if route.lifecycle && !self.enable_lifecycle {
            let sentence = "The lifecycle API is not enabled: start with --web.enable-lifecycle.\n";
            return Err(refusal(StatusCode::FORBIDDEN, sentence));
        }
        if route.lifecycle && from_another_site(&ask) {
            return Err(refusal(StatusCode::FORBIDDEN, "Pages of other sites may not ask for this.\n"));
        }
        let place = match &self.scrapes {
            Some(scrapes) if route.counted => {
                Some(Arc::clone(scrapes).try_acquire_owned().map_err(|_| self.too_many())?)
            }
            _ => None,
        };
        ask.segments = segments;
        Ok(Found { route, ask, place })
    }

    fn too_many(&self) -> Box<Response> {
        let limit = self.max_requests;
        let sentence = format!("Limit of concurrent requests reached ({limit}), try again later.\n");
        refusal(StatusCode::SERVICE_UNAVAILABLE, &sentence)
    }
}

/// A request that is answered.
struct Found<'a> {
    route: &'a Route,
    ask: PageRequest,
    /// Its place under `--web.max-requests`.
    place: Option<OwnedSemaphorePermit>,
}

fn refusal(status: StatusCode, sentence: &str) -> Box<Response> {
    Box::new(Response::text(status, sentence))
}

/// Whether a browser says that a page of another site sent this: forms cross sites without asking, and behind a
/// password the browser adds it by itself.
fn from_another_site(ask: &PageRequest) -> bool {
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
fn worth_encoding(body: &ResponseBody) -> bool {
    const PACKET: usize = 1400;
    !matches!(body, ResponseBody::Whole(bytes) if bytes.len() <= PACKET)
}
