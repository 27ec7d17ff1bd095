//! A service account: its token, its queue, and its refusals.

mod throttling;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Shared;
use super::admission::AccountQueue;
use super::body::AccountRoom;
use super::class::Class;
use super::credentials::{Credentials, Token, TokenSource};
use super::error::{FetchError, Reason, whole_seconds};
use super::observer::Reporter;
use pds_core::units::count;

/// The longest time for which a refused token is not sent, unless it changes: to the service, or to one path.
const MAX_REFUSAL: Duration = Duration::from_secs(60);
const MAX_PATH_REFUSAL: Duration = Duration::from_secs(86_400);

/// Requests that earn one retry.
const REQUESTS_PER_RETRY: usize = 10;
/// The retry budget of all accounts, in requests; each account gets an equal part, at least one retry. Once it is spent,
/// an outage increases the load by at most a tenth, instead of `max_retries` times.
const RETRY_BUDGET: usize = 10 * REQUESTS_PER_RETRY;

/// A service account. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Account {
    name: Arc<str>,
    pub(super) inner: Arc<AccountParts>,
}

#[derive(Debug)]
pub(super) struct AccountParts {
    pub(super) credentials: Credentials,
    pub(super) queue: AccountQueue,
    pub(super) room: AccountRoom,
    state: Mutex<State>,
}

/// State of the account, as the service's replies show it.
#[derive(Debug, Default)]
struct State {
    /// By their subject: [`WHOLE_ACCOUNT`], or [`Request::refused_as`](pds_interface::Request::refused_as).
    refusals: HashMap<String, Refusal>,
    /// Why no reply was about the requested range.
    ignored_range: Option<Arc<str>>,
    /// When the pause that was logged began; `None` once a reply has ended it.
    paused_since: Option<Instant>,
    last: Option<Outcome>,
    /// The used part of the retry budget, in requests.
    retried: usize,
}

/// The outcome of the request that was sent last.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    sent: Instant,
    /// When it ended.
    pub ended: Instant,
    /// How it failed; `None` if the service answered it.
    pub failed: Option<Class>,
}

/// A 401 or 403 that no later reply has contradicted.
#[derive(Debug)]
struct Refusal {
    status: u16,
    message: String,
    /// The refused token.
    generation: u64,
    /// When the first and the last of consecutive refusals arrived.
    since: Instant,
    last: Instant,
    /// The same token is not sent until then.
    until: Instant,
}

/// A 401 is about the token and stops the account. A 403 is about one path and stops only that.
/// The account's own entry is under the empty path, which no request has.
const WHOLE_ACCOUNT: &str = "";

impl Account {
    pub(super) fn new(name: Arc<str>, source: Option<TokenSource>, shared: &Shared) -> Self {
        let (queue, room) = (shared.admission.queue(), AccountRoom::new());
        let credentials = Credentials::new(queue.number, Arc::clone(&name), source, shared.clone());
        Self { name, inner: Arc::new(AccountParts { credentials, queue, room, state: Mutex::default() }) }
    }

    /// The same account under its name in another configuration.
    pub(super) fn named(&self, name: Arc<str>) -> Self {
        Self { name, inner: Arc::clone(&self.inner) }
    }

    /// Its name, the value of the label `token`: "default", or the id of the first project that uses it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number of its own, which it keeps over reloads that do not change the source of its token.
    pub fn number(&self) -> u64 {
        self.inner.queue.number
    }

    /// The file that its token is read from; `None` for a token in the configuration.
    pub fn file(&self) -> Option<&Path> {
        self.inner.credentials.file()
    }

    /// Expiry of its token; `None` without a token, or if the token does not state one.
    pub fn expiry(&self) -> Option<jiff::Timestamp> {
        self.reporter().facts().expires
    }

    /// Whether the service accepted its token last.
    pub fn is_accepted(&self) -> bool {
        self.reporter().facts().accepted == Some(true)
    }

    /// Whether its requests wait because the service throttles it.
    pub fn is_throttled(&self) -> bool {
        self.inner.queue.is_throttled()
    }

    /// The outcome of its last request; `None` before the first.
    pub fn last_outcome(&self) -> Option<Outcome> {
        self.inner.state.lock().last
    }

    fn reporter(&self) -> &Reporter {
        &self.inner.credentials.reporter
    }

    /// Reports its facts from now on.
    pub(super) fn report(&self) {
        self.reporter().begin(&self.name);
    }

    /// Removes its metrics, and reports nothing more.
    pub(super) fn retire(&self) {
        self.reporter().end();
    }

    /// Fails if a refusal keeps `token` from being sent to `path`.
    pub(super) fn check(&self, path: &str, token: &Token) -> Result<(), Reason> {
        let state = self.inner.state.lock();
        let now = Instant::now();
        let refusals = [WHOLE_ACCOUNT, path].into_iter().filter_map(|key| state.refusals.get(key));
        let mut applies =
            refusals.filter(|refusal| refusal.generation == token.generation && now < refusal.until);
        applies.next().map_or(Ok(()), |refusal| {
            Err(Reason::RecentlyRefused {
                status: refusal.status,
                message: refusal.message.clone(),
                retry_after: whole_seconds(refusal.until - now),
            })
        })
    }

    /// Records that the service refused `token` for `path`; the token is sent there `again` after so long.
    pub(super) fn record_refusal(&self, path: &str, token: &Token, error: &FetchError, again: Duration) {
        let (status, message) = (error.status().unwrap_or_default(), error.message());
        let whole = status == 401;
        let key = if whole { WHOLE_ACCOUNT } else { path };
        let mut state = self.inner.state.lock();
        self.reporter().update(|facts| facts.accepted = Some(!whole));
        if !whole {
            // So the token itself is valid.
            self.end_refusal(&mut state);
        }
        let now = Instant::now();
        state.last = Some(Outcome { sent: now, ended: now, failed: Some(error.class()) });
        let before = state.refusals.get(key);
        let is_new = before.is_none_or(|before| before.generation != token.generation);
        let refusal = Refusal {
            status,
            message: message.to_owned(),
            generation: token.generation,
            since: before.map_or(now, |before| before.since),
            last: now,
            // The first refusal of a path may be an accident.
            until: now + again.min(if whole || is_new { MAX_REFUSAL } else { MAX_PATH_REFUSAL }),
        };
        if before.is_none() {
            // A path that is no longer requested.
            state
                .refusals
                .retain(|key, refusal| key == WHOLE_ACCOUNT || now < refusal.until + MAX_PATH_REFUSAL);
        }
        state.refusals.insert(key.to_owned(), refusal);
        if whole {
            self.inner.queue.set_probed(true);
        }
        // A refusal of one path is logged by its target.
        if is_new && whole {
            self.reporter().log(|observer, name| observer.token_refused(name, status, message));
        }
    }

    /// Records the outcome of a request to `path`, sent at `sent`, that was not refused. The token is sent again at
    /// once. The refusal ends only if the request has not `failed`, which proves that the service accepted the token.
    pub(super) fn record_outcome(&self, path: &str, sent: Instant, failed: Option<Class>) {
        let mut state = self.inner.state.lock();
        if state.last.is_none_or(|last| last.sent <= sent) {
            state.last = Some(Outcome { sent, ended: Instant::now(), failed });
        }
        if state.refusals.get(path).is_some_and(|refusal| refusal.last <= sent) {
            state.refusals.remove(path);
        }
        if let Some(refusal) = state.refusals.get_mut(WHOLE_ACCOUNT) {
            if sent < refusal.last {
                return;
            }
            refusal.until = sent;
            self.inner.queue.set_probed(false);
        }
        if failed.is_none() {
            self.end_refusal(&mut state);
            self.reporter().update(|facts| facts.accepted = Some(true));
        }
    }

    /// Records that a reply is about the requested range. No later failure is due to the names of query parameters.
    pub fn range_honoured(&self) {
        let mut state = self.inner.state.lock();
        if state.ignored_range.take().is_some() {
            tracing::info!(token = self.name(), "the service honours the requested range");
        }
        self.reporter().update(|facts| facts.range_honoured = Some(true));
    }

    /// Records that a reply is about another range than requested; `explanation` is the text of the report. Returns
    /// whether no reply so far was about the requested range: the service does not know the query parameters.
    pub fn range_ignored(&self, explanation: &str) -> bool {
        let mut state = self.inner.state.lock();
        let honoured = self.reporter().facts().range_honoured;
        if honoured.is_none() {
            state.ignored_range = Some(explanation.into());
            self.reporter().update(|facts| facts.range_honoured = Some(false));
            self.reporter().log(|observer, name| observer.range_ignored(name, explanation));
        }
        honoured != Some(true)
    }

    /// Why no reply was about the requested range; `None` if one was, or nothing is known yet.
    pub fn ignored_range(&self) -> Option<Arc<str>> {
        self.inner.state.lock().ignored_range.clone()
    }

    /// Records a request's first try.
    pub(super) fn earn_retry(&self) {
        let retried = &mut self.inner.state.lock().retried;
        *retried = retried.saturating_sub(1);
    }

    /// Takes a retry from the account's part of the budget, one of as many `accounts`. Returns whether one was left.
    pub(super) fn take_retry(&self, accounts: usize) -> bool {
        let retried = &mut self.inner.state.lock().retried;
        let part = RETRY_BUDGET / accounts.clamp(1, RETRY_BUDGET / REQUESTS_PER_RETRY);
        let is_left = *retried + REQUESTS_PER_RETRY <= part;
        if is_left {
            *retried += REQUESTS_PER_RETRY;
        }
        is_left
    }

    /// Records that the service accepts the token again, or its replacement.
    fn end_refusal(&self, state: &mut State) {
        if let Some(refusal) = state.refusals.remove(WHOLE_ACCOUNT) {
            self.inner.queue.set_probed(false);
            let after = format_duration(whole_seconds(refusal.since.elapsed())).to_string();
            tracing::info!(token = self.name(), after, "the service accepts the token again");
        }
    }
}

impl PartialEq for Account {
    /// Whether both are the same account, not merely of the same name.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Account {}

/// The accounts of `projects` whose token states another project, by name; the text names both projects.
pub(super) fn mismatched_tokens(projects: &HashMap<Arc<str>, Account>) -> BTreeMap<String, String> {
    let mut set_for: BTreeMap<&str, (&Account, BTreeSet<&str>)> = BTreeMap::new();
    for (project, account) in projects {
        set_for.entry(account.name()).or_insert((account, BTreeSet::new())).1.insert(project);
    }
    let other = |(name, (account, set_for)): (&str, (&Account, BTreeSet<&str>))| {
        let own = account.project()?;
        let first = set_for.first().filter(|_| !set_for.contains(&*own))?;
        let more = match set_for.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", count(more)),
        };
        Some((name.to_owned(), format!("it is for {own}, and set for {first}{more}")))
    };
    set_for.into_iter().filter_map(other).collect()
}

#[cfg(test)]
mod tests {
    use pds_core::clock::Clock;
    use pds_core::secret::Secret;

    use super::*;
    use crate::observer::Unobserved;

    fn account(name: &str, token: &str) -> Account {
        let shared = Shared::new(Arc::new(Unobserved), Clock::system());
        Account::new(name.into(), Some(TokenSource::Inline(Secret::new(token))), &shared)
    }

    /// Records that `path` is refused, and may be tried again `later`.
    fn refuse(account: &Account, path: &str, later: Duration) {
        let reason = Reason::Status { status: 403, message: String::new(), retry_after: None };
        let token = account.inner.credentials.current().unwrap();
        account.record_refusal(path, &token, &FetchError { request: "GET".to_owned(), reason }, later);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_of_paths_that_are_no_longer_requested_are_removed() {
        let account = account("p-1", "token");
        for (path, days) in [("/gone", 1), ("/rare", 3), ("/new", 0)] {
            refuse(&account, path, Duration::MAX);
            tokio::time::advance(days * MAX_PATH_REFUSAL).await;
        }
        assert_eq!(account.inner.state.lock().refusals.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_outcome_is_that_of_the_request_sent_last() {
        let (account, first) = (account("p-1", "token"), Instant::now());
        tokio::time::advance(Duration::from_secs(1)).await;
        account.record_outcome("/new", Instant::now(), None);
        account.record_outcome("/late", first, Some(Class::Timeout));
        assert_eq!(account.last_outcome().unwrap().failed, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_path_is_tried_again_a_minute_after_its_first_refusal() {
        let account = account("p-1", "token");
        let token = account.inner.credentials.current().unwrap();
        for minutes in [1, 60, 60] {
            refuse(&account, "/a", Duration::from_secs(3600));
            tokio::time::advance(Duration::from_secs(60 * minutes - 1)).await;
            assert!(account.check("/a", &token).is_err(), "{minutes}");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(account.check("/a", &token).is_ok(), "{minutes}");
        }
    }

    #[tokio::test]
    async fn a_token_is_for_another_project_if_it_is_set_for_none_that_it_states() {
        // {"project_id":"p-b"}
        let account = account("p-a", "e30.eyJwcm9qZWN0X2lkIjoicC1iIn0.c2ln");
        let said = |projects: &[&str]| {
            let projects = projects.iter().map(|id| (Arc::from(*id), account.clone())).collect();
            mismatched_tokens(&projects).into_values().collect::<Vec<_>>()
        };
        assert_eq!(said(&["p-a"]), ["it is for p-b, and set for p-a"]);
        assert_eq!(said(&["p-a", "p-c", "p-d"]), ["it is for p-b, and set for p-a and 2 more"]);
        assert_eq!(said(&["p-a", "p-b"]), [""; 0]);
    }
}
