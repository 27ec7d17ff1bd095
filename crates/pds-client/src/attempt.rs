//! A request: its turn, its retries and their budget, and the effect of its failure on later requests.

use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::admission::Permit;
use super::credentials::Token;
use super::error::whole_seconds;
use super::{Account, Class, Client, FetchError, Fetched, Inner, Observer, Reason};
use pds_interface::call::Method;
use pds_interface::{Request, Resource};

/// A turn of a service account: consecutive requests that keep their place in its queue.
#[derive(Debug)]
pub struct Turn {
    pub(super) account: Account,
    /// Since when it is due.
    due: Instant,
    /// The permit of its first request, and how long the turn waited for it.
    first: Mutex<Option<(Permit, Duration)>>,
}

impl Turn {
    /// A turn that begins now.
    pub fn new(account: &Account) -> Self {
        Self { account: account.clone(), due: Instant::now(), first: Mutex::default() }
    }

    /// A turn that is due since `due` and has `waited` this long for its permit.
    pub fn admitted(account: &Account, due: Instant, permit: Permit, waited: Duration) -> Self {
        Self { account: account.clone(), due, first: Mutex::new(Some((permit, waited))) }
    }

    /// Waits until its next request may be sent. Returns the permit and the waiting time.
    async fn permit(&self) -> (Permit, Duration) {
        let first = self.first.lock().take();
        match first {
            Some(admitted) => admitted,
            None => {
                let began = Instant::now();
                let permit = self.account.inner.queue.acquire(self.due).await;
                (permit, began.elapsed())
            }
        }
    }
}

/// A request of a turn.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    pub(super) client: &'a Client,
    pub(super) turn: &'a Turn,
    /// Resource that it counts as; `None` for requests of an operator, which are not counted.
    pub(super) resource: Option<Resource>,
    pub(super) request: &'a Request,
}

impl Exchange<'_> {
    /// Tries until it succeeds, a retry is pointless, or no retry is left. Returns the reply and when its request was
    /// sent.
    pub(super) async fn run(&self) -> Result<(Fetched, Instant), FetchError> {
        let client = &*self.client.inner;
        let mut left = if self.request.method == Method::GET { client.transport.api.max_retries } else { 0 };
        let mut waits = waits();
        let (account, accounts) = (&self.turn.account, client.accounts.len());
        account.earn_retry();
        loop {
            let error = match self.attempt().await {
                Ok(fetched) => return Ok(fetched),
                Err(error) => error,
            };
            let too_long = error.retry_after().is_some_and(|wait| wait > client.transport.api.timeout);
            if left == 0 || too_long || !is_retryable(&error) || !account.take_retry(accounts) {
                return Err(error);
            }
            left -= 1;
            self.count(|observer, resource| observer.retried(resource));
            tokio::time::sleep(waits.next().unwrap_or_default()).await;
        }
    }

    /// An attempt, from waiting for its turn to its reply. Counts a failure. If the token was replaced meanwhile, tries
    /// the new token, too.
    async fn attempt(&self) -> Result<(Fetched, Instant), FetchError> {
        let Inner { transport, accounts, .. } = &*self.client.inner;
        let failed = |reason| transport.failed(self.request, reason);
        let own = Some(&self.turn.account.inner.room).filter(|_| accounts.len() > 1);
        let mut exchanged = false;
        loop {
            let (token, mut permit) = self.acquire().await.map_err(|reason| {
                let error = failed(reason);
                let code = error.class().code();
                self.count(|observer, resource| observer.request_not_sent(resource, code));
                error
            })?;
            permit.sent();
            let sent = Instant::now();
            let error = match transport.send(self.request, &token, &self.client.room, own).await {
                Ok(fetched) => {
                    self.turn.account.ended_unthrottled(true);
                    // A failure until the body is decoded.
                    self.turn.account.record_outcome(&self.request.refused_as, sent, Some(Class::Decode));
                    return Ok((fetched, sent));
                }
                Err(reason) => failed(reason),
            };
            let (code, took) = (error.class().code(), sent.elapsed());
            self.count(|observer, resource| observer.request_done(resource, code, took));
            // Before the permit is released, so that its consequences apply to requests that wait for one.
            if !self.apply_failure(&token, sent, &error) || exchanged {
                return Err(error);
            }
            exchanged = true;
        }
    }

    /// Applies a failure to all requests of the account. Returns whether the token was replaced, so that another try
    /// may succeed.
    fn apply_failure(&self, token: &Token, sent: Instant, error: &FetchError) -> bool {
        let (account, path) = (&self.turn.account, &self.request.refused_as);
        let patience = self.client.inner.transport.api.timeout;
        match (error.status(), error.retry_after()) {
            (Some(429), wait) => account.too_many(sent, wait, patience),
            (Some(503), Some(wait)) => account.pause(wait, patience),
            (status, _) => account.ended_unthrottled(status.is_some_and(|status| status < 500)),
        }
        if error.is_unauthorized() {
            let credentials = &account.inner.credentials;
            credentials.reread();
            if credentials.current().is_ok_and(|now| now.generation != token.generation) {
                return true;
            }
            account.record_refusal(path, token, error, self.client.retry_refused_after);
            return false;
        }
        account.record_outcome(path, sent, Some(error.class()));
        false
    }

    /// Waits until the request may be sent. Returns its token and its permit.
    async fn acquire(&self) -> Result<(Arc<Token>, Permit), Reason> {
        // A request that will not be sent does not wait.
        self.token()?;
        let (queue, patience) = (&self.turn.account.inner.queue, self.client.inner.transport.api.timeout);
        let mut throttled = Duration::ZERO;
        let permit = loop {
            let (permit, waited) = self.turn.permit().await;
            throttled += waited;
            match queue.pace(|pace, _| pace.pause_left()) {
                Duration::ZERO => break Ok(permit),
                pause if pause > patience => break Err(Reason::Paused(whole_seconds(pause))),
                // The service has just requested a pause of this account. A reload may have made its queue less patient, so
                // the queue may not wait for the end of the pause.
                pause => {
                    drop(permit);
                    tokio::time::sleep(pause).await;
                    throttled += pause;
                }
            }
        };
        self.count(|observer, resource| observer.throttled(resource, throttled));
        let permit = permit?;
        Ok((self.token()?, permit))
    }

    /// The token to send, unless the service has refused it.
    fn token(&self) -> Result<Arc<Token>, Reason> {
        let account = &self.turn.account;
        let token = account.inner.credentials.current()?;
        account.check(&self.request.refused_as, &token)?;
        Ok(token)
    }

    fn count(&self, event: impl FnOnce(&dyn Observer, Resource)) {
        if let Some(resource) = self.resource {
            event(&*self.client.inner.transport.shared.observer, resource);
        }
    }
}

/// Whether the same request may succeed a moment later.
///
/// True for connections that could not be made or broke, for 502, 503 and 504 of a gateway, and for 429. False for a
/// timeout, which has already cost the service the time of a whole request; the next poll requests it again anyway.
/// False for a 500, which is about this very request, and for everything that lasts until someone acts.
fn is_retryable(error: &FetchError) -> bool {
    matches!(
        error.class(),
        Class::Connect
            | Class::ConnectRefused
            | Class::ConnectTimeout
            | Class::Dns
            | Class::ProxyConnect
            | Class::Reset
            | Class::Body
            | Class::Status(429 | 502 | 503 | 504)
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
/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(10);

fn ceilings() -> impl Iterator<Item = Duration> {
    successors(Some(FIRST_WAIT), |wait| Some((*wait * 2).min(MAX_WAIT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_anything_up_to_a_ceiling_that_doubles() {
        let ceilings: Vec<_> = ceilings().take(7).map(|wait| wait.as_millis()).collect();
        assert_eq!(ceilings, [250, 500, 1000, 2000, 4000, 8000, 10_000]);
        for _ in 0..100 {
            assert!(waits().zip(super::ceilings()).take(7).all(|(wait, ceiling)| wait <= ceiling));
        }
        let firsts: std::collections::HashSet<_> = (0..100).filter_map(|_| waits().next()).collect();
        assert!(firsts.len() > 10, "{firsts:?}");
        let has = |part: std::ops::Range<u32>| {
            let part = FIRST_WAIT * part.start / 4..FIRST_WAIT * part.end / 4;
            firsts.iter().any(|wait| part.contains(wait))
        };
        assert!(has(0..1) && has(1..3) && has(3..4), "{firsts:?}");
    }
}
