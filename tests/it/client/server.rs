//! A small HTTP server with configured replies, good or bad, that records its requests.

use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt as _, Collected, StreamBody};
use hyper::body::{Body, Frame};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pds_interface::TimeRange;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Between two drops.
pub(crate) const DRIP: Duration = Duration::from_millis(10);

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its place among all requests, from 0.
    pub(crate) number: usize,
    pub(crate) method: String,
    /// The target of the request line: a whole URL if the client uses the server as a proxy.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) version: http::Version,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The range that the query asks for.
    pub(crate) fn range(&self) -> TimeRange {
        let (_, query) = self.target.split_once('?').unwrap();
        let bound = |wanted: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            let (_, time) = pairs.find(|(name, _)| name == wanted).unwrap();
            time.parse::<jiff::Timestamp>().unwrap().as_second()
        };
        TimeRange { start: bound("start"), end: bound("end") }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: ReplyBody,
    delay: Duration,
    beside: usize,
}

#[derive(Clone, Debug)]
enum ReplyBody {
    Whole(Bytes),
    /// These bytes, and then the connection breaks.
    Cut(Bytes),
    /// These bytes, and then one each 10 ms, for ever.
    Drip(Bytes),
    /// As many bytes as the client reads.
    Endless,
}

/// 200 with a body.
pub(crate) fn ok(body: impl Into<Bytes>) -> Reply {
    status(200, body)
}

/// A status with a body.
pub(crate) fn status(status: u16, body: impl Into<Bytes>) -> Reply {
    Reply {
        status,
        headers: Vec::new(),
        body: ReplyBody::Whole(body.into()),
        delay: Duration::ZERO,
        beside: 0,
    }
}

impl Reply {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn cut(self, body: &'static str) -> Self {
        Self { body: ReplyBody::Cut(Bytes::from_static(body.as_bytes())), ..self }
    }

    /// With a byte-order mark before its body.
    pub(crate) fn after_mark(self) -> Self {
        let ReplyBody::Whole(body) = &self.body else { panic!("no whole body") };
        let body = if body.is_empty() { body.clone() } else { [b"\xef\xbb\xbf", &body[..]].concat().into() };
        Self { body: ReplyBody::Whole(body), ..self }
    }

    pub(crate) fn dripping(self) -> Self {
        let ReplyBody::Whole(begin) = self.body else { panic!("no whole body") };
        Self { body: ReplyBody::Drip(begin), ..self }
    }

    pub(crate) fn endless(self) -> Self {
        Self { body: ReplyBody::Endless, ..self }
    }

    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Not before so many requests have been under way at once.
    pub(crate) fn beside(self, requests: usize) -> Self {
        Self { beside: requests, ..self }
    }
}

type Handler = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A running server; it ends with the runtime.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    handler: Box<Handler>,
    connections: AtomicUsize,
    /// Bytes of bodies handed to the connection.
    written: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
}

impl Server {
    pub(crate) async fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::on("127.0.0.1:0", None, handler).await
    }

    pub(crate) async fn on(
        address: &str,
        tls: Option<TlsAcceptor>,
        handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let state = Arc::new(State {
            handler: Box::new(handler),
            connections: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
            seen: Mutex::default(),
        });
        let server = Self { address: listener.local_addr().unwrap(), state: state.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                state.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, tls.clone(), state.clone()));
            }
        });
        server
    }

    /// How many connections were ever made to it.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// How many bytes of bodies were taken off it.
    pub(crate) fn written(&self) -> usize {
        self.state.written.load(Ordering::Relaxed)
    }

    /// The most requests that were under way at once.
    pub(crate) fn most_under_way(&self) -> usize {
        self.state.most_under_way.load(Ordering::Relaxed)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// How many requests so far.
    pub(crate) fn count(&self) -> usize {
        self.state.seen.lock().unwrap().len()
    }
}

/// A port that answers each request with these bytes and closes.
pub(crate) fn port(reply: impl AsRef<[u8]> + Send + 'static) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(reply.as_ref());
        }
    });
    address
}

/// A service that answers each request with 1xx replies without end; its address, how many bytes it has written, and how
/// many requests it got.
pub(crate) fn flooding() -> (String, Arc<AtomicU64>, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, written) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicU64::new(0)));
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(2000);
    let total = Arc::clone(&written);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            let (flood, total) = (flood.clone(), Arc::clone(&total));
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                while stream.write_all(flood.as_bytes()).is_ok() {
                    total.fetch_add(flood.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (address, written, requests)
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, state: Arc<State>) {
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Error>(state.answer(request).await) }
    });
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    // As many as a server has to allow.
    builder.http2().max_concurrent_streams(100);
    // Connections break in these tests on purpose; what the client makes of it is what counts.
    let _ = match tls {
        None => builder.serve_connection(TokioIo::new(stream), service).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
            Err(_) => return,
        },
    };
}

impl State {
    async fn answer(
        self: Arc<Self>,
        request: http::Request<hyper::body::Incoming>,
    ) -> Response<impl Body<Data = Bytes, Error = Error>> {
        let (request, body) = request.into_parts();
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        let seen = {
            let mut all = self.seen.lock().unwrap();
            let seen = Seen {
                number: all.len(),
                method: request.method.to_string(),
                target: request.uri.to_string(),
                headers: request.headers,
                version: request.version,
                body,
            };
            all.push(seen.clone());
            seen
        };
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_under_way.fetch_max(now, Ordering::Relaxed);
        let reply = (self.handler)(&seen);
        while self.most_under_way.load(Ordering::Relaxed) < reply.beside {
            tokio::time::sleep(DRIP).await;
        }
        tokio::time::sleep(reply.delay).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        let mut response = Response::builder().status(reply.status);
        for (name, value) in &reply.headers {
            response = response.header(*name, value);
        }
        response.body(body_of(reply.body, self.clone())).unwrap()
    }
}

/// The body of a reply, and how much of it is taken.
fn body_of(reply: ReplyBody, state: Arc<State>) -> impl Body<Data = Bytes, Error = Error> {
    StreamBody::new(stream::unfold((reply, false), move |(reply, begun)| {
        let state = state.clone();
        async move {
            let bytes = match &reply {
                ReplyBody::Whole(_) if begun => return None,
                ReplyBody::Cut(_) if begun => {
                    // Not before what came so far was written out.
                    tokio::time::sleep(DRIP).await;
                    return Some((Err(ErrorKind::ConnectionReset.into()), (reply, begun)));
                }
                ReplyBody::Drip(_) if begun => {
                    tokio::time::sleep(DRIP).await;
                    Bytes::from_static(b" ")
                }
                ReplyBody::Whole(bytes) | ReplyBody::Cut(bytes) | ReplyBody::Drip(bytes) => bytes.clone(),
                ReplyBody::Endless => Bytes::from_static(&[b' '; 16 * 1024]),
            };
            state.written.fetch_add(bytes.len(), Ordering::Relaxed);
            Some((Ok(Frame::data(bytes)), (reply, true)))
        }
    }))
}
