//! The rate of one service account: pauses that the service requests, and a pace that adapts to its 429s.
//!
//! A repeated 429 multiplies the pace by [`DECREASE_FACTOR`]; then it grows steadily and reaches the pace that last
//! worked after [`RECOVERY_SECONDS`]. It never exceeds twice the current rate of requests, so the service has accepted
//! each step.

use std::time::Duration;

use tokio::time::Instant;

/// A second 429 within this time counts as repeated. After a single 429, the account only waits.
const REPEATED_WITHIN: Duration = Duration::from_secs(60);
/// Factor of the pace at a repeated 429.
const DECREASE_FACTOR: f64 = 0.7;
/// Seconds from a 429 until the pace that last worked is reached again. It is the same for every pace: a service that
/// allows one request per second also returns one 429 in about 15 seconds.
const RECOVERY_SECONDS: f64 = 15.0;
/// One request in 10 seconds. At a slower pace, the exporter would notice too late that the service has recovered.
const MIN_PER_SECOND: f64 = 0.1;
/// The number of seconds over which the present pace is measured.
const MEASURED_OVER: f64 = 2.0;
/// The maximum ratio of the pace to the current rate of requests.
const MAX_AHEAD: f64 = 2.0;

/// The pace of one service account.
#[derive(Debug)]
pub(super) struct Pace {
    /// Nothing is sent until then.
    paused_until: Option<Instant>,
    slowed: Option<Slowed>,
    /// When a 429 last counted. Requests sent before it belong to the same burst.
    counted_at: Option<Instant>,
    /// Number of recent requests, decaying with time, and when it was computed.
    recent: f64,
    recent_at: Instant,
}

/// A pace that 429s have reduced.
#[derive(Clone, Copy, Debug)]
struct Slowed {
    per_second: f64,
    /// The pace at which the 429s began; beyond it the adaptation ends.
    before: f64,
    /// The pace that last worked: the pace at the last 429 that followed an accepted request.
    worked: f64,
    /// The last repeated 429: its time, and the pace after it.
    cut_at: Instant,
    cut_to: f64,
    /// When the service last accepted a request since then.
    accepted_at: Option<Instant>,
    /// When the last request was sent, or the last 429 arrived.
    last: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { paused_until: None, slowed: None, counted_at: None, recent: 0.0, recent_at: Instant::now() }
    }

    /// The remaining time of a pause; zero without a pause.
    pub(super) fn pause_left(&self) -> Duration {
        self.paused_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Begins a pause that the service requested. A later reply to an earlier request never shortens it.
    pub(super) fn pause(&mut self, wait: Duration) {
        self.paused_until = self.paused_until.max(Some(Instant::now() + wait));
    }

    /// Ends a pause.
    pub(super) fn resume(&mut self) {
        self.paused_until = None;
    }

    /// Requests per second; `None` while nothing slows it down.
    pub(super) fn per_second(&self) -> Option<f64> {
        self.slowed.map(|slowed| slowed.per_second)
    }

    /// Whether the service slows it down or has requested a pause.
    pub(super) fn is_throttled(&self) -> bool {
        self.slowed.is_some() || !self.pause_left().is_zero()
    }

    /// The earliest time of the next request; `None` if it may be sent at once. No request waits for a pause longer
    /// than `patience`: it fails instead.
    pub(super) fn next(&self, patience: Duration) -> Option<Instant> {
        let paused = self.paused_until.filter(|_| self.pause_left() <= patience);
        paused.max(self.slowed.map(|slowed| slowed.last + slowed.gap()))
    }

    /// Takes the turn of one request.
    pub(super) fn take(&mut self) {
        if let Some(slowed) = &mut self.slowed {
            slowed.last = Instant::now();
        }
    }

    /// Records that a request is sent now.
    pub(super) fn sent(&mut self) {
        self.count(1.0);
    }

    /// Records that a request sent at `sent` was answered by a 429.
    pub(super) fn too_many(&mut self, sent: Instant) {
        let now = Instant::now();
        let repeated = match self.counted_at {
            // Sent before the last 429 that counted, so part of the same burst.
            Some(counted) if sent < counted => return,
            Some(counted) => now - counted <= REPEATED_WITHIN,
            None => false,
        };
        self.counted_at = Some(now);
        if !repeated {
            return;
        }
        let measured = self.count(0.0);
        let (at, before, worked) = match self.slowed {
            None => (measured, measured, measured),
            Some(slowed) => {
                let at = slowed.per_second.min(measured);
                // A service that answers only 429 does not reveal which pace it accepts.
                (at, slowed.before, if slowed.accepted_at.is_some() { at } else { slowed.worked })
            }
        };
        let per_second = (at * DECREASE_FACTOR).max(MIN_PER_SECOND);
        let cut = Slowed {
            per_second,
            before,
            worked,
            cut_at: now,
            cut_to: per_second,
            accepted_at: None,
            last: now,
        };
        self.slowed = Some(cut);
    }

    /// Records that a request ended without a 429; `accepted` if the service replied with a status below 500. The
    /// adaptation ends when it reaches the pace before it, or a minute after the last 429, unless requests wait (`waits`),
    /// which would all be sent at once. An error of the server or silence does not show which pace the service accepts: it
    /// only ends the adaptation after that minute, also while requests wait if none was accepted for as long.
    pub(super) fn ended(&mut self, accepted: bool, waits: bool) {
        let measured = self.count(0.0);
        let Some(slowed) = &mut self.slowed else { return };
        // At fewer requests than before, the pace does not grow as far.
        let is_quiet = self.counted_at.is_none_or(|at| at.elapsed() >= REPEATED_WITHIN);
        if !accepted {
            let answers = slowed.accepted_at.is_some_and(|at| at.elapsed() < REPEATED_WITHIN);
            self.slowed.take_if(|_| is_quiet && !(waits && answers));
            return;
        }
        slowed.accepted_at = Some(Instant::now());
        let steps = slowed.cut_at.elapsed().as_secs_f64() / RECOVERY_SECONDS;
        let span = (slowed.worked - slowed.cut_to).max(slowed.worked * (1.0 - DECREASE_FACTOR));
        let grown = slowed.cut_to + span * steps;
        slowed.per_second = grown.min(MAX_AHEAD * measured).max(slowed.per_second);
        if (slowed.per_second >= slowed.before || is_quiet) && !waits {
            self.slowed = None;
        }
    }

    /// Adds `more` to the number of recent requests. Returns their rate per second.
    fn count(&mut self, more: f64) -> f64 {
        let elapsed = self.recent_at.elapsed().as_secs_f64();
        self.recent = self.recent * (-elapsed / MEASURED_OVER).exp() + more;
        self.recent_at = Instant::now();
        self.recent / MEASURED_OVER
    }
}

impl Slowed {
    /// Interval between two requests.
    fn gap(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends 10 requests a second for 20 seconds, and gets 429s for the last two of them, a second apart.
    async fn slowed_down() -> Pace {
        let mut pace = Pace::new();
        for _ in 0..200 {
            pace.sent();
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        pace.too_many(Instant::now());
        assert_eq!(pace.per_second(), None, "one 429 is answered by waiting alone");
        pace.too_many(Instant::now());
        pace
    }

    #[tokio::test(start_paused = true)]
    async fn each_repeated_429_takes_three_tenths_off_the_pace() {
        let mut pace = slowed_down().await;
        let first = pace.per_second().unwrap();
        assert!((6.5..7.0).contains(&first), "{first}");
        pace.too_many(Instant::now());
        assert_eq!(pace.per_second(), Some(first * DECREASE_FACTOR));
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        assert_eq!(pace.per_second(), Some(MIN_PER_SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_429s_counts_once_and_those_far_apart_do_not_count() {
        let mut pace = Pace::new();
        let sent = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..30 {
            pace.too_many(sent);
        }
        assert_eq!(pace.per_second(), None);
        for _ in 0..5 {
            tokio::time::advance(REPEATED_WITHIN + Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        assert_eq!(pace.per_second(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_that_last_worked_is_back_after_15_seconds_and_grows_on_while_requests_wait() {
        let mut pace = slowed_down().await;
        let worked = pace.per_second().unwrap() / DECREASE_FACTOR;
        let mut shares = Vec::new();
        while let Some(per_second) = pace.per_second() {
            shares.push(per_second / worked);
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.count(2.0 * MEASURED_OVER * per_second);
            pace.ended(true, shares.len() < 30);
        }
        assert!(shares.is_sorted(), "{shares:?}");
        assert!((0.69..0.71).contains(&shares[0]) && (0.98..1.02).contains(&shares[15]), "{shares:?}");
        assert_eq!(shares.len(), 30, "nothing waits any more: the pace is free");
        assert_eq!(pace.next(Duration::MAX), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_is_free_a_minute_after_the_last_429_if_there_are_fewer_requests() {
        let mut pace = slowed_down().await;
        for _ in 0..59 {
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.sent();
            pace.ended(true, false);
        }
        assert!(pace.per_second().is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        pace.ended(true, false);
        assert_eq!(pace.per_second(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn errors_do_not_show_which_pace_works_and_end_the_adaptation_after_a_minute() {
        let mut pace = slowed_down().await;
        let worked = pace.slowed.unwrap().worked;
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            let before = pace.per_second();
            pace.ended(false, true);
            assert_eq!(pace.per_second(), before, "an error is no reason to grow");
            pace.too_many(Instant::now());
        }
        assert_eq!(pace.slowed.unwrap().worked.to_bits(), worked.to_bits());
        tokio::time::advance(REPEATED_WITHIN).await;
        let mut answering = slowed_down().await;
        for _ in 0..70 {
            tokio::time::advance(Duration::from_secs(1)).await;
            answering.ended(true, true);
            answering.ended(false, true);
        }
        assert!(answering.per_second().is_some(), "what waits would be sent at once");
        for pace in [&mut pace, &mut answering] {
            tokio::time::advance(REPEATED_WITHIN).await;
            pace.ended(false, true);
            assert_eq!(pace.per_second(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_is_not_free_after_a_429_that_is_not_repeated() {
        let mut pace = slowed_down().await;
        tokio::time::advance(REPEATED_WITHIN + Duration::from_secs(1)).await;
        pace.too_many(Instant::now());
        pace.ended(true, false);
        assert!(pace.per_second().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_grows_only_as_far_as_the_service_has_accepted() {
        let mut pace = slowed_down().await;
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        let before = pace.next(Duration::MAX).unwrap();
        tokio::time::advance(Duration::from_secs(6)).await;
        pace.sent();
        pace.ended(true, true);
        let accepted = MAX_AHEAD / MEASURED_OVER;
        assert!((accepted..accepted + 0.01).contains(&pace.per_second().unwrap()), "{pace:?}");
        assert!(pace.next(Duration::MAX).unwrap() < before, "what waits goes earlier");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_never_shortened_and_waited_for_only_if_it_is_short() {
        let mut pace = Pace::new();
        let until = Instant::now() + Duration::from_secs(30);
        pace.pause(Duration::from_secs(30));
        pace.pause(Duration::from_secs(5));
        assert_eq!(pace.pause_left(), Duration::from_secs(30));
        assert_eq!(pace.next(Duration::from_secs(10)), None);
        assert_eq!(pace.next(Duration::from_secs(30)), Some(until));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(pace.pause_left(), Duration::ZERO);
    }
}
