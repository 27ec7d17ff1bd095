//! The open connections. At the limit, the connection idle for longest makes room, starting with the peer that has
//! the most, so that no client locks others out by holding connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Limits;
use super::connection_state::ConnectionState;
use super::peer::Peer;
use crate::telemetry::{ConnectionGauges, Telemetry};

/// How often to look for room while every connection is busy.
const RETRY: Duration = Duration::from_millis(100);

/// All open connections.
pub(super) struct Connections {
    limits: Limits,
    gauges: ConnectionGauges,
    free: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    all: HashMap<u64, ConnectionState>,
    next: u64,
    /// The limit was reached, and that was logged.
    crowded: bool,
}

/// An open connection; it counts until this is dropped.
pub(super) struct Connected {
    connections: Arc<Connections>,
    number: u64,
    pub(super) state: ConnectionState,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connections {
    pub(super) fn new(limits: Limits, telemetry: &Telemetry) -> Arc<Self> {
        Arc::new(Self {
            limits,
            gauges: telemetry.connections(),
            free: Arc::new(Semaphore::new(limits.max_connections)),
            open: Mutex::default(),
        })
    }

    /// Counts a connection of `peer`, closing another one if there are too many. Waits while all others are busy.
    pub(super) async fn admit(self: &Arc<Self>, peer: Peer) -> Connected {
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                break Some(permit);
            }
            self.make_room();
            if let Ok(permit) = tokio::time::timeout(RETRY, Arc::clone(&self.free).acquire_owned()).await {
                // Nobody closes the semaphore.
                break permit.ok();
            }
        };
        let state = ConnectionState::new(peer, self.limits, self.gauges.clone());
        let mut open = self.open();
        open.next += 1;
        let number = open.next;
        open.all.insert(number, state.clone());
        Connected { connections: Arc::clone(self), number, state, _permit: permit }
    }

    fn make_room(&self) {
        let mut open = self.open();
        if !std::mem::replace(&mut open.crowded, true) {
            tracing::warn!(
                connections = self.limits.max_connections,
                "the limit on connections is reached: idle ones are closed, first of the client that has most"
            );
        }
        let mut of_peer: HashMap<Peer, usize> = HashMap::new();
        for connection in open.all.values() {
            *of_peer.entry(connection.peer()).or_default() += 1;
        }
        let waiting = open.all.values().filter_map(|connection| {
            let count = of_peer.get(&connection.peer()).copied();
            Some((connection, (count, std::cmp::Reverse(connection.waits_since()?))))
        });
        if let Some((connection, _)) = waiting.max_by_key(|(_, rank)| *rank) {
            connection.close("others need its place");
        }
    }

    /// Completes once no connection is left; `Err` holds how many are after `within`.
    pub(super) async fn drained(&self, within: Duration) -> Result<(), usize> {
        let all = u32::try_from(self.limits.max_connections).unwrap_or(u32::MAX);
        match tokio::time::timeout(within, self.free.acquire_many(all)).await {
            Ok(_) => Ok(()),
            Err(_elapsed) => Err(self.open().all.len()),
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.all.remove(&self.number);
        // Logged again after the crowd has gone, not with every connection at the limit.
        open.crowded &= open.all.len() > self.connections.limits.max_connections / 2;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const CROWD: Peer = Peer::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: Peer = Peer::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn connections(max_connections: usize) -> Arc<Connections> {
        let limits = Limits { max_connections, ..Limits::default() };
        Connections::new(limits, &Telemetry::new(false).unwrap())
    }

    /// Ends with its connection.
    fn serve(connected: Connected, name: &'static str) -> tokio::task::JoinHandle<&'static str> {
        tokio::spawn(async move {
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
        assert!(connections.open().crowded);
        drop((request, newcomer));
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
}
