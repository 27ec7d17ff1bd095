//! Order of requests: a queue per service account, and a common limit on rate and requests in flight.
//!
//! Within a queue, the longest due goes first. Among accounts whose own pace allows a request, the account served
//! longest ago goes first, so waiting accounts share the rate equally; while several wait, none gets more places in
//! flight than its share. Some places are reserved for accounts with nothing in flight, so hanging requests delay no
//! other account.
//!
//! A poll waits here as a number. It starts when its first request may be sent.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep_until};

use super::Config;
use super::pace::Pace;
use super::rate::Rate;

/// At most one in this many places in flight is reserved for accounts with nothing in flight.
const KEPT_DIVISOR: usize = 2;

/// The queues of all accounts. They survive a reload, so requests of the former configuration still count.
#[derive(Debug, Default)]
pub(super) struct Admission {
    state: Mutex<State>,
    /// Notified when polls may start.
    started: Notify,
}

/// The order of waiters. At equal times requests go first, so few polls run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    due: Instant,
    is_poll: bool,
    number: u64,
    queue: u64,
}

/// The order of queues: when the turn of a queue comes or came, and the number of its last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LineEntry {
    at: Instant,
    turn: u64,
    queue: u64,
}

#[derive(Debug, Default)]
struct State {
    limit: usize,
    rate: Option<Rate>,
    /// No request waits for a longer pause.
    patience: Duration,
    in_flight: usize,
    /// The queue of each account, by number.
    queues: BTreeMap<u64, Queue>,
    /// The number of queues with something in flight.
    holding: usize,
    /// The number of queues for which no place is reserved, because no project uses their account.
    unused: usize,
    /// Queues with waiters.
    line: BTreeSet<LineEntry>,
    /// The targets of polls that may start, and their places.
    started: Vec<(usize, Place)>,
    /// When the next timer fires.
    wakes_at: Option<Instant>,
    /// The last number given to a queue, a place or a turn.
    number: u64,
}

#[derive(Debug)]
struct Queue {
    pace: Pace,
    waiting: BTreeMap<Place, Waiter>,
    in_flight: usize,
    /// Whether only one request at a time tests if the service still refuses the token.
    is_probed: bool,
    /// Its last turn.
    served: LineEntry,
    /// Its entry in [`State::line`].
    listed: Option<LineEntry>,
}

#[derive(Debug)]
enum Waiter {
    Request(Option<Waker>),
    /// The poll of the target with this index.
    Poll(usize),
}

/// A place among the requests in flight or waiting; released on drop.
#[derive(Debug)]
pub struct Permit {
    admission: Arc<Admission>,
    place: Place,
    is_sent: bool,
}

/// The queue of one account, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct AccountQueue {
    admission: Arc<Admission>,
    pub(super) number: u64,
}

impl Admission {
    /// Sets the limits, and how many accounts no project uses.
    pub(super) fn configure(self: &Arc<Self>, api: &Config, unused: usize) {
        let mut state = self.state.lock();
        state.limit = usize::try_from(api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
        state.rate = api.max_requests_per_second.map(Rate::new);
        (state.patience, state.unused) = (api.timeout, unused);
        self.settle(&mut state);
    }

    /// Adds the queue of an account, and reserves a place for it.
    pub(super) fn queue(self: &Arc<Self>) -> AccountQueue {
        let mut state = self.state.lock();
        let number = state.next_number();
        state.queue(number);
        AccountQueue { admission: Arc::clone(self), number }
    }

    /// Adds due polls: the index of each target, its queue, and its due time.
    pub(super) fn enqueue<'a>(
        self: &Arc<Self>,
        polls: impl Iterator<Item = (usize, &'a AccountQueue, Instant)>,
    ) {
        let mut state = self.state.lock();
        for (poll, queue, due) in polls {
            state.join(queue.number, due, Waiter::Poll(poll));
        }
        self.settle(&mut state);
    }

    /// Waits for polls that may start. Returns the indices of their targets, and the permits for their first requests.
    pub(super) async fn started(self: &Arc<Self>) -> Vec<(usize, Permit)> {
        loop {
            let started = std::mem::take(&mut self.state.lock().started);
            if !started.is_empty() {
                return started.into_iter().map(|(poll, place)| (poll, self.permit(place))).collect();
            }
            self.started.notified().await;
        }
    }

    /// Removes the polls that have not started.
    pub(super) fn withdraw_polls(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let started = std::mem::take(&mut state.started);
        for number in state.queues.keys().copied().collect::<Vec<u64>>() {
            state.queue(number).waiting.retain(|_, waiter| matches!(waiter, Waiter::Request(_)));
            state.update_line(number);
        }
        drop(state);
        started.into_iter().for_each(|(_, place)| drop(self.permit(place)));
    }

    fn permit(self: &Arc<Self>, place: Place) -> Permit {
        Permit { admission: Arc::clone(self), place, is_sent: false }
    }

    /// Admits what may be sent now, and sets a timer for what may be sent later.
    fn settle(self: &Arc<Self>, state: &mut State) {
        let now = Instant::now();
        let next = state.admit(now);
        if !state.started.is_empty() {
            self.started.notify_one();
        }
        let is_set = |at: &Instant| state.wakes_at.is_some_and(|known| now < known && known <= *at);
        // Without a runtime, nothing waits.
        let (Some(at), Ok(runtime)) = (next.filter(|at| !is_set(at)), Handle::try_current()) else { return };
        state.wakes_at = Some(at);
        let admission = Arc::downgrade(self);
        runtime.spawn(async move {
            sleep_until(at).await;
            if let Some(admission) = admission.upgrade() {
                admission.settle(&mut admission.state.lock());
            }
        });
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn queue(&mut self, number: u64) -> &mut Queue {
        self.queues.entry(number).or_insert_with(|| {
            let served = LineEntry { at: Instant::now(), turn: number, queue: number };
            let (pace, waiting) = (Pace::new(), BTreeMap::new());
            Queue { pace, waiting, in_flight: 0, is_probed: false, served, listed: None }
        })
    }

    /// Adds a waiter that is due since `due` to a queue.
    fn join(&mut self, queue: u64, due: Instant, waiter: Waiter) -> Place {
        let is_poll = matches!(waiter, Waiter::Poll(_));
        let place = Place { due, is_poll, number: self.next_number(), queue };
        self.queue(queue).waiting.insert(place, waiter);
        self.update_line(queue);
        place
    }

    /// Removes the waiter or request at `place`. If the request was not sent, the rate limiter gets its turn back.
    fn leave(&mut self, place: Place, is_sent: bool) {
        let Some(queue) = self.queues.get_mut(&place.queue) else { return };
        if queue.waiting.remove(&place).is_none() {
            queue.in_flight -= 1;
            self.holding -= usize::from(queue.in_flight == 0);
            self.in_flight -= 1;
            self.rate.iter_mut().filter(|_| !is_sent).for_each(|rate| rate.give_back(Instant::now()));
        }
        self.update_line(place.queue);
    }

    /// Updates the entry of a queue in [`State::line`].
    fn update_line(&mut self, number: u64) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        let at = queue.pace.next(self.patience).map_or(queue.served.at, |next| next.max(queue.served.at));
        let wanted = (!queue.waiting.is_empty()).then_some(LineEntry { at, ..queue.served });
        if queue.listed == wanted {
            return;
        }
        if let Some(former) = std::mem::replace(&mut queue.listed, wanted) {
            self.line.remove(&former);
        }
        self.line.extend(wanted);
    }

    /// Admits what may be sent `now`. Returns when the next may be sent, unless that depends on the end of a request.
    fn admit(&mut self, now: Instant) -> Option<Instant> {
        let end_of_ready = LineEntry { at: now, turn: u64::MAX, queue: u64::MAX };
        while self.in_flight < self.limit {
            let ready = || self.line.range(..=end_of_ready).map(|entry| entry.queue);
            let share = self.limit.div_ceil(ready().take(self.limit).count().max(1));
            let idle = self.queues.len().saturating_sub(self.holding + self.unused);
            let kept = idle.min(self.limit / KEPT_DIVISOR);
            let may_send = |number: &u64| {
                self.queues.get(number).is_some_and(|queue| match queue.in_flight {
                    0 => true,
                    held => !queue.is_probed && held < share && self.in_flight + kept < self.limit,
                })
            };
            let Some(number) = ready().find(may_send) else { break };
            if let Some(Err(at)) = self.rate.as_mut().map(|rate| rate.take(now)) {
                return Some(at);
            }
            self.serve(number, now);
        }
        self.line.range(end_of_ready..).next().map(|entry| entry.at)
    }

    /// Admits the longest due waiter of a queue.
    fn serve(&mut self, number: u64, now: Instant) {
        let turn = self.next_number();
        let Some(queue) = self.queues.get_mut(&number) else { return };
        let Some((place, waiter)) = queue.waiting.pop_first() else { return };
        queue.served = LineEntry { at: now, turn, queue: number };
        queue.pace.take();
        self.holding += usize::from(queue.in_flight == 0);
        queue.in_flight += 1;
        self.in_flight += 1;
        match waiter {
            Waiter::Poll(poll) => self.started.push((poll, place)),
            Waiter::Request(waker) => waker.into_iter().for_each(Waker::wake),
        }
        self.update_line(number);
    }
}

impl AccountQueue {
    /// Waits until a request that is due since `due` may be sent.
    pub(super) async fn acquire(&self, due: Instant) -> Permit {
        let permit = {
            let mut state = self.admission.state.lock();
            let place = state.join(self.number, due, Waiter::Request(None));
            self.admission.settle(&mut state);
            self.admission.permit(place)
        };
        poll_fn(|context| {
            let mut state = self.admission.state.lock();
            let waiting = &mut state.queue(self.number).waiting;
            let Some(waiter) = waiting.get_mut(&permit.place) else { return Poll::Ready(()) };
            *waiter = Waiter::Request(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        permit
    }

    /// Whether its pace delays its requests now.
    pub(super) fn is_throttled(&self) -> bool {
        self.admission.state.lock().queues.get(&self.number).is_some_and(|queue| queue.pace.is_throttled())
    }

    /// Reads or changes its pace. The second argument of `change` is whether anything waits.
    pub(super) fn pace<T>(&self, change: impl FnOnce(&mut Pace, bool) -> T) -> T {
        let mut state = self.admission.state.lock();
        let queue = state.queue(self.number);
        let changed = change(&mut queue.pace, !queue.waiting.is_empty());
        state.update_line(self.number);
        self.admission.settle(&mut state);
        changed
    }

    /// Sets whether only one request at a time tests if the service still refuses the token.
    pub(super) fn set_probed(&self, is_probed: bool) {
        let mut state = self.admission.state.lock();
        state.queue(self.number).is_probed = is_probed;
        self.admission.settle(&mut state);
    }
}

impl Permit {
    /// Records that its request is sent.
    pub(super) fn sent(&mut self) {
        self.is_sent = true;
        // Its account may be gone.
        if let Some(queue) = self.admission.state.lock().queues.get_mut(&self.place.queue) {
            queue.pace.sent();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        state.leave(self.place, self.is_sent);
        self.admission.settle(&mut state);
    }
}

impl Drop for AccountQueue {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        let Some(queue) = state.queues.remove(&self.number) else { return };
        state.line.retain(|entry| entry.queue != self.number);
        state.holding -= usize::from(queue.in_flight > 0);
        state.in_flight -= queue.in_flight;
        self.admission.settle(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;
    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn admission(limit: usize, per_second: u32) -> Arc<Admission> {
        let admission = Arc::<Admission>::default();
        let mut state = admission.state.lock();
        (state.limit, state.patience) = (limit, TIMEOUT);
        state.rate = NonZeroU32::new(per_second).map(Rate::new);
        drop(state);
        admission
    }

    /// When each of `count` requests of one account may be sent, in milliseconds.
    async fn sent(admission: &Arc<Admission>, count: u32) -> Vec<u128> {
        let (queue, began) = (admission.queue(), Instant::now());
        let mut sent = Vec::new();
        for _ in 0..count {
            queue.acquire(began).await.sent();
            sent.push(began.elapsed().as_millis());
        }
        sent
    }

    #[tokio::test(start_paused = true)]
    async fn requests_flow_evenly_at_the_configured_rate() {
        let sent = sent(&admission(1, 50), 105).await;
        // The burst of 5, then two each 40 ms.
        assert_eq!(sent.iter().filter(|at| **at == 0).count(), 5);
        let busiest =
            (0..2000).step_by(100).map(|t| sent.iter().filter(|at| (t..t + 100).contains(*at)).count());
        assert!(busiest.max().unwrap() <= 10, "{sent:?}");
        assert!((1990..=2110).contains(&sent[104]), "{sent:?}");
        let moments: std::collections::BTreeSet<_> = sent.iter().collect();
        assert!(moments.len() <= 2_110 / 40 + 1, "in groups: {sent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_loses_what_it_allows_to_the_groups() {
        for per_second in [1, 10, 19, 20, 21, 29, 30, 85, 850] {
            let sent = sent(&admission(1, per_second), 10 * per_second).await;
            // Everything that may be sent at once is sent at the start; each timer may be a millisecond late.
            assert!((9_000..=10_100).contains(sent.last().unwrap()), "{per_second} a second: {sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_turn_of_a_request_that_is_not_sent_is_given_back() {
        let (admission, began) = (admission(1, 1), Instant::now());
        let queue = admission.queue();
        for _ in 0..100 {
            drop(queue.acquire(began).await);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_poll_or_request_of_an_account_that_is_due_longest_goes_first() {
        let admission = admission(1, 0);
        let (queue, now) = (Arc::new(admission.queue()), Instant::now());
        let due = |milliseconds: usize| now + Duration::from_millis(milliseconds as u64);
        let in_flight = queue.acquire(now).await;
        admission.enqueue([3, 5, 2, 1].into_iter().map(|poll| (poll, &*queue, due(poll))));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut requests = JoinSet::new();
        for request in [4, 2] {
            let (queue, order, due) = (Arc::clone(&queue), Arc::clone(&order), due(request));
            requests.spawn(async move {
                let _permit = queue.acquire(due).await;
                order.lock().push((request, "request"));
            });
        }
        tokio::task::yield_now().await;
        drop(in_flight);
        for _ in 0..4 {
            for (poll, _permit) in admission.started().await {
                order.lock().push((poll, "poll"));
            }
        }
        requests.join_all().await;
        let expected = [(1, "poll"), (2, "request"), (2, "poll"), (3, "poll"), (4, "request"), (5, "poll")];
        assert_eq!(*order.lock(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn polls_that_are_withdrawn_give_their_places_back() {
        let admission = admission(1, 0);
        let queue = admission.queue();
        admission.enqueue([1, 2].into_iter().map(|poll| (poll, &queue, Instant::now())));
        admission.withdraw_polls();
        queue.acquire(Instant::now()).await.sent();
        assert_eq!(admission.state.lock().in_flight, 0);
        assert!(admission.state.lock().line.is_empty());
    }

    /// `count` requests, each of which holds its place for `duration`.
    fn spawn_holders(queue: &Arc<AccountQueue>, count: usize, duration: Duration) -> JoinSet<()> {
        let hold = |queue: Arc<AccountQueue>| async move {
            let _permit = queue.acquire(Instant::now()).await;
            sleep(duration).await;
        };
        (0..count).map(|_| hold(Arc::clone(queue))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_place_of_an_account_that_is_gone_is_free() {
        let admission = admission(2, 0);
        let (queue, gone) = (Arc::new(admission.queue()), admission.queue());
        let _requests = spawn_holders(&queue, 2, Duration::MAX);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(admission.state.lock().in_flight, 1, "one place is reserved");
        drop(gone);
        assert_eq!(admission.state.lock().in_flight, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_at_a_time_tries_a_refused_token() {
        let admission = admission(8, 0);
        let queue = Arc::new(admission.queue());
        queue.set_probed(true);
        let requests = spawn_holders(&queue, 5, Duration::from_secs(1));
        let in_flight = || admission.state.lock().in_flight;
        sleep(Duration::from_millis(1500)).await;
        assert_eq!(in_flight(), 1);
        queue.set_probed(false);
        assert_eq!(in_flight(), 4, "all that are left");
        requests.join_all().await;
    }

    /// The service's behaviour towards an account that always has requests to send.
    #[derive(Clone, Copy, Debug)]
    enum Other {
        Hangs,
        Floods,
        GetsOnly429s,
        IsPaused,
        IsRefused,
    }

    /// Polls of one account: as many requests in each interval, and how long each takes.
    #[derive(Clone, Copy, Debug)]
    struct Polls {
        requests: u64,
        interval: Duration,
        takes: Duration,
    }

    /// Sends requests of an account in as many tasks as the service's behaviour keeps busy.
    fn begin(other: Other, queue: AccountQueue, requests: &mut JoinSet<()>) {
        let queue = Arc::new(queue);
        for _ in 0..40 {
            let queue = Arc::clone(&queue);
            requests.spawn(async move {
                loop {
                    let mut permit = queue.acquire(Instant::now()).await;
                    permit.sent();
                    let sent = Instant::now();
                    let takes =
                        if matches!(other, Other::Hangs) { TIMEOUT } else { Duration::from_millis(100) };
                    sleep(takes).await;
                    match other {
                        Other::Hangs | Other::Floods => {}
                        Other::GetsOnly429s => queue.pace(|pace, _| pace.too_many(sent)),
                        Other::IsPaused => queue.pace(|pace, _| pace.pause(Duration::from_secs(5))),
                        Other::IsRefused => queue.set_probed(true),
                    }
                }
            });
        }
    }

    /// How long each request of `polls` waits beside `others`, the shortest wait of each interval first.
    fn waits(limit: usize, per_second: u32, polls: Polls, others: &[Other]) -> Vec<Duration> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let admission = admission(limit, per_second);
            let mut background = JoinSet::new();
            others.iter().for_each(|other| begin(*other, admission.queue(), &mut background));
            let (queue, mut waits) = (Arc::new(admission.queue()), Vec::new());
            for _ in 0..3 {
                sleep(polls.interval).await;
                let mut requests = JoinSet::new();
                for _ in 0..polls.requests {
                    let (queue, due) = (Arc::clone(&queue), Instant::now());
                    requests.spawn(async move {
                        let mut permit = queue.acquire(due).await;
                        permit.sent();
                        let waited = due.elapsed();
                        sleep(polls.takes).await;
                        waited
                    });
                }
                let mut of_interval = requests.join_all().await;
                of_interval.sort_unstable();
                waits.extend(of_interval);
            }
            waits
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_account_waits_longer_than_with_its_share_alone_whatever_becomes_of_the_others(
            others in prop::collection::vec(
                prop_oneof![
                    Just(Other::Hangs),
                    Just(Other::Floods),
                    Just(Other::GetsOnly429s),
                    Just(Other::IsPaused),
                    Just(Other::IsRefused),
                ],
                1..6,
            ),
            places in 2..6_usize,
            per_second in prop_oneof![Just(0), 5..50_u32],
            requests in 1..20_u64,
            interval in 15..60_u64,
            takes in 1..1000_u64,
        ) {
            let polls = Polls {
                requests,
                interval: Duration::from_secs(interval),
                takes: Duration::from_millis(takes),
            };
            let accounts = others.len() + 1;
            let alone = waits(places, per_second, polls, &[]);
            let beside = waits(
                places * accounts,
                per_second * u32::try_from(accounts).unwrap(),
                polls,
                &others,
            );
            // Requests that were sent while nothing else waited may still be in flight; one place is always free. Groups
            // of requests are as long as a twentieth of a second.
            let drain = if requests > 1 { TIMEOUT } else { Duration::ZERO };
            for (alone, beside) in alone.iter().zip(&beside) {
                prop_assert!(
                    *beside <= *alone + drain + Duration::from_millis(250),
                    "{beside:?} instead of {alone:?}"
                );
            }
        }
    }
}
