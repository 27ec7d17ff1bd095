//! The one scheduler of everything scarce: connections, TLS handshakes, password checks and request slots.
//!
//! A freed turn goes to the waiting peer that holds fewest, then to the one that was served longest ago; so one peer's
//! flood delays another's request by only one turn. Within a peer, users take turns in the same way: behind an address
//! that many share, a flood of guesses delays a configured user by one turn, too. Among the requests of one user the
//! newest and the oldest go first alternately: the newest has a client that still waits, and the oldest must not starve.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::peer::Peer;

/// Hands out turns. Cloning shares them.
#[derive(Clone)]
pub(super) struct Turns(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Tells that a turn has ended.
    ended: Notify,
}

struct State {
    all: usize,
    free: usize,
    /// Waiting requests in total, and their bound.
    waiting: usize,
    max_waiting: usize,
    queues: Vec<Queue>,
    /// The peers that hold or wait.
    peers: HashMap<Peer, OfPeer>,
    /// Counts turns, as a clock for who was served last.
    served: u64,
}

#[derive(Default)]
struct OfPeer {
    holds: usize,
    waits: usize,
    last: u64,
}

/// Who asks for a turn: a peer, and the configured user it claims to be, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) peer: Peer,
    pub(super) user: Option<String>,
}

impl From<Peer> for Claim {
    fn from(peer: Peer) -> Self {
        Self { peer, user: None }
    }
}

struct Queue {
    claim: Claim,
    /// From the oldest to the newest.
    waiting: VecDeque<oneshot::Sender<Turn>>,
    oldest_next: bool,
    last: u64,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn {
    turns: Turns,
    peer: Peer,
}

impl Turns {
    /// Turns for `at_once` requests at a time, with at most `max_waiting` behind them.
    pub(super) fn new(at_once: usize, max_waiting: usize) -> Self {
        let (queues, peers) = (Vec::new(), HashMap::new());
        let state = State { all: at_once, free: at_once, waiting: 0, max_waiting, queues, peers, served: 0 };
        Self(Arc::new(Shared { state: Mutex::new(state), ended: Notify::new() }))
    }

    /// A turn that is free right now.
    pub(super) fn try_acquire(&self, peer: Peer) -> Option<Turn> {
        let mut state = self.state();
        state.free = state.free.checked_sub(1)?;
        state.serve(peer);
        Some(Turn { turns: self.clone(), peer })
    }

    /// Waits for a turn. `None` if too many wait: then the oldest request of the peer with most gives up, but not the
    /// only one of a configured user.
    pub(super) async fn acquire(&self, claim: impl Into<Claim>) -> Option<Turn> {
        let claim = claim.into();
        if let Some(turn) = self.try_acquire(claim.peer) {
            return Some(turn);
        }
        let waiting = self.state().push(claim);
        waiting.await.ok()
    }

    /// Whether `peer` holds less than its share.
    pub(super) fn is_below_share(&self, peer: Peer) -> bool {
        let state = self.state();
        state.holds(peer) < state.all.div_ceil(state.holders(peer))
    }

    /// Which of `candidates` makes room for `newcomer`: that of the peer that holds most, and of those the oldest.
    /// [`Rank::Any`] spares nobody, the others spare those that do not hold more than they say.
    pub(super) fn yields<T>(
        &self,
        newcomer: Peer,
        rank: Rank,
        candidates: impl Iterator<Item = (T, Peer, Instant)>,
    ) -> Option<T> {
        let state = self.state();
        let holders = state.holders(newcomer);
        let may = |peer: Peer| match rank {
            Rank::Any => true,
            Rank::Larger => peer == newcomer || state.holds(peer) > state.holds(newcomer),
            Rank::AboveShare => peer != newcomer && state.holds(peer).saturating_mul(holders) > state.all,
        };
        let candidates = candidates.filter(|(_, peer, _)| may(*peer));
        let first = candidates.max_by_key(|(_, peer, since)| (state.holds(*peer), std::cmp::Reverse(*since)));
        first.map(|(candidate, ..)| candidate)
    }

    /// Completes once nobody holds a turn; `Err` says how many are held after `within`.
    pub(super) async fn all_ended(&self, within: Duration) -> Result<(), usize> {
        let all_ended = async {
            loop {
                let ended = self.0.ended.notified();
                if self.held() == 0 {
                    return;
                }
                ended.await;
            }
        };
        tokio::time::timeout(within, all_ended).await.map_err(|_elapsed| self.held())
    }

    fn held(&self) -> usize {
        self.state().peers.values().map(|peer| peer.holds).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose turns may end early for a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Anybody's.
    Any,
    /// Those of a peer that holds more than the newcomer does, and its own.
    Larger,
    /// Those of a peer that holds more than its share.
    AboveShare,
}

impl State {
    fn holds(&self, peer: Peer) -> usize {
        self.peers.get(&peer).map_or(0, |of| of.holds)
    }

    /// How many peers hold a turn, `newcomer` included.
    fn holders(&self, newcomer: Peer) -> usize {
        let others = self.peers.iter().filter(|(peer, of)| **peer != newcomer && of.holds > 0);
        others.count() + 1
    }

    fn push(&mut self, claim: Claim) -> oneshot::Receiver<Turn> {
        let (sender, receiver) = oneshot::channel();
        let last = self.served;
        let of = self.peers.entry(claim.peer).or_default();
        if of.waits == 0 {
            of.last = last;
        }
        of.waits += 1;
        self.waiting += 1;
        match self.queues.iter_mut().find(|queue| queue.claim == claim) {
            Some(queue) => queue.waiting.push_back(sender),
            None => {
                let waiting = VecDeque::from([sender]);
                self.queues.push(Queue { claim, waiting, oldest_next: false, last });
            }
        }
        if self.waiting > self.max_waiting {
            self.shed();
        }
        receiver
    }

    /// The oldest request of the peer and user with most gives up.
    fn shed(&mut self) {
        let (mut once, mut more) = (HashSet::new(), HashSet::new());
        for user in self.queues.iter().filter_map(|queue| queue.claim.user.as_deref()) {
            if !once.insert(user) {
                more.insert(user);
            }
        }
        let only_one = |queue: &Queue| {
            queue.waiting.len() == 1 && queue.claim.user.as_deref().is_some_and(|user| !more.contains(user))
        };
        let waits = |queue: &Queue| self.peers.get(&queue.claim.peer).map_or(0, |of| of.waits);
        let queues = self.queues.iter().enumerate().filter(|(_, queue)| !only_one(queue));
        let longest = queues.max_by_key(|(_, queue)| (waits(queue), queue.waiting.len()));
        if let Some(index) = longest.map(|(index, _)| index) {
            self.take(index, true);
        }
    }

    /// Takes the oldest or the newest request out of a queue.
    fn take(&mut self, index: usize, oldest: bool) -> Option<oneshot::Sender<Turn>> {
        let queue = self.queues.get_mut(index)?;
        let taken = if oldest { queue.waiting.pop_front() } else { queue.waiting.pop_back() }?;
        let peer = queue.claim.peer;
        if queue.waiting.is_empty() {
            self.queues.remove(index);
        }
        self.waiting -= 1;
        if let Some(of) = self.peers.get_mut(&peer) {
            of.waits -= 1;
        }
        self.forget(peer);
        Some(taken)
    }

    /// The request that comes next.
    fn pop(&mut self) -> Option<(oneshot::Sender<Turn>, Peer)> {
        let rank = |queue: &Queue| {
            let of = self.peers.get(&queue.claim.peer);
            (of.map(|of| (of.holds, of.last)), queue.last)
        };
        let (index, _) = self.queues.iter().enumerate().min_by_key(|(_, queue)| rank(queue))?;
        self.served += 1;
        let queue = self.queues.get_mut(index)?;
        let (peer, oldest) = (queue.claim.peer, queue.oldest_next);
        queue.oldest_next = !oldest;
        queue.last = self.served;
        if let Some(of) = self.peers.get_mut(&peer) {
            of.last = self.served;
        }
        self.take(index, oldest).map(|next| (next, peer))
    }

    fn serve(&mut self, peer: Peer) {
        self.peers.entry(peer).or_default().holds += 1;
    }

    /// Drops what is known of a peer that neither holds nor waits.
    fn forget(&mut self, peer: Peer) {
        if self.peers.get(&peer).is_some_and(|of| of.holds == 0 && of.waits == 0) {
            self.peers.remove(&peer);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        if let Some(of) = state.peers.get_mut(&self.peer) {
            of.holds -= 1;
        }
        state.forget(self.peer);
        self.turns.0.ended.notify_waiters();
        while let Some((next, peer)) = state.pop() {
            // Dropping a turn that nobody takes would lock again; a closed receiver is passed over instead.
            if !next.is_closed() {
                state.serve(peer);
                drop(state);
                // Closed in this very moment, the turn comes back and is dropped in turn.
                drop(next.send(Turn { turns: self.turns.clone(), peer }));
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
        /// `number` waits for a turn of `claim` and gives it back at once.
        async fn join(&self, claim: impl Into<Claim>, number: u32) -> tokio::task::JoinHandle<()> {
            let (turns, served, claim) = (self.turns.clone(), Arc::clone(&self.served), claim.into());
            let joined = tokio::spawn(async move {
                let turn = turns.acquire(claim).await;
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
    async fn behind_one_address_a_configured_user_waits_for_one_turn_and_keeps_its_place() {
        let waiting = Waiting { turns: Turns::new(1, 3), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD).await.unwrap();
        let mut joined = Vec::new();
        for number in 1..=3 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        let alice = Claim { peer: FLOOD, user: Some("alice".to_owned()) };
        joined.push(waiting.join(alice, 9).await);
        for number in 4..=20 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        drop(busy);
        for task in joined {
            task.await.unwrap();
        }
        let served = waiting.served.lock().unwrap().iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!(served, [20, 9, 19]);
    }

    #[tokio::test]
    async fn a_freed_turn_goes_to_the_peer_that_holds_fewest() {
        let turns = Turns::new(3, 10);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(turns.acquire(FLOOD).await.unwrap());
        }
        let waiting = Waiting { turns: turns.clone(), served: Arc::default() };
        let joined =
            [waiting.join(FLOOD, 1).await, waiting.join(FLOOD, 2).await, waiting.join(OTHER, 9).await];
        assert!(turns.is_below_share(OTHER) && !turns.is_below_share(FLOOD));
        held.pop();
        for task in joined {
            task.await.unwrap();
        }
        assert_eq!(waiting.served.lock().unwrap().first(), Some(&Some(9)));
        drop(held);
        assert_eq!(turns.all_ended(Duration::ZERO).await, Ok(()));
        assert!(turns.state().peers.is_empty());
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
