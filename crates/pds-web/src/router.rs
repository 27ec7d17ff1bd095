//! Request in, response out: finds the route, checks sender and capacity, and adds the headers that all responses share.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use pds_core::memory::Holder;

use super::Config;
use super::auth::{Auth, AuthOutcome};
use super::connection_state::InFlight;
use super::hosts::Hosts;
use super::negotiate::{self, Encoding};
use super::request_slots::{RequestPermit, RequestSlots};
use super::response::{self, Compressor, Outgoing, Response};
use super::route::{Kind, PageRequest, Route};
use super::turns::Peer;
use super::webconfig::{Client, Current, Live};

/// Below the size of one network packet, compression gains nothing.
const PACKET: u64 = 1400;

/// The routes, and the conditions under which they answer.
pub(super) struct Router {
    pub(super) config: Config,
    routes: Vec<Route>,
    pub(super) live: Live,
    auth: Arc<Auth>,
    hosts: Hosts,
    slots: Arc<RequestSlots>,
}

impl Router {
    /// `bound` are the addresses that are listened on.
    pub(super) fn new(
        config: Config,
        bound: &[SocketAddr],
        routes: Vec<Route>,
        live: Live,
        auth: Arc<Auth>,
    ) -> Self {
        let hosts = Hosts::new(&config, bound);
        let slots = RequestSlots::new(config.max_requests, config.memory.share(Holder::Answers));
        Self { config, routes, live, auth, hosts, slots }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        in_flight: InFlight,
    ) -> http::Response<Outgoing> {
        let (parts, _body) = request.into_parts();
        let request = PageRequest::new(parts);
        let if_none_match = request.header(header::IF_NONE_MATCH);
        let accept_encoding = request.header(header::ACCEPT_ENCODING);
        let current = self.live.current();
        let (response, permit) = match self.handle(&current, request, &in_flight).await {
            Ok(answered) => answered,
            Err(refusal) => (*refusal, None),
        };
        let mut response = response.unless_known(if_none_match.as_deref());
        let compressor = compressor(&mut response, accept_encoding.as_deref());
        if let Some(permit) = &permit {
            permit.hold(&response.body, compressor.is_some());
        }
        let Response { status, mut headers, body, encoding } = response;
        if encoding != Encoding::Identity {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str()));
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        for (name, value) in &current.headers {
            headers.insert(name, value.clone());
        }
        let held = Arc::new((in_flight, permit.map(|permit| permit as _)));
        let mut answer = http::Response::new(Outgoing { body, compressor, held });
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        answer
    }

    /// Runs the handler of an allowed request; otherwise responds with the reason.
    async fn handle(
        &self,
        current: &Current,
        mut request: PageRequest,
        in_flight: &InFlight,
    ) -> Result<(Response, Option<Arc<RequestPermit>>), Box<Response>> {
        if !request.is_unambiguous() {
            let sentence = "A request needs exactly one Host header, and at most one Authorization header.\n";
            return Err(refusal(StatusCode::BAD_REQUEST, sentence));
        }
        let found = self.routes.iter().find_map(|route| Some((route, route.matches(request.path())?)));
        let probe = found.as_ref().is_some_and(|(route, _)| route.kind == Kind::Probe);
        if !(probe && self.config.probes_without_auth) {
            // Comes first, so that a stranger does not learn which paths exist.
            self.authenticate(current, &request, in_flight.connection.peer(), probe).await?;
        }
        let kind = found.as_ref().map_or(Kind::Page, |(route, _)| route.kind);
        if let Some(sentence) = self.hosts.refusal(kind, &request) {
            return Err(refusal(StatusCode::FORBIDDEN, sentence));
        }
        let Some((route, segments)) = found else {
            let nothing = || refusal(StatusCode::NOT_FOUND, "There is nothing at this path.\n");
            return Err(self.redirect(&request).unwrap_or_else(nothing));
        };
        self.check_allowed(route, &request)?;
        // Probes keep pods alive, so they are always answered.
        let permit = if probe { None } else { Some(Arc::new(self.permit(in_flight).await?)) };
        // Its answer is a sentence, and may wait for a disk.
        if let (Kind::Lifecycle, Some(permit)) = (route.kind, &permit) {
            permit.hold(&Bytes::new().into(), false);
        }
        request.segments = segments;
        request.permit = permit.clone().map(|permit| permit as _);
        Ok(((route.handler)(request).await, permit))
    }

    /// Checks the password, then the rate limit. Strangers have a separate limit, so that they cannot exhaust the
    /// users'; probes have none.
    async fn authenticate(
        &self,
        current: &Current,
        request: &PageRequest,
        peer: Peer,
        probe: bool,
    ) -> Result<(), Box<Response>> {
        let authorization = request.parts.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let outcome = self.auth.check(&current.users, authorization, peer).await;
        let client = if outcome == AuthOutcome::Accepted { Client::User } else { Client::Stranger };
        if !(probe || current.admits(client)) {
            let sentence = "The rate limit of this server is reached.\n";
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, sentence));
        }
        match outcome {
            AuthOutcome::Accepted => Ok(()),
            AuthOutcome::Refused => {
                let response = Response::text(
                    StatusCode::UNAUTHORIZED,
                    "This page requires a user name and a password.\n",
                );
                Err(Box::new(response.header(header::WWW_AUTHENTICATE, challenge(&self.config.name))))
            }
            AuthOutcome::Busy => {
                let sentence = "Too many passwords are being checked; try again later.\n";
                Err(refusal(StatusCode::SERVICE_UNAVAILABLE, sentence))
            }
        }
    }

    /// Redirects `/`, and the prefix without its slash, to the status page below the prefix. The link is relative,
    /// because a proxy may have stripped a part of the path.
    fn redirect(&self, request: &PageRequest) -> Option<Box<Response>> {
        let (path, prefix) = (request.path(), self.config.prefix());
        let is_redirected = ["/", prefix].contains(&path) && Kind::Page.answers(&request.parts.method);
        let below = prefix.strip_prefix('/').filter(|_| is_redirected)?;
        let up = "../".repeat(path.matches('/').count().saturating_sub(1));
        let query = request.raw_query().map(|query| format!("?{query}")).unwrap_or_default();
        let location = format!("./{up}{below}/{query}");
        let response = Response::text(StatusCode::FOUND, format!("See {location}\n"));
        Some(Box::new(response.header(header::LOCATION, HeaderValue::try_from(location).ok()?)))
    }

    /// Whether its method and the lifecycle flag allow the request.
    fn check_allowed(&self, route: &Route, request: &PageRequest) -> Result<(), Box<Response>> {
        if !route.kind.answers(&request.parts.method) {
            let allow = route.kind.methods();
            let sentence = format!("This path only allows {allow}.\n");
            let response = Response::text(StatusCode::METHOD_NOT_ALLOWED, sentence);
            return Err(Box::new(response.header(header::ALLOW, HeaderValue::from_static(allow))));
        }
        if route.kind == Kind::Lifecycle && !self.config.enable_lifecycle {
            let sentence = "The lifecycle API is not enabled: start with --web.enable-lifecycle.\n";
            return Err(refusal(StatusCode::FORBIDDEN, sentence));
        }
        Ok(())
    }

    async fn permit(&self, in_flight: &InFlight) -> Result<RequestPermit, Box<Response>> {
        self.slots.take(in_flight).await.ok_or_else(|| {
            let limit = self.config.max_requests;
            let sentence = format!(
                "Limit of concurrent requests ({limit}) or of their memory reached; try again later.\n"
            );
            refusal(StatusCode::SERVICE_UNAVAILABLE, &sentence)
        })
    }
}

/// The value of `WWW-Authenticate` for the realm `name`, which is omitted if no header can hold it.
fn challenge(name: &str) -> HeaderValue {
    let realm = name.replace(['"', '\\'], "");
    HeaderValue::try_from(format!("Basic realm=\"{realm}\", charset=\"UTF-8\""))
        .unwrap_or(HeaderValue::from_static("Basic realm=\"exporter\", charset=\"UTF-8\""))
}

fn refusal(status: StatusCode, sentence: &str) -> Box<Response> {
    Box::new(Response::text(status, sentence))
}

/// The compressor for an outgoing response, if the client accepts it. Without a compressor the response is sent plain,
/// which every client can read.
fn compressor(response: &mut Response, accept_encoding: Option<&str>) -> Option<Compressor> {
    let large = response.body.exact_length().is_none_or(|length| length > PACKET);
    if response.encoding != Encoding::Identity || !large {
        return None;
    }
    let wanted = negotiate::encoding(accept_encoding);
    let compressor = response::compressor(wanted)?;
    response.encoding = wanted;
    Some(compressor)
}
