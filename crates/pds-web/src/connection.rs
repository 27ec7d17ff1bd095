//! A connection after its handshake: its requests, and its end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::sync::watch;

use super::Limits;
use super::connection_state::ConnectionState;
use super::listen::Stream;
use super::router::Router;
use super::tracked_io::TrackedIo;

/// The phases of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShutdownPhase {
    /// Requests are taken.
    Serving,
    /// Requests in progress are finished.
    Draining,
    /// Connections are closed.
    Closed,
}

/// Requests of one HTTP/2 connection at once; a scraper sends one.
pub const MAX_STREAMS: u32 = 8;

/// Bytes of an answer in the buffers of one connection, besides one piece; more wait until the client reads.
const WRITE_BUFFER: usize = 512 * 1024;

/// Serves one connection until it ends by itself, or finishes its requests because of its age or a shutdown.
pub(super) async fn serve(
    stream: Box<dyn Stream>,
    http2: bool,
    router: Arc<Router>,
    state: &ConnectionState,
    shutdown: watch::Receiver<ShutdownPhase>,
) -> hyper::Result<()> {
    state.begin(http2);
    let limits = router.config.limits;
    let io = TokioIo::new(TrackedIo::of_requests(stream, state.clone(), http2));
    let service = service_fn({
        let state = state.clone();
        move |request: http::Request<Incoming>| {
            let router = Arc::clone(&router);
            let in_flight = state.open();
            async move { Ok::<_, Infallible>(router.answer(request, in_flight).await) }
        }
    });
    // `ConnectionState` keeps all timeouts; hyper needs a timer for HTTP/2.
    if http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(WRITE_BUFFER)
            .serve_connection(io, service);
        run(connection, state, limits, shutdown).await
    } else {
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(limits.max_header_bytes)
            .max_buf_size(limits.max_header_bytes.max(WRITE_BUFFER))
            .serve_connection(io, service);
        run(connection, state, limits, shutdown).await
    }
}

/// Runs a connection of either protocol to its end.
async fn run(
    connection: impl GracefulConnection<Error = hyper::Error>,
    state: &ConnectionState,
    limits: Limits,
    shutdown: watch::Receiver<ShutdownPhase>,
) -> hyper::Result<()> {
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = tokio::time::sleep(limits.max_connection_age) => {}
        () = reached(shutdown, ShutdownPhase::Draining) => {}
    }
    state.last_call();
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Completes once the shutdown has reached that phase.
pub(super) async fn reached(mut shutdown: watch::Receiver<ShutdownPhase>, wanted: ShutdownPhase) {
    // A server that is gone has passed every phase.
    let _ = shutdown.wait_for(|phase| *phase >= wanted).await;
}
