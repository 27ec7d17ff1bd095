//! Which failures are retried, when, and the budget of retries over all requests.

use std::iter::successors;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Class, FetchError};

/// Whether the same request may well succeed a moment later.
///
/// True for connections that could not be made or broke, for 502, 503 and 504 of a gateway, and for 429. False for a
/// timeout, which has already cost the service the time of a whole request; the next poll asks again anyway. False for
/// a 500, which is the answer to this very request, and for everything that stays the same until someone acts.
pub(super) fn is_retryable(error: &FetchError) -> bool {
    matches!(
        error.class(),
        Class::Connect | Class::Dns | Class::Reset | Class::Body | Class::Status(429 | 502 | 503 | 504)
    )
}

/// Waits before retries: exponential backoff with full jitter, so that requests that failed together do not return
/// together.
pub(super) fn waits() -> impl Iterator<Item = Duration> {
    let mut random = fastrand::Rng::new();
    ceilings().map(move |ceiling| ceiling.mul_f64(random.f64()))
}

/// The longest wait before the first retry.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// No wait is longer.
const MAX_WAIT: Duration = Duration::from_secs(10);

fn ceilings() -> impl Iterator<Item = Duration> {
    successors(Some(FIRST_WAIT), |wait| Some((*wait * 2).min(MAX_WAIT)))
}

/// The budget of retries over all requests: one for ten requests, and a few in reserve. So an outage increases the load
/// by a tenth at most, instead of `max_retries` times.
#[derive(Debug)]
pub(super) struct Budget(Mutex<u32>);

/// In tenths of a retry.
const TRY: u32 = 10;
const RESERVE: u32 = 10 * TRY;

impl Budget {
    pub(super) fn new() -> Self {
        Self(Mutex::new(RESERVE))
    }

    /// Records a request's first try.
    pub(super) fn earn(&self) {
        let mut tenths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *tenths = (*tenths + 1).min(RESERVE);
    }

    /// Takes one retry, if any is left.
    pub(super) fn spend(&self) -> bool {
        let mut tenths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = tenths.checked_sub(TRY);
        *tenths = left.unwrap_or(*tenths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_costs_a_tenth_more_requests_and_a_small_reserve() {
        let budget = Budget::new();
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn();
            for _ in 0..5 {
                retries += u32::from(budget.spend());
            }
        }
        assert_eq!(retries, 10 + 100 - 1, "the first request finds the reserve full");
    }

    #[test]
    fn waits_are_anything_up_to_a_ceiling_that_doubles() {
        let ceilings: Vec<_> = ceilings().take(7).map(|wait| wait.as_millis()).collect();
        assert_eq!(ceilings, [250, 500, 1000, 2000, 4000, 8000, 10_000]);
        for _ in 0..100 {
            assert!(waits().zip(super::ceilings()).take(7).all(|(wait, ceiling)| wait <= ceiling));
        }
        let firsts: std::collections::HashSet<_> = (0..20).filter_map(|_| waits().next()).collect();
        assert!(firsts.len() > 10, "{firsts:?}");
    }
}
