//! Which failures are worth a second try, when, and how many of them all requests together may have.

use std::iter::successors;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Class, FetchError};

/// Whether the same request may well succeed a moment later.
///
/// A connection that could not be made or broke off, a gateway's 502, 503 and 504, and a 429: yes. A timeout: no,
/// for it has already cost the service all the time that a request may take, and the next poll asks again anyway.
/// A 500 is the service's answer to this very request, and everything else stays as it is until someone acts.
pub(super) fn is_retryable(error: &FetchError) -> bool {
    matches!(
        error.class(),
        Class::Connect | Class::Dns | Class::Reset | Class::Body | Class::Status(429 | 502 | 503 | 504)
    )
}

/// Waits before each further try: exponential with full jitter, so anything from nothing to a ceiling that
/// doubles. Whoever failed together does not come back together.
pub(super) fn waits() -> impl Iterator<Item = Duration> {
    let mut random = fastrand::Rng::new();
    ceilings().map(move |ceiling| ceiling.mul_f64(random.f64()))
}

/// The ceiling of the wait before the first further try.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// No wait is longer.
const MAX_WAIT: Duration = Duration::from_secs(10);

fn ceilings() -> impl Iterator<Item = Duration> {
    successors(Some(FIRST_WAIT), |wait| Some((*wait * 2).min(MAX_WAIT)))
}

/// What all requests together may spend on further tries: one for each ten requests, and a few in reserve. In an
/// outage the load so grows by a tenth at most, not by `max_retries` times.
#[derive(Debug)]
pub(super) struct Budget(Mutex<u32>);

/// Kept in tenths of a try.
const TRY: u32 = 10;
const RESERVE: u32 = 10 * TRY;

impl Budget {
    pub(super) fn new() -> Self {
        Self(Mutex::new(RESERVE))
    }

    /// A request is made for the first time.
    pub(super) fn earn(&self) {
        let mut tenths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *tenths = (*tenths + 1).min(RESERVE);
    }

    /// Takes one further try, if any left.
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
