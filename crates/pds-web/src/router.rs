//! One request, one answer: finds the route, checks the sender and the room, and adds what all answers share.

use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use pds_core::memory::Holder;

use super::Config;
use super::auth::{Auth, AuthOutcome};
use super::body::ResponseBody;
use super::compress::Compressor;
use super::connection_state::InFlight;
use super::negotiate;
use super::origin::OwnHosts;
use super::outgoing::Outgoing;
use super::peer::Peer;
use super::request_slots::{RequestPermit, RequestSlots};
use super::response::Response;
use super::route::{Methods, PageRequest, Route};
use super::webconfig::{Current, Live};

/// The routes, and the conditions under which they answer.
pub(super) struct Router {
    routes: Vec<Route>,
    /// The prefix of all paths, without a slash at its end.
    prefix: String,
    live: Arc<Live>,
    auth: Arc<Auth>,
    probes_without_auth: bool,
    enable_lifecycle: bool,
    own_hosts: OwnHosts,
    slots: Arc<RequestSlots>,
    /// The value of `WWW-Authenticate`.
    challenge: HeaderValue,
}

/// A route with the segments of its path.
type Found<'a> = (&'a Route, Vec<(String, String)>);

impl Router {
    /// `bound` are the addresses that are listened on.
    pub(super) fn new(
        config: &Config,
        bound: Vec<SocketAddr>,
        routes: Vec<Route>,
        live: Arc<Live>,
        auth: Arc<Auth>,
    ) -> Self {
        Self {
            routes,
            prefix: config.prefix().to_owned(),
            live,
            auth,
            probes_without_auth: config.probes_without_auth,
            enable_lifecycle: config.enable_lifecycle,
            own_hosts: OwnHosts::new(config, &bound),
            slots: RequestSlots::new(config.max_requests, config.memory.share(Holder::Answers)),
            challenge: challenge(&config.name),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        in_flight: InFlight,
    ) -> http::Response<Outgoing> {
        let (parts, _body) = request.into_parts();
        let request = PageRequest {
            version: parts.version,
            uri: parts.uri,
            headers: parts.headers,
            segments: Vec::new(),
            permit: None,
        };
        let if_none_match = request.header(header::IF_NONE_MATCH);
        let accept_encoding = request.header(header::ACCEPT_ENCODING);
        let current = self.live.current();
        let (response, mut permit) = match self.handle(&current, &parts.method, request, &in_flight).await {
            Ok(answered) => answered,
            Err(refusal) => (*refusal, None),
        };
        let mut answer = finish(response.unless_known(if_none_match.as_deref()), accept_encoding.as_deref());
        if permit.as_ref().is_some_and(|permit| !answer.body().fits(permit)) {
            permit = None;
            let sentence = "Too many answers wait for their clients to read, try again later.\n";
            answer = finish(*refusal(StatusCode::SERVICE_UNAVAILABLE, sentence), None);
        }
        for (name, value) in &current.headers {
            answer.headers_mut().insert(name, value.clone());
        }
        answer.body_mut().hold(in_flight, permit);
        answer
    }

    /// Runs the handler of a request that may be answered; else says why not.
    async fn handle(
        &self,
        current: &Current,
        method: &Method,
        mut request: PageRequest,
        in_flight: &InFlight,
    ) -> Result<(Response, Option<Arc<RequestPermit>>), Box<Response>> {
        if !request.is_unambiguous() {
            return Err(refusal(
                StatusCode::BAD_REQUEST,
                "There must be one Host, and may be one Authorization.\n",
            ));
        }
        let found = self.routes.iter().find_map(|route| Some((route, route.matches(request.path())?)));
        let probe = found.as_ref().is_some_and(|(route, _)| route.probe);
        if !(probe && self.probes_without_auth) {
            // First of all: a stranger does not learn which paths exist.
            self.authenticate(current, &request, in_flight.connection().peer(), probe).await?;
        }
        let (route, segments) = match found {
            Some(found) => self.allow(found, method, &request)?,
            None => (self.elsewhere(method, &request)?, Vec::new()),
        };
        // Probes keep pods alive, so they are always answered.
        let permit = if probe { None } else { Some(Arc::new(self.permit(in_flight).await?)) };
        (request.segments, request.permit) = (segments, permit.clone());
        Ok(((route.handler)(request).await, permit))
    }

    /// Checks the password, then the rate limit. Strangers have a limit of their own, so that they cannot use up the
    /// users'; probes have none.
    async fn authenticate(
        &self,
        current: &Current,
        request: &PageRequest,
        peer: Peer,
        probe: bool,
    ) -> Result<(), Box<Response>> {
        let authorization = request.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let outcome = self.auth.check(&current.users, authorization, peer).await;
        if !(probe || current.allows_one_more(outcome == AuthOutcome::Welcome)) {
            let sentence = "The rate limit of this server is reached.\n";
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, sentence));
        }
        match outcome {
            AuthOutcome::Welcome => Ok(()),
            AuthOutcome::Refused => {
                let response = Response::text(StatusCode::UNAUTHORIZED, "A user and password are needed.\n");
                let challenge = self.challenge.clone();
                Err(Box::new(response.header(header::WWW_AUTHENTICATE, challenge)))
            }
            AuthOutcome::Busy => {
                let sentence = "Too many passwords are being checked, try again later.\n";
                Err(refusal(StatusCode::SERVICE_UNAVAILABLE, sentence))
            }
        }
    }

    /// The "No such page" page, for browsers. A path that means a page is redirected: one slash too many
    /// or too few, or without the prefix.
    fn elsewhere(&self, method: &Method, request: &PageRequest) -> Result<&Route, Box<Response>> {
        if Methods::Read.contain(method) {
            if let Some(location) = self.redirect(request) {
                let response = Response::text(StatusCode::FOUND, format!("See {location}\n"));
                let location = HeaderValue::try_from(location).unwrap_or(HeaderValue::from_static("./"));
                return Err(Box::new(response.header(header::LOCATION, location)));
            }
            let fallback = self.routes.iter().find(|route| route.fallback);
            if let Some(route) = fallback.filter(|_| request.wants_html()) {
                return Ok(route);
            }
        }
        Err(refusal(StatusCode::NOT_FOUND, "There is nothing at this path.\n"))
    }

    /// Where the page is that a path means, relative to it: a proxy may have taken a part of the path off.
    fn redirect(&self, request: &PageRequest) -> Option<String> {
        let path = request.path();
        let leads = |path: &str| {
            let mut readable = self.routes.iter().filter(|route| route.methods == Methods::Read);
            readable.any(|route| route.matches(path).is_some())
        };
        let location = match path.strip_suffix('/') {
            Some("") => (!self.prefix.is_empty()).then(|| format!(".{}/", self.prefix))?,
            Some(page) if !page.ends_with('/') && leads(page) => format!("../{}", page.rsplit('/').next()?),
            None if leads(&format!("{path}/")) => format!("./{}/", path.rsplit('/').next()?),
            _ => return None,
        };
        Some(request.raw_query().map_or(location.clone(), |query| format!("{location}?{query}")))
    }

    /// Whether method and lifecycle allow what was found.
    fn allow<'a>(
        &self,
        (route, segments): Found<'a>,
        method: &Method,
        request: &PageRequest,
    ) -> Result<Found<'a>, Box<Response>> {
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
        if route.lifecycle && !self.own_hosts.allow(request) {
            return Err(refusal(StatusCode::FORBIDDEN, "Pages of other sites may not ask for this.\n"));
        }
        Ok((route, segments))
    }

    async fn permit(&self, in_flight: &InFlight) -> Result<RequestPermit, Box<Response>> {
        self.slots.take(in_flight).await.ok_or_else(|| {
            let limit = self.slots.limit();
            let sentence = format!("Limit of concurrent requests reached ({limit}), try again later.\n");
            refusal(StatusCode::SERVICE_UNAVAILABLE, &sentence)
        })
    }
}

/// Asks for a password in the realm `name`; a name that no header can hold is left out.
fn challenge(name: &str) -> HeaderValue {
    let realm = name.replace(['"', '\\'], "");
    HeaderValue::try_from(format!("Basic realm=\"{realm}\", charset=\"UTF-8\""))
        .unwrap_or(HeaderValue::from_static("Basic realm=\"exporter\", charset=\"UTF-8\""))
}

fn refusal(status: StatusCode, sentence: &str) -> Box<Response> {
    Box::new(Response::text(status, sentence))
}

/// What all answers have in common.
fn finish(response: Response, accept_encoding: Option<&str>) -> http::Response<Outgoing> {
    let Response { status, mut headers, body, mut encoding } = response;
    let mut compressor = None;
    if encoding == negotiate::Encoding::Identity && worth_encoding(&body) {
        let wanted = negotiate::encoding(accept_encoding);
        // Without a compressor the answer is sent plain, which every client can read.
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

/// Below the size of one network packet, compression gains nothing.
fn worth_encoding(body: &ResponseBody) -> bool {
    const PACKET: usize = 1400;
    !matches!(body, ResponseBody::Whole(bytes) if bytes.len() <= PACKET)
}
