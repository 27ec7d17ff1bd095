//! Limits of concurrent requests (`--web.max-requests`) and of unread answers.
//!
//! A request holds its permit until the client has read the answer. When slots or memory run out:
//!
//! - a request whose client has not read for a second is closed, first one of the peer that has most;
//! - a peer below its fair share waits up to two seconds for a slot; after one, the oldest request of a peer above its
//!   share is closed, whether its client reads or not;
//! - everything else is refused with 503.
//!
//! So no client blocks another, and a single proxy with many scrapers may use all slots while nobody else asks.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pds_core::memory::{Room, Share};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::body::ResponseBody;
use super::connection_state::{ConnectionState, InFlight};
use super::peer::Peer;
use super::turns::{Rank, Turn, Turns};

/// An answer counts with this part of the memory for answers at most, so that each can be given.
pub(super) const LARGEST: u64 = 4;

/// Memory of an answer that is rendered or compressed while it is sent, beside what it is made from: its pieces, buffers
/// and encoder.
const STREAM_BYTES: u64 = 1024 * 1024;

/// How long a request waits for a slot.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(2);

/// How long a request of a peer below its share waits before one of a peer above it is closed, and how long that one
/// has had by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests that may wait for a slot.
pub(super) const MAX_WAITING: usize = 256;

/// How often a waiting request looks for one that gives way.
const RETRY: Duration = Duration::from_millis(100);

/// The slots of all requests.
pub(super) struct RequestSlots {
    limit: usize,
    turns: Turns,
    memory: Share,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next: u64,
    requests: HashMap<u64, Holder>,
    /// Shared bytes by address: their room, and how many answers share them.
    blocks: HashMap<usize, (Option<Room>, usize)>,
}

/// A request that holds a slot.
struct Holder {
    connection: ConnectionState,
    /// Its number among the requests of the connection.
    number: u64,
    /// What the answer shows, kept so that no other bytes get the same address meanwhile.
    blocks: Vec<Bytes>,
    own: Option<Room>,
    since: Instant,
}

/// Permission to answer a request; dropping it frees the slot. Whatever works on the answer shares it.
pub(super) struct RequestPermit {
    slots: Arc<RequestSlots>,
    number: u64,
    _of_connection: Option<OwnedSemaphorePermit>,
    _turn: Turn,
}

impl RequestSlots {
    /// `limit` slots, 0 means unlimited, and `memory` for unread answers; bytes shared by several answers count once.
    pub(super) fn new(limit: u32, memory: Share) -> Arc<Self> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let turns = Turns::new(if limit == 0 { usize::MAX } else { limit }, MAX_WAITING);
        Arc::new(Self { limit, turns, memory, held: Mutex::default() })
    }

    /// The number of slots; 0 means unlimited.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// A slot for a request; `None` if there is none.
    pub(super) async fn take(self: &Arc<Self>, request: &InFlight) -> Option<RequestPermit> {
        let connection = request.connection();
        let of_connection = connection.permit().await;
        let turn = match self.turns.try_acquire(connection.peer()) {
            Some(turn) => turn,
            None => self.wait(connection.peer()).await?,
        };
        let mut held = self.held();
        held.next += 1;
        let number = held.next;
        let connection = connection.clone();
        let holder = Holder {
            connection,
            number: request.number(),
            blocks: Vec::new(),
            own: None,
            since: Instant::now(),
        };
        held.requests.insert(number, holder);
        Some(RequestPermit { slots: Arc::clone(self), number, _of_connection: of_connection, _turn: turn })
    }

    async fn wait(&self, peer: Peer) -> Option<Turn> {
        let began = Instant::now();
        let mut waiting = std::pin::pin!(self.turns.acquire(peer));
        while began.elapsed() < MAX_WAIT {
            let below = self.turns.is_below_share(peer);
            let impatient = below && began.elapsed() >= PATIENCE;
            let room = self.held().make_room(&self.turns, peer, false)
                || impatient && self.held().make_room(&self.turns, peer, true);
            if !(room || below) {
                return None;
            }
            if let Ok(turn) = tokio::time::timeout(RETRY, waiting.as_mut()).await {
                return turn;
            }
        }
        None
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestPermit {
    /// Counts the bytes of the answer; `false` if there is no room for them.
    #[must_use]
    pub(super) fn hold(&self, body: &ResponseBody, compressed: bool) -> bool {
        let parts = body.parts();
        let own_bytes = if compressed || parts.is_none() { STREAM_BYTES + body.source_bytes() } else { 0 };
        let blocks: Vec<Bytes> = parts.into_iter().flatten().cloned().collect();
        let mut held = self.slots.held();
        let Some(peer) = held.requests.get(&self.number).map(|holder| holder.connection.peer()) else {
            return false;
        };
        loop {
            if let Some((own, rooms)) = held.rooms(&self.slots.memory, own_bytes, &blocks) {
                for (block, room) in blocks.iter().zip(rooms) {
                    held.blocks.entry(address(block)).or_insert((room, 0)).1 += 1;
                }
                if let Some(holder) = held.requests.get_mut(&self.number) {
                    (holder.blocks, holder.own) = (blocks, Some(own));
                }
                return true;
            }
            if !held.make_room(&self.slots.turns, peer, false) {
                return false;
            }
        }
    }
}

impl fmt::Debug for RequestPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestPermit({})", self.number)
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.slots.held().release(self.number);
    }
}

impl Held {
    /// Room for `own_bytes` and for those of `blocks` that no answer holds yet; `None` if there is not enough.
    fn rooms(&self, memory: &Share, own_bytes: u64, blocks: &[Bytes]) -> Option<(Room, Vec<Option<Room>>)> {
        let mut left = memory.bytes() / LARGEST;
        let mut take = |bytes: u64| {
            let bytes = bytes.min(left);
            left -= bytes;
            memory.try_acquire(bytes)
        };
        let own = take(own_bytes)?;
        let rooms = blocks.iter().map(|block| match self.blocks.contains_key(&address(block)) {
            true => Some(None),
            false => take(block.len() as u64).map(Some),
        });
        Some((own, rooms.collect::<Option<_>>()?))
    }

    /// Closes the connection of a request for `newcomer`, and frees its bytes at once: one that its client has not read
    /// for longest, of a peer that has no fewer; with `moving`, the oldest one of a peer above its share.
    fn make_room(&mut self, turns: &Turns, newcomer: Peer, moving: bool) -> bool {
        let rank = if moving { Rank::AboveShare } else { Rank::Larger };
        let candidates = self.requests.iter().filter_map(|(number, holder)| {
            let since = match moving {
                true => Some(holder.since).filter(|since| since.elapsed() >= PATIENCE),
                false => holder.connection.unread_since(holder.number),
            };
            Some((*number, holder.connection.peer(), since?))
        });
        let Some(number) = turns.yields(newcomer, rank, candidates) else { return false };
        if let Some(holder) = self.requests.get(&number) {
            holder.connection.close(if moving {
                "others below their share need its slot"
            } else {
                "others need its slot, and its client does not read"
            });
        }
        self.release(number);
        true
    }

    fn release(&mut self, number: u64) {
        let Some(holder) = self.requests.remove(&number) else { return };
        for block in &holder.blocks {
            let Some((_, holders)) = self.blocks.get_mut(&address(block)) else { continue };
            *holders -= 1;
            if *holders == 0 {
                self.blocks.remove(&address(block));
            }
        }
    }
}

fn address(block: &Bytes) -> usize {
    block.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use pds_core::memory::{Holder, MemoryBudget};

    use super::*;
    use crate::Limits;

    fn memory() -> Share {
        MemoryBudget::default().share(Holder::Answers)
    }

    fn connection(host: u8) -> ConnectionState {
        let peer = Peer::V4(Ipv4Addr::new(10, 0, 0, host));
        ConnectionState::new(peer, Limits::default(), Arc::new(()))
    }

    /// A request on its own connection with its permit, whose client does not read.
    async fn unread(slots: &Arc<RequestSlots>, host: u8) -> (ConnectionState, InFlight, RequestPermit) {
        let connection = connection(host);
        let request = connection.open();
        let permit = slots.take(&request).await.unwrap();
        request.sending();
        (connection, request, permit)
    }

    async fn is_closed(connection: &ConnectionState) -> bool {
        tokio::time::timeout(Duration::ZERO, connection.expired()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn one_peer_may_use_all_slots_and_is_refused_beyond() {
        let slots = RequestSlots::new(2, memory());
        let held = [unread(&slots, 1).await, unread(&slots, 1).await];
        let third = connection(1);
        assert!(slots.take(&third.open()).await.is_none());
        drop(held);
        assert!(slots.take(&third.open()).await.is_some());
        let unlimited = RequestSlots::new(0, memory());
        let mut held = Vec::new();
        for _ in 0..100 {
            held.push(unread(&unlimited, 1).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_below_its_share_waits_for_a_slot_and_the_longest_unread_request_gives_way() {
        let slots = RequestSlots::new(2, memory());
        let first = unread(&slots, 1).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        let second = unread(&slots, 1).await;
        let newcomer = connection(2);
        let request = newcomer.open();
        let closed = async {
            first.0.expired().await;
            // Its task ends.
            drop((first.1, first.2));
        };
        let (permit, ()) = tokio::join!(slots.take(&request), closed);
        assert!(permit.is_some() && !is_closed(&second.0).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_read_gives_way_after_a_second_of_waiting_and_to_a_peer_below_its_share_only() {
        let slots = RequestSlots::new(2, memory());
        assert_eq!(slots.limit(), 2);
        let read = async |host| {
            let connection = connection(host);
            let request = connection.open();
            let permit = slots.take(&request).await.unwrap();
            (connection, request, permit)
        };
        let oldest = read(1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let later = read(1).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(slots.take(&connection(1).open()).await.is_none(), "a third of the same peer");
        assert!(!is_closed(&oldest.0).await);
        let request = connection(2).open();
        let began = Instant::now();
        let closed = async {
            oldest.0.expired().await;
            began.elapsed()
        };
        // It does not end although it is closed, so no slot gets free.
        let (permit, closed) = tokio::join!(slots.take(&request), closed);
        assert_eq!((permit.is_some(), began.elapsed()), (false, MAX_WAIT));
        assert_eq!(closed, PATIENCE);
        drop(later);
    }

    /// Requests of `host` that begin one after the other for ever, each on a new connection and read for `reads`, or
    /// until their connection is closed.
    async fn keeps_asking(slots: Arc<RequestSlots>, host: u8, reads: Duration) {
        loop {
            let connection = connection(host);
            let request = connection.open();
            match slots.take(&request).await {
                Some(_permit) => drop(tokio::time::timeout(reads, connection.expired()).await),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        /// Whatever the others do: read slowly but steadily, not at all, or ask again and again.
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
                for below in 0..share.min(4) {
                    let request = newcomer.open();
                    let began = Instant::now();
                    let permit = slots.take(&request).await;
                    assert!(permit.is_some(), "holds {below} of its share of {share}, {peers:?}");
                    assert!(began.elapsed() <= MAX_WAIT);
                    held.push((permit, request));
                }
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_fifth_request_of_a_connection_waits_for_one_of_the_four() {
        let slots = RequestSlots::new(40, memory());
        let connection = connection(1);
        let mut held = Vec::new();
        for _ in 0..4 {
            let request = connection.open();
            held.push((slots.take(&request).await.unwrap(), request));
        }
        let fifth = connection.open();
        let waited = tokio::time::timeout(Duration::from_secs(5), slots.take(&fifth)).await;
        assert!(waited.is_err());
        held.pop();
        assert!(slots.take(&fifth).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn unread_bytes_are_bounded_and_shared_ones_count_once() {
        let budget = MemoryBudget::default();
        let slots = RequestSlots::new(0, budget.share(Holder::Answers));
        let eighth = slots.memory.bytes() / 8;
        let page = Bytes::from(vec![b'x'; usize::try_from(eighth).unwrap()]);
        let mut held = Vec::new();
        for _ in 0..20 {
            let unread = unread(&slots, 1).await;
            assert!(unread.2.hold(&ResponseBody::Whole(page.clone()), false));
            held.push(unread);
        }
        assert_eq!(budget.used(), eighth);
        let other = || ResponseBody::Whole(Bytes::from(vec![b'x'; usize::try_from(eighth).unwrap()]));
        for _ in 0..7 {
            let unread = unread(&slots, 1).await;
            assert!(unread.2.hold(&other(), false));
            held.push(unread);
        }
        assert_eq!(budget.used(), 8 * eighth);
        let late = unread(&slots, 2).await;
        assert!(!late.2.hold(&other(), false), "nobody gives way yet");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(late.2.hold(&other(), false), "now they do");
        drop((held, late));
        let held = slots.held();
        assert_eq!((budget.used(), held.blocks.len(), held.requests.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn what_an_answer_is_made_from_counts_until_it_is_read() {
        let budget = MemoryBudget::default();
        let slots = RequestSlots::new(0, budget.share(Holder::Answers));
        let (request, source_bytes) = (unread(&slots, 1).await, 3 * STREAM_BYTES);
        let (_sender, pieces) = tokio::sync::mpsc::channel(1);
        assert!(request.2.hold(&ResponseBody::Channel { pieces, source_bytes }, false));
        assert_eq!(budget.used(), STREAM_BYTES + source_bytes);
        drop(request);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_page_larger_than_the_bound_is_answered() {
        let slots = RequestSlots::new(0, memory());
        let third = vec![b'x'; usize::try_from(slots.memory.bytes() / 3).unwrap()];
        let page = ResponseBody::Parts((0..4).map(|_| Bytes::from(third.clone())).collect());
        let (one, two) = (unread(&slots, 1).await, unread(&slots, 1).await);
        assert!(one.2.hold(&page, false) && two.2.hold(&page, true));
    }
}
