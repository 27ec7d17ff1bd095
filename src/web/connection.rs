//! One connection from its first byte to its last: handshake, requests, and the end, whoever wants it.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;

use super::Limits;
use super::listen::Stream;
use super::router::Router;
use super::timeouts::{ConnectionTimeouts, TrackedIo};

/// How far the server's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerState {
    /// Requests are taken.
    Serving,
    /// Those under way are finished.
    Draining,
    /// What is not finished is broken off.
    Closed,
}

/// Requests of one HTTP/2 connection at once; a scraper sends one.
const MAX_STREAMS: u32 = 32;

/// An answer is handed to the system up to about this much at once; then the client has to take it.
const WRITE_BUFFER: usize = 1024 * 1024;

/// Serves one connection until it ends, does nothing for too long, or the server stops.
pub(super) async fn serve(
    stream: Box<dyn Stream>,
    http2: bool,
    site: Arc<Router>,
    limits: Limits,
    stage: watch::Receiver<ServerState>,
) {
    let timeouts = ConnectionTimeouts::new(limits, http2);
    let io = TokioIo::new(TrackedIo::new(stream, timeouts.clone()));
    let service = service_fn({
        let timeouts = timeouts.clone();
        move |request: http::Request<Incoming>| {
            let site = Arc::clone(&site);
            let open = timeouts.open();
            async move {
                let mut answer = site.answer(request).await;
                answer.body_mut().report_to(open);
                Ok::<_, Infallible>(answer)
            }
        }
    });
    // The timeouts watch all times; the timer is only hyper's need for HTTP/2.
    if http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(WRITE_BUFFER)
            .serve_connection(io, service);
        let connection = std::pin::pin!(connection);
        run(connection, |connection| connection.graceful_shutdown(), &timeouts, stage).await;
    } else {
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(limits.max_header_bytes)
            .max_buf_size(limits.max_header_bytes.max(WRITE_BUFFER))
            .serve_connection(io, service);
        let connection = std::pin::pin!(connection);
        run(connection, |connection| connection.graceful_shutdown(), &timeouts, stage).await;
    }
}

/// Runs a connection of either protocol to its end.
async fn run<C>(
    mut connection: std::pin::Pin<&mut C>,
    finish: impl Fn(std::pin::Pin<&mut C>),
    timeouts: &ConnectionTimeouts,
    mut stage: watch::Receiver<ServerState>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut draining = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            why = timeouts.expired() => {
                tracing::debug!(why, "a connection was closed");
                return;
            }
            () = reached(&mut stage, if draining { ServerState::Closed } else { ServerState::Draining }) => {
                if draining {
                    return;
                }
                draining = true;
                timeouts.last_call();
                finish(connection.as_mut());
            }
        }
    }
}

/// Completes once the server's end has come that far.
pub(super) async fn reached(stage: &mut watch::Receiver<ServerState>, wanted: ServerState) {
    // A server that is gone has come all the way.
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}
