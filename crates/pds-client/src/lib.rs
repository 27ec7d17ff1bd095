//! The client of the service: HTTP, tokens, rate limits, retries, typed errors.
//!
//! A poll uses [`Client::fetch`]. A request passes through these (`attempt`), in order:
//!
//! - `account`: the token of its service account, unless the service has refused it (`credentials` reads the
//!   token's file); then the account's own pace (`pace`: pauses that the service asked for, and an adaptive rate);
//! - `limits`: the rate and the concurrency allowed over all accounts;
//! - `transport`: one HTTP exchange, bounded in time and size, and in memory with all others (`redact`
//!   removes tokens from them, `skew` compares the clocks);
//! - `retry`: which failures are retried, and the budget of retries over all requests;
//! - `error`: why it failed in the end, and `class`: the label value of that.
//!
//! Waits follow tokio's time. Everything is counted here, through the [`Observer`].

mod account;
mod attempt;
mod class;
pub mod config;
mod credentials;
mod error;
mod limits;
mod line;
mod observer;
mod pace;
pub mod redact;
mod retry;
mod skew;
mod transport;
mod wait;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;
use url::Url;

pub use account::Account;
pub use class::Class;
pub use config::{Config, TokenSource};
pub use credentials::{CredentialsError, MAX_TOKEN_BYTES, check_token};
pub use error::FetchError;
pub use observer::{Observer, Unobserved};
pub use transport::Fetched;

use limits::Limits;
use pds_core::clock::Clock;
use pds_core::error_chain::{shortened, with_sources};
use pds_core::memory::{Holder, MemoryBudget, Share};
use pds_http::{BuildError, is_open};
use pds_interface::call::Method;
use pds_interface::reply::DecodeError;
use pds_interface::{Request, Resource};
use redact::Redactor;
use retry::Budget;
use skew::Skew;
use transport::{ReplyRoom, Transport};

/// The client of the service. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    /// How long until a refused token is tried again.
    ask_again: Duration,
    room: ReplyRoom,
}

#[derive(Debug)]
struct Inner {
    transport: Transport,
    limits: Limits,
    budget: Budget,
    skew: Skew,
    observer: Arc<dyn Observer>,
    /// The account of projects without one of their own.
    default: Account,
    /// By project.
    projects: HashMap<Arc<str>, Account>,
    /// Each account that a project uses, once.
    accounts: Vec<Account>,
    max_retries: u32,
    /// How long a request waits at most for a pause to end: `api.timeout`.
    patience: Duration,
}

/// Larger replies are decoded off the event loop, so that they delay no other poll.
const LARGE: usize = 256 * 1024;

/// The default of the configuration.
const ASK_AGAIN: Duration = Duration::from_secs(300);

impl Client {
    /// A client for the service of `api`, with the service accounts of `api` and of `projects`: their ids, each with a
    /// token of its own, if it has one. Reads the tokens for the first time. One that cannot be read is logged, and read again with each request.
    ///
    /// # Errors
    /// If CA file, proxy or TLS cannot be set up.
    pub fn new(
        api: &Config,
        projects: &[(Arc<str>, Option<TokenSource>)],
        observer: Arc<dyn Observer>,
        clock: Clock,
    ) -> Result<Self, BuildError> {
        let redactor = Redactor::default();
        let transport = Transport::new(api, redactor.clone())?;
        if let Some(warning) = plain_http_warning(&api.base_url) {
            tracing::warn!("{warning}");
        }
        observer.forget_tokens();
        let default = Account::new("default".into(), api.token.clone(), &observer, &redactor);
        let mut inner = Inner {
            transport,
            limits: Limits::new(api),
            budget: Budget::new(),
            skew: Skew::new(clock, Arc::clone(&observer)),
            observer,
            default,
            projects: HashMap::with_capacity(projects.len()),
            accounts: Vec::new(),
            max_retries: api.max_retries,
            patience: api.timeout,
        };
        let mut by_source = HashMap::from([(api.token.as_ref(), inner.default.clone())]);
        let mut used = HashSet::new();
        for (project, token) in projects {
            let source = token.as_ref().or(api.token.as_ref());
            let account = by_source.entry(source).or_insert_with(|| {
                Account::new(Arc::clone(project), source.cloned(), &inner.observer, &redactor)
            });
            if used.insert(source) {
                inner.accounts.push(account.clone());
            }
            inner.projects.insert(Arc::clone(project), account.clone());
        }
        let room = ReplyRoom::new(&MemoryBudget::default().share(Holder::Replies));
        Ok(Self { inner: Arc::new(inner), ask_again: ASK_AGAIN, room })
    }

    /// Sets how long until a refused token is tried again.
    #[must_use]
    pub fn asking_again_after(self, ask_again: Duration) -> Self {
        Self { ask_again, ..self }
    }

    /// Sets the memory for replies in flight.
    #[must_use]
    pub fn within(self, share: &Share) -> Self {
        Self { room: ReplyRoom::new(share), ..self }
    }

    /// The service account of `project`: its own, or the default one.
    #[must_use]
    pub fn account(&self, project: &str) -> Account {
        self.inner.projects.get(project).unwrap_or(&self.inner.default).clone()
    }

    /// Each service account that a configured project uses, once. Projects with the same token share one.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.inner.accounts.iter()
    }

    /// Sends a GET request for `resource`: waits for its turn, retries failures that a retry may cure, and counts
    /// everything.
    ///
    /// # Errors
    /// The failure of the last try, or why nothing was sent.
    pub async fn fetch(
        &self,
        account: &Account,
        resource: Resource,
        request: &Request,
    ) -> Result<Fetched, FetchError> {
        self.read(account, resource, request, |_| Ok(())).await.map(|((), fetched)| fetched)
    }

    /// As [`Client::fetch`], and decodes the body by `decode`, so that a reply that cannot be decoded counts as a
    /// failure. A large body is decoded off the event loop.
    ///
    /// # Errors
    /// As [`Client::fetch`], and [`FetchError::Decode`] where `decode` fails.
    pub async fn read<T: Send + 'static>(
        &self,
        account: &Account,
        resource: Resource,
        request: &Request,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError> + Send + 'static,
    ) -> Result<(T, Fetched), FetchError> {
        if request.method != Method::Get {
            return Err(FetchError::NotGet { request: self.inner.transport.name(request) });
        }
        let fetched = self.send_with_retries(account, Some(resource), request).await?;
        let read = if fetched.body.len() > LARGE {
            let body = fetched.body.clone();
            match tokio::task::spawn_blocking(move || decode(&body)).await.map_err(JoinError::try_into_panic)
            {
                Ok(read) => read,
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                // The runtime has ended, and so does the daemon.
                Err(Err(_)) => std::future::pending().await,
            }
        } else {
            decode(&fetched.body)
        };
        let read = read.map_err(|error| FetchError::Decode {
            request: self.inner.transport.name(request),
            problem: shortened(&self.inner.transport.redactor.text(&with_sources(&error))),
        });
        let class = read.as_ref().map_or_else(FetchError::class, |_| Class::Status(fetched.status));
        self.inner.observer.request_done(resource, class.as_str(), fetched.took);
        Ok((read?, fetched))
    }

    /// Sends any request on behalf of an operator, without counting it. Only a GET is retried.
    ///
    /// # Errors
    /// As [`Client::fetch`].
    pub async fn call(&self, account: &Account, request: &Request) -> Result<Fetched, FetchError> {
        self.send_with_retries(account, None, request).await
    }
}

/// A warning if `base` is plain http, where everyone on the network can read the token. `None` for https and for
/// loopback.
#[must_use]
pub fn plain_http_warning(base: &Url) -> Option<String> {
    is_open(base).then(|| {
        format!("api.base_url {base} is plain http: anyone on the network can read the token; use https")
    })
}
