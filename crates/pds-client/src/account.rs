//! A service account: its token, its pace, and its refusals.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::credentials::{Credentials, Token, TokenSource, expiry};
use super::error::Reason;
use super::observer::Observer;
use super::pace::{Pace, whole_seconds};
use super::redact::Redactor;

/// A service account. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Account(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    name: Arc<str>,
    pub(super) credentials: Credentials,
    pub(super) pace: Pace,
    observer: Arc<dyn Observer>,
    state: Mutex<State>,
}

/// What the service's answers say of the account.
#[derive(Debug, Default)]
struct State {
    /// By what they are about: [`WHOLE_ACCOUNT`], or [`Request::refused_as`](pds_interface::Request::refused_as).
    rejections: HashMap<String, Rejection>,
    /// Whether the service accepts the token; `None` before its first answer.
    accepted: Option<bool>,
    ranges: Ranges,
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
#[derive(Debug)]
struct Rejection {
    status: u16,
    message: String,
    /// Which token was refused.
    generation: u64,
    /// When the first of the consecutive refusals came.
    since: Instant,
    /// When the same token is tried again.
    until: Instant,
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
            observer: Arc::clone(observer),
            state: Mutex::default(),
            name,
        }))
    }

    /// Its name: "default", or the id of the first project that uses it. The value of the label `token`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The file that its token is read from; `None` for a token in the configuration.
    pub fn file(&self) -> Option<&Path> {
        self.0.credentials.file()
    }

    /// Expiry of its token; `None` without a token, or if the token does not state one.
    pub fn expiry(&self) -> Option<jiff::Timestamp> {
        expiry(&self.0.credentials.current().ok()?.secret)
    }

    /// Fails if a refusal keeps `token` from being sent to `path`. If one has expired, a request that gives `again` tries
    /// again, and the others wait for its outcome, for that long at most.
    pub(super) fn check(&self, path: &str, token: &Token, again: Option<Duration>) -> Result<(), Reason> {
        let mut state = self.0.state.lock();
        for key in [WHOLE_ACCOUNT, path] {
            let Some(refusal) = state.rejections.get_mut(key) else { continue };
            if refusal.generation != token.generation {
                // It stays until this token is accepted, which is then logged.
                continue;
            }
            let now = Instant::now();
            if now < refusal.until {
                return Err(Reason::Unauthorized {
                    status: refusal.status,
                    message: refusal.message.clone(),
                    retry_after: whole_seconds(refusal.until - now),
                });
            }
            refusal.until = again.map_or(refusal.until, from_now);
        }
        Ok(())
    }

    /// Records that the service refused `token` for `path`.
    pub(super) fn refuse(&self, path: &str, token: &Token, status: u16, message: &str, again: Duration) {
        let whole = status == 401;
        let key = if whole { WHOLE_ACCOUNT } else { path };
        let mut state = self.0.state.lock();
        self.note_accepted(&mut state, !whole);
        let refusal = Rejection {
            status,
            message: message.to_owned(),
            generation: token.generation,
            since: state.rejections.get(key).map_or_else(Instant::now, |before| before.since),
            until: from_now(again),
        };
        if !whole {
            // The token itself is valid, then.
            self.take_again(&mut state);
        }
        let before = state.rejections.insert(key.to_owned(), refusal);
        let is_new = before.is_none_or(|before| before.generation != token.generation);
        // A refusal of one path is logged by its target.
        if is_new && whole {
            self.0.observer.token_refused(self.name(), self.file(), status, message);
        }
    }

    /// Records that the service did not refuse a request to `path`, which ends a refusal; if it answered `well`, it
    /// accepts the token.
    pub(super) fn accept(&self, path: &str, well: bool) {
        let mut state = self.0.state.lock();
        if !state.rejections.is_empty() {
            self.take_again(&mut state);
            state.rejections.remove(path);
        }
        if well {
            self.note_accepted(&mut state, true);
        }
    }

    fn note_accepted(&self, state: &mut State, accepted: bool) {
        if state.accepted.replace(accepted) != Some(accepted) {
            self.0.observer.token_accepted(self.name(), accepted);
        }
    }

    /// Records that the service accepts the token again, or the one that replaced it.
    fn take_again(&self, state: &mut State) {
        if let Some(refusal) = state.rejections.remove(WHOLE_ACCOUNT) {
            let after = format_duration(whole_seconds(refusal.since.elapsed())).to_string();
            tracing::info!(token = self.name(), after, "the service takes the token again");
        }
    }

    /// Records that a reply is about the range that was asked for.
    pub fn range_honoured(&self) {
        match std::mem::replace(&mut self.0.state.lock().ranges, Ranges::Honoured) {
            Ranges::Honoured => return,
            Ranges::Ignored(_) => {
                tracing::info!(token = self.name(), "the service answers the range that it is asked for");
            }
            Ranges::Unknown => {}
        }
        self.0.observer.range_honoured(self.name(), None);
    }

    /// Records that a reply is about another range than was asked for, for the reason that `told` says. Returns whether
    /// that is so of all replies so far: the service does not know the query parameters.
    pub fn range_ignored(&self, told: &str) -> bool {
        let mut state = self.0.state.lock();
        let ranges = &mut state.ranges;
        if matches!(ranges, Ranges::Unknown) {
            *ranges = Ranges::Ignored(told.into());
            self.0.observer.range_honoured(self.name(), Some(told));
        }
        matches!(ranges, Ranges::Ignored(_))
    }

    /// Why no reply was about the range that was asked for; `None` if one was, or nothing is known yet.
    pub fn ignored_range(&self) -> Option<Arc<str>> {
        match &self.0.state.lock().ranges {
            Ranges::Ignored(told) => Some(Arc::clone(told)),
            Ranges::Unknown | Ranges::Honoured => None,
        }
    }
}

/// The instant `wait` from now. A wait beyond the range of the clock ends in two years.
fn from_now(wait: Duration) -> Instant {
    const MAX_WAIT: Duration = Duration::from_secs(2 * 365 * 24 * 3600);
    Instant::now() + wait.min(MAX_WAIT)
}

impl PartialEq for Account {
    /// Whether both are the same account, not merely of the same name.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Account {}
