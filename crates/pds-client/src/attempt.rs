//! One request: waiting for its turn, sending, retries, and what its failure means for later requests.

use std::sync::Arc;

use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::account::Rejection;
use super::credentials::Token;
use super::wait::whole_seconds;
use super::{Account, Client, FetchError, Fetched, retry};
use pds_interface::call::Method;
use pds_interface::{Request, Resource};

impl Client {
    /// Tries until it succeeds, a retry is not worth it, or no retry is left.
    pub(super) async fn send_with_retries(
        &self,
        account: &Account,
        resource: Option<Resource>,
        request: &Request,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        let mut left = if request.method == Method::Get { inner.max_retries } else { 0 };
        let mut waits = retry::waits();
        inner.budget.earn();
        let since = Instant::now();
        loop {
            let error = match self.attempt(account, resource, request, since).await {
                Ok(fetched) => return Ok(fetched),
                Err(error) => error,
            };
            let too_long = error.retry_after().is_some_and(|wait| wait > inner.patience);
            if left == 0 || too_long || !retry::is_retryable(&error) || !inner.budget.spend() {
                return Err(error);
            }
            left -= 1;
            if let Some(resource) = resource {
                inner.observer.retried(resource);
            }
            tokio::time::sleep(waits.next().unwrap_or_default()).await;
        }
    }

    /// One try, from waiting for its turn to having its reply. A failure is counted. If the token was replaced
    /// meanwhile, the new one gets a try, too.
    async fn attempt(
        &self,
        account: &Account,
        resource: Option<Resource>,
        request: &Request,
        since: Instant,
    ) -> Result<Fetched, FetchError> {
        let inner = &*self.inner;
        let mut exchanged = false;
        loop {
            let (token, slot) = match self.acquire(account, resource, request, since).await {
                Ok(acquired) => acquired,
                Err(error) => {
                    if let Some(resource) = resource {
                        inner.observer.request_not_sent(resource, error.class().as_str());
                    }
                    return Err(error);
                }
            };
            account.0.pace.sent();
            let sent = Instant::now();
            let result = inner.transport.send(request, &token, &inner.skew, &self.room).await;
            drop(slot);
            let error = match result {
                Ok(fetched) => {
                    account.0.pace.went_well();
                    account.accept(&request.refused_as);
                    account.note_accepted(true);
                    return Ok(fetched);
                }
                Err(error) => error,
            };
            if let Some(resource) = resource {
                inner.observer.request_done(resource, error.class().as_str(), sent.elapsed());
            }
            if !self.apply_failure(account, request, &token, sent, &error) || exchanged {
                return Err(error);
            }
            exchanged = true;
        }
    }

    /// Applies a failure to all requests of the account. Returns whether the token has been replaced, so that another
    /// try is worthwhile.
    fn apply_failure(
        &self,
        account: &Account,
        request: &Request,
        token: &Token,
        sent: Instant,
        error: &FetchError,
    ) -> bool {
        let Account(inner) = account;
        match error.status() {
            Some(status @ (401 | 403)) => {
                inner.credentials.reread();
                if inner.credentials.current().is_ok_and(|now| now.generation != token.generation) {
                    return true;
                }
                account.refuse(&request.refused_as, token, status, error.message(), self.ask_again);
            }
            Some(status) => {
                account.accept(&request.refused_as);
                if status == 429 {
                    inner.pace.too_many(sent);
                }
                if let (429 | 503, Some(wait)) = (status, error.retry_after()) {
                    inner.pace.pause(wait, self.inner.patience);
                }
            }
            None => {}
        }
        false
    }

    /// Waits until `request` may be sent. Returns its token and its permit.
    async fn acquire(
        &self,
        account: &Account,
        resource: Option<Resource>,
        request: &Request,
        since: Instant,
    ) -> Result<(Arc<Token>, Option<SemaphorePermit<'_>>), FetchError> {
        let inner = &*self.inner;
        let again = self.ask_again;
        self.token(account, request, |token| account.refused(&request.refused_as, token))?;
        let mut throttled = account.0.pace.acquire(since).await;
        let slot = loop {
            let pause = account.0.pace.paused_for();
            if pause > inner.patience {
                break Err(FetchError::Paused {
                    request: inner.transport.name(request),
                    retry_after: whole_seconds(pause),
                });
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            throttled += pause + inner.limits.rate_turn().await;
            let slot = inner.limits.slot().await;
            // The service may have asked this account to wait meanwhile.
            if account.0.pace.paused_for().is_zero() {
                break Ok(slot);
            }
        };
        if let Some(resource) = resource {
            inner.observer.throttled(resource, throttled);
        }
        let slot = slot?;
        let token = self.token(account, request, |token| account.claim(&request.refused_as, token, again))?;
        Ok((token, slot))
    }

    /// The token to send, unless the service has refused it.
    fn token(
        &self,
        account: &Account,
        request: &Request,
        refusal: impl FnOnce(&Token) -> Option<Rejection>,
    ) -> Result<Arc<Token>, FetchError> {
        let name = || self.inner.transport.name(request);
        let token = account.0.credentials.current();
        let token = token.map_err(|source| FetchError::Credentials { request: name(), source })?;
        match refusal(&token) {
            None => Ok(token),
            Some(refusal) => Err(FetchError::Unauthorized {
                request: name(),
                status: refusal.status,
                message: refusal.message,
                retry_after: whole_seconds(refusal.until.saturating_duration_since(Instant::now())),
            }),
        }
    }
}
