//! Limits on concurrency and rate, over all targets and service accounts.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::Config;

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
    rate: Option<Rate>,
    /// Queue for the rate limit: the first waiter sleeps, the others wait for it in order.
    line: Mutex<()>,
    slots: Semaphore,
}

/// A rate, and how long those that wait for it are gathered.
#[derive(Debug)]
struct Rate {
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock>,
    /// From the moment that one more may go until half of what may go at once may: waking an idle processor for each costs
    /// more than a request.
    gathering: Duration,
}

impl Rate {
    /// Requests of a tenth of a second may go at once: enough for the granularity of timers, and still an even flow.
    fn new(per_second: NonZeroU32) -> Self {
        let burst = NonZeroU32::new(per_second.get() / 10).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(per_second).allow_burst(burst);
        let gathering = quota.replenish_interval() * (burst.get() / 2).saturating_sub(1);
        Self { limiter: RateLimiter::direct_with_clock(quota, TokioClock), gathering }
    }
}

impl Limits {
    pub(super) fn new(api: &Config) -> Self {
        let slots = usize::try_from(api.max_concurrent_requests.get()).unwrap_or(usize::MAX);
        Self {
            rate: api.max_requests_per_second.map(Rate::new),
            line: Mutex::new(()),
            slots: Semaphore::new(slots.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Waits until the rate allows one more request. Returns how long it waited.
    pub(super) async fn rate_turn(&self) -> Duration {
        let Some(rate) = &self.rate else { return Duration::ZERO };
        let began = Instant::now();
        let _first = self.line.lock().await;
        while let Err(not_until) = rate.limiter.check() {
            let wait = not_until.wait_time_from(Instant::now().into_std());
            tokio::time::sleep(wait + rate.gathering).await;
        }
        began.elapsed()
    }

    /// Waits until fewer than `max_concurrent_requests` are in flight. Hold the permit until the reply has been read.
    pub(super) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed, so there always is a permit.
        self.slots.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(per_second: u32) -> Limits {
        let rate = NonZeroU32::new(per_second).map(Rate::new);
        Limits { rate, line: Mutex::new(()), slots: Semaphore::new(1) }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_flow_evenly_at_the_configured_rate() {
        let limits = limits(50);
        let began = Instant::now();
        let mut sent = Vec::new();
        for _ in 0..105 {
            limits.rate_turn().await;
            sent.push(began.elapsed().as_millis());
        }
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
            let limits = limits(per_second);
            let began = Instant::now();
            for _ in 0..10 * per_second {
                limits.rate_turn().await;
            }
            let took = began.elapsed().as_secs_f64();
            // What may go at once goes at the beginning; a timer may be a millisecond late each time.
            assert!((9.0..=10.1).contains(&took), "{per_second} a second: {took} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_first_goes_first() {
        let limits = std::sync::Arc::new(limits(1));
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
