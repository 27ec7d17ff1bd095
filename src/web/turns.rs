//! Turns at work that occupies a processor for long: TLS handshakes and password checks.
//!
//! Peers take turns, so that one peer's flood delays another's request by only one turn. Among the requests of one
//! peer the newest and the oldest go first alternately: the newest has a client that still waits, and the oldest
//! must not starve.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::peer::Peer;

/// Hands out turns. Cloning shares them.
#[derive(Clone)]
pub(super) struct Turns(Arc<Mutex<State>>);

struct State {
    free: usize,
    /// Waiting requests in total, and their bound.
    waiting: usize,
    max_waiting: usize,
    /// The queues of the peers that wait, in the order in which they come next.
    queues: VecDeque<Queue>,
}

struct Queue {
    peer: Peer,
    /// From the oldest to the newest.
    waiting: VecDeque<oneshot::Sender<Turn>>,
    oldest_next: bool,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn(Turns);

impl Turns {
    /// Turns for `at_once` requests at a time, with at most `max_waiting` behind them.
    pub(super) fn new(at_once: usize, max_waiting: usize) -> Self {
        let state = State { free: at_once, waiting: 0, max_waiting, queues: VecDeque::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a turn of `peer`. `None` if too many wait: then the oldest request of the peer with most gives up.
    pub(super) async fn acquire(&self, peer: Peer) -> Option<Turn> {
        let waiting = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Turn(self.clone()));
            }
            state.push(peer)
        };
        waiting.await.ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, peer: Peer) -> oneshot::Receiver<Turn> {
        let (sender, receiver) = oneshot::channel();
        self.waiting += 1;
        match self.queues.iter_mut().find(|queue| queue.peer == peer) {
            Some(queue) => queue.waiting.push_back(sender),
            None => {
                let waiting = VecDeque::from([sender]);
                self.queues.push_back(Queue { peer, waiting, oldest_next: false });
            }
        }
        if self.waiting > self.max_waiting
            && let Some(longest) = self.queues.iter_mut().max_by_key(|queue| queue.waiting.len())
        {
            longest.waiting.pop_front();
            self.waiting -= 1;
        }
        receiver
    }

    fn pop(&mut self) -> Option<oneshot::Sender<Turn>> {
        loop {
            let mut queue = self.queues.pop_front()?;
            let next = if queue.oldest_next { queue.waiting.pop_front() } else { queue.waiting.pop_back() };
            queue.oldest_next = !queue.oldest_next;
            if !queue.waiting.is_empty() {
                self.queues.push_back(queue);
            }
            if next.is_some() {
                self.waiting -= 1;
                return next;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state();
        while let Some(next) = state.pop() {
            // Dropping a turn that nobody takes would lock again; a closed receiver is passed over instead.
            if !next.is_closed() {
                drop(state);
                // Closed in this very moment, the turn comes back and is dropped in turn.
                drop(next.send(Turn(self.0.clone())));
                return;
            }
        }
        state.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const FLOOD: Peer = Peer::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: Peer = Peer::V4(Ipv4Addr::new(10, 0, 0, 2));

    /// Requests that wait, by number, and those that got their turn, in order.
    struct Waiting {
        turns: Turns,
        served: Arc<Mutex<Vec<Option<u32>>>>,
    }

    impl Waiting {
        /// `number` waits for a turn of `peer` and gives it back at once.
        async fn join(&self, peer: Peer, number: u32) -> tokio::task::JoinHandle<()> {
            let (turns, served) = (self.turns.clone(), Arc::clone(&self.served));
            let joined = tokio::spawn(async move {
                let turn = turns.acquire(peer).await;
                served.lock().unwrap().push(turn.as_ref().map(|_| number));
            });
            tokio::task::yield_now().await;
            joined
        }
    }

    #[tokio::test]
    async fn another_peer_waits_for_one_turn_and_a_newcomer_overtakes() {
        let waiting = Waiting { turns: Turns::new(1, 100), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD).await.unwrap();
        let mut joined = Vec::new();
        for number in 1..=4 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        joined.push(waiting.join(OTHER, 9).await);
        drop(busy);
        for task in joined {
            task.await.unwrap();
        }
        // The newest and the oldest in turn, and the other peer in between.
        let served = waiting.served.lock().unwrap().iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!(served, [4, 9, 1, 3, 2]);
        assert!(waiting.turns.state().free == 1 && waiting.turns.state().waiting == 0);
    }

    #[tokio::test]
    async fn where_too_many_wait_the_oldest_of_the_peer_with_most_gives_up() {
        let waiting = Waiting { turns: Turns::new(1, 3), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD).await.unwrap();
        let mut joined = Vec::new();
        for number in 1..=3 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        joined.push(waiting.join(OTHER, 9).await);
        tokio::task::yield_now().await;
        assert_eq!(*waiting.served.lock().unwrap(), [None]);
        drop(busy);
        for task in joined {
            task.await.unwrap();
        }
        assert_eq!(*waiting.served.lock().unwrap(), [None, Some(3), Some(9), Some(2)]);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_keeps_no_turn() {
        let turns = Turns::new(1, 10);
        let busy = turns.acquire(FLOOD).await.unwrap();
        let gone = tokio::spawn({
            let turns = turns.clone();
            async move { turns.acquire(FLOOD).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err());
        drop(busy);
        assert!(turns.acquire(OTHER).await.is_some());
    }
}
