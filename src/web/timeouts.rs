//! What a connection is doing, and how long it may: one clock for slow headers, idle connections and readers
//! that are stuck.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Limits;

/// The shared record of one connection.
#[derive(Clone)]
pub(super) struct ConnectionTimeouts(Arc<Record>);

struct Record {
    limits: Limits,
    /// HTTP/2 has traffic of its own between requests, so bytes that arrive are no sign of a request.
    multiplexed: bool,
    state: Mutex<State>,
    sooner: Notify,
}

struct State {
    /// Requests taken and not yet answered in full.
    open: usize,
    phase: Phase,
    /// Answers with a piece under way, by number: since when the client has not taken it. One, or a few over HTTP/2.
    sending: Vec<(u64, Instant)>,
    /// The number of the next answer.
    next: u64,
    /// Set when the server stops: a connection without a request has until then.
    leave_by: Option<Instant>,
    /// When [`ConnectionTimeouts::expired`] looks again by itself; `None` where it has nothing to wait for.
    looks_at: Option<Instant>,
}

/// What a connection without an open request does.
#[derive(Clone, Copy)]
enum Phase {
    /// A request has begun to arrive, or the connection is new.
    Reading(Instant),
    /// Kept alive, nothing has arrived since the last answer.
    Idle(Instant),
}

/// How long a connection that has not sent a whole request yet gets to do so when the server stops.
const LAST_CALL: Duration = Duration::from_secs(1);

impl ConnectionTimeouts {
    pub(super) fn new(limits: Limits, multiplexed: bool) -> Self {
        let phase = Phase::Reading(Instant::now());
        let state = State { open: 0, phase, sending: Vec::new(), next: 0, leave_by: None, looks_at: None };
        Self(Arc::new(Record { limits, multiplexed, state: Mutex::new(state), sooner: Notify::new() }))
    }

    /// A request was taken; the guard is dropped once it is answered.
    pub(super) fn open(&self) -> InFlight {
        let mut state = self.state();
        state.open += 1;
        state.next += 1;
        InFlight { timeouts: self.clone(), number: state.next }
    }

    /// The server stops.
    pub(super) fn last_call(&self) {
        let mut state = self.state();
        state.leave_by = Some(Instant::now() + LAST_CALL);
        self.changed(&state);
    }

    /// Completes once the connection has done what it does for too long.
    pub(super) async fn expired(&self) -> &'static str {
        loop {
            let due = {
                let mut state = self.state();
                let due = self.due(&state);
                state.looks_at = due.map(|(at, _)| at);
                due
            };
            match due {
                Some((at, why)) if at <= Instant::now() => return why,
                Some((at, _)) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.0.sooner.notified() => {}
                },
                None => self.0.sooner.notified().await,
            }
        }
    }

    fn due(&self, state: &State) -> Option<(Instant, &'static str)> {
        let limits = &self.0.limits;
        let stuck = state.sending.iter().map(|(_, since)| *since).min();
        let stuck = stuck.map(|since| (since + limits.write_timeout, "the client does not read"));
        let waiting = (state.open == 0).then(|| {
            let (at, why) = match state.phase {
                Phase::Reading(since) => (since + limits.header_timeout, "no whole request arrived"),
                Phase::Idle(since) => (since + limits.idle_timeout, "idle"),
            };
            state.leave_by.filter(|leave_by| *leave_by < at).map_or((at, why), |at| (at, "the server stops"))
        });
        [stuck, waiting].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Wakes [`ConnectionTimeouts::expired`] where it would look too late. Where something is due later than it was, it finds that
    /// out by itself: nobody is woken for each piece of an answer.
    fn changed(&self, state: &State) {
        let due = self.due(state).map(|(at, _)| at);
        if due.is_some_and(|due| state.looks_at.is_none_or(|looks_at| due < looks_at)) {
            self.0.sooner.notify_one();
        }
    }

    fn arrived(&self) {
        let mut state = self.state();
        if state.open == 0 && matches!(state.phase, Phase::Idle(_)) && !self.0.multiplexed {
            state.phase = Phase::Reading(Instant::now());
            self.changed(&state);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
pub(super) struct InFlight {
    timeouts: ConnectionTimeouts,
    number: u64,
}

impl InFlight {
    /// A piece of the answer is on its way; the next is asked for once the client has taken most of it.
    pub(super) fn sending(&self) {
        let mut state = self.timeouts.state();
        state.sending.push((self.number, Instant::now()));
        self.timeouts.changed(&state);
    }

    /// The client waits for the next piece.
    pub(super) fn taken(&self) {
        self.timeouts.state().taken(self.number);
    }
}

impl State {
    fn taken(&mut self, number: u64) {
        self.sending.retain(|(sending, _)| *sending != number);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.timeouts.state();
        state.taken(self.number);
        state.open -= 1;
        if state.open == 0 {
            state.phase = Phase::Idle(Instant::now());
            self.timeouts.changed(&state);
        }
    }
}

/// A stream that reports to a [`ConnectionTimeouts`].
pub(super) struct TrackedIo<S> {
    stream: S,
    timeouts: ConnectionTimeouts,
}

impl<S> TrackedIo<S> {
    pub(super) fn new(stream: S, timeouts: ConnectionTimeouts) -> Self {
        Self { stream, timeouts }
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
        if buf.filled().len() > before {
            self.timeouts.arrived();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn expires_after(timeouts: &ConnectionTimeouts) -> (u64, &'static str) {
        let before = Instant::now();
        let why = timeouts.expired().await;
        (before.elapsed().as_secs(), why)
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_an_idle_connection_and_an_open_request_have_limits_of_their_own() {
        let limits = Limits::default();
        let timeouts = ConnectionTimeouts::new(limits, false);
        assert_eq!(
            expires_after(&timeouts).await,
            (limits.header_timeout.as_secs(), "no whole request arrived")
        );
        let open = timeouts.open();
        assert!(tokio::time::timeout(Duration::from_secs(86_400), timeouts.expired()).await.is_err());
        drop(open);
        assert_eq!(expires_after(&timeouts).await, (limits.idle_timeout.as_secs(), "idle"));
        timeouts.open();
        timeouts.arrived();
        assert_eq!(
            expires_after(&timeouts).await,
            (limits.header_timeout.as_secs(), "no whole request arrived")
        );
        timeouts.open();
        timeouts.last_call();
        assert_eq!(expires_after(&timeouts).await, (1, "the server stops"));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_drip_do_not_buy_time() {
        let limits = Limits::default();
        let timeouts = ConnectionTimeouts::new(limits, false);
        let (mut client, server) = tokio::io::duplex(64);
        let mut server = TrackedIo::new(server, timeouts.clone());
        let dripping = async {
            loop {
                client.write_u8(b'x').await.unwrap();
                server.read_u8().await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = dripping => {}
            (after, _) = expires_after(&timeouts) => assert_eq!(after, limits.header_timeout.as_secs()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_stuck_is_let_go_and_a_slow_one_is_not() {
        let limits = Limits::default();
        let timeouts = ConnectionTimeouts::new(limits, true);
        let (stuck, lively) = (timeouts.open(), timeouts.open());
        let slow = async {
            for _ in 0..10 {
                stuck.sending();
                tokio::time::sleep(limits.write_timeout * 3 / 4).await;
                stuck.taken();
            }
            stuck.sending();
            // The progress of one answer is not that of another.
            loop {
                lively.sending();
                tokio::time::sleep(Duration::from_secs(1)).await;
                lively.taken();
            }
        };
        tokio::select! {
            () = slow => {}
            (after, why) = expires_after(&timeouts) => {
                assert_eq!(why, "the client does not read");
                assert_eq!(after, limits.write_timeout.as_secs() * 34 / 4);
            }
        }
    }
}
