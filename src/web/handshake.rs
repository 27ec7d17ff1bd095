//! TLS handshakes. Their cost (an RSA signature takes milliseconds) is kept off the serving thread.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::listen::Stream;
use super::peer::Peer;
use super::turns::Turns;

/// Handshakes computed at once: one leaves the other processors to scrapes.
const AT_ONCE: usize = 1;

/// Handshakes that may wait for their turn, at a few milliseconds each.
const MAX_WAITING: usize = 256;

/// The turns of all handshakes.
pub(super) fn turns() -> Turns {
    Turns::new(AT_ONCE, MAX_WAITING)
}

/// Performs the handshake with a client.
///
/// # Errors
/// If the client does not speak TLS as `config` asks for, or too many handshakes wait.
pub(super) async fn accept(
    stream: Box<dyn Stream>,
    config: Arc<ServerConfig>,
    turns: &Turns,
    peer: Peer,
) -> io::Result<TlsStream<Box<dyn Stream>>> {
    // Until the client's hello has arrived there is nothing to compute.
    let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let turn = turns.acquire(peer).await.ok_or_else(|| io::Error::other("too many TLS handshakes wait"))?;
    let computed = tokio::task::spawn_blocking(move || {
        let mut accept = Box::pin(hello.into_stream(config));
        // The first step holds the key exchange and the signature. Awaited below, it is polled again anyway.
        let first = accept.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(turn);
        (accept, first)
    });
    match computed.await? {
        (_, Poll::Ready(shaken)) => shaken,
        (accept, Poll::Pending) => accept.await,
    }
}
