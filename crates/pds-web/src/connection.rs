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

/// Requests of one HTTP/2 connection at once, so that it cannot take all slots of `--web.max-requests`; a scraper sends
/// one.
pub const MAX_STREAMS: u32 = 4;

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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::auth::Auth;
    use crate::route::Route;
    use crate::turns::Peer;
    use crate::webconfig::Live;
    use crate::{Config, Observer};

    /// An HTTP/2 frame with a short payload.
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags], &stream.to_be_bytes()[..], payload].concat()
    }

    #[tokio::test]
    async fn a_stream_above_the_limit_is_refused_so_that_its_client_may_repeat_it() {
        let observer: Arc<dyn Observer> = Arc::new(());
        let live = Live::start(None, Arc::clone(&observer)).unwrap();
        let page = Route::page("/", |_| std::future::pending());
        let router = Router::new(Config::default(), &[], vec![page], live, Auth::new().unwrap());
        let state = ConnectionState::new(Peer::Local, Limits::default(), observer);
        let (_phase, watched) = watch::channel(ShutdownPhase::Serving);
        let (mut client, server) = tokio::io::duplex(4096);
        let served = serve(Box::new(server), true, Arc::new(router), &state, watched);
        let refused = async {
            let mut requests = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, b"")].concat();
            for number in 0..=MAX_STREAMS {
                // GET, https and / of the static table; the authority as a literal.
                requests.extend(frame(1, 5, 2 * number + 1, b"\x82\x87\x84\x01\x09localhost"));
            }
            client.write_all(&requests).await.unwrap();
            let (refused, mut read) = (frame(3, 0, 2 * MAX_STREAMS + 1, &[0, 0, 0, 7]), Vec::new());
            while !read.windows(refused.len()).any(|frame| frame == refused) {
                assert!(client.read_buf(&mut read).await.unwrap() > 0);
            }
            // No other stream is reset.
            assert_eq!(read.windows(5).filter(|head| *head == &refused[..5]).count(), 1);
        };
        tokio::select! {
            _ = served => panic!("the connection ended"),
            () = refused => {}
        }
    }
}
