//! One request: waiting for its turn, sending, retries and their budget, and what its failure means for later requests.

use std::iter::successors;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::credentials::Token;
use super::pace::whole_seconds;
use super::{Account, Class, Client, FetchError, Fetched, Observer, Reason};
use pds_interface::call::Method;
use pds_interface::{Request, Resource};

/// A request on behalf of a service account.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    pub(super) client: &'a Client,
    pub(super) account: &'a Account,
    /// What it is counted as; `None` for those of an operator, which are not counted.
    pub(super) resource: Option<Resource>,
    pub(super) request: &'a Request,
    /// Since when it waits.
    pub(super) since: Instant,
}

impl Exchange<'_> {
    /// Tries until it succeeds, a retry is not worth it, or no retry is left.
    pub(super) async fn run(&self) -> Result<Fetched, FetchError> {
        let client = &*self.client.inner;
        let mut left = if self.request.method == Method::Get { client.max_retries } else { 0 };
        let mut waits = waits();
        client.budget.earn();
        loop {
            let error = match self.attempt().await {
                Ok(fetched) => return Ok(fetched),
                Err(error) => error,
            };
            let too_long = error.retry_after().is_some_and(|wait| wait > client.patience);
            if left == 0 || too_long || !is_retryable(&error) || !client.budget.spend() {
                return Err(error);
            }
            left -= 1;
            self.count(|observer, resource| observer.retried(resource));
            tokio::time::sleep(waits.next().unwrap_or_default()).await;
        }
    }

    /// One try, from waiting for its turn to having its reply. A failure is counted. If the token was replaced
    /// meanwhile, the new one gets a try, too.
    async fn attempt(&self) -> Result<Fetched, FetchError> {
        let (Account(account), transport) = (self.account, &self.client.inner.transport);
        let failed = |reason| transport.failed(self.request, reason);
        let mut exchanged = false;
        loop {
            let (token, slot) = self.acquire().await.map_err(|reason| {
                let error = failed(reason);
                let code = error.class().as_str();
                self.count(|observer, resource| observer.request_not_sent(resource, code));
                error
            })?;
            account.pace.sent();
            let sent = Instant::now();
            let result = transport.send(self.request, &token, &self.client.room).await;
            drop(slot);
            let error = match result {
                Ok(fetched) => {
                    account.pace.went_well();
                    self.account.accept(&self.request.refused_as, true);
                    return Ok(fetched);
                }
                Err(reason) => failed(reason),
            };
            let (code, took) = (error.class().as_str(), sent.elapsed());
            self.count(|observer, resource| observer.request_done(resource, code, took));
            if !self.apply_failure(&token, sent, &error) || exchanged {
                return Err(error);
            }
            exchanged = true;
        }
    }

    /// Applies a failure to all requests of the account. Returns whether the token has been replaced, so that another
    /// try is worthwhile.
    fn apply_failure(&self, token: &Token, sent: Instant, error: &FetchError) -> bool {
        let (Account(account), path) = (self.account, &self.request.refused_as);
        match error.status() {
            Some(status @ (401 | 403)) => {
                account.credentials.reread();
                if account.credentials.current().is_ok_and(|now| now.generation != token.generation) {
                    return true;
                }
                self.account.refuse(path, token, status, error.message(), self.client.ask_again);
            }
            Some(status) => {
                self.account.accept(path, false);
                if status == 429 {
                    account.pace.too_many(sent);
                }
                if let (429 | 503, Some(wait)) = (status, error.retry_after()) {
                    account.pace.pause(wait, self.client.inner.patience);
                }
            }
            None => {}
        }
        false
    }

    /// Waits until the request may be sent. Returns its token and its permit.
    async fn acquire(&self) -> Result<(Arc<Token>, Option<SemaphorePermit<'_>>), Reason> {
        let (pace, client) = (&self.account.0.pace, &*self.client.inner);
        self.token(None)?;
        let mut throttled = pace.acquire(self.since).await;
        let slot = loop {
            let pause = pace.paused_for();
            if pause > client.patience {
                break Err(Reason::Paused(whole_seconds(pause)));
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            throttled += pause + client.limits.rate_turn().await;
            let slot = client.limits.slot().await;
            // The service may have asked this account to wait meanwhile.
            if pace.paused_for().is_zero() {
                break Ok(slot);
            }
        };
        self.count(|observer, resource| observer.throttled(resource, throttled));
        let slot = slot?;
        Ok((self.token(Some(self.client.ask_again))?, slot))
    }

    /// The token to send, unless the service has refused it; [`Account::check`] says what `again` means.
    fn token(&self, again: Option<Duration>) -> Result<Arc<Token>, Reason> {
        let token = self.account.0.credentials.current()?;
        self.account.check(&self.request.refused_as, &token, again)?;
        Ok(token)
    }

    fn count(&self, event: impl FnOnce(&dyn Observer, Resource)) {
        if let Some(resource) = self.resource {
            event(&*self.client.inner.observer, resource);
        }
    }
}

/// Whether the same request may well succeed a moment later.
///
/// True for connections that could not be made or broke, for 502, 503 and 504 of a gateway, and for 429. False for a
/// timeout, which has already cost the service the time of a whole request; the next poll asks again anyway. False for
/// a 500, which is the answer to this very request, and for everything that stays the same until someone acts.
fn is_retryable(error: &FetchError) -> bool {
    matches!(
        error.class(),
        Class::Connect | Class::Dns | Class::Reset | Class::Body | Class::Status(429 | 502 | 503 | 504)
    )
}

/// Waits before retries: exponential backoff with full jitter, so that requests that failed together do not return
/// together.
fn waits() -> impl Iterator<Item = Duration> {
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
pub(super) struct Budget(AtomicU32);

/// In tenths of a retry.
const TRY: u32 = 10;
const RESERVE: u32 = 10 * TRY;

impl Budget {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(RESERVE))
    }

    /// Records a request's first try.
    fn earn(&self) {
        self.update(|tenths| Some((tenths + 1).min(RESERVE)));
    }

    /// Takes one retry, if any is left.
    fn spend(&self) -> bool {
        self.update(|tenths| tenths.checked_sub(TRY))
    }

    fn update(&self, change: impl FnMut(u32) -> Option<u32>) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
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
