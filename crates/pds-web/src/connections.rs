//! The open connections. At the limit, the connection idle for longest is closed, starting with the peer that has the
//! most, so that no client locks others out by holding connections.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use pds_core::memory::{Room, Share};
use tokio::time::Instant;

use super::connection_state::ConnectionState;
use super::turns::{Peer, Turn, Turns};
use super::{Limits, Observer};

/// Minimum interval of log lines about missing descriptors.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum size of a connection besides its responses: the hello of a TLS handshake, or the header of a request.
pub(super) const CONNECTION_BYTES: u64 = 64 * 1024;

/// All open connections.
pub(super) struct Connections {
    limits: Limits,
    observer: Arc<dyn Observer>,
    turns: Arc<Turns<ConnectionState>>,
    memory: Share,
    logged: Mutex<Logged>,
}

#[derive(Default)]
struct Logged {
    /// Whether the limit was reached.
    crowded: bool,
    /// When a connection last got no descriptor.
    starved: Option<Instant>,
}

/// An open connection; it counts until this is dropped.
pub(super) struct Connected {
    pub(super) state: ConnectionState,
    _turn: Option<Turn<ConnectionState>>,
    _room: Option<Room>,
}

impl Connections {
    pub(super) fn new(limits: Limits, memory: Share, observer: Arc<dyn Observer>) -> Self {
        let turns = Turns::new(limits.max_connections, usize::MAX);
        Self { limits, observer, turns, memory, logged: Mutex::default() }
    }

    /// Counts a connection of `peer`, closing another one if there are too many. Waits while all others are busy.
    pub(super) async fn admit(&self, peer: Peer) -> Connected {
        let most = self.limits.max_connections;
        // Logs again only after the crowd has gone, not for every connection at the limit.
        self.logged.lock().crowded &= self.open() > most / 2;
        let turn = self.turns.acquire_or_end(peer, || {
            if !std::mem::replace(&mut self.logged.lock().crowded, true) {
                tracing::warn!(
                    connections = most,
                    "the connection limit is reached; closing idle connections, starting with those of the client that has the most"
                );
            }
            self.close_idle();
            true
        });
        let turn = turn.await;
        let state = ConnectionState::new(peer, self.limits, Arc::clone(&self.observer));
        if let Some(turn) = &turn {
            turn.with_payload(|payload| *payload = Some(state.clone()));
        }
        // The limit of connections leaves enough room.
        Connected { state, _turn: turn, _room: self.memory.try_acquire(CONNECTION_BYTES) }
    }

    /// Closes the longest idle connection of the peer that has most.
    fn close_idle(&self) {
        if let Some(idle) = self.turns.end_early(0, |_| true, |state| state.idle_since().map(Reverse)) {
            idle.close("other connections need its place");
        }
    }

    /// Closes the longest idle connection, because the system has no descriptor for a new one on `listener`. Logs at
    /// most once a minute.
    pub(super) fn out_of_files(&self, error: &std::io::Error, listener: &dyn std::fmt::Display) {
        let mut logged = self.logged.lock();
        if logged.starved.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            logged.starved = Some(Instant::now());
            tracing::warn!(%error, %listener, "cannot accept a connection; closing idle connections until it works");
        }
        self.close_idle();
    }

    /// Their number.
    pub(super) fn open(&self) -> usize {
        self.turns.held()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use pds_core::memory::{Holder, MemoryBudget};

    use super::*;

    const CROWD: Peer = Peer::At(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    const OTHER: Peer = Peer::At(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));

    fn connections(max_connections: usize) -> Connections {
        let limits = Limits { max_connections, ..Limits::default() };
        let memory = MemoryBudget::default().share(Holder::Connections);
        Connections::new(limits, memory, Arc::new(()))
    }

    /// Ends with its connection.
    fn serve(connected: Connected, name: &'static str) -> tokio::task::JoinHandle<&'static str> {
        tokio::spawn(async move {
            // Holds the turn for the whole handshake.
            let connected = connected;
            connected.state.expired().await;
            name
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_of_the_peer_with_most_makes_room() {
        let connections = connections(4);
        let other = connections.admit(OTHER).await;
        other.state.begin(false);
        let other = serve(other, "the other peer's, the oldest of all");
        let busy = connections.admit(CROWD).await;
        let request = busy.state.open();
        let busy = serve(busy, "the crowd's, busy");
        let mut idle = Vec::new();
        for name in ["the crowd's first", "the crowd's second"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
            idle.push(serve(connections.admit(CROWD).await, name));
        }
        let newcomer = connections.admit(OTHER).await;
        tokio::task::yield_now().await;
        let ended = [&idle[0], &idle[1], &busy, &other].map(tokio::task::JoinHandle::is_finished);
        assert_eq!(ended, [true, false, false, false]);
        assert!(connections.logged.lock().crowded);
        drop((request, newcomer));
    }

    #[tokio::test(start_paused = true)]
    async fn without_descriptors_the_longest_idle_connection_goes() {
        let connections = connections(4);
        let first = connections.admit(CROWD).await;
        first.state.begin(false);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let second = connections.admit(CROWD).await;
        let (first, second) = (serve(first, "first"), serve(second, "second"));
        connections.out_of_files(&std::io::Error::other("too many open files"), &"a listener");
        assert_eq!(first.await.unwrap(), "first");
        assert!(!second.is_finished() && connections.logged.lock().starved.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_waits_while_all_are_busy_and_takes_the_first_that_is_not() {
        let connections = connections(1);
        let busy = connections.admit(CROWD).await;
        let request = busy.state.open();
        let busy = serve(busy, "busy");
        let newcomer = tokio::time::timeout(Duration::from_secs(5), connections.admit(OTHER)).await;
        assert!(newcomer.is_err() && !busy.is_finished());
        drop(request);
        connections.admit(OTHER).await;
        assert!(busy.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_connection_is_forgotten_and_the_limit_is_reported_again_at_half() {
        let connections = connections(4);
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(connections.admit(CROWD).await);
        }
        let newcomer = tokio::time::timeout(Duration::ZERO, connections.admit(OTHER)).await;
        assert!(newcomer.is_err() && connections.logged.lock().crowded);
        assert_eq!(connections.open(), 4);
        held.pop();
        held.push(connections.admit(CROWD).await);
        assert!(connections.logged.lock().crowded && connections.open() == 4);
        held.truncate(2);
        held.push(connections.admit(CROWD).await);
        assert!(!connections.logged.lock().crowded, "told again the next time");
        held.clear();
        assert_eq!(connections.open(), 0);
    }
}
