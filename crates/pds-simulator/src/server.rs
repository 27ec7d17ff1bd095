//! Serves a world on a listener.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming as Receiving;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, ErrorReply};
use super::body::{Chunks, Sending};
use super::control;
use super::disturb::{Disturbed, http_date, replaces_the_call};
use super::journal::Entry;
use super::routes::{self, Incoming, Route};
use super::world::World;

/// Time for replies in flight to finish at shutdown.
const DRAIN: Duration = Duration::from_secs(1);

/// Maximum size of a request's body.
const MAX_BODY: usize = 1024 * 1024;

/// Answers for `world` on `listener`, over HTTP/1.1 and HTTP/2 (with prior knowledge), until `shutdown` is done.
/// Replies in flight get a second to finish; then all connections are closed.
pub async fn serve(world: World, listener: TcpListener, shutdown: impl Future<Output = ()>) {
    serve_over(world, listener, None, shutdown).await;
}

/// As [`serve`], over TLS if there is an acceptor, which decides on HTTP/2.
pub async fn serve_over(
    world: World,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shutdown: impl Future<Output = ()>,
) {
    let mut shutdown = pin!(shutdown);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            // Errors concern a single connection, or are a temporary lack of descriptors.
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(world.clone(), stream, tls.clone(), graceful.watcher()));
                }
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    // Connections that are still open are closed.
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    connections.shutdown().await;
}

async fn connection(world: World, stream: TcpStream, tls: Option<TlsAcceptor>, watcher: Watcher) {
    let _connected = world.recorder().connect();
    // Small replies must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(Reset::default());
    let wire = Wire { stream, reset: Arc::clone(&reset) };
    match tls {
        None => exchange(world, wire, &reset, watcher).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(wire).await {
                exchange(world, stream, &reset, watcher).await;
            }
        }
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    world: World,
    stream: S,
    reset: &Arc<Reset>,
    watcher: Watcher,
) {
    let service = service_fn(|request| respond(world.clone(), Arc::clone(reset), request));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let dated = !world.settings().quirks.undated;
    builder.http1().header_read_timeout(None).auto_date_header(dated);
    builder.http2().auto_date_header(dated);
    let connection = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
    tokio::select! {
        _ = connection => {}
        () = reset.wanted() => {}
    }
}

async fn respond(
    world: World,
    reset: Arc<Reset>,
    request: Request<Receiving>,
) -> Result<Response<Sending>, Infallible> {
    let under_way = world.recorder().begin();
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await;
    let body = body.map(|body| body.to_bytes());
    let gzip = world.settings().quirks.compresses
        && parts.headers.get(header::ACCEPT_ENCODING).is_some_and(|accepted| accepted.as_bytes() == b"gzip");
    let mut disturbed = match &body {
        Ok(body) => reply(
            &world,
            &Incoming {
                method: parts.method.as_str(),
                path: parts.uri.path(),
                query: parts.uri.query().unwrap_or_default(),
                authorization: parts.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes),
                content_type: parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes),
                body,
            },
        ),
        Err(_) => Disturbed::new(ErrorReply::new(413, "the body is too large").answer()),
    };
    if gzip {
        disturbed.answer.compress();
    }
    if !disturbed.delay.is_zero() {
        tokio::time::sleep(disturbed.delay).await;
    }
    if disturbed.reset {
        reset.ask();
        return std::future::pending().await;
    }
    Ok(response(&world, disturbed, under_way))
}

/// Finds the call, answers it, and applies faults.
fn reply(world: &World, incoming: &Incoming<'_>) -> Disturbed {
    if incoming.path.starts_with(control::PREFIX) {
        return Disturbed::new(control::answer(world, incoming).unwrap_or_else(ErrorReply::answer));
    }
    let route = match Route::find(incoming.method, incoming.path) {
        Ok(route) => route,
        Err(refusal) => return Disturbed::new(refusal.answer()),
    };
    let now = world.clock().now();
    let (project, app) = (route.id("project_id"), route.id("app_id"));
    let metrics = routes::asked_range(world, route.call, incoming.query);
    let faults = world.faults().draw(route.call, (project, app), &metrics);
    let answer = match faults.iter().any(replaces_the_call) {
        true => Answer::empty(),
        false => routes::answer(world, &route, incoming).unwrap_or_else(ErrorReply::answer),
    };
    let mut disturbed = Disturbed::new(answer);
    for fault in &faults {
        disturbed.apply(fault, now);
    }
    let some = |id: &str| (!id.is_empty()).then(|| Arc::from(id));
    let (range, container) = metrics;
    world.recorder().record(Entry {
        at: now,
        call: route.call.id,
        project: some(project),
        app: some(app),
        range,
        container,
        status: (!disturbed.reset).then_some(disturbed.answer.status),
    });
    disturbed
}

fn response(world: &World, disturbed: Disturbed, under_way: super::journal::UnderWay) -> Response<Sending> {
    let Disturbed { answer, chunks, skew, .. } = disturbed;
    let chunks = chunks.unwrap_or_else(|| Chunks::from(answer.body));
    let now = world.clock().now();
    let date = http_date(now.checked_add(skew).unwrap_or(now));
    // A body that is cut off is announced with its full length.
    let announced = chunks.length.filter(|_| chunks.cut);
    let mut response = Response::new(Sending::new(chunks, under_way));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.extend(answer.headers);
    headers.extend(announced.map(|length| (header::CONTENT_LENGTH, HeaderValue::from(length))));
    if !world.settings().quirks.undated {
        headers.extend(HeaderValue::from_str(&date).ok().map(|date| (header::DATE, date)));
    }
    response
}

/// Whether a connection is to be reset.
#[derive(Debug, Default)]
struct Reset {
    asked: AtomicBool,
    notify: Notify,
}

impl Reset {
    fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    async fn wanted(&self) {
        self.notify.notified().await;
    }
}

/// A connection's stream, which can be reset instead of closed.
#[derive(Debug)]
struct Wire {
    stream: TcpStream,
    reset: Arc<Reset>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.reset.asked.load(Ordering::Acquire) {
            // Without lingering the kernel sends RST instead of FIN.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
