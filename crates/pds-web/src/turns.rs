//! Hands out everything scarce: connections, TLS handshakes, password checks, request slots.
//!
//! - A freed turn goes to the waiting peer that holds fewest, then to the peer served longest ago, so a flood from one
//!   peer delays another by one turn. Users of one peer take turns likewise, so a flood of guesses from a shared
//!   address also delays a configured user by one turn.
//! - A newcomer may end the turn of another early, starting with the peer that holds most ([`Turns::end_early`]).
//! - If too many wait, the oldest request of the peer with most is refused, but never a user's only request.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How often [`Turns::acquire_or_end`] looks for a turn to end.
const RETRY: Duration = Duration::from_millis(100);

/// A client for fair sharing. Many scrapers behind one proxy are one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// All clients of a unix socket.
    Local,
    /// An IPv4 address, or an IPv6 network of 64 bits: one host can take any address in it.
    At(IpAddr),
}

impl Peer {
    /// The peer with the address `ip`.
    pub(super) fn of(ip: IpAddr) -> Self {
        // A socket of both families shows IPv4 addresses as ::ffff:a.b.c.d.
        Self::At(match ip.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
            ip => ip,
        })
    }
}

/// Turns, each with a payload `T` once its holder has set one.
pub(super) struct Turns<T = ()>(Mutex<State<T>>);

struct State<T> {
    limit: usize,
    max_waiting: usize,
    /// From the oldest to the newest.
    waiting: Vec<Waiting<T>>,
    /// By number. A turn without a payload has not begun, or is to end early.
    held: HashMap<u64, (Peer, Option<T>)>,
    /// Turns handed out, as a clock that orders peers by their last turn.
    served: u64,
}

/// A waiting request, of a configured user or of anybody else.
struct Waiting<T> {
    peer: Peer,
    user: Option<String>,
    sender: oneshot::Sender<Turn<T>>,
    /// When its peer was last served.
    peer_served: u64,
    /// When its user was last served.
    user_served: u64,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn<T = ()> {
    turns: Arc<Turns<T>>,
    number: u64,
}

impl<T> Turns<T> {
    /// `limit` concurrent turns, and at most `max_waiting` waiting requests.
    pub(super) fn new(limit: usize, max_waiting: usize) -> Arc<Self> {
        let (waiting, held) = (Vec::new(), HashMap::new());
        Arc::new(Self(Mutex::new(State { limit, max_waiting, waiting, held, served: 0 })))
    }

    /// Waits for a turn; `None` if too many wait.
    pub(super) async fn acquire(self: &Arc<Self>, peer: Peer, user: Option<String>) -> Option<Turn<T>> {
        let turn = {
            let mut state = self.0.lock();
            if state.held.len() < state.limit {
                return Some(self.turn(&mut state, peer));
            }
            state.push(peer, user)
        };
        turn.await.ok()
    }

    /// Waits for a turn, and calls `end_another` every [`RETRY`] to end the turns of others; `None` once that returns
    /// `false`.
    pub(super) async fn acquire_or_end(
        self: &Arc<Self>,
        peer: Peer,
        mut end_another: impl FnMut() -> bool,
    ) -> Option<Turn<T>> {
        let mut turn = std::pin::pin!(self.acquire(peer, None));
        let mut retry = tokio::time::interval(RETRY);
        loop {
            tokio::select! {
                biased;
                turn = turn.as_mut() => return turn,
                _ = retry.tick() => if !end_another() { return None },
            }
        }
    }

    /// How many turns each peer holds for which `counts` is true; their payload is `None` before they have begun.
    pub(super) fn holdings(&self, counts: impl Fn(Option<&T>) -> bool) -> HashMap<Peer, usize> {
        self.0.lock().holdings(counts)
    }

    /// Ends a turn early and returns its payload: the turn with the highest `rank`, of the peer that holds most, among
    /// peers that hold `at_least` this many. Only turns for which `counts` is true count and may end; turns without a
    /// rank stay.
    pub(super) fn end_early<R: Ord>(
        &self,
        at_least: usize,
        counts: impl Fn(Option<&T>) -> bool,
        rank: impl Fn(&T) -> Option<R>,
    ) -> Option<T> {
        let mut state = self.0.lock();
        let holdings = state.holdings(&counts);
        let turns = state.held.values_mut().filter(|(_, payload)| counts(payload.as_ref()));
        let ranked = turns.filter_map(|(peer, payload)| {
            let held = holdings.get(peer).copied().filter(|held| *held >= at_least)?;
            Some(((held, rank(payload.as_ref()?)?), payload))
        });
        ranked.max_by(|(one, _), (other, _)| one.cmp(other))?.1.take()
    }

    /// How many turns are held.
    pub(super) fn held(&self) -> usize {
        self.0.lock().held.len()
    }

    fn turn(self: &Arc<Self>, state: &mut State<T>, peer: Peer) -> Turn<T> {
        state.served += 1;
        state.held.insert(state.served, (peer, None));
        Turn { turns: Arc::clone(self), number: state.served }
    }
}

impl<T> State<T> {
    /// How many turns each peer holds for which `counts` is true.
    fn holdings(&self, counts: impl Fn(Option<&T>) -> bool) -> HashMap<Peer, usize> {
        let held = self.held.values().filter(|(_, payload)| counts(payload.as_ref()));
        tally(held.map(|(peer, _)| *peer))
    }

    fn push(&mut self, peer: Peer, user: Option<String>) -> oneshot::Receiver<Turn<T>> {
        // Drops clients that have disconnected.
        self.waiting.retain(|waiting| !waiting.sender.is_closed());
        let (sender, receiver) = oneshot::channel();
        let (mut peer_served, mut user_served) = (self.served, self.served);
        for other in self.waiting.iter().filter(|other| other.peer == peer) {
            peer_served = other.peer_served;
            if other.user == user {
                user_served = other.user_served;
            }
        }
        self.waiting.push(Waiting { peer, user, sender, peer_served, user_served });
        if self.waiting.len() > self.max_waiting {
            self.refuse_oldest();
        }
        receiver
    }

    /// Refuses the oldest request of the user with most, of the peer with most.
    fn refuse_oldest(&mut self) {
        let by_peer = tally(self.waiting.iter().map(|waiting| waiting.peer));
        let by_user = tally(self.waiting.iter().map(|waiting| &waiting.user));
        let by_both = tally(self.waiting.iter().map(|waiting| (waiting.peer, &waiting.user)));
        let refusable = |waiting: &Waiting<T>| waiting.user.is_none() || by_user[&waiting.user] > 1;
        let newest_first = self.waiting.iter().enumerate().rev().filter(|(_, waiting)| refusable(waiting));
        // The last of several equal maxima counts.
        let refused = newest_first
            .max_by_key(|(_, Waiting { peer, user, .. })| (by_peer[peer], by_both[&(*peer, user)]));
        if let Some((index, _)) = refused {
            self.waiting.remove(index);
        }
    }

    /// Removes and returns the next request.
    fn pop(&mut self) -> Option<Waiting<T>> {
        let holdings = self.holdings(|_| true);
        let rank =
            |waiting: &Waiting<T>| (holdings.get(&waiting.peer), waiting.peer_served, waiting.user_served);
        let (index, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| rank(waiting))?;
        let next = self.waiting.remove(index);
        self.served += 1;
        for other in self.waiting.iter_mut().filter(|other| other.peer == next.peer) {
            other.peer_served = self.served;
            if other.user == next.user {
                other.user_served = self.served;
            }
        }
        Some(next)
    }
}

fn tally<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut tally = HashMap::new();
    for key in keys {
        *tally.entry(key).or_default() += 1;
    }
    tally
}

impl<T> Turn<T> {
    /// Reads or changes the payload: `None` at first, and once the turn is to end early.
    pub(super) fn with_payload<R>(&self, with: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        let mut state = self.turns.0.lock();
        state.held.get_mut(&self.number).map(|(_, payload)| with(payload))
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        let mut state = self.turns.0.lock();
        state.held.remove(&self.number);
        while let Some(next) = state.pop() {
            // Dropping a turn that nobody takes would lock again, so closed receivers are skipped.
            if !next.sender.is_closed() {
                let turn = self.turns.turn(&mut state, next.peer);
                drop(state);
                // If the receiver closes at this moment, the turn returns and is dropped here.
                drop(next.sender.send(turn));
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

        /// Those that got their turn, in order, once all that joined have ended.
        async fn served(&self, joined: Vec<tokio::task::JoinHandle<()>>) -> Vec<u32> {
            for task in joined {
                task.await.unwrap();
            }
            self.served.lock().iter().flatten().copied().collect()
        }
    }

    #[test]
    fn an_ipv4_address_and_an_ipv6_network_are_each_one_peer() {
        let peer = |ip: &str| Peer::of(ip.parse().unwrap());
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.2"), peer("10.0.0.1"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8:0:0:ffff::2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    }

    #[tokio::test]
    async fn another_peer_waits_for_one_turn() {
        let waiting = Waiting { turns: Turns::new(1, 100), served: Arc::default() };
        let busy = waiting.turns.acquire(FLOOD, None).await.unwrap();
        let mut joined = Vec::new();
        for number in 1..=4 {
            joined.push(waiting.join(FLOOD, number).await);
        }
        joined.push(waiting.join(OTHER, 9).await);
        drop(busy);
        assert_eq!(waiting.served(joined).await, [1, 9, 2, 3, 4]);
        assert!(waiting.turns.held() == 0 && waiting.turns.0.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn the_oldest_request_of_the_peer_with_most_is_refused_if_too_many_wait() {
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
        assert_eq!(*waiting.served.lock(), [None, Some(2), Some(9), Some(3)]);
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
        assert_eq!(waiting.served(joined).await, [9, 19, 20]);
    }

    #[tokio::test]
    async fn another_user_of_a_peer_waits_at_the_place_of_that_peer() {
        let waiting = Waiting { turns: Turns::new(1, 100), served: Arc::default() };
        let busy = waiting.turns.acquire(Peer::Local, None).await.unwrap();
        let first = tokio::spawn({
            let turns = Arc::clone(&waiting.turns);
            async move { turns.acquire(FLOOD, None).await }
        });
        tokio::task::yield_now().await;
        let mut joined = vec![waiting.join(FLOOD, 1).await];
        joined.push(waiting.join(OTHER, 2).await);
        drop(busy);
        let first = first.await.unwrap().unwrap();
        joined.push(waiting.join(Peer::Local, 3).await);
        joined.push(waiting.join_as(FLOOD, Some("alice".to_owned()), 4).await);
        drop(first);
        assert_eq!(waiting.served(joined).await, [2, 1, 3, 4]);
    }

    #[tokio::test]
    async fn the_turn_of_highest_rank_of_the_peer_that_holds_most_ends_early() {
        let turns = Turns::new(5, 0);
        let mut held = Vec::new();
        for (peer, age) in [(FLOOD, 1), (FLOOD, 3), (FLOOD, 0), (OTHER, 2), (OTHER, 4)] {
            let turn = turns.acquire(peer, None).await.unwrap();
            turn.with_payload(|payload| *payload = Some(age));
            held.push(turn);
        }
        assert_eq!((turns.holdings(|_| true)[&OTHER], turns.holdings(|_| true).get(&Peer::Local)), (2, None));
        let end = |at_least| turns.end_early(at_least, |_| true, |age: &u64| (*age > 0).then_some(*age));
        assert_eq!(end(4), None, "nobody holds so many");
        assert_eq!(end(3), Some(3));
        assert_eq!(end(3), Some(1), "a turn that is to end is held, and not ended again");
        assert_eq!(end(3), None, "the last one may not end");
        assert_eq!((end(0), end(0), end(0)), (Some(4), Some(2), None));
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
        held.pop();
        for task in joined {
            task.await.unwrap();
        }
        assert_eq!(waiting.served.lock().first(), Some(&Some(9)));
        drop(held);
        assert!(turns.held() == 0 && turns.0.lock().waiting.is_empty());
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
