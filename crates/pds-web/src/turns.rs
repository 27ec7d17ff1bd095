//! The one scheduler of everything scarce: connections, TLS handshakes, password checks and request slots.
//!
//! A freed turn goes to the waiting peer that holds fewest, then to the one that was served longest ago; so one peer's
//! flood delays another's request by only one turn. Within a peer, users take turns in the same way: behind an address
//! that many share, a flood of guesses delays a configured user by one turn, too. Among the requests of one user the
//! newest and the oldest go first alternately: the newest has a client that still waits, and the oldest must not starve.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often [`Turns::acquire_from`] looks for a turn that ends early.
const RETRY: Duration = Duration::from_millis(100);

/// One client for the purpose of sharing. Many scrapers behind one proxy are one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// Everybody on a unix socket.
    Local,
    /// An IPv4 address, or an IPv6 network of 64 bits: one host can take any address in it.
    At(IpAddr),
}

impl Peer {
    /// The peer that has the address `ip`.
    pub(super) fn of(ip: IpAddr) -> Self {
        // A socket of both families shows IPv4 addresses as ::ffff:a.b.c.d.
        Self::At(match ip.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
            ip => ip,
        })
    }
}

/// Hands out turns, each with a `T` that says what it is used for.
pub(super) struct Turns<T = ()>(Mutex<State<T>>);

struct State<T> {
    all: usize,
    max_waiting: usize,
    queues: Vec<Queue<T>>,
    /// The turns that are held, by number. Without a `T` they have not begun, or are to end early.
    held: HashMap<u64, (Peer, Option<T>)>,
    /// Counts turns, as a clock for who was served last.
    served: u64,
}

/// The requests of one peer, and there of one configured user or of everybody else.
struct Queue<T> {
    peer: Peer,
    user: Option<String>,
    /// From the oldest to the newest.
    waiting: VecDeque<oneshot::Sender<Turn<T>>>,
    oldest_next: bool,
    /// When the peer was served last, and when this queue was.
    last: (u64, u64),
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn<T = ()> {
    turns: Arc<Turns<T>>,
    pub(super) peer: Peer,
    number: u64,
}

impl<T> Turns<T> {
    /// Turns for `at_once` requests at a time, with at most `max_waiting` behind them.
    pub(super) fn new(at_once: usize, max_waiting: usize) -> Arc<Self> {
        let (queues, held) = (Vec::new(), HashMap::new());
        Arc::new(Self(Mutex::new(State { all: at_once, max_waiting, queues, held, served: 0 })))
    }

    /// Waits for a turn. `None` if too many wait: then the oldest request of the peer with most gives up, but not the
    /// only one of a configured `user`.
    pub(super) async fn acquire(self: &Arc<Self>, peer: Peer, user: Option<String>) -> Option<Turn<T>> {
        let waiting = {
            let mut state = self.0.lock();
            if state.held.len() < state.all {
                return Some(self.turn(&mut state, peer));
            }
            state.push(peer, user)
        };
        waiting.await.ok()
    }

    /// Waits for a turn while `make_room`, called every [`RETRY`], ends those of others; `None` once that gives up.
    pub(super) async fn acquire_from(
        self: &Arc<Self>,
        peer: Peer,
        mut make_room: impl FnMut() -> bool,
    ) -> Option<Turn<T>> {
        let mut waiting = std::pin::pin!(self.acquire(peer, None));
        let mut retry = tokio::time::interval(RETRY);
        loop {
            tokio::select! {
                biased;
                turn = waiting.as_mut() => return turn,
                _ = retry.tick() => if !make_room() { return None },
            }
        }
    }

    /// Whether `peer` holds less than its share.
    pub(super) fn is_below_share(&self, peer: Peer) -> bool {
        let state = self.0.lock();
        let mut holds = state.holds();
        let own = *holds.entry(peer).or_default();
        own < state.all.div_ceil(holds.len())
    }

    /// Ends a turn early for `newcomer`, and gives what it was used for: one of the peer that holds most, and there the
    /// oldest. `since` says how old it is, if it may end. [`Rank::Any`] spares nobody, the others spare the peers that
    /// do not hold more than they say.
    pub(super) fn end_one(
        &self,
        newcomer: Peer,
        rank: Rank,
        since: impl Fn(&T) -> Option<Instant>,
    ) -> Option<T> {
        let mut state = self.0.lock();
        let (all, mut holds) = (state.all, state.holds());
        let own = *holds.entry(newcomer).or_default();
        let may = |peer: Peer| match rank {
            Rank::Any => true,
            Rank::Larger => peer == newcomer || holds[&peer] > own,
            Rank::AboveShare => peer != newcomer && holds[&peer].saturating_mul(holds.len()) > all,
        };
        let candidates = state.held.iter_mut().filter(|(_, (peer, _))| may(*peer));
        let aged =
            candidates.filter_map(|(_, (peer, used))| Some((holds[peer], since(used.as_ref()?)?, used)));
        let (.., used) = aged.max_by_key(|(holds, since, _)| (*holds, Reverse(*since)))?;
        used.take()
    }

    /// How many turns are held.
    pub(super) fn held(&self) -> usize {
        self.0.lock().held.len()
    }

    fn turn(self: &Arc<Self>, state: &mut State<T>, peer: Peer) -> Turn<T> {
        state.served += 1;
        state.held.insert(state.served, (peer, None));
        Turn { turns: Arc::clone(self), peer, number: state.served }
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

impl<T> State<T> {
    /// How many turns each peer holds.
    fn holds(&self) -> HashMap<Peer, usize> {
        let mut holds = HashMap::new();
        for (peer, _) in self.held.values() {
            *holds.entry(*peer).or_default() += 1;
        }
        holds
    }

    fn push(&mut self, peer: Peer, user: Option<String>) -> oneshot::Receiver<Turn<T>> {
        let (sender, receiver) = oneshot::channel();
        let of_peer = self.queues.iter().find(|queue| queue.peer == peer);
        let last = (of_peer.map_or(self.served, |queue| queue.last.0), self.served);
        match self.queues.iter_mut().find(|queue| queue.peer == peer && queue.user == user) {
            Some(queue) => queue.waiting.push_back(sender),
            None => {
                let waiting = VecDeque::from([sender]);
                self.queues.push(Queue { peer, user, waiting, oldest_next: false, last });
            }
        }
        if self.waiting(|_| true) > self.max_waiting {
            self.shed();
        }
        receiver
    }

    /// How many requests wait in some of the queues.
    fn waiting(&self, of: impl Fn(&Queue<T>) -> bool) -> usize {
        self.queues.iter().filter(|queue| of(queue)).map(|queue| queue.waiting.len()).sum()
    }

    /// The oldest request of the peer and user with most gives up.
    fn shed(&mut self) {
        let spared =
            |queue: &Queue<T>| queue.user.is_some() && self.waiting(|other| other.user == queue.user) == 1;
        let rank = |queue: &Queue<T>| (self.waiting(|other| other.peer == queue.peer), queue.waiting.len());
        let queues = self.queues.iter().enumerate().filter(|(_, queue)| !spared(queue));
        if let Some((index, _)) = queues.max_by_key(|(_, queue)| rank(queue)) {
            self.take(index, true);
        }
    }

    /// Takes the oldest or the newest request out of a queue.
    fn take(&mut self, index: usize, oldest: bool) -> Option<oneshot::Sender<Turn<T>>> {
        let waiting = &mut self.queues.get_mut(index)?.waiting;
        let taken = if oldest { waiting.pop_front() } else { waiting.pop_back() };
        if waiting.is_empty() {
            self.queues.remove(index);
        }
        taken
    }

    /// The request that comes next.
    fn pop(&mut self) -> Option<(oneshot::Sender<Turn<T>>, Peer)> {
        let holds = self.holds();
        let rank = |queue: &Queue<T>| (holds.get(&queue.peer).copied().unwrap_or_default(), queue.last);
        let (index, _) = self.queues.iter().enumerate().min_by_key(|(_, queue)| rank(queue))?;
        self.served += 1;
        let queue = self.queues.get_mut(index)?;
        let (peer, oldest) = (queue.peer, queue.oldest_next);
        queue.oldest_next = !oldest;
        queue.last.1 = self.served;
        for queue in self.queues.iter_mut().filter(|queue| queue.peer == peer) {
            queue.last.0 = self.served;
        }
        self.take(index, oldest).map(|next| (next, peer))
    }
}

impl<T> Turn<T> {
    /// What it is used for; `None` at first, and once it is to end early.
    pub(super) fn used<R>(&self, with: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        let mut state = self.turns.0.lock();
        state.held.get_mut(&self.number).map(|(_, used)| with(used))
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        let mut state = self.turns.0.lock();
        state.held.remove(&self.number);
        while let Some((next, peer)) = state.pop() {
            // Dropping a turn that nobody takes would lock again; a closed receiver is passed over instead.
            if !next.is_closed() {
                let turn = self.turns.turn(&mut state, peer);
                drop(state);
                // Closed in this very moment, the turn comes back and is dropped in turn.
                drop(next.send(turn));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const FLOOD: Peer = Peer::At(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    const OTHER: Peer = Peer::At(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));

    /// Requests that wait, by number, and those that got their turn, in order.
    struct Waiting {
        turns: Arc<Turns>,
        served: Arc<Mutex<Vec<Option<u32>>>>,
    }

    impl Waiting {
        /// `number` waits for a turn of `peer` and gives it back at once.
        async fn join(&self, peer: Peer, number: u32) -> tokio::task::JoinHandle<()> {
            self.join_as(peer, None, number).await
        }

        async fn join_as(
            &self,
            peer: Peer,
            user: Option<String>,
            number: u32,
        ) -> tokio::task::JoinHandle<()> {
            let (turns, served) = (Arc::clone(&self.turns), Arc::clone(&self.served));
            let joined = tokio::spawn(async move {
                let turn = turns.acquire(peer, user).await;
                served.lock().push(turn.as_ref().map(|_| number));
            });
            tokio::task::yield_now().await;
            joined
        }
    }

    #[test]
    fn an_ipv4_address_and_an_ipv6_network_are_each_one_peer() {
        let of = |ip: &str| Peer::of(ip.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8:0:0:ffff::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }

    #[tokio::test]
    async fn another_peer_waits_for_one_turn_and_a_newcomer_overtakes() {
        let waiting = Waiting { turns: Turns::new(1, 100), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD, None).await.unwrap();
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
        let served = waiting.served.lock().iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!(served, [4, 9, 1, 3, 2]);
        assert!(waiting.turns.held() == 0 && waiting.turns.0.lock().queues.is_empty());
    }

    #[tokio::test]
    async fn where_too_many_wait_the_oldest_of_the_peer_with_most_gives_up() {
        let waiting = Waiting { turns: Turns::new(1, 3), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD, None).await.unwrap();
        let mut joined = Vec::new();
        for number in 1..=3 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        joined.push(waiting.join(OTHER, 9).await);
        tokio::task::yield_now().await;
        assert_eq!(*waiting.served.lock(), [None]);
        drop(busy);
        for task in joined {
            task.await.unwrap();
        }
        assert_eq!(*waiting.served.lock(), [None, Some(3), Some(9), Some(2)]);
    }

    #[tokio::test]
    async fn behind_one_address_a_configured_user_waits_for_one_turn_and_keeps_its_place() {
        let waiting = Waiting { turns: Turns::new(1, 3), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD, None).await.unwrap();
        let mut joined = Vec::new();
        for number in 1..=3 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        joined.push(waiting.join_as(FLOOD, Some("alice".to_owned()), 9).await);
        for number in 4..=20 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        drop(busy);
        for task in joined {
            task.await.unwrap();
        }
        let served = waiting.served.lock().iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!(served, [20, 9, 19]);
    }

    #[tokio::test]
    async fn another_user_of_a_peer_waits_at_the_place_of_that_peer() {
        let waiting = Waiting { turns: Turns::new(1, 100), served: Arc::default() };
        let busy = waiting.turns.acquire(Peer::Local, None).await.unwrap();
        let mut joined = vec![waiting.join(FLOOD, 1).await];
        let newest = tokio::spawn({
            let turns = Arc::clone(&waiting.turns);
            async move { turns.acquire(FLOOD, None).await }
        });
        joined.push(waiting.join(OTHER, 2).await);
        drop(busy);
        let newest = newest.await.unwrap().unwrap();
        joined.push(waiting.join(Peer::Local, 3).await);
        joined.push(waiting.join_as(FLOOD, Some("alice".to_owned()), 4).await);
        drop(newest);
        for task in joined {
            task.await.unwrap();
        }
        let served = waiting.served.lock().iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!(served, [2, 1, 3, 4]);
    }

    #[tokio::test]
    async fn a_newcomer_ends_the_oldest_turn_of_those_that_its_rank_does_not_spare() {
        let turns = Turns::new(4, 0);
        let (now, mut held) = (Instant::now(), Vec::new());
        for (peer, age) in [(FLOOD, 1), (FLOOD, 3), (OTHER, 2), (OTHER, 4)] {
            let turn = turns.acquire(peer, None).await.unwrap();
            turn.used(|used| *used = Some(age));
            held.push(turn);
        }
        let end = |newcomer, rank| turns.end_one(newcomer, rank, |age| Some(now - Duration::from_secs(*age)));
        assert_eq!(end(FLOOD, Rank::AboveShare), None, "each holds its share");
        assert_eq!(end(FLOOD, Rank::Larger), Some(3), "the other holds no more, so one of its own");
        assert_eq!(end(Peer::Local, Rank::AboveShare), Some(4), "a third peer makes the shares smaller");
        assert_eq!(end(FLOOD, Rank::Any), Some(2));
        assert_eq!(end(Peer::Local, Rank::Larger), Some(1), "a turn that is to end is not ended again");
        assert_eq!(end(Peer::Local, Rank::Any), None);
    }

    #[tokio::test]
    async fn a_freed_turn_goes_to_the_peer_that_holds_fewest() {
        let turns = Turns::<()>::new(3, 10);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(turns.acquire(FLOOD, None).await.unwrap());
        }
        let waiting = Waiting { turns: Arc::clone(&turns), served: Arc::default() };
        let joined =
            [waiting.join(FLOOD, 1).await, waiting.join(FLOOD, 2).await, waiting.join(OTHER, 9).await];
        assert!(turns.is_below_share(OTHER) && !turns.is_below_share(FLOOD));
        held.pop();
        for task in joined {
            task.await.unwrap();
        }
        assert_eq!(waiting.served.lock().first(), Some(&Some(9)));
        drop(held);
        assert!(turns.held() == 0 && turns.0.lock().queues.is_empty());
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_keeps_no_turn() {
        let turns = Turns::<()>::new(1, 10);
        let busy = turns.acquire(FLOOD, None).await.unwrap();
        let gone = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.acquire(FLOOD, None).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err());
        drop(busy);
        assert!(turns.acquire(OTHER, None).await.is_some());
    }
}
