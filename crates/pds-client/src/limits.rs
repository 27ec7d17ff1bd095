//! Limits on concurrency and rate, over all targets and service accounts.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::Config;

/// Requests that wait for the rate go in groups this far apart, half of what may go at once: waking an idle processor for
/// each costs more than the requests.
const GROUP: Duration = Duration::from_millis(50);

/// Tokio's time for governor, so that a test can pause it.
#[derive(Clone, Debug, Default)]
struct TokioClock;

impl GovernorClock for TokioClock {
    type Instant = std::time::Instant;

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

/// `max_requests_per_second` and `max_concurrent_requests`.
#[derive(Debug)]
pub(super) struct Limits {
    rate: Option<RateLimiter<NotKeyed, InMemoryState, TokioClock>>,
    /// Queue for the rate limit: the first waiter sleeps, the others wait for it in order.
    line: Mutex<()>,
    slots: Semaphore,
}

impl Limits {
    pub(super) fn new(api: &Config) -> Self {
        let slots = usize::try_from(api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
        Self {
            rate: api.max_requests_per_second.map(|n| RateLimiter::direct_with_clock(quota(n), TokioClock)),
            line: Mutex::new(()),
            slots: Semaphore::new(slots.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Waits until the rate allows one more request. Returns how long it waited.
    pub(super) async fn rate_turn(&self) -> Duration {
        let Some(rate) = &self.rate else { return Duration::ZERO };
        let began = Instant::now();
        let _first = self.line.lock().await;
        while let Err(not_until) = rate.check() {
            tokio::time::sleep(not_until.wait_time_from(Instant::now().into_std()).max(GROUP)).await;
        }
        began.elapsed()
    }

    /// Waits until fewer than `max_concurrent_requests` are in flight. Hold the permit until the reply has been read.
    pub(super) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed, so there always is a permit.
        self.slots.acquire().await.ok()
    }
}

/// Requests of a tenth of a second may go at once: enough for the granularity of timers, and still an even flow.
fn quota(per_second: NonZeroU32) -> Quota {
    Quota::per_second(per_second)
        .allow_burst(NonZeroU32::new(per_second.get() / 10).unwrap_or(NonZeroU32::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_flow_evenly_at_the_configured_rate() {
        let limits = Limits {
            rate: Some(RateLimiter::direct_with_clock(quota(NonZeroU32::new(50).unwrap()), TokioClock)),
            line: Mutex::new(()),
            slots: Semaphore::new(1),
        };
        let began = Instant::now();
        let mut sent = Vec::new();
        for _ in 0..105 {
            limits.rate_turn().await;
            sent.push(began.elapsed().as_millis());
        }
        // The burst of 5, then two or three each 50 ms.
        assert_eq!(sent.iter().filter(|at| **at == 0).count(), 5);
        let busiest =
            (0..2000).step_by(100).map(|t| sent.iter().filter(|at| (t..t + 100).contains(*at)).count());
        assert!(busiest.max().unwrap() <= 10, "{sent:?}");
        assert!((1990..=2110).contains(&sent[104]), "{sent:?}");
        let moments: std::collections::BTreeSet<_> = sent.iter().collect();
        assert!(moments.len() <= 2_110 / 50 + 1, "in groups: {sent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_first_goes_first() {
        let limits = std::sync::Arc::new(Limits {
            rate: Some(RateLimiter::direct_with_clock(quota(NonZeroU32::MIN), TokioClock)),
            line: Mutex::new(()),
            slots: Semaphore::new(1),
        });
        let order = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for i in 0..5 {
            let (limits, order) = (limits.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let waited = limits.rate_turn().await;
                order.lock().push((i, waited.as_secs()));
            }));
            tokio::task::yield_now().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
    }
}
