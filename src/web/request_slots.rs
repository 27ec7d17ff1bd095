//! Limits of concurrent requests (`--web.max-requests`) and of unread answers.
//!
//! A request holds its permit until the client has read the answer. When slots or memory run out:
//!
//! - a request whose client has not read for a second is closed, first one of the peer that has most;
//! - a peer below its fair share waits up to a second for a slot;
//! - everything else is refused with 503.
//!
//! So a client that does not read blocks no other, and a single proxy with many scrapers may use all slots.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::ResponseBody;
use super::connection_state::{ConnectionState, InFlight};
use super::peer::Peer;

/// Bytes of unread answers over all connections; bytes shared by several answers count once. If an answer is larger
/// than a quarter of this, the limit is four times its size.
const MAX_UNREAD_BYTES: usize = 32 * 1024 * 1024;

/// Memory of an answer that is rendered or compressed while it is sent: its pieces, buffers and encoder.
const STREAM_BYTES: usize = 1024 * 1024;

/// How long a request waits for a slot.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How often a waiting request looks for one that gives way.
const RETRY: Duration = Duration::from_millis(100);

/// The slots of all requests.
pub(super) struct RequestSlots {
    limit: usize,
    /// `None` if unlimited.
    free: Option<Arc<Semaphore>>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next: u64,
    requests: HashMap<u64, Holder>,
    /// Shared bytes by address: how many, and by how many answers.
    blocks: HashMap<usize, (usize, usize)>,
    bytes: usize,
}

/// A request that holds a slot.
struct Holder {
    connection: ConnectionState,
    /// Its number among the requests of the connection.
    number: u64,
    /// What the answer shows, kept so that no other bytes get the same address meanwhile.
    blocks: Vec<Bytes>,
    own_bytes: usize,
}

/// Permission to answer a request; dropping it frees the slot.
pub(super) struct RequestPermit {
    slots: Arc<RequestSlots>,
    number: u64,
    _of_connection: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl RequestSlots {
    /// `limit` slots; 0 means unlimited.
    pub(super) fn new(limit: u32) -> Arc<Self> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let free = (limit > 0).then(|| Arc::new(Semaphore::new(limit)));
        Arc::new(Self { limit, free, held: Mutex::default() })
    }

    /// The number of slots; 0 means unlimited.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// A slot for a request; `None` if there is none.
    pub(super) async fn take(self: &Arc<Self>, request: &InFlight) -> Option<RequestPermit> {
        let connection = request.connection();
        let of_connection = connection.permit().await;
        let of_all = match &self.free {
            None => None,
            Some(free) => match Arc::clone(free).try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => Some(self.wait(free, connection.peer()).await?),
            },
        };
        let mut held = self.held();
        held.next += 1;
        let number = held.next;
        let connection = connection.clone();
        let holder = Holder { connection, number: request.number(), blocks: Vec::new(), own_bytes: 0 };
        held.requests.insert(number, holder);
        Some(RequestPermit {
            slots: Arc::clone(self),
            number,
            _of_connection: of_connection,
            _of_all: of_all,
        })
    }

    async fn wait(&self, free: &Arc<Semaphore>, peer: Peer) -> Option<OwnedSemaphorePermit> {
        let waiting = async {
            loop {
                let hopeful = {
                    let mut held = self.held();
                    held.make_room(peer) || held.is_below_share(peer, self.limit)
                };
                if !hopeful {
                    return None;
                }
                if let Ok(permit) = tokio::time::timeout(RETRY, Arc::clone(free).acquire_owned()).await {
                    return permit.ok();
                }
            }
        };
        tokio::time::timeout(MAX_WAIT, waiting).await.ok().flatten()
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
        let own_bytes = if compressed || parts.is_none() { STREAM_BYTES } else { 0 };
        let blocks: Vec<Bytes> = parts.into_iter().flatten().cloned().collect();
        let mut held = self.slots.held();
        let Some(peer) = held.requests.get(&self.number).map(|holder| holder.connection.peer()) else {
            return false;
        };
        let size = own_bytes + blocks.iter().map(Bytes::len).sum::<usize>();
        let limit = MAX_UNREAD_BYTES.max(size.saturating_mul(4));
        while held.bytes + own_bytes + held.new_bytes(&blocks) > limit {
            if !held.make_room(peer) {
                return false;
            }
        }
        held.bytes += own_bytes + held.new_bytes(&blocks);
        for block in &blocks {
            held.blocks.entry(address(block)).or_insert((block.len(), 0)).1 += 1;
        }
        if let Some(holder) = held.requests.get_mut(&self.number) {
            (holder.blocks, holder.own_bytes) = (blocks, own_bytes);
        }
        true
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.slots.held().release(self.number);
    }
}

impl Held {
    /// Bytes of `blocks` that no answer holds yet.
    fn new_bytes(&self, blocks: &[Bytes]) -> usize {
        blocks.iter().filter(|block| !self.blocks.contains_key(&address(block))).map(Bytes::len).sum()
    }

    /// Closes the connection of the request that has not been read for longest, first of the peer that has most,
    /// and never of a peer that has fewer than `newcomer`. Its bytes are free at once.
    fn make_room(&mut self, newcomer: Peer) -> bool {
        let mut of_peer: HashMap<Peer, usize> = HashMap::new();
        for holder in self.requests.values() {
            *of_peer.entry(holder.connection.peer()).or_default() += 1;
        }
        let count = |peer| of_peer.get(&peer).copied().unwrap_or(0);
        let unread = self.requests.iter().filter_map(|(number, holder)| {
            let (peer, since) = (holder.connection.peer(), holder.connection.unread_since(holder.number)?);
            let may = peer == newcomer || count(peer) > count(newcomer);
            may.then_some((*number, (count(peer), std::cmp::Reverse(since))))
        });
        let Some((number, _)) = unread.max_by_key(|(_, rank)| *rank) else { return false };
        if let Some(holder) = self.requests.get(&number) {
            holder.connection.close("others need its permit, and its client does not read");
        }
        self.release(number);
        true
    }

    fn is_below_share(&self, peer: Peer, limit: usize) -> bool {
        let mut peers: Vec<Peer> = self.requests.values().map(|holder| holder.connection.peer()).collect();
        let holds = peers.iter().filter(|other| **other == peer).count();
        peers.push(peer);
        let number: std::collections::HashSet<_> = peers.into_iter().collect();
        holds < limit.div_ceil(number.len())
    }

    fn release(&mut self, number: u64) {
        let Some(holder) = self.requests.remove(&number) else { return };
        self.bytes -= holder.own_bytes;
        for block in &holder.blocks {
            let Some((length, holders)) = self.blocks.get_mut(&address(block)) else { continue };
            *holders -= 1;
            if *holders == 0 {
                self.bytes -= *length;
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

    use super::*;
    use crate::telemetry::Telemetry;
    use crate::web::Limits;

    fn connection(host: u8) -> ConnectionState {
        let gauges = Telemetry::new(false).unwrap().connections();
        let peer = Peer::V4(Ipv4Addr::new(10, 0, 0, host));
        ConnectionState::new(peer, Limits::default(), gauges)
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
        let slots = RequestSlots::new(2);
        let held = [unread(&slots, 1).await, unread(&slots, 1).await];
        let third = connection(1);
        assert!(slots.take(&third.open()).await.is_none());
        drop(held);
        assert!(slots.take(&third.open()).await.is_some());
        let unlimited = RequestSlots::new(0);
        let mut held = Vec::new();
        for _ in 0..100 {
            held.push(unread(&unlimited, 1).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_below_its_share_waits_for_a_slot_and_the_longest_unread_request_gives_way() {
        let slots = RequestSlots::new(2);
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
    async fn a_fifth_request_of_a_connection_waits_for_one_of_the_four() {
        let slots = RequestSlots::new(40);
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
        let slots = RequestSlots::new(0);
        let page = Bytes::from(vec![b'x'; MAX_UNREAD_BYTES / 8]);
        let mut held = Vec::new();
        for _ in 0..20 {
            let unread = unread(&slots, 1).await;
            assert!(unread.2.hold(&ResponseBody::Whole(page.clone()), false));
            held.push(unread);
        }
        assert_eq!(slots.held().bytes, page.len());
        let other = || ResponseBody::Whole(Bytes::from(vec![b'x'; MAX_UNREAD_BYTES / 8]));
        for _ in 0..7 {
            let unread = unread(&slots, 1).await;
            assert!(unread.2.hold(&other(), false));
            held.push(unread);
        }
        assert_eq!(slots.held().bytes, MAX_UNREAD_BYTES);
        let late = unread(&slots, 2).await;
        assert!(!late.2.hold(&other(), false), "nobody gives way yet");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(late.2.hold(&other(), false), "now they do");
        drop((held, late));
        let held = slots.held();
        assert_eq!((held.bytes, held.blocks.len(), held.requests.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn a_page_larger_than_the_bound_is_answered() {
        let slots = RequestSlots::new(0);
        let page = ResponseBody::Whole(Bytes::from(vec![b'x'; MAX_UNREAD_BYTES + 1]));
        let (one, two) = (unread(&slots, 1).await, unread(&slots, 1).await);
        assert!(one.2.hold(&page, false) && two.2.hold(&page, true));
    }
}
