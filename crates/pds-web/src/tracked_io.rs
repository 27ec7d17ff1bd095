//! The stream of a connection: what is read and written is reported to the [`ConnectionState`].

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::ConnectionState;
use super::frames::FrameBudget;

/// A stream that reports to a [`ConnectionState`] and bounds HTTP/2 frames.
pub(super) struct TrackedIo<S> {
    stream: S,
    connection: ConnectionState,
    frames: Option<FrameBudget>,
}

impl<S> TrackedIo<S> {
    pub(super) fn new(stream: S, connection: ConnectionState, http2: bool) -> Self {
        Self { stream, connection, frames: http2.then(FrameBudget::new) }
    }

    /// The client took what `result` says.
    fn wrote(&mut self, result: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes @ 1..)) = result {
            self.connection.written();
            if let Some(frames) = &mut self.frames {
                frames.sent(*bytes);
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        let arrived = buf.filled().get(before..).unwrap_or_default();
        if !arrived.is_empty() {
            self.connection.arrived();
            if self.frames.as_mut().is_some_and(|frames| !frames.allows(arrived)) {
                return Poll::Ready(Err(io::Error::other("too many HTTP/2 frames")));
            }
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;
    use crate::Limits;
    use crate::turns::Peer;

    #[tokio::test(start_paused = true)]
    async fn bytes_that_drip_do_not_buy_time() {
        let limits = Limits::default();
        let connection = ConnectionState::new(Peer::Local, Limits::default(), std::sync::Arc::new(()));
        connection.begin(false);
        let began = Instant::now();
        let (mut client, server) = tokio::io::duplex(64);
        let mut server = TrackedIo::new(server, connection.clone(), false);
        let dripping = async {
            loop {
                client.write_u8(b'x').await.unwrap();
                server.read_u8().await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = dripping => {}
            _ = connection.expired() => assert_eq!(began.elapsed(), limits.header_timeout),
        }
    }
}
