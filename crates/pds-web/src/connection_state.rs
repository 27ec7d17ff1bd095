//! State of a connection, and its time limit: timeouts of handshakes, headers, idle connections and stuck
//! readers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::turns::Peer;
use super::{Limits, Observer};

/// A request or connection that has been idle for this long may be closed to make room.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// How long a connection without a complete request stays open after the server stops or the connection reaches its
/// age.
const LAST_CALL: Duration = Duration::from_secs(1);

/// The state of one connection. Cloning shares it.
#[derive(Clone)]
pub(super) struct ConnectionState(Arc<Record>);

struct Record {
    peer: Peer,
    limits: Limits,
    observer: Arc<dyn Observer>,
    state: Mutex<State>,
    /// Notifies [`ConnectionState::expired`] that a timeout may be due sooner.
    changed: Notify,
}

struct State {
    /// Whether it is HTTP/2, whose bytes are not always part of a request.
    multiplexed: bool,
    /// Requests received and not fully answered.
    open: usize,
    phase: Phase,
    /// Since when there is no open request.
    since: Instant,
    /// Answers with a piece in transit, by number, and since when the client has not read it.
    sending: HashMap<u64, Instant>,
    /// Bytes of requests that have arrived; see [`ConnectionState::take_requested`].
    requested: usize,
    /// When the client last read any bytes.
    written: Instant,
    /// The number of the last request; 0 before the first.
    last_number: u64,
    /// When a connection without a request ends.
    leave_by: Option<Instant>,
    /// Why the connection ends now.
    closing: Option<&'static str>,
}

/// State of a connection without an open request.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// It is new, in its TLS handshake if there is one.
    Handshaking,
    /// The first request is awaited, or one has begun to arrive.
    Reading,
    /// Nothing has arrived since the last answer.
    Idle,
}

impl ConnectionState {
    /// A connection that was just accepted.
    pub(super) fn new(peer: Peer, limits: Limits, observer: Arc<dyn Observer>) -> Self {
        observer.connections(0, 1);
        let now = Instant::now();
        let state = State {
            multiplexed: false,
            open: 0,
            phase: Phase::Handshaking,
            since: now,
            sending: HashMap::new(),
            requested: 0,
            written: now,
            last_number: 0,
            leave_by: None,
            closing: None,
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Self(Arc::new(Record { peer, limits, observer, state, changed }))
    }

    pub(super) fn peer(&self) -> Peer {
        self.0.peer
    }

    /// Ends the handshake: requests may follow, over HTTP/2 if `multiplexed`.
    pub(super) fn begin(&self, multiplexed: bool) {
        let mut state = self.0.state.lock();
        state.multiplexed = multiplexed;
        self.enter(&mut state, Phase::Reading);
    }

    /// Records a received request; drop the guard once it is answered.
    pub(super) fn open(&self) -> InFlight {
        let mut state = self.0.state.lock();
        if state.open == 0 {
            self.0.observer.connections(1, -1);
        }
        state.open += 1;
        state.last_number += 1;
        InFlight { connection: self.clone(), number: state.last_number }
    }

    /// Ends the connection soon if it has no request.
    pub(super) fn last_call(&self) {
        self.0.state.lock().leave_by = Some(Instant::now() + LAST_CALL);
        self.0.changed.notify_one();
    }

    /// Ends the connection.
    pub(super) fn close(&self, why: &'static str) {
        self.0.state.lock().closing = Some(why);
        self.0.changed.notify_one();
    }

    /// Since when it is idle, if it may be closed to make room: it has no request, or its client has not read for a
    /// while.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.0.state.lock();
        match state.open {
            _ if state.closing.is_some() => None,
            0 => Some(state.since),
            _ => state.sending.values().min().copied().filter(is_idle),
        }
    }

    /// Since when the client has not read a piece of answer `number`, if that is long enough to close it to make room.
    pub(super) fn unread_since(&self, number: u64) -> Option<Instant> {
        let state = self.0.state.lock();
        state.sending.get(&number).copied().filter(|since| state.closing.is_none() && is_idle(since))
    }

    /// Completes with the reason once the connection is to end.
    pub(super) async fn expired(&self) -> &'static str {
        loop {
            let due = self.due(&self.0.state.lock());
            match due {
                Some((at, why)) if at <= Instant::now() => return why,
                Some((at, _)) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.0.changed.notified() => {}
                },
                None => self.0.changed.notified().await,
            }
        }
    }

    fn due(&self, state: &State) -> Option<(Instant, &'static str)> {
        let limits = &self.0.limits;
        let closing = state.closing.map(|why| (Instant::now(), why));
        let stuck = state.sending.values().min().map(|since| {
            let unread = (*since).max(state.written) + limits.unread_timeout;
            (unread.min(*since + limits.write_timeout), "the client does not read")
        });
        let waiting = (state.open == 0).then(|| {
            let (time, why) = match state.phase {
                Phase::Handshaking => (limits.handshake_timeout, "the TLS handshake took too long"),
                Phase::Reading => (limits.header_timeout, "no complete request arrived"),
                Phase::Idle => (limits.idle_timeout, "idle"),
            };
            let at = state.since + time;
            state
                .leave_by
                .filter(|leave_by| *leave_by < at)
                .map_or((at, why), |at| (at, "the server is stopping"))
        });
        [closing, stuck, waiting].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn enter(&self, state: &mut State, phase: Phase) {
        (state.phase, state.since) = (phase, Instant::now());
        self.0.changed.notify_one();
    }

    /// Records that bytes of requests have arrived.
    pub(super) fn arrived(&self, bytes: usize) {
        let mut state = self.0.state.lock();
        state.requested += bytes;
        if state.open == 0 && state.phase == Phase::Idle && !state.multiplexed {
            self.enter(&mut state, Phase::Reading);
        }
    }

    /// How many bytes of requests have arrived since the last call.
    pub(super) fn take_requested(&self) -> usize {
        std::mem::take(&mut self.0.state.lock().requested)
    }

    /// Records that the client read bytes.
    pub(super) fn written(&self) {
        self.0.state.lock().written = Instant::now();
    }
}

fn is_idle(since: &Instant) -> bool {
    since.elapsed() >= IDLE_AFTER
}

impl Drop for Record {
    fn drop(&mut self) {
        // Requests share the record, so none is open.
        self.observer.connections(0, -1);
    }
}

/// A request that is being answered.
pub(super) struct InFlight {
    pub(super) connection: ConnectionState,
    pub(super) number: u64,
}

impl InFlight {
    /// A piece of the answer is in transit; the next is requested once the client has read most of it.
    pub(super) fn sending(&self) {
        self.connection.0.state.lock().sending.insert(self.number, Instant::now());
        self.connection.0.changed.notify_one();
    }

    /// The client has read it and waits for the next piece.
    pub(super) fn taken(&self) {
        self.connection.0.state.lock().sending.remove(&self.number);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.connection.0.state.lock();
        state.sending.remove(&self.number);
        state.open -= 1;
        if state.open == 0 {
            self.connection.0.observer.connections(-1, 1);
            self.connection.enter(&mut state, Phase::Idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::Counted;

    fn connection(multiplexed: bool) -> ConnectionState {
        let connection = ConnectionState::new(Peer::Local, Limits::default(), Arc::new(()));
        connection.begin(multiplexed);
        connection
    }

    async fn expires_after(connection: &ConnectionState) -> (u64, &'static str) {
        let before = Instant::now();
        let why = connection.expired().await;
        (before.elapsed().as_secs(), why)
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_an_idle_connection_and_an_open_request_have_limits_of_their_own() {
        let limits = Limits::default();
        let no_request = (limits.header_timeout.as_secs(), "no complete request arrived");
        let connection = self::connection(false);
        assert_eq!(expires_after(&connection).await, no_request);
        let open = connection.open();
        assert!(tokio::time::timeout(Duration::from_secs(86_400), connection.expired()).await.is_err());
        drop(open);
        assert_eq!(expires_after(&connection).await, (limits.idle_timeout.as_secs(), "idle"));
        connection.open();
        connection.arrived(1);
        assert_eq!(expires_after(&connection).await, no_request);
        connection.open();
        connection.last_call();
        assert_eq!(expires_after(&connection).await, (1, "the server is stopping"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_reader_is_disconnected_and_a_slow_one_is_not() {
        let limits = Limits::default();
        let connection = self::connection(true);
        let (stuck, lively) = (connection.open(), connection.open());
        let slow = async {
            for _ in 0..20 {
                stuck.sending();
                tokio::time::sleep(limits.write_timeout / 4).await;
                connection.written();
                tokio::time::sleep(limits.write_timeout / 4).await;
                stuck.taken();
            }
            stuck.sending();
            // Progress of one answer is not progress of another.
            loop {
                lively.sending();
                tokio::time::sleep(Duration::from_secs(1)).await;
                connection.written();
                lively.taken();
            }
        };
        tokio::select! {
            () = slow => {}
            (after, why) = expires_after(&connection) => {
                assert_eq!(why, "the client does not read");
                assert_eq!(after, limits.write_timeout.as_secs() * 11);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_has_the_shorter_time_and_gives_way_before() {
        let connection = self::connection(false);
        let unread = connection.open();
        assert_eq!((connection.idle_since(), connection.unread_since(unread.number)), (None, None));
        unread.sending();
        assert_eq!(connection.idle_since(), None, "not yet");
        let began = Instant::now();
        tokio::time::sleep(IDLE_AFTER).await;
        assert_eq!(connection.idle_since(), Some(began));
        assert_eq!(connection.unread_since(unread.number), Some(began));
        let left = Limits::default().unread_timeout - IDLE_AFTER;
        assert_eq!(expires_after(&connection).await, (left.as_secs(), "the client does not read"));
        connection.close("another needs it");
        assert_eq!(expires_after(&connection).await, (0, "another needs it"));
        assert_eq!(connection.idle_since(), None, "it goes already");
    }

    #[tokio::test]
    async fn connections_are_counted_by_what_they_do() {
        let counted = Counted::default();
        let count = || counted.connections();
        let connection = ConnectionState::new(Peer::Local, Limits::default(), Arc::new(counted.clone()));
        assert_eq!(count(), (0, 1));
        let requests = [connection.open(), connection.open()];
        assert_eq!(count(), (1, 0));
        drop(requests);
        assert_eq!(count(), (0, 1));
        drop(connection);
        assert_eq!(count(), (0, 0));
    }
}
