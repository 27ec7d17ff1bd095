//! A service account: its token, its pace, and its refusals.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use humantime::format_duration;
use tokio::time::Instant;

use super::config::TokenSource;
use super::credentials::{Credentials, Token};
use super::observer::Observer;
use super::pace::Pace;
use super::redact::Redactor;
use super::wait::{from_now, whole_seconds};

/// A service account. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Account(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    name: Arc<str>,
    pub(super) credentials: Credentials,
    pub(super) pace: Pace,
    rejections: Mutex<HashMap<String, Rejection>>,
    observer: Arc<dyn Observer>,
    /// Whether the service accepts the token; `None` before its first answer.
    accepted: Mutex<Option<bool>>,
    ranges: Mutex<Ranges>,
}

/// Whether replies are about the ranges that were asked for.
#[derive(Debug, Default)]
enum Ranges {
    /// None has said so yet.
    #[default]
    Unknown,
    /// One was: what is wrong with others is not the names of the query parameters.
    Honoured,
    /// None was: what to tell.
    Ignored(Arc<str>),
}

/// A 401 or 403 that still applies.
#[derive(Clone, Debug)]
pub(super) struct Rejection {
    pub(super) status: u16,
    pub(super) message: String,
    /// Which token was refused.
    generation: u64,
    /// When the first of the consecutive refusals came.
    since: Instant,
    /// When the same token is tried again.
    pub(super) until: Instant,
}

impl Rejection {
    fn stands(&self, token: &Token) -> bool {
        self.generation == token.generation && Instant::now() < self.until
    }
}

/// A 401 is about the token and stops the account. A 403 is about one path and stops only that.
/// The account's own entry is under the empty path, which no request has.
const WHOLE_ACCOUNT: &str = "";

impl Account {
    pub(super) fn new(
        name: Arc<str>,
        source: Option<TokenSource>,
        observer: &Arc<dyn Observer>,
        redactor: &Redactor,
    ) -> Self {
        Self(Arc::new(Inner {
            credentials: Credentials::new(name.clone(), source, Arc::clone(observer), redactor.clone()),
            pace: Pace::new(name.clone(), Arc::clone(observer)),
            rejections: Mutex::default(),
            observer: Arc::clone(observer),
            accepted: Mutex::default(),
            ranges: Mutex::default(),
            name,
        }))
    }

    /// Its name: "default", or the id of the first project that uses it. The value of the label `token`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The file that its token is read from; `None` for a token in the configuration.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.0.credentials.file()
    }

    /// Expiry of its token; `None` without a token, or if the token does not state one.
    #[must_use]
    pub fn expiry(&self) -> Option<jiff::Timestamp> {
        self.0.credentials.expiry()
    }

    /// The refusal that keeps `token` from being sent to `path`, if any.
    pub(super) fn refused(&self, path: &str, token: &Token) -> Option<Rejection> {
        let rejections = self.rejections();
        let standing = |key| rejections.get(key).filter(|refusal| refusal.stands(token)).cloned();
        standing(WHOLE_ACCOUNT).or_else(|| standing(path))
    }

    /// As [`Account::refused`], for a request that is about to be sent. If a refusal has expired, this request tries
    /// again, and the others wait for its outcome, for `again` at most.
    pub(super) fn claim(&self, path: &str, token: &Token, again: Duration) -> Option<Rejection> {
        let mut rejections = self.rejections();
        for key in [WHOLE_ACCOUNT, path] {
            let Some(refusal) = rejections.get_mut(key) else { continue };
            if refusal.stands(token) {
                return Some(refusal.clone());
            }
            // It was about another token. It stays until this one is accepted, which is then logged.
            if refusal.generation == token.generation {
                refusal.until = from_now(again);
            }
        }
        None
    }

    /// Records that the service refused `token` for `path`.
    pub(super) fn refuse(&self, path: &str, token: &Token, status: u16, message: &str, again: Duration) {
        // A 403 is about the path. The token itself is valid.
        self.note_accepted(status != 401);
        let key = if status == 401 { WHOLE_ACCOUNT } else { path };
        let mut rejections = self.rejections();
        let refusal = Rejection {
            status,
            message: message.to_owned(),
            generation: token.generation,
            since: rejections.get(key).map_or_else(Instant::now, |before| before.since),
            until: from_now(again),
        };
        if key != WHOLE_ACCOUNT {
            // The token itself is valid, then.
            self.take_again(rejections.remove(WHOLE_ACCOUNT));
        }
        let before = rejections.insert(key.to_owned(), refusal);
        drop(rejections);
        let is_new = before.is_none_or(|before| before.generation != token.generation);
        // A refusal of one path is logged by its target.
        if is_new && key == WHOLE_ACCOUNT {
            self.0.observer.token_refused(self.name(), self.file(), status, message);
        }
    }

    /// Records that the service did not refuse a request to `path`, which ends a refusal.
    pub(super) fn accept(&self, path: &str) {
        let mut rejections = self.rejections();
        if !rejections.is_empty() {
            self.take_again(rejections.remove(WHOLE_ACCOUNT));
            rejections.remove(path);
        }
    }

    /// Records whether the service accepts the token.
    pub(super) fn note_accepted(&self, accepted: bool) {
        let mut known = self.0.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        if known.replace(accepted) != Some(accepted) {
            self.0.observer.token_accepted(self.name(), accepted);
        }
    }

    /// Records that a reply is about the range that was asked for.
    pub fn range_honoured(&self) {
        let mut ranges = self.ranges();
        if !matches!(*ranges, Ranges::Honoured) {
            if matches!(*ranges, Ranges::Ignored(_)) {
                tracing::info!(token = self.name(), "the service answers the range that it is asked for");
            }
            *ranges = Ranges::Honoured;
            self.0.observer.range_honoured(self.name(), None);
        }
    }

    /// Records that a reply is about another range than was asked for, for the reason that `told` says. Returns whether
    /// that is so of all replies so far: the service does not know the query parameters.
    pub fn range_ignored(&self, told: &str) -> bool {
        let mut ranges = self.ranges();
        if matches!(*ranges, Ranges::Unknown) {
            *ranges = Ranges::Ignored(told.into());
            self.0.observer.range_honoured(self.name(), Some(told));
        }
        matches!(*ranges, Ranges::Ignored(_))
    }

    /// Why no reply was about the range that was asked for; `None` if one was, or nothing is known yet.
    #[must_use]
    pub fn ignored_range(&self) -> Option<Arc<str>> {
        match &*self.ranges() {
            Ranges::Ignored(told) => Some(Arc::clone(told)),
            Ranges::Unknown | Ranges::Honoured => None,
        }
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.0.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the service accepts the token again, or the one that replaced it.
    fn take_again(&self, refusal: Option<Rejection>) {
        if let Some(refusal) = refusal {
            let after = format_duration(whole_seconds(refusal.since.elapsed())).to_string();
            tracing::info!(token = self.name(), after, "the service takes the token again");
        }
    }

    fn rejections(&self) -> MutexGuard<'_, HashMap<String, Rejection>> {
        self.0.rejections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Account {
    /// Whether both are the same account, not merely of the same name.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Account {}
