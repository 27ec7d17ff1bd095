//! The rate of one service account: pauses that the service asks for, and a pace that adapts to its 429s.
//!
//! The pace follows the adaptive retry of the AWS SDKs, which is the CUBIC of TCP: a repeated 429 reduces it by three
//! tenths. Then it grows fast to near the pace that last worked, stays there for a while, and goes carefully beyond. It
//! never grows to more than twice what was really sent, so that the service has accepted each step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::observer::Observer;

/// A second 429 within this time is a repeated one. After a single one the account only waits.
const REPEATED_WITHIN: Duration = Duration::from_secs(60);
/// Factor of the pace at a repeated 429.
const LEFT: f64 = 0.7;
/// Seconds from a 429 until the pace that last worked is reached again. Nine tenths of it are after a third of that.
/// The same for every pace: a service that allows one request a second gets one 429 in some 15 seconds, too.
const REGAIN: f64 = 15.0;
/// One request in 10 seconds. A slower pace would notice too late that the service has recovered.
const MIN_PER_SECOND: f64 = 0.1;
/// The number of seconds over which the present pace is measured.
const MEASURED_OVER: f64 = 2.0;
/// The pace may be this many times what is being sent.
const MAX_AHEAD: f64 = 2.0;

/// The pace of one service account.
#[derive(Debug)]
pub(super) struct Pace {
    name: Arc<str>,
    observer: Arc<dyn Observer>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Nothing is sent until then.
    paused_until: Option<Instant>,
    /// When the pause began that was logged and has not been logged as over.
    told: Option<Instant>,
    /// The adapted pace, if there is one.
    adapted: Option<Adapted>,
    /// When a 429 last counted. Requests sent before it belong to the same burst.
    heeded: Option<Instant>,
    /// Number of recent requests, decaying with time, and when it was computed.
    recent: f64,
    recent_at: Instant,
    /// Requests that wait for the adapted pace: the one that has waited longest is first, whenever it joined. Only that
    /// one sleeps, so that a pace that has grown meanwhile applies to all others.
    waiting: BTreeMap<Place, Arc<Notify>>,
    /// How many have waited so far.
    joined: u64,
}

/// Since when a request has waited, and how many joined before it.
type Place = (Instant, u64);

/// A place among those that wait, given up on drop.
struct Ticket<'a> {
    pace: &'a Pace,
    place: Place,
    wake: Arc<Notify>,
}

#[derive(Clone, Copy, Debug)]
struct Adapted {
    per_second: f64,
    /// The pace at which the 429s began; beyond it the adaptation ends.
    before: f64,
    /// The pace that last worked: at the last 429 that came after something had been answered well.
    worked: f64,
    /// The last 429 that counted: its time, and the pace after it.
    cut_at: Instant,
    cut_to: f64,
    /// Whether a request has succeeded since then.
    answered: bool,
    /// When the next request may go.
    next: Instant,
}

impl Pace {
    pub(super) fn new(name: Arc<str>, observer: Arc<dyn Observer>) -> Self {
        let state = State {
            paused_until: None,
            told: None,
            adapted: None,
            heeded: None,
            recent: 0.0,
            recent_at: Instant::now(),
            waiting: BTreeMap::new(),
            joined: 0,
        };
        Self { name, observer, state: Mutex::new(state) }
    }

    /// How much longer a pause lasts; zero without one.
    pub(super) fn paused_for(&self) -> Duration {
        let until = self.state.lock().paused_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// The service asked to wait. A later reply to an earlier request never shortens a pause. A pause longer than
    /// `patience`, for which requests do not wait, makes them fail and is logged.
    pub(super) fn pause(&self, wait: Duration, patience: Duration) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.paused_until = state.paused_until.max(Some(now + wait));
        if wait > patience && state.told.is_none() {
            state.told = Some(now);
            let wait = format_duration(whole_seconds(wait)).to_string();
            self.observer.paused(&self.name, &wait);
        }
    }

    /// Waits until the adapted pace, if there is one, allows one more request, and returns for how long. Of several
    /// requests the one that has been waiting since the earliest `since` goes first.
    pub(super) async fn acquire(&self, since: Instant) -> Duration {
        if self.state.lock().is_free() {
            return Duration::ZERO;
        }
        let began = Instant::now();
        let ticket = self.join(since);
        loop {
            let turn = self.state.lock().take_turn(ticket.place);
            let woken = ticket.wake.notified();
            match turn {
                Ok(()) => break,
                // Until it may be first.
                Err(None) => woken.await,
                // Until then, or the pace has grown, or a request that has waited longer has joined.
                Err(Some(next)) => drop(tokio::time::timeout_at(next, woken).await),
            }
        }
        began.elapsed()
    }

    /// Joins those that wait, as a request that has waited since `since`.
    fn join(&self, since: Instant) -> Ticket<'_> {
        let mut state = self.state.lock();
        state.joined += 1;
        let (place, wake) = ((since, state.joined), Arc::new(Notify::new()));
        state.waiting.insert(place, Arc::clone(&wake));
        Ticket { pace: self, place, wake }
    }

    /// Records that a request is sent now.
    pub(super) fn sent(&self) {
        self.state.lock().count(Instant::now(), 1.0);
    }

    /// Records that a request sent at `sent` was answered by a 429.
    pub(super) fn too_many(&self, sent: Instant) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let repeated = match state.heeded {
            // Sent before the last 429 that counted, so part of the same burst.
            Some(heeded) if sent < heeded => return,
            Some(heeded) => now - heeded <= REPEATED_WITHIN,
            None => false,
        };
        state.heeded = Some(now);
        if !repeated {
            return;
        }
        let measured = state.count(now, 0.0) / MEASURED_OVER;
        let began = state.adapted.is_none();
        let (at, before, worked) = match state.adapted {
            None => (measured, measured, measured),
            Some(last) => {
                let at = last.per_second.min(measured);
                // A service that answers only 429 does not tell which pace it accepts.
                (at, last.before, if last.answered { at } else { last.worked })
            }
        };
        let per_second = (at * LEFT).max(MIN_PER_SECOND);
        let (cut_at, cut_to) = (now, per_second);
        let mut next = Adapted { per_second, before, worked, cut_at, cut_to, answered: false, next: now };
        next.next += next.gap();
        state.adapted = Some(next);
        self.observer.pace(&self.name, Some(per_second));
        if began {
            tracing::warn!(
                token = &*self.name,
                requests_per_second = per_second,
                "the service repeatedly answers 429: requests are slowed down"
            );
        }
    }

    /// Records that a request was answered without a 429.
    pub(super) fn went_well(&self) {
        let now = Instant::now();
        let mut state = self.state.lock();
        // A reply to a request sent before the pause does not end it.
        if state.paused_until.is_none_or(|until| until <= now)
            && let Some(since) = state.told.take()
        {
            let after = format_duration(whole_seconds(now - since)).to_string();
            tracing::info!(token = &*self.name, after, "the service answers again after it asked to wait");
        }
        let measured = state.count(now, 0.0) / MEASURED_OVER;
        let Some(adapted) = &mut state.adapted else { return };
        adapted.grow(now, measured);
        let per_second = adapted.per_second;
        // Requests that still wait would all go at once.
        let recovered = per_second >= adapted.before && state.waiting.is_empty();
        self.observer.pace(&self.name, (!recovered).then_some(per_second));
        if recovered {
            state.adapted = None;
            tracing::info!(token = &*self.name, "back at full pace");
        }
        state.wake_first();
    }
}

impl Adapted {
    /// Interval between two requests.
    fn gap(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.per_second)
    }

    /// Grows along the cubic curve from the pace after the last 429 to the pace that last worked, reached after
    /// [`REGAIN`].
    fn grow(&mut self, now: Instant, measured: f64) {
        self.answered = true;
        let ahead = (now - self.cut_at).as_secs_f64() / REGAIN - 1.0;
        let span = if ahead < 0.0 { self.worked - self.cut_to } else { self.worked * (1.0 - LEFT) };
        let curve = self.worked + span * ahead.powi(3);
        let grown = curve.min(MAX_AHEAD * measured).max(self.per_second);
        if grown > self.per_second {
            // The next request may go sooner, too.
            let gained = Duration::from_secs_f64(1.0 / self.per_second - 1.0 / grown);
            self.next = self.next.checked_sub(gained).unwrap_or(self.next);
        }
        self.per_second = grown;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.pace.state.lock();
        state.waiting.remove(&self.place);
        state.wake_first();
    }
}

impl State {
    /// Whether requests need not wait for the pace.
    fn is_free(&self) -> bool {
        self.adapted.is_none() && self.waiting.is_empty()
    }

    /// Takes the turn of the request at `place`, if it is the first and the pace allows it; else says when it will, if
    /// the request is the first.
    fn take_turn(&mut self, place: Place) -> Result<(), Option<Instant>> {
        if self.waiting.first_key_value().is_none_or(|(first, _)| *first != place) {
            return Err(None);
        }
        if let Some(adapted) = &mut self.adapted {
            let now = Instant::now();
            if now < adapted.next {
                return Err(Some(adapted.next));
            }
            adapted.next = now + adapted.gap();
        }
        Ok(())
    }

    /// Wakes the first, which checks again whether it may go.
    fn wake_first(&self) {
        if let Some((_, first)) = self.waiting.first_key_value() {
            first.notify_one();
        }
    }

    /// Adds `more` to the number of recent requests and returns it.
    fn count(&mut self, now: Instant, more: f64) -> f64 {
        let elapsed = (now - self.recent_at).as_secs_f64();
        self.recent = self.recent * (-elapsed / MEASURED_OVER).exp() + more;
        self.recent_at = now;
        self.recent
    }
}

/// `wait` in whole seconds, rounded up, for log lines and errors.
pub(super) fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new("default".into(), Arc::new(crate::Unobserved))
    }

    /// The adapted pace.
    fn adapted(pace: &Pace) -> Option<f64> {
        pace.state.lock().adapted.map(|adapted| adapted.per_second)
    }

    /// Sends 10 requests a second for 20 seconds, and gets 429s for the last two of them, a second apart.
    async fn slowed_down() -> Pace {
        let pace = pace();
        for _ in 0..200 {
            pace.sent();
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        pace.too_many(Instant::now());
        assert_eq!(adapted(&pace), None, "one 429 is answered by waiting alone");
        pace.too_many(Instant::now());
        pace
    }

    #[tokio::test(start_paused = true)]
    async fn each_repeated_429_takes_three_tenths_off_the_pace() {
        let pace = slowed_down().await;
        let first = adapted(&pace).unwrap();
        assert!((6.5..7.0).contains(&first), "{first}");
        pace.too_many(Instant::now());
        assert_eq!(adapted(&pace), Some(first * LEFT));
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        assert_eq!(adapted(&pace), Some(MIN_PER_SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_429s_counts_once_and_those_far_apart_do_not_count() {
        let pace = pace();
        let sent = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..30 {
            pace.too_many(sent);
        }
        assert_eq!(adapted(&pace), None);
        for _ in 0..5 {
            tokio::time::advance(REPEATED_WITHIN + Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        assert_eq!(adapted(&pace), None);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_go_at_the_adapted_pace() {
        let pace = slowed_down().await;
        let per_second = adapted(&pace).unwrap();
        let began = Instant::now();
        for _ in 0..50 {
            pace.acquire(Instant::now()).await;
        }
        let expected = 50.0 / per_second;
        let took = began.elapsed().as_secs_f64();
        assert!((took - expected).abs() < 0.1, "{took} instead of {expected}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_request_that_has_waited_longest_goes_first() {
        let pace = Arc::new(slowed_down().await);
        let began = Instant::now();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        // They join in this order, and have waited for that many seconds.
        for waited in [3, 1, 5, 2, 4] {
            let (pace, order) = (Arc::clone(&pace), Arc::clone(&order));
            let since = began.checked_sub(Duration::from_secs(waited)).unwrap();
            tasks.spawn(async move {
                pace.acquire(since).await;
                order.lock().push(waited);
            });
            tokio::task::yield_now().await;
        }
        tasks.join_all().await;
        assert_eq!(*order.lock(), [5, 4, 3, 2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_grows_fast_to_what_last_worked_dwells_there_and_goes_carefully_beyond() {
        let pace = slowed_down().await;
        let low = adapted(&pace).unwrap();
        let worked = low / LEFT;
        let mut shares = Vec::new();
        while let Some(per_second) = adapted(&pace) {
            shares.push(per_second / worked);
            // Others wait, so the adaptation goes on beyond the pace before.
            let _waiting = (shares.len() < 31).then(|| pace.join(Instant::now()));
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.state.lock().count(Instant::now(), 2.0 * per_second);
            pace.went_well();
        }
        assert!(shares.is_sorted(), "{shares:?}");
        assert!((0.69..0.71).contains(&shares[0]) && shares[5] > 0.9 && shares[10] > 0.98, "{shares:?}");
        assert!((0.99..1.01).contains(&shares[15]) && shares[20] < 1.02 && shares[30] > 1.2, "{shares:?}");
        assert_eq!(shares.len(), 31, "nobody waits any more: the pace is free");
        assert_eq!(pace.acquire(Instant::now()).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_earlier_when_the_pace_grows() {
        let pace = Arc::new(slowed_down().await);
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        assert_eq!(adapted(&pace), Some(MIN_PER_SECOND));
        pace.acquire(Instant::now()).await;
        let began = Instant::now();
        let waits = tokio::spawn({
            let pace = Arc::clone(&pace);
            async move { pace.acquire(Instant::now()).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        pace.sent();
        pace.went_well();
        waits.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_never_shortened() {
        let pace = pace();
        pace.pause(Duration::from_secs(30), Duration::ZERO);
        pace.pause(Duration::from_secs(5), Duration::ZERO);
        assert_eq!(pace.paused_for(), Duration::from_secs(30));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(pace.paused_for(), Duration::ZERO);
    }
}
