//! One connection after its handshake: its requests, and its end by either side.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;

use super::Limits;
use super::connection_state::ConnectionState;
use super::listen::Stream;
use super::router::Router;
use super::tracked_io::TrackedIo;

/// The phases of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerState {
    /// Requests are taken.
    Serving,
    /// Requests in progress are finished.
    Draining,
    /// Connections are closed.
    Closed,
}

/// Requests of one HTTP/2 connection at once; a scraper sends one.
pub(super) const MAX_STREAMS: u32 = 8;

/// Bytes of an answer in the buffers of one connection, beside one piece; further ones wait until the client reads.
const WRITE_BUFFER: usize = 512 * 1024;

/// Serves one connection until it ends, its time is up, or the server stops.
pub(super) async fn serve(
    stream: Box<dyn Stream>,
    http2: bool,
    router: Arc<Router>,
    limits: Limits,
    state: &ConnectionState,
    server: watch::Receiver<ServerState>,
) {
    state.begin(http2);
    let io = TokioIo::new(TrackedIo::new(stream, state.clone(), http2));
    let service = service_fn({
        let state = state.clone();
        move |request: http::Request<Incoming>| {
            let router = Arc::clone(&router);
            let in_flight = state.open();
            async move { Ok::<_, Infallible>(router.answer(request, in_flight).await) }
        }
    });
    // All timeouts are those of `ConnectionState`; hyper needs a timer for HTTP/2.
    if http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(WRITE_BUFFER)
            .serve_connection(io, service);
        let connection = std::pin::pin!(connection);
        run(connection, |connection| connection.graceful_shutdown(), state, limits, server).await;
    } else {
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(limits.max_header_bytes)
            .max_buf_size(limits.max_header_bytes.max(WRITE_BUFFER))
            .serve_connection(io, service);
        let connection = std::pin::pin!(connection);
        run(connection, |connection| connection.graceful_shutdown(), state, limits, server).await;
    }
}

/// Runs a connection of either protocol to its end.
async fn run<C>(
    mut connection: std::pin::Pin<&mut C>,
    finish: impl Fn(std::pin::Pin<&mut C>),
    state: &ConnectionState,
    limits: Limits,
    mut server: watch::Receiver<ServerState>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut aged = std::pin::pin!(tokio::time::sleep(limits.max_connection_age));
    let (mut draining, mut finishing) = (false, false);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            why = state.expired() => {
                tracing::debug!(why, "a connection was closed");
                return;
            }
            () = aged.as_mut(), if !finishing => {
                finishing = true;
                state.last_call();
                finish(connection.as_mut());
            }
            () = reached(&mut server, if draining { ServerState::Closed } else { ServerState::Draining }) => {
                if draining {
                    return;
                }
                draining = true;
                finishing = true;
                state.last_call();
                finish(connection.as_mut());
            }
        }
    }
}

/// Completes once the shutdown has reached that phase.
pub(super) async fn reached(server: &mut watch::Receiver<ServerState>, wanted: ServerState) {
    // A server that is gone has passed every phase.
    let _ = server.wait_for(|state| *state >= wanted).await;
}
