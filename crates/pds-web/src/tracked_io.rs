//! The stream of a connection, above and below TLS. Reports reads and writes to the [`ConnectionState`], and limits
//! HTTP/2 frames and TLS records.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::ConnectionState;
use super::meter::{FRAMES, Meter, RECORDS};

/// Records after which other connections get a turn; decrypting them takes less than a tenth of a millisecond.
const RECORDS_AT_ONCE: u32 = 32;

/// A stream that reports to a [`ConnectionState`], and bounds TLS records and HTTP/2 frames.
pub(super) struct TrackedIo<S> {
    stream: S,
    connection: ConnectionState,
    below_tls: bool,
    meter: Option<Meter>,
    /// Records since other connections had a turn.
    records: u32,
}

impl<S> TrackedIo<S> {
    /// The stream below TLS.
    pub(super) fn below_tls(stream: S, connection: ConnectionState) -> Self {
        Self { stream, connection, below_tls: true, meter: Some(Meter::new(RECORDS)), records: 0 }
    }

    /// The stream of requests and answers.
    pub(super) fn of_requests(stream: S, connection: ConnectionState, http2: bool) -> Self {
        let meter = http2.then(|| Meter::new(FRAMES));
        Self { stream, connection, below_tls: false, meter, records: 0 }
    }

    /// Records that bytes have arrived. Fails if they contain too many frames or records.
    fn arrived(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.below_tls {
            self.connection.arrived(bytes.len());
        }
        if let Some(meter) = &mut self.meter {
            if self.below_tls {
                meter.earn(self.connection.take_requested());
            }
            let units = meter.count(bytes).ok_or_else(|| io::Error::other("too many frames or records"))?;
            self.records += units;
        }
        Ok(())
    }

    /// Records that the client took the bytes in `result`.
    fn wrote(&mut self, result: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes @ 1..)), false) = (result, self.below_tls) {
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
        if self.below_tls && self.records >= RECORDS_AT_ONCE {
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
        let mut server = TrackedIo::of_requests(server, connection.clone(), false);
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
