//! The client of the service: HTTP, tokens, rate limits, retries, typed errors.
//!
//! A poll uses [`Client::read`]. `attempt` takes a request through these, in order, and retries it:
//!
//! - `account`: the token of its service account, unless the service has refused it (`credentials` reads the
//!   token's file);
//! - `admission`: a queue per account, with a pace of its own (`pace`: pauses that the service requested, and an
//!   adaptive rate), and the limits over all accounts. A poll waits here before it starts;
//! - `transport`: one HTTP exchange, bounded in time and size, and in memory with all others (`pds_core::redact`
//!   removes tokens from them); it compares the clocks;
//! - `error`: why it finally failed; `class`: the label value of that failure.
//!
//! A reload creates a [`Client::successor`], which keeps the state of accounts whose token source stays. Waits follow
//! tokio's time. Everything is counted here, through the [`Observer`].

mod account;
mod admission;
mod attempt;
mod body;
mod class;
mod config;
mod credentials;
mod error;
mod observer;
mod pace;
mod rate;
mod transport;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;
use tokio::time::Instant;
use url::Url;

pub use account::{Account, Outcome};
pub use admission::Permit;
pub use attempt::Turn;
pub use class::{Class, ReplyStage, classify};
pub use config::Config;
pub use credentials::{CredentialsError, TokenSource, is_jwt, read_token, surplus};
pub use error::{FetchError, Reason};
pub use observer::{Observer, TokenFacts, Unobserved};
pub use transport::{Fetched, MAX_UNREAD, broken, request_url, retry_after};

use admission::Admission;
use attempt::Exchange;
use body::ReplyRoom;
use pds_core::clock::Clock;
use pds_core::error_chain::with_sources;
use pds_core::memory::MemoryBudget;
use pds_core::printable::excerpt;
use pds_core::redact::Redactor;
use pds_http::{BuildError, is_exposed_plaintext};
use pds_interface::call::Method;
use pds_interface::reply::DecodeError;
use pds_interface::{Request, Resource};
use transport::Transport;

/// The client of the service. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    /// How long until a refused token is tried again.
    retry_refused_after: Duration,
    room: ReplyRoom,
}

struct Inner {
    transport: Arc<Transport>,
    /// The account of projects without their own.
    default: Account,
    /// By project.
    projects: HashMap<Arc<str>, Account>,
    /// Each account that a project uses, once.
    accounts: Vec<Account>,
}

impl fmt::Debug for Inner {
    /// Omits the configuration, whose proxy may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

/// State that outlives a reload.
#[derive(Clone, Debug)]
struct Shared {
    clock: Clock,
    observer: Arc<dyn Observer>,
    redactor: Redactor,
    admission: Arc<Admission>,
}

/// Larger replies are decoded off the event loop, so that they delay no other poll.
const LARGE: usize = 256 * 1024;

/// The name of the account of projects without their own.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The default of the configuration.
const RETRY_REFUSED_AFTER: Duration = Duration::from_secs(300);

impl Client {
    /// A client for the service of `api`, with the service accounts of `api` and of `projects`: their ids, each with
    /// its own token, if it has one. Reads the tokens for the first time. A token that cannot be read is logged, and
    /// read again with each request.
    ///
    /// # Errors
    /// If CA file, proxy or TLS cannot be set up.
    pub fn new(
        api: &Config,
        projects: &[(Arc<str>, Option<TokenSource>)],
        observer: Arc<dyn Observer>,
        clock: Clock,
    ) -> Result<Self, BuildError> {
        let transport = Arc::new(Transport::new(api, Shared::new(observer, clock))?);
        let inner = Arc::new(Inner::new(projects, transport, None));
        let room = ReplyRoom::new(&MemoryBudget::default());
        let client = Self { inner, retry_refused_after: RETRY_REFUSED_AFTER, room };
        client.take_over(None);
        Ok(client)
    }

    /// The client that follows this one at a reload. It keeps the accounts whose token has the same source, with their
    /// state, and the connections if `api` is the same. Until it takes over, new accounts only reserve places, and replies
    /// are searched for their tokens.
    ///
    /// # Errors
    /// Same as [`Client::new`].
    pub fn successor(
        &self,
        api: &Config,
        projects: &[(Arc<str>, Option<TokenSource>)],
    ) -> Result<Self, BuildError> {
        let Transport { api: current, shared, .. } = &*self.inner.transport;
        let transport = match api == current {
            true => Arc::clone(&self.inner.transport),
            false => Arc::new(Transport::new(api, shared.clone())?),
        };
        let inner = Arc::new(Inner::new(projects, transport, Some(&self.inner)));
        Ok(Self { inner, ..self.clone() })
    }

    /// Puts the limits of this client into force, reports on the accounts that projects use instead of those of `before`,
    /// and ends their pauses. Nothing reads the token of an unused account again, so what it reported would never change.
    pub fn take_over(&self, before: Option<&Self>) {
        let Transport { api, shared, .. } = &*self.inner.transport;
        let named: HashMap<&str, &Account> =
            self.inner.accounts.iter().map(|account| (account.name(), account)).collect();
        let before = before.into_iter().flat_map(|before| before.inner.known());
        before.filter(|old| named.get(old.name()) != Some(old)).for_each(Account::retire);
        let unused = self.inner.known().count() - self.inner.accounts.len();
        shared.admission.configure(api, unused);
        for account in &self.inner.accounts {
            account.end_pause();
            account.report();
        }
    }

    /// The service accounts whose token states another project than it is set for, by name; the text names both
    /// projects.
    pub fn mismatched_tokens(&self) -> BTreeMap<String, String> {
        account::mismatched_tokens(&self.inner.projects)
    }

    /// Sets how long until a refused token is tried again.
    #[must_use]
    pub fn retrying_refused_after(self, retry_refused_after: Duration) -> Self {
        Self { retry_refused_after, ..self }
    }

    /// Sets the memory for replies in flight.
    #[must_use]
    pub fn with_reply_memory(self, memory: &MemoryBudget) -> Self {
        Self { room: ReplyRoom::new(memory), ..self }
    }

    /// The service account of `project`: its own, or the default one.
    pub fn account(&self, project: &str) -> Account {
        self.inner.projects.get(project).unwrap_or(&self.inner.default).clone()
    }

    /// Each service account that a configured project uses, once. Projects with the same token share one.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.inner.accounts.iter()
    }

    /// Adds due polls: the index of each target, its account, and its due time.
    pub fn enqueue<'a>(&self, polls: impl Iterator<Item = (usize, &'a Account, Instant)>) {
        let polls = polls.map(|(poll, account, due)| (poll, &account.inner.queue, due));
        self.inner.transport.shared.admission.enqueue(polls);
    }

    /// Waits for polls that may start: the indices of their targets, and the permits for their first requests.
    pub async fn started(&self) -> Vec<(usize, Permit)> {
        self.inner.transport.shared.admission.started().await
    }

    /// Removes the polls that were added and have not started.
    pub fn withdraw_polls(&self) {
        self.inner.transport.shared.admission.withdraw_polls();
    }

    /// Sends a GET request for `resource` and decodes the reply's body by `decode`: waits for its turn, retries failures
    /// that a retry may cure, and counts everything; a reply that cannot be decoded is a failure. Large bodies are decoded
    /// off the event loop, one at a time.
    ///
    /// # Errors
    /// The failure of the last try, or the reason why nothing was sent.
    pub async fn read<T: Send + 'static>(
        &self,
        turn: &Turn,
        resource: Resource,
        request: &Request,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError> + Send + 'static,
    ) -> Result<(T, Fetched), FetchError> {
        let transport = &*self.inner.transport;
        let Shared { redactor, observer, .. } = &transport.shared;
        if request.method != Method::GET {
            return Err(transport.failed(request, Reason::NotGet));
        }
        let exchange = Exchange { client: self, turn, resource: Some(resource), request };
        let (fetched, sent) = exchange.run().await?;
        let read = if fetched.body.len() > LARGE {
            let body = fetched.body.clone();
            let only = Arc::clone(&self.room.decoding).lock_owned().await;
            let decoded = tokio::task::spawn_blocking(move || {
                let _only = only;
                decode(&body)
            });
            match decoded.await.map_err(JoinError::try_into_panic) {
                Ok(read) => read,
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                // The runtime has ended, and so does the daemon.
                Err(Err(_)) => std::future::pending().await,
            }
        } else {
            decode(&fetched.body)
        };
        let read = read.map_err(|error| {
            let reason = match error {
                DecodeError::Reported(words) => Reason::Reported(redactor.text(words)),
                DecodeError::WebPage(title) => Reason::WebPage {
                    status: fetched.status,
                    title: redactor.text(format!("a web page{title}")),
                },
                error => Reason::Decode(excerpt(&redactor.text(with_sources(&error)))),
            };
            transport.failed(request, reason)
        });
        let class = read.as_ref().map_or_else(FetchError::class, |_| Class::Status(fetched.status));
        observer.request_done(resource, class.code(), fetched.took);
        let failed = read.as_ref().err().map(FetchError::class);
        turn.account.record_outcome(&request.refused_as, sent, failed);
        Ok((read?, fetched))
    }

    /// Sends any request on behalf of an operator, without counting it. Only a GET is retried.
    ///
    /// # Errors
    /// Same as [`Client::read`].
    pub async fn call(&self, account: &Account, request: &Request) -> Result<Fetched, FetchError> {
        let turn = Turn::new(account);
        let (fetched, sent) = Exchange { client: self, turn: &turn, resource: None, request }.run().await?;
        account.record_outcome(&request.refused_as, sent, None);
        Ok(fetched)
    }
}

impl Inner {
    /// A client for the accounts of `projects` and of the configuration. An account of the client `before` continues
    /// under its current name.
    fn new(
        projects: &[(Arc<str>, Option<TokenSource>)],
        transport: Arc<Transport>,
        before: Option<&Self>,
    ) -> Self {
        let Transport { api, shared, .. } = &*transport;
        let known = before.into_iter().flat_map(Self::known);
        let known: HashMap<_, _> =
            known.map(|account| (account.inner.credentials.source.as_ref(), account)).collect();
        let account = |name, source: Option<&TokenSource>| match known.get(&source) {
            Some(account) => account.named(name),
            None => Account::new(name, source.cloned(), shared),
        };
        let default = account(DEFAULT_ACCOUNT.into(), api.token.as_ref());
        let mut by_source = HashMap::from([(api.token.as_ref(), default.clone())]);
        let mut used = HashSet::new();
        let (mut accounts, mut by_project) = (Vec::new(), HashMap::with_capacity(projects.len()));
        for (project, token) in projects {
            let source = token.as_ref().or(api.token.as_ref());
            let account = by_source.entry(source).or_insert_with(|| account(Arc::clone(project), source));
            if used.insert(source) {
                accounts.push(account.clone());
            }
            by_project.insert(Arc::clone(project), account.clone());
        }
        Self { transport, default, projects: by_project, accounts }
    }

    /// All accounts, used or not.
    fn known(&self) -> impl Iterator<Item = &Account> {
        let unused = self.accounts.iter().all(|account| *account != self.default);
        self.accounts.iter().chain(unused.then_some(&self.default))
    }
}

impl Shared {
    fn new(observer: Arc<dyn Observer>, clock: Clock) -> Self {
        Self { clock, observer, redactor: Redactor::default(), admission: Arc::default() }
    }
}

/// A warning if `base` is plain http, where everyone on the network can read the token. `None` for https and for
/// loopback.
pub fn plain_http_warning(base: &Url) -> Option<String> {
    is_exposed_plaintext(base).then(|| {
        format!("api.base_url {base} is plain http: anyone on the network can read the token; use https")
    })
}
