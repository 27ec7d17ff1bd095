//! How fast one service account may go: pauses that the service asks for, and a pace that adapts to its 429s.
//!
//! The pace falls by half with each repeated 429 and grows back by equal steps (additive increase,
//! multiplicative decrease, as TCP does): it settles near what the service bears without anyone configuring it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use humantime::format_duration;
use tokio::time::Instant;

use super::attempt::whole;
use crate::telemetry::Telemetry;

/// A second 429 within this time is a repeated one; a single one is answered by waiting alone.
const REPEATED_WITHIN: Duration = Duration::from_secs(60);
/// From standing still to the old pace takes this long, so from one halving 5 minutes.
const RECOVERY: Duration = Duration::from_secs(600);
/// One request in 20 seconds: slower, and nothing would ever learn that the service recovered.
const SLOWEST: f64 = 0.05;
/// Over which time the present pace is measured.
const MEASURED_OVER: f64 = 2.0;

/// The pace of one service account.
#[derive(Debug)]
pub(super) struct Pace {
    name: Arc<str>,
    telemetry: Telemetry,
    state: Mutex<State>,
    /// Who waits for the adapted pace stands in line here; only the first sleeps, so that a pace which has grown
    /// meanwhile holds for all the others.
    line: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    /// Nothing is sent until then.
    paused_until: Option<Instant>,
    /// When a pause began that is told and whose end is not yet.
    told: Option<Instant>,
    /// The adapted pace, while there is one.
    adapted: Option<Adapted>,
    /// When the last 429 was taken to heart; requests sent before it belong to the same burst.
    heeded: Option<Instant>,
    /// Requests sent lately, each fading with time, and when that was computed.
    recent: f64,
    recent_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Adapted {
    per_second: f64,
    /// The pace at which the 429s came; reached again, the adaptation ends.
    before: f64,
    /// Until when growth is accounted for.
    grown: Instant,
    /// When the next request may go.
    next: Instant,
}

impl Pace {
    pub(super) fn new(name: Arc<str>, telemetry: Telemetry) -> Self {
        let state = State {
            paused_until: None,
            told: None,
            adapted: None,
            heeded: None,
            recent: 0.0,
            recent_at: Instant::now(),
        };
        Self { name, telemetry, state: Mutex::new(state), line: tokio::sync::Mutex::new(()) }
    }

    /// How much longer a pause lasts; zero without one.
    pub(super) fn paused_for(&self) -> Duration {
        let now = Instant::now();
        self.state().paused_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// The service asked to wait. Pauses are never shortened by a later reply to an earlier request. One that is longer
    /// than requests wait, `patience`, makes them fail, so it is said.
    pub(super) fn pause(&self, wait: Duration, patience: Duration) {
        let now = Instant::now();
        let mut state = self.state();
        state.paused_until = state.paused_until.max(Some(now + wait));
        let begins = wait > patience && state.told.is_none();
        if begins {
            state.told = Some(now);
        }
        drop(state);
        if begins {
            let wait = format_duration(whole(wait)).to_string();
            tracing::warn!(token = &*self.name, wait, "the service asks to wait; nothing is sent meanwhile");
        }
    }

    /// Waits until the adapted pace, if there is one, allows one more request, and says for how long.
    pub(super) async fn acquire(&self) -> Duration {
        if self.state().adapted.is_none() {
            return Duration::ZERO;
        }
        let began = Instant::now();
        let _first = self.line.lock().await;
        loop {
            let now = Instant::now();
            let next = match &mut self.state().adapted {
                Some(adapted) if now < adapted.next => adapted.next,
                Some(adapted) => {
                    adapted.next = now + adapted.gap();
                    break;
                }
                // Recovered meanwhile.
                None => break,
            };
            tokio::time::sleep_until(next).await;
        }
        began.elapsed()
    }

    /// A request goes out now.
    pub(super) fn sent(&self) {
        self.state().count(Instant::now(), 1.0);
    }

    /// A request that was sent at `sent` was answered by a 429.
    pub(super) fn too_many(&self, sent: Instant) {
        let now = Instant::now();
        let mut state = self.state();
        let repeated = match state.heeded {
            // Sent before we took the last 429 to heart: it tells nothing new.
            Some(heeded) if sent < heeded => return,
            Some(heeded) => now - heeded <= REPEATED_WITHIN,
            None => false,
        };
        state.heeded = Some(now);
        if !repeated {
            return;
        }
        let measured = state.count(now, 0.0) / MEASURED_OVER;
        let (at, before) = match state.adapted {
            Some(adapted) => (adapted.per_second, adapted.before),
            None => (measured, measured),
        };
        let per_second = (at / 2.0).max(SLOWEST);
        let began = state.adapted.is_none();
        let mut adapted = Adapted { per_second, before, grown: now, next: now };
        adapted.next += adapted.gap();
        state.adapted = Some(adapted);
        drop(state);
        self.telemetry.pace(&self.name, Some(per_second));
        if began {
            tracing::warn!(
                token = &*self.name,
                requests_per_second = per_second,
                "the service repeatedly answers 429: going at half the pace, then slowly faster again"
            );
        }
    }

    /// A request was answered without complaint.
    pub(super) fn went_well(&self) {
        let now = Instant::now();
        let mut state = self.state();
        // A reply to what was sent before the pause is not the end of it.
        if state.paused_until.is_none_or(|until| until <= now)
            && let Some(since) = state.told.take()
        {
            let after = format_duration(whole(now - since)).to_string();
            tracing::info!(token = &*self.name, after, "the service answers again after it asked to wait");
        }
        let Some(adapted) = &mut state.adapted else { return };
        let share = (now - adapted.grown).as_secs_f64() / RECOVERY.as_secs_f64();
        adapted.grown = now;
        adapted.per_second += adapted.before * share;
        let per_second = adapted.per_second;
        let recovered = per_second >= adapted.before;
        if recovered {
            state.adapted = None;
        }
        drop(state);
        self.telemetry.pace(&self.name, (!recovered).then_some(per_second));
        if recovered {
            tracing::info!(token = &*self.name, "back at full pace");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Adapted {
    /// Between two requests.
    fn gap(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.per_second)
    }
}

impl State {
    /// Adds `more` to the requests sent lately, and says how many they are.
    fn count(&mut self, now: Instant, more: f64) -> f64 {
        let elapsed = (now - self.recent_at).as_secs_f64();
        self.recent = self.recent * (-elapsed / MEASURED_OVER).exp() + more;
        self.recent_at = now;
        self.recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new("default".into(), Telemetry::new(false).unwrap())
    }

    /// The adapted pace.
    fn adapted(pace: &Pace) -> Option<f64> {
        pace.state().adapted.map(|adapted| adapted.per_second)
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
    async fn the_pace_falls_by_half_of_what_it_was_and_no_lower_than_a_probe() {
        let pace = slowed_down().await;
        let first = adapted(&pace).unwrap();
        assert!((4.5..5.0).contains(&first), "{first}");
        tokio::time::advance(Duration::from_secs(1)).await;
        pace.too_many(Instant::now());
        assert_eq!(adapted(&pace), Some(first / 2.0));
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            pace.too_many(Instant::now());
        }
        assert_eq!(adapted(&pace), Some(SLOWEST));
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
    async fn requests_go_at_the_adapted_pace_in_turn() {
        let pace = slowed_down().await;
        let per_second = adapted(&pace).unwrap();
        let began = Instant::now();
        for _ in 0..50 {
            pace.acquire().await;
        }
        let expected = 50.0 / per_second;
        let took = began.elapsed().as_secs_f64();
        assert!((took - expected).abs() < 0.1, "{took} instead of {expected}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_grows_back_by_equal_steps_and_then_is_free_again() {
        let pace = slowed_down().await;
        let low = adapted(&pace).unwrap();
        for _ in 0..6 {
            let before = adapted(&pace).unwrap();
            tokio::time::advance(Duration::from_secs(30)).await;
            pace.went_well();
            let step = adapted(&pace).unwrap() - before;
            assert!((step - low * 2.0 / 20.0).abs() < 0.001, "{step}");
        }
        tokio::time::advance(Duration::from_secs(130)).await;
        pace.went_well();
        assert_eq!(adapted(&pace), None);
        assert_eq!(pace.acquire().await, Duration::ZERO);
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
