//! The stream of a connection, above and below TLS. Reports reads and writes to the [`ConnectionState`], and limits
//! records and frames that cost the client little.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::ConnectionState;
use super::meter::{FRAMES, Meter, RECORDS};

/// Records after which other connections get a turn; decrypting them takes less than a tenth of a millisecond.
const RECORDS_AT_ONCE: u32 = 32;

/// Traffic of a stream.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Layer {
    /// The bytes below TLS.
    Tls,
    /// Requests and answers of HTTP/1.
    Http1,
    /// Frames of HTTP/2.
    Http2,
}

/// A stream that reports to a [`ConnectionState`], and bounds TLS records and HTTP/2 frames.
pub(super) struct TrackedIo<S> {
    stream: S,
    connection: ConnectionState,
    layer: Layer,
    meter: Option<Meter>,
    /// Records since other connections had a turn.
    records: u32,
}

impl<S> TrackedIo<S> {
    pub(super) fn new(stream: S, connection: ConnectionState, layer: Layer) -> Self {
        let meter = match layer {
            Layer::Tls => Some(Meter::new(RECORDS)),
            Layer::Http1 => None,
            Layer::Http2 => Some(Meter::new(FRAMES)),
        };
        Self { stream, connection, layer, meter, records: 0 }
    }

    /// Records that bytes have arrived. Fails if they contain too many frames or records.
    fn arrived(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut earned = 0;
        match self.layer {
            Layer::Tls => earned = self.connection.take_requested(),
            Layer::Http1 | Layer::Http2 => self.connection.arrived(bytes.len()),
        }
        if let Some(meter) = &mut self.meter {
            meter.earn(earned);
            let units = meter.count(bytes).ok_or_else(|| io::Error::other("too many frames or records"))?;
            self.records += units;
        }
        Ok(())
    }

    /// Records that the client took the bytes in `result`.
    fn wrote(&mut self, result: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes @ 1..)), Layer::Http1 | Layer::Http2) = (result, self.layer) {
            self.connection.written();
            if let Some(frames) = &mut self.meter {
                frames.earn(*bytes);
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
        // The layer above reads on until a record holds a part of a request.
        if self.layer == Layer::Tls && self.records >= RECORDS_AT_ONCE {
            self.records = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        match buf.filled().get(before..) {
            Some(bytes @ [_, ..]) => Poll::Ready(self.arrived(bytes)),
            _ => result,
        }
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
        let mut server = TrackedIo::new(server, connection.clone(), Layer::Http1);
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
