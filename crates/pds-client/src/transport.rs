//! A request and its reply over HTTP: TLS, proxy, time and size limits. No retries, no pace.
//!
//! No redirect is followed, so a token is sent only to the host of `api.base_url`. No compression is requested, and
//! nothing is decompressed. A reply is held once, in a buffer of its size, and [`ReplyRoom`] bounds the sum of all.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    DATE, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION, RETRY_AFTER, USER_AGENT,
};
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::body::{AccountRoom, Body, ReplyRoom};
use super::class::ReplyStage::{AfterHead, BeforeHead};
use super::class::{Class, ReplyStage, classify};
use super::credentials::Token;
use super::error::{FetchError, Reason};
use super::{Config, Shared, plain_http_warning};
use pds_core::memory::Room;
use pds_core::printable::excerpt;
use pds_core::redact::Redactor;
use pds_core::secret::Secret;
use pds_http::{BuildError, Connector, Held};
use pds_interface::Request;
use pds_interface::call::Method;
use pds_interface::reply::{error_message, is_web_page};

/// Idle connections are kept longer than the default poll interval.
const KEEP_IDLE: Duration = Duration::from_secs(90);
/// Missing replies to these pings reveal a dead connection. Until then, requests on it time out.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// The most unread bytes of all replies over HTTP/2, unless the smallest windows allow more.
pub const MAX_UNREAD: u32 = 8 * 1024 * 1024;
/// The least and the most unread bytes of a reply over HTTP/2. The connection has room for as many per request, so that
/// replies that wait for memory do not block others.
const MIN_WINDOW: u32 = 16 * 1024;
const MAX_WINDOW: u32 = 256 * 1024;
/// The most requests of a client. Over HTTP/2, a request above the server's limit blocks all that follow; servers should
/// allow a hundred (RFC 9113, 6.5.2).
const MAX_STREAMS: u32 = 100;
/// The most bytes read of an error page.
const MAX_ERROR_BYTES: u64 = 64 * 1024;
/// The proxy among the owners of secrets; accounts have the numbers of their queues, from 1.
const PROXY: u64 = 0;
/// The longest pause that one reply can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// A successful reply.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The HTTP status, 2xx.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// The time of the reply by the service's clock (`Date`).
    pub date: Option<Timestamp>,
    /// The time from sending the request to the end of the reply.
    pub took: Duration,
    /// Released once the reply is no longer needed.
    _room: Arc<Vec<Room>>,
}

/// The HTTP connection to the service.
pub(super) struct Transport {
    /// The client with the fewest references, one per request in flight, sends the next request.
    clients: Vec<Arc<legacy::Client<Connector, Full<Bytes>>>>,
    pub(super) api: Config,
    /// `api.base_url` without its last slash.
    base: String,
    /// Host and port of the proxy on the way, if there is one.
    proxy: Option<String>,
    proxy_login: Option<HeaderValue>,
    pub(super) shared: Shared,
}

/// The URL of `request` to the service at `base`. The request's path and query, which are encoded, follow the path of
/// `base`, an http or https URL without query and fragment.
pub fn request_url(base: &Url, request: &Request) -> String {
    let (mark, query) = request.query.as_deref().map_or(("", ""), |query| ("?", query));
    [base.as_str().trim_end_matches('/'), &request.path, mark, query].concat()
}

impl Transport {
    pub(super) fn new(api: &Config, shared: Shared) -> Result<Self, BuildError> {
        if let Some(warning) = plain_http_warning(&api.base_url) {
            tracing::warn!("{warning}");
        }
        let in_flight = api.max_concurrent_requests.get();
        let (streams, window) = (in_flight.min(MAX_STREAMS), window(in_flight));
        let reached = api.reached();
        let connector = pds_http::connector(reached.client()?.tcp_keepalive(KEEP_ALIVE))?;
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(streams as usize)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(api.connect_timeout)
            .http2_initial_stream_window_size(window)
            .http2_initial_connection_window_size(window * streams);
        let client = |_| Arc::new(builder.build(connector.clone()));
        // From here on, nothing fails: a reload that is refused changes no secrets.
        if let Some(password) = api.proxy_url.as_ref().and_then(Url::password) {
            shared.redactor.add(PROXY, &Secret::new(password));
        }
        Ok(Self {
            clients: (0..in_flight.div_ceil(MAX_STREAMS)).map(client).collect(),
            api: api.clone(),
            base: api.base_url.as_str().trim_end_matches('/').to_owned(),
            proxy: reached.proxy(),
            proxy_login: reached.proxy_login(&api.base_url),
            shared,
        })
    }

    /// Why no reply arrived.
    fn broken(&self, error: impl Error + Send + Sync + 'static, stage: ReplyStage) -> Reason {
        broken(error, stage, self.proxy.as_deref(), &self.api.base_url, &self.shared.redactor)
    }

    /// The error of `request`, which has failed for this reason.
    pub(super) fn failed(&self, request: &Request, reason: Reason) -> FetchError {
        FetchError { request: format!("{} {}{}", request.method.as_str(), self.base, request.path), reason }
    }

    /// Sends `request` and reads the reply.
    pub(super) async fn send(
        &self,
        request: &Request,
        token: &Token,
        room: &ReplyRoom,
        own: Option<&AccountRoom>,
    ) -> Result<Fetched, Reason> {
        let began = Instant::now();
        let deadline = began + self.api.timeout;
        let timeout = |_| Reason::Timeout(self.api.timeout);
        let sent_at = self.shared.clock.now();
        let prepared = self.prepared(request, token)?;
        let idlest = self.clients.iter().min_by_key(|client| Arc::strong_count(client));
        let client = Arc::clone(idlest.unwrap_or(&self.clients[0]));
        let head = timeout_at(deadline, client.request(prepared)).await.map_err(timeout)?;
        let response = head.map_err(|error| self.broken(error, BeforeHead))?;
        let date = http_date(response.headers(), &DATE);
        if let Some(date) = date {
            self.compare_clocks(date, sent_at, began.elapsed());
        }
        let status = response.status();
        if !status.is_success() {
            // The body of an error is useful, but the status is enough if the body does not arrive.
            let headers = response.headers().clone();
            let mut body = Body::new(MAX_ERROR_BYTES.min(self.api.max_response_bytes));
            // A part of it is used, too.
            let _ = timeout_at(deadline, body.read(response, room, own)).await;
            let body = self.shared.redactor.reply(body.bytes);
            return Err(self.status_error(status.as_u16(), &headers, &body));
        }
        if let Some(encoding) = self.encoding(response.headers()) {
            return Err(Reason::Encoded(encoding));
        }
        let mut body = Body::new(self.api.max_response_bytes);
        let read = timeout_at(deadline, body.read(response, room, own)).await.map_err(timeout)?;
        if !read.map_err(|error| self.broken(error, AfterHead))? {
            return Err(Reason::TooLarge(self.api.max_response_bytes));
        }
        let (bytes, room) = (self.shared.redactor.reply(body.bytes), Arc::new(body.room));
        Ok(Fetched { status: status.as_u16(), body: bytes.into(), date, took: began.elapsed(), _room: room })
    }

    /// Compares the service's clock with ours: a request sent at `sent_at` got a reply dated `date` after `round_trip`.
    fn compare_clocks(&self, date: Timestamp, sent_at: Timestamp, round_trip: Duration) {
        // The service wrote the date half a round trip ago, in whole seconds, so half a second early on average.
        let date = date.as_duration().as_secs_f64() + 0.5;
        let ours = sent_at.as_duration().as_secs_f64() + round_trip.as_secs_f64() / 2.0;
        self.shared.observer.clock_skew(date - ours);
    }

    fn prepared(&self, request: &Request, token: &Token) -> Result<http::Request<Full<Bytes>>, http::Error> {
        let mut prepared = http::Request::builder()
            .method(request.method.clone())
            .uri(request_url(&self.api.base_url, request))
            .header(ACCEPT, "application/json, text/plain;q=0.9")
            .header(ACCEPT_ENCODING, "identity")
            // A second reply must be evidence.
            .header(CACHE_CONTROL, "no-cache")
            .header(USER_AGENT, pds_http::USER_AGENT)
            .header(AUTHORIZATION, token.header.clone());
        if let Some(login) = &self.proxy_login {
            prepared = prepared.header(PROXY_AUTHORIZATION, login);
        }
        match &request.body {
            Some(body) => prepared.header(CONTENT_TYPE, "application/json").body(body.to_string().into()),
            // Strict front ends answer 411 without it.
            None if request.method == Method::POST => {
                prepared.header(CONTENT_LENGTH, 0).body(Full::default())
            }
            None => prepared.body(Full::default()),
        }
    }

    /// The content encoding of a reply, if it has one, shortened.
    fn encoding(&self, headers: &HeaderMap) -> Option<String> {
        let encoding = headers.get(CONTENT_ENCODING)?.to_str().unwrap_or("?").trim();
        let encoded = !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity");
        encoded.then(|| self.shared.redactor.text(encoding).chars().take(20).collect())
    }

    /// The failure that a reply with a status other than 2xx stands for.
    fn status_error(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Reason {
        let (text, message) = (String::from_utf8_lossy(body), error_message(body));
        match (status, headers.get(LOCATION)) {
            (300..400, Some(location)) => {
                // A token in place of a host is in lower case once it is parsed.
                let location = self.shared.redactor.text(String::from_utf8_lossy(location.as_bytes()));
                let location = redirect_target(&self.base, &location);
                let location = excerpt(&self.shared.redactor.text(location));
                Reason::Redirect { status, location }
            }
            // The texts of nginx, Apache and Go.
            (400, _)
                if self.api.base_url.scheme() == "http"
                    && ["HTTPS port", "SSL-enabled", "HTTPS server"].iter().any(|it| text.contains(it)) =>
            {
                match self.proxy.clone() {
                    None => Reason::TlsPort(message),
                    proxy => Reason::Transport { class: Class::ProxyConnect, proxy, source: message.into() },
                }
            }
            _ => {
                let proxy = self.proxy.as_ref().filter(|_| self.api.base_url.scheme() == "http");
                // A gateway error may come from the proxy.
                let proxy = proxy.filter(|_| matches!(status, 407 | 502..=504) || is_web_page(body));
                let proxy = proxy.map(|proxy| format!("through the proxy {proxy}"));
                let said = [Some(message).filter(|message| !message.is_empty()), proxy];
                let message = said.into_iter().flatten().collect::<Vec<_>>().join("; ");
                if matches!(status, 401 | 403) && is_web_page(body) {
                    return Reason::WebPage { status, title: message };
                }
                Reason::Status { status, message, retry_after: retry_after(headers, self.shared.clock.now()) }
            }
        }
    }
}

/// Why no reply arrived from the service at `base`: the library's `error` at this `stage`, through this `proxy` if any.
pub fn broken(
    error: impl Error + Send + Sync + 'static,
    stage: ReplyStage,
    proxy: Option<&str>,
    base: &Url,
    redactor: &Redactor,
) -> Reason {
    let source: Box<dyn Error + Send + Sync> = match Held::<reqwest::Error>::take_from(&error) {
        // The request's name already has the part of the URL that may be shown.
        Some(unconnected) => unconnected.without_url().into(),
        None => error.into(),
    };
    let class = match classify(&*source, stage, proxy.is_some()) {
        // Only the proxy can speak TLS, and it replies itself.
        class if proxy.is_none() || base.scheme() != "http" => class,
        class if class.code() == "tls" => Class::ProxyTls,
        Class::Protocol => Class::ProxyConnect,
        class => class,
    };
    let source = redactor.error(&*source).into();
    Reason::Transport { class, proxy: proxy.map(str::to_owned), source }
}

/// The most unread bytes of each of so many replies.
fn window(in_flight: u32) -> u32 {
    (MAX_UNREAD / in_flight).clamp(MIN_WINDOW, MAX_WINDOW)
}

/// The target of a redirect, without the parts that may hold secrets.
fn redirect_target(base: &str, location: &str) -> String {
    let target = Url::parse(base).and_then(|base| base.join(location)).ok();
    match target {
        Some(mut url) => {
            url.set_query(None);
            url.set_fragment(None);
            // Neither fails for a URL with a host, and a URL without one has no credentials.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.into()
        }
        None => "an address that is none".to_owned(),
    }
}

/// The pause that the service requests, an hour at most: seconds, or a date by the service's own clock, which the Date
/// header shows. `now` is our time, for replies without one.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A number of seconds has any number of digits.
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => MAX_RETRY_AFTER,
        Err(_) => {
            let until = http_date(headers, &RETRY_AFTER)?;
            let now = http_date(headers, &DATE).unwrap_or(now);
            Duration::try_from(until.duration_since(now)).unwrap_or_default()
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

fn http_date(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()?;
    // The last days of the year 9999 are beyond the library's times.
    Some(Timestamp::try_from(date).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_replies_take_8_mib_at_most_until_each_has_16_kib() {
        for in_flight in [1, 32, 33, 200, 512] {
            assert!(window(in_flight) * in_flight <= MAX_UNREAD, "{in_flight}");
        }
        assert_eq!([32, 200, 10_000].map(window), [256 * 1024, 41_943, 16 * 1024]);
    }

    fn waits(retry_after_is: &'static str, date: Option<&'static str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after_is));
        headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
        let now = "2021-01-01T00:00:30Z".parse().unwrap();
        retry_after(&headers, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        const ONE_MINUTE: &str = "Fri, 01 Jan 2021 00:01:00 GMT";
        assert_eq!(waits("120", None), Some(120));
        assert_eq!(waits(ONE_MINUTE, Some("Fri, 01 Jan 2021 00:00:50 GMT")), Some(10));
        assert_eq!(waits(ONE_MINUTE, None), Some(30));
        assert_eq!(waits(ONE_MINUTE, Some("Fri, 01 Jan 2021 00:02:00 GMT")), Some(0));
        assert_eq!(waits("Fri, 01 Jan 2038 00:00:00 GMT", None), Some(3600));
        for most in ["18446744073709551615", "18446744073709551616", "99999999999999999999999"] {
            assert_eq!(waits(most, None), Some(3600), "{most}");
        }
        for nonsense in ["", "soon", "-5", "1.5", "99999999999999999999s", "Fri, 99 Jan 2021 00:00:00 GMT"] {
            assert_eq!(waits(nonsense, None), None, "{nonsense}");
        }
    }

    #[test]
    fn the_target_of_a_redirect_is_shown_without_secrets() {
        let location = |to| redirect_target("https://api.example.com/cloud", to);
        assert_eq!(location("/login?token=x#y"), "https://api.example.com/login");
        assert_eq!(location("//u:p@other.example.com/a"), "https://other.example.com/a");
        assert_eq!(location("http://[bad"), "an address that is none");
    }
}
