//! Events that the client reports.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::Shared;
use pds_interface::Resource;

/// Counts the client's events, and logs those that need a person's attention. The default methods ignore them.
///
/// `token` names a service account: "default", or the id of the first project that uses it.
#[expect(unused_variables, reason = "names of arguments are documentation")]
pub trait Observer: Debug + Send + Sync {
    /// A request ended after `took`; `code` is its HTTP status or the class of its failure.
    fn request_done(&self, resource: Resource, code: &str, took: Duration) {}

    /// A request was not sent; `code` is the class of the reason.
    fn request_not_sent(&self, resource: Resource, code: &str) {}

    /// A request is sent again inside one poll.
    fn retried(&self, resource: Resource) {}

    /// A request waited `waited` for a pause, the pace of its account, the rate limit or the limit in flight.
    fn throttled(&self, resource: Resource, waited: Duration) {}

    /// The service's clock is `seconds` ahead of ours (behind if negative).
    fn clock_skew(&self, seconds: f64) {}

    /// The facts about the token changed; `None` once no configuration uses it.
    fn token(&self, token: &str, facts: Option<TokenFacts>) {}

    /// The service begins to refuse the token, with this HTTP status and message. The next request waits for a new
    /// token, or for some time.
    fn token_refused(&self, token: &str, status: u16, said: &str) {}

    /// The token cannot be read from now on, for the reason `error`.
    fn token_unreadable(&self, token: &str, file: Option<&Path>, error: &str, consequence: &str) {}

    /// The service requests a longer pause than a request may take.
    fn paused(&self, token: &str, wait: &str) {}

    /// The service ignores the requested ranges; `explanation` describes its behaviour.
    fn range_ignored(&self, token: &str, explanation: &str) {}
}

/// Facts about the token of a service account. `None` means not known, or not applicable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenFacts {
    /// When it expires: `exp` of a token that is a JWT.
    pub expires: Option<Timestamp>,
    /// Whether its file could be read last.
    pub readable: Option<bool>,
    /// Whether the service accepted it last: whether it replied with no 401.
    pub accepted: Option<bool>,
    /// Whether any reply of a metrics call (sections 4.4 and 4.5) was about the requested range.
    pub range_honoured: Option<bool>,
    /// The requests per second that the account is slowed down to after 429s; 0 in a long pause.
    pub pace: Option<f64>,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Reports on one service account. Facts about it are reported only while the configuration in force uses it.
#[derive(Debug)]
pub(super) struct Reporter {
    pub(super) shared: Shared,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    name: Arc<str>,
    /// Whether the configuration in force uses the account.
    in_force: bool,
    facts: TokenFacts,
}

impl Reporter {
    /// Reports no facts yet.
    pub(super) fn new(name: Arc<str>, shared: Shared) -> Self {
        Self { shared, state: Mutex::new(State { name, in_force: false, facts: TokenFacts::default() }) }
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.state.lock().name)
    }

    pub(super) fn facts(&self) -> TokenFacts {
        self.state.lock().facts
    }

    /// Reports the facts, and their changes from now on, under `name`.
    pub(super) fn begin(&self, name: &Arc<str>) {
        let mut state = self.state.lock();
        state.name = Arc::clone(name);
        state.in_force = true;
        self.shared.observer.token(name, Some(state.facts));
    }

    /// Withdraws the facts, and reports none from now on.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        // Another account may have its name since.
        if std::mem::take(&mut state.in_force) {
            self.shared.observer.token(&state.name, None);
        }
    }

    /// Changes the facts.
    pub(super) fn update(&self, change: impl FnOnce(&mut TokenFacts)) {
        let mut state = self.state.lock();
        let before = state.facts;
        change(&mut state.facts);
        if state.in_force && state.facts != before {
            self.shared.observer.token(&state.name, Some(state.facts));
        }
    }

    /// Reports something to log.
    pub(super) fn log(&self, report: impl FnOnce(&dyn Observer, &str)) {
        report(&*self.shared.observer, &self.name());
    }
}
