//! Limits of concurrent requests (`--web.max-requests`) and of unread answers.
//!
//! A request holds its slot until the client has read the answer. When slots or memory run out:
//!
//! - a request whose client has not read for a second is closed for any peer that does not hold more;
//! - a peer that holds fewer than another waits up to two seconds; after one second, a request of a peer that holds more
//!   is closed, whether its client reads or not, beginning with the peer that holds most: for a slot its oldest, for
//!   memory its largest (after 1.9 s if no peer holds two);
//! - any other request without a slot is refused with 503; one with a slot waits up to two seconds for memory, after
//!   the peers that hold fewer.
//!
//! A request has the memory of the largest answer before its answer is made, and gives back what that does not use. So
//! answers that wait hold nothing, and requests that wait for each other cannot block each other. A request waits 200 ms
//! for memory before another is closed. Then only requests that hold memory count, and only these are closed.
//!
//! So no client blocks another, and a single proxy with many scrapers may use all slots while nobody else sends requests.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pds_core::memory::{Room, Share};
use tokio::time::Instant;

use super::connection_state::{ConnectionState, InFlight};
use super::response::ResponseBody;
use super::turns::{Peer, Turn, Turns};

/// An answer counts as at most this fraction of the memory for answers, so that every answer fits.
pub const ANSWER_DIVISOR: u64 = 4;

/// Memory of a response that is rendered or compressed while it is sent, besides its source: its pieces, buffers and
/// encoder.
const STREAM_BYTES: u64 = 1024 * 1024;

/// How long a request waits for a slot.
pub const MAX_WAIT: Duration = Duration::from_secs(2);

/// How long a request waits before a request of a peer that holds more is closed, and the minimum age of that request.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a request waits for memory before the only answer of a peer is closed, which may end in time.
const SOLE_PATIENCE: Duration = Duration::from_millis(1900);

/// How long a request waits for memory before another is closed: answers that are being made free most of theirs soon.
const GRACE: Duration = Duration::from_millis(200);

/// How often a request looks for memory.
const RETRY: Duration = Duration::from_millis(20);

/// Requests that may wait for a slot.
pub const MAX_WAITING: usize = 256;

/// The slots of all requests.
pub(super) struct RequestSlots {
    turns: Arc<Turns<Answering>>,
    memory: Share,
    /// The memory of the bytes in answers, by address.
    shared: Mutex<HashMap<usize, Weak<Room>>>,
    /// The peers of requests that wait for memory, until these have it or are cancelled.
    waiting: Mutex<Vec<Weak<Peer>>>,
}

/// A resource that a request waits for.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Slot,
    Memory,
}

impl Need {
    /// Whether `request` holds it; `None` is a request that still waits for memory or is to end.
    fn is_held_by(self, request: Option<&Answering>) -> bool {
        let holds_memory = |request: &Answering| request.rooms.iter().any(|room| room.num_permits() > 0);
        self == Self::Slot || request.is_some_and(holds_memory)
    }
}

impl Answering {
    /// Its share of the memory that it holds; several answers may hold the same.
    fn memory(&self) -> usize {
        self.rooms.iter().map(|room| room.num_permits() / Arc::strong_count(room)).sum()
    }
}

/// Use of a slot.
struct Answering {
    connection: ConnectionState,
    /// The number of the request among those of its connection.
    number: u64,
    since: Instant,
    /// Body of the response, held so that no other bytes get the same address.
    blocks: Vec<Bytes>,
    /// Memory of the answer.
    rooms: Vec<Arc<Room>>,
}

/// Permission to answer a request; dropping it frees the slot. All work on the answer shares it.
pub(super) struct RequestPermit {
    slots: Arc<RequestSlots>,
    turn: Turn<Answering>,
}

impl RequestSlots {
    /// `limit` slots (0 means unlimited), and `memory` for unread answers. Bytes that answers share count once.
    pub(super) fn new(limit: u32, memory: Share) -> Arc<Self> {
        let at_once = usize::try_from(limit).ok().filter(|limit| *limit != 0).unwrap_or(usize::MAX);
        let turns = Turns::new(at_once, MAX_WAITING);
        Arc::new(Self { turns, memory, shared: Mutex::default(), waiting: Mutex::default() })
    }

    /// A slot for a request, with the memory of the largest answer; `None` if there is none.
    pub(super) async fn take(self: &Arc<Self>, request: &InFlight) -> Option<RequestPermit> {
        let (connection, number) = (request.connection.clone(), request.number);
        let (peer, began) = (connection.peer(), Instant::now());
        let turn = self.turns.acquire_or_end(peer, || {
            let (own, most) = self.own_and_most(peer, Need::Slot);
            (self.close_another(peer, began, Need::Slot) || own < most) && began.elapsed() < MAX_WAIT
        });
        let turn = turn.await?;
        let room = self.room(peer, began).await?;
        let (since, blocks, rooms) = (Instant::now(), Vec::new(), vec![Arc::new(room)]);
        turn.with_payload(|payload| *payload = Some(Answering { connection, number, since, blocks, rooms }));
        Some(RequestPermit { slots: Arc::clone(self), turn })
    }

    /// The number of requests of `peer` that hold what is needed, and the most that any peer has.
    fn own_and_most(&self, peer: Peer, need: Need) -> (usize, usize) {
        let held = self.turns.holdings(|request| need.is_held_by(request));
        (held.get(&peer).copied().unwrap_or(0), held.into_values().max().unwrap_or(0))
    }

    /// Closes the connection of a request, and frees its memory at once, for a request of `peer` that `began` to wait:
    /// the connection of the request unread for longest, among peers that do not hold fewer, or else of the oldest
    /// request (for memory: the largest), among peers that hold more. The peer that holds most comes first.
    fn close_another(&self, peer: Peer, began: Instant, need: Need) -> bool {
        let (own, most) = self.own_and_most(peer, need);
        let unread = |request: &Answering| request.connection.unread_since(request.number).map(Reverse);
        // Whether its client reads or not.
        let aged = |request: &Answering| {
            let weight = if need == Need::Memory { request.memory() } else { 0 };
            (request.since.elapsed() >= PATIENCE).then_some((weight, Reverse(request.since)))
        };
        let patience = if need == Need::Memory && most == 1 { SOLE_PATIENCE } else { PATIENCE };
        self.close(need, own, "other requests need its slot or memory, and its client does not read", unread)
            || began.elapsed() >= patience
                && own < most
                && self.close(need, own + 1, "peers that hold fewer requests need its slot or memory", aged)
    }

    /// Closes the connection of the request with the highest `rank`, of the peer that holds most, among peers that hold
    /// `at_least` this many.
    fn close<R: Ord>(
        &self,
        need: Need,
        at_least: usize,
        why: &'static str,
        rank: impl Fn(&Answering) -> Option<R>,
    ) -> bool {
        let ended = self.turns.end_early(at_least, |request| need.is_held_by(request), rank);
        ended.inspect(|request| request.connection.close(why)).is_some()
    }

    /// Waits for the memory of an answer to a request of `peer` that `began` to wait; `None` after [`MAX_WAIT`].
    async fn room(&self, peer: Peer, began: Instant) -> Option<Room> {
        let (waits, waited_since) = (Arc::new(peer), Instant::now());
        self.waiting.lock().push(Arc::downgrade(&waits));
        let is_first = || {
            let held = self.turns.holdings(|request| Need::Memory.is_held_by(request));
            let mut waiting = self.waiting.lock();
            waiting.retain(|other| other.strong_count() > 0);
            let mut others = waiting.iter().filter_map(Weak::upgrade);
            others.all(|other| *other == peer || held.get(&other) >= held.get(&peer))
        };
        loop {
            while is_first() {
                if let Some(room) = self.memory.try_acquire(self.memory.bytes() / ANSWER_DIVISOR) {
                    return Some(room);
                }
                if waited_since.elapsed() < GRACE || !self.close_another(peer, began, Need::Memory) {
                    break;
                }
            }
            if began.elapsed() >= MAX_WAIT {
                return None;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// The parts of `room` that `own_bytes` and the `blocks` that no answer holds yet take; the rest is free again.
    fn divide(&self, mut room: Room, own_bytes: u64, blocks: &[Bytes]) -> Vec<Arc<Room>> {
        let mut take = |bytes| self.memory.split(&mut room, bytes).map(Arc::new);
        let mut rooms = Vec::from_iter(take(own_bytes));
        let mut shared = self.shared.lock();
        shared.retain(|_, room| room.strong_count() > 0);
        for block in blocks {
            let known = shared.entry(block.as_ptr() as usize).or_default();
            let Some(room) = known.upgrade().or_else(|| take(block.len() as u64)) else { break };
            *known = Arc::downgrade(&room);
            rooms.push(room);
        }
        rooms
    }
}

impl RequestPermit {
    /// Keeps the memory of this answer, and gives the rest back.
    pub(super) fn hold(&self, body: &ResponseBody, compressed: bool) {
        let (own_bytes, blocks) = match body {
            ResponseBody::Parts(parts) => {
                (if compressed { STREAM_BYTES } else { 0 }, Vec::from(parts.clone()))
            }
            ResponseBody::Channel { source_bytes, .. } => (STREAM_BYTES + source_bytes, Vec::new()),
        };
        self.turn.with_payload(|payload| {
            // There is none if the connection is to be closed.
            let Some(request) = payload else { return };
            if let Some(room) = request.rooms.pop().and_then(Arc::into_inner) {
                request.rooms = self.slots.divide(room, own_bytes, &blocks);
                request.blocks = blocks;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::{AtomicU64, Ordering};

    use pds_core::memory::{Holder, MemoryBudget};

    use super::*;
    use crate::Limits;

    fn memory() -> Share {
        MemoryBudget::default().share(Holder::Answers)
    }

    fn connection(host: u8) -> ConnectionState {
        let peer = Peer::At(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)));
        ConnectionState::new(peer, Limits::default(), Arc::new(()))
    }

    /// A slot for a request that has an empty answer.
    async fn take(slots: &Arc<RequestSlots>, request: &InFlight) -> Option<RequestPermit> {
        slots.take(request).await.inspect(|permit| permit.hold(&empty(), false))
    }

    /// A request on its own connection, with its permit.
    type Taken = (ConnectionState, InFlight, RequestPermit);

    /// A request whose answer is not made yet; four of them hold all memory.
    async fn making(slots: &Arc<RequestSlots>, host: u8) -> Taken {
        let connection = connection(host);
        let request = connection.open();
        let permit = slots.take(&request).await.unwrap();
        (connection, request, permit)
    }

    /// A request whose client reads its answer.
    async fn answered(slots: &Arc<RequestSlots>, host: u8, answer: impl Into<ResponseBody>) -> Taken {
        let taken = making(slots, host).await;
        taken.2.hold(&answer.into(), false);
        taken
    }

    /// A request whose client does not read its answer.
    async fn unread(slots: &Arc<RequestSlots>, host: u8, answer: impl Into<ResponseBody>) -> Taken {
        let taken = answered(slots, host, answer).await;
        taken.1.sending();
        taken
    }

    fn empty() -> ResponseBody {
        ResponseBody::Parts([].into())
    }

    /// An answer that takes this part of the memory.
    fn part(slots: &RequestSlots, divisor: u64) -> Bytes {
        vec![b'x'; usize::try_from(slots.memory.bytes() / divisor).unwrap()].into()
    }

    fn stream(source_bytes: u64) -> ResponseBody {
        ResponseBody::Channel { pieces: tokio::sync::mpsc::channel(1).1, source_bytes }
    }

    async fn is_closed(connection: &ConnectionState) -> bool {
        tokio::time::timeout(Duration::ZERO, connection.expired()).await.is_ok()
    }

    /// How many of their connections are closed.
    async fn closed(taken: &[Taken]) -> usize {
        let mut closed = 0;
        for (connection, ..) in taken {
            closed += usize::from(is_closed(connection).await);
        }
        closed
    }

    #[tokio::test(start_paused = true)]
    async fn one_peer_may_use_all_slots_and_is_refused_beyond() {
        let slots = RequestSlots::new(2, memory());
        let held = [unread(&slots, 1, empty()).await, unread(&slots, 1, empty()).await];
        let third = connection(1);
        assert!(take(&slots, &third.open()).await.is_none());
        drop(held);
        assert!(take(&slots, &third.open()).await.is_some());
        let unlimited = RequestSlots::new(0, memory());
        let mut held = Vec::new();
        for _ in 0..100 {
            held.push(unread(&unlimited, 1, empty()).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_holds_fewer_waits_and_the_longest_unread_request_gives_way() {
        let slots = RequestSlots::new(2, memory());
        let first = unread(&slots, 1, empty()).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        let second = unread(&slots, 1, empty()).await;
        let newcomer = connection(2);
        let request = newcomer.open();
        let closed = async {
            first.0.expired().await;
            // Its task ends.
            drop((first.1, first.2));
        };
        let (permit, ()) = tokio::join!(take(&slots, &request), closed);
        assert!(permit.is_some() && !is_closed(&second.0).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_read_gives_way_after_a_second_and_to_a_peer_that_holds_fewer_only() {
        let slots = RequestSlots::new(2, memory());
        let oldest = answered(&slots, 1, empty()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let later = answered(&slots, 1, empty()).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(take(&slots, &connection(1).open()).await.is_none(), "a third of the same peer");
        assert!(!is_closed(&oldest.0).await);
        let request = connection(2).open();
        let began = Instant::now();
        let closed = async {
            oldest.0.expired().await;
            began.elapsed()
        };
        // It does not end although it is closed, so it frees no slot.
        let (permit, closed) = tokio::join!(take(&slots, &request), closed);
        assert_eq!((permit.is_some(), began.elapsed()), (false, MAX_WAIT));
        assert_eq!(closed, PATIENCE);
        drop(later);
    }

    /// Sends requests of `host` one after the other, for ever, each on a new connection. Its client reads for `reads`,
    /// or until the connection is closed.
    async fn keeps_asking(slots: Arc<RequestSlots>, host: u8, reads: Duration) {
        loop {
            let connection = connection(host);
            let request = connection.open();
            match take(&slots, &request).await {
                Some(_permit) => drop(tokio::time::timeout(reads, connection.expired()).await),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        /// Whatever the others do: read slowly but steadily, not at all, or send requests again and again.
        #[test]
        fn a_peer_below_its_share_is_served_within_two_seconds(
            limit in 2..12_u32,
            crowd in proptest::collection::vec((1..4_u8, 1..20_000_u64), 1..40),
        ) {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
                let slots = RequestSlots::new(limit, memory());
                let mut asking = tokio::task::JoinSet::new();
                let peers: std::collections::HashSet<_> = crowd.iter().map(|(host, _)| *host).collect();
                for (host, reads) in crowd {
                    asking.spawn(keeps_asking(Arc::clone(&slots), host, Duration::from_millis(reads)));
                }
                tokio::time::sleep(Duration::from_secs(3)).await;
                let share = limit as usize / (peers.len() + 1);
                let newcomer = connection(200);
                let mut held = Vec::new();
                for below in 0..share {
                    let request = newcomer.open();
                    let began = Instant::now();
                    let permit = take(&slots, &request).await;
                    assert!(permit.is_some(), "holds {below} of its share of {share}, {peers:?}");
                    assert!(began.elapsed() <= MAX_WAIT);
                    held.push((permit, request));
                }
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unread_bytes_are_bounded_and_shared_ones_count_once() {
        let budget = MemoryBudget::default();
        let slots = RequestSlots::new(0, budget.share(Holder::Answers));
        let eighth = slots.memory.bytes() / 8;
        let page = part(&slots, 8);
        let mut held = Vec::new();
        for _ in 0..20 {
            held.push(unread(&slots, 1, page.clone()).await);
        }
        assert_eq!(budget.used(), eighth);
        for _ in 0..6 {
            held.push(unread(&slots, 1, part(&slots, 8)).await);
        }
        assert_eq!(budget.used(), 7 * eighth);
        // Two seconds pass; those unread for one of them give way.
        let late = unread(&slots, 2, part(&slots, 8)).await;
        drop((held, late));
        assert_eq!((budget.used(), slots.turns.held()), (0, 0));
        drop(unread(&slots, 1, empty()).await);
        assert!(slots.shared.lock().is_empty());
    }

    /// Sends a request of `host` and reads its answer, a stream, after `reads`; whether there is one.
    async fn streamed(slots: Arc<RequestSlots>, host: u8, reads: Duration) -> bool {
        let connection = connection(host);
        let request = connection.open();
        let Some(permit) = slots.take(&request).await else { return false };
        // Others begin while the answer is made.
        tokio::task::yield_now().await;
        permit.hold(&stream(300_000), false);
        request.sending();
        tokio::select! {
            _ = connection.expired() => false,
            () = tokio::time::sleep(reads) => true,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_peer_wait_for_memory_while_others_are_read() {
        let slots = RequestSlots::new(40, memory());
        let mut answers = tokio::task::JoinSet::new();
        for _ in 0..40 {
            answers.spawn(streamed(Arc::clone(&slots), 1, Duration::from_millis(100)));
        }
        assert_eq!(answers.join_all().await, [true; 40]);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_made_while_there_is_memory_for_the_largest() {
        let slots = RequestSlots::new(40, memory());
        let being_made = Arc::new(AtomicU64::new(0));
        let mut answers = tokio::task::JoinSet::new();
        for _ in 0..40 {
            let (slots, being_made) = (Arc::clone(&slots), Arc::clone(&being_made));
            answers.spawn(async move {
                let taken = making(&slots, 1).await;
                assert!(being_made.fetch_add(1, Ordering::Relaxed) < ANSWER_DIVISOR);
                tokio::time::sleep(Duration::from_millis(50)).await;
                being_made.fetch_sub(1, Ordering::Relaxed);
                taken.2.hold(&empty(), false);
            });
        }
        answers.join_all().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_is_served_within_two_seconds_beside_one_that_never_reads() {
        let slots = RequestSlots::new(40, memory());
        let mut flood = tokio::task::JoinSet::new();
        for tick in 0..300 {
            flood.spawn(streamed(Arc::clone(&slots), 1, Duration::from_secs(3600)));
            flood.spawn(streamed(Arc::clone(&slots), 3, Duration::from_secs(3600)));
            if tick % 10 == 9 {
                let began = Instant::now();
                assert!(streamed(Arc::clone(&slots), 2, Duration::ZERO).await, "{tick}");
                assert!(began.elapsed() <= MAX_WAIT, "{:?}", began.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_is_served_although_the_one_with_most_only_waits() {
        let slots = RequestSlots::new(40, memory());
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..14 {
            let slots = Arc::clone(&slots);
            others.spawn(async move {
                let taken = answered(&slots, 1, stream(300_000)).await;
                // Its client reads steadily.
                taken.0.expired().await;
            });
        }
        for turn in 0..20 {
            let slots = Arc::clone(&slots);
            others.spawn(async move {
                tokio::time::sleep(Duration::from_millis(100 * turn)).await;
                loop {
                    drop(slots.take(&connection(3).open()).await);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(slots.take(&connection(2).open()).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_answers_that_are_being_made_before_it_closes_another() {
        let slots = RequestSlots::new(0, memory());
        let first = unread(&slots, 1, stream(300_000)).await;
        tokio::time::sleep(2 * PATIENCE).await;
        let mut held = Vec::new();
        for host in 2..5 {
            held.push(making(&slots, host).await);
        }
        let request = connection(5).open();
        let made = async {
            tokio::time::sleep(GRACE / 4).await;
            held.pop();
        };
        let (permit, ()) = tokio::join!(slots.take(&request), made);
        assert!(permit.is_some() && !is_closed(&first.0).await);
    }

    #[tokio::test(start_paused = true)]
    async fn two_requests_of_a_peer_get_the_memory_of_answers_that_nobody_reads() {
        let slots = RequestSlots::new(40, memory());
        let mut suspended = Vec::new();
        for host in 1..5 {
            suspended.push(unread(&slots, host, part(&slots, ANSWER_DIVISOR)).await);
        }
        tokio::time::sleep(PATIENCE).await;
        let scrapes = [connection(5).open(), connection(5).open()];
        let permits = tokio::join!(slots.take(&scrapes[0]), slots.take(&scrapes[1]));
        assert!(permits.0.is_some() && permits.1.is_some());
        drop(suspended);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_holds_no_memory_is_not_closed_for_it_and_does_not_count() {
        let slots = RequestSlots::new(40, memory());
        let [busy, reloading] = [5, 1].map(connection);
        let reloads = [&busy, &busy, &reloading, &reloading].map(ConnectionState::open);
        let (mut reloaded, mut scrapes) = (Vec::new(), Vec::new());
        for reload in &reloads {
            reloaded.push(take(&slots, reload).await.unwrap());
        }
        for host in [2, 3, 4, 6] {
            scrapes.push(making(&slots, host).await);
        }
        tokio::time::sleep(PATIENCE).await;
        assert!(slots.take(&busy.open()).await.is_some());
        assert_eq!(closed(&scrapes).await, 1);
        assert!(!is_closed(&reloading).await && !is_closed(&busy).await);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_read_in_time_make_room_for_as_many_others() {
        let slots = RequestSlots::new(40, memory());
        let mut held = Vec::new();
        for host in 1..5 {
            held.push(making(&slots, host).await);
        }
        let readers: Vec<_> = held.iter().map(|(connection, ..)| connection.clone()).collect();
        let waiting = [5, 6, 7, 8].map(|host| connection(host).open());
        let [a, b, c, d] = waiting.each_ref().map(|request| slots.take(request));
        let read = async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            drop(held);
        };
        let (a, b, c, d, ()) = tokio::join!(a, b, c, d, read);
        assert!([a, b, c, d].iter().all(Option::is_some));
        for reader in &readers {
            assert!(!is_closed(reader).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_answers_the_largest_makes_room() {
        let slots = RequestSlots::new(40, memory());
        let mut small = Vec::new();
        for host in 1..13 {
            small.push(answered(&slots, host, part(&slots, 16)).await);
        }
        let large = making(&slots, 20).await;
        tokio::time::sleep(PATIENCE).await;
        assert!(slots.take(&connection(21).open()).await.is_some());
        assert!(is_closed(&large.0).await && closed(&small).await == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_wait_make_no_peer_the_one_that_holds_most() {
        let slots = RequestSlots::new(40, memory());
        let [most, other] = [1, 2].map(connection);
        let scrapes = [&most, &most, &most, &other].map(ConnectionState::open);
        let mut held = Vec::new();
        for scrape in &scrapes {
            held.push(slots.take(scrape).await);
        }
        tokio::time::sleep(PATIENCE).await;
        let waiting = [&most, &other, &other, &other, &other].map(ConnectionState::open);
        let [a, b, c, d, e] = waiting.each_ref().map(|request| slots.take(request));
        let (of_most, b, c, d, e) = tokio::join!(a, b, c, d, e);
        assert!(of_most.is_none() && [b, c, d, e].iter().any(Option::is_some));
        assert!(!is_closed(&other).await && is_closed(&most).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_request_makes_room_for_another() {
        let slots = RequestSlots::new(2, memory());
        let old = answered(&slots, 1, empty()).await;
        tokio::time::sleep(PATIENCE).await;
        let large = answered(&slots, 1, part(&slots, 16)).await;
        tokio::time::sleep(PATIENCE).await;
        let closed = async {
            tokio::time::timeout(MAX_WAIT, old.0.expired()).await.unwrap();
            drop(old);
        };
        let newcomer = connection(2).open();
        let (taken, ()) = tokio::join!(slots.take(&newcomer), closed);
        assert!(taken.is_some() && !is_closed(&large.0).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_frees_nothing_alone_is_not_the_largest() {
        let slots = RequestSlots::new(40, memory());
        let bytes = slots.memory.bytes();
        let page = Bytes::from(vec![b'x'; usize::try_from(bytes / 24 * 5).unwrap()]);
        let (mut sharing, mut alone) = (Vec::new(), Vec::new());
        for host in 1..9 {
            sharing.push(answered(&slots, host, page.clone()).await);
        }
        for host in 9..12 {
            alone.push(answered(&slots, host, stream(bytes / 240 * 49 - STREAM_BYTES)).await);
        }
        tokio::time::sleep(PATIENCE).await;
        assert!(slots.take(&connection(20).open()).await.is_some());
        assert_eq!((closed(&sharing).await, closed(&alone).await), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_holds_no_memory_lets_no_other_peer_go_first() {
        let slots = RequestSlots::new(40, memory());
        let (busy, other) = (connection(5), connection(6));
        let requests = [&busy, &busy, &busy, &other].map(ConnectionState::open);
        let _reloads = [take(&slots, &requests[0]).await, take(&slots, &requests[1]).await];
        let mut held = Vec::new();
        for host in 1..5 {
            held.push(making(&slots, host).await);
        }
        tokio::time::sleep(PATIENCE).await;
        let later = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            slots.take(&requests[3]).await
        };
        let (first, _) = tokio::join!(slots.take(&requests[2]), later);
        assert!(first.is_some());
    }

    #[tokio::test]
    async fn the_source_of_a_response_counts_until_it_is_read() {
        let budget = MemoryBudget::default();
        let slots = RequestSlots::new(0, budget.share(Holder::Answers));
        let request = unread(&slots, 1, stream(3 * STREAM_BYTES)).await;
        assert_eq!(budget.used(), 4 * STREAM_BYTES);
        drop(request);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_page_larger_than_the_bound_is_answered() {
        let budget = MemoryBudget::default();
        let slots = RequestSlots::new(0, budget.share(Holder::Answers));
        let page = ResponseBody::Parts((0..4).map(|_| part(&slots, 3)).collect());
        let one = unread(&slots, 1, page).await;
        assert_eq!(budget.used(), slots.memory.bytes() / ANSWER_DIVISOR);
        drop((unread(&slots, 1, empty()).await, one));
    }
}
