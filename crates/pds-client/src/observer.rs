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

    /// A request waited `waited` for the rate limit or for a pause to end.
    fn throttled(&self, resource: Resource, waited: Duration) {}

    /// The service's clock is `seconds` ahead of ours (behind if negative).
    fn clock_skew(&self, seconds: f64) {}

    /// When the token expires; `None` if it states no expiry.
    fn token_expiry(&self, token: &str, expiry: Option<Timestamp>) {}

    /// Whether the token's file could be read.
    fn token_read(&self, token: &str, good: bool) {}

    /// Whether the service accepts the token.
    fn token_accepted(&self, token: &str, accepted: bool) {}

    /// The service begins to refuse the token, with this HTTP status and message. The next request waits for a new
    /// token, or for some time.
    fn token_refused(&self, token: &str, status: u16, said: &str) {}

    /// The token cannot be read from now on, for the reason `error`.
    fn token_unreadable(&self, token: &str, file: Option<&Path>, error: &str, consequence: &str) {}

    /// The service requests a longer pause than a request may take.
    fn paused(&self, token: &str, wait: &str) {}

    /// Whether the service answers the requested ranges; if not, its behaviour.
    fn range_honoured(&self, token: &str, ignored: Option<&str>) {}

    /// The account is slowed down to `per_second` requests per second; `None` if it no longer is.
    fn pace(&self, token: &str, per_second: Option<f64>) {}

    /// No configuration uses the token any more.
    fn forget_token(&self, token: &str) {}
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Reports on one service account. Facts about it are reported only while the configuration in force uses it.
#[derive(Debug)]
pub(super) struct Reporter {
    pub(super) shared: Shared,
    name: Mutex<Name>,
}

/// The name of an account, and whether facts are reported under it.
#[derive(Debug)]
struct Name {
    text: Arc<str>,
    in_force: bool,
}

impl Reporter {
    /// Reports no facts yet.
    pub(super) fn new(name: Arc<str>, shared: Shared) -> Self {
        Self { shared, name: Mutex::new(Name { text: name, in_force: false }) }
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.lock().text)
    }

    /// Reports facts under `name` from now on. Returns whether that is new.
    pub(super) fn begin(&self, name: &Arc<str>) -> bool {
        let name = Name { text: Arc::clone(name), in_force: true };
        !std::mem::replace(&mut *self.name.lock(), name).in_force
    }

    /// Forgets the facts, and reports none from now on.
    pub(super) fn end(&self) {
        let mut name = self.name.lock();
        // Another account may have its name since.
        if std::mem::take(&mut name.in_force) {
            self.shared.observer.forget_token(&name.text);
        }
    }

    /// Reports a fact about the account.
    pub(super) fn fact(&self, report: impl FnOnce(&dyn Observer, &str)) {
        let name = self.name.lock();
        if name.in_force {
            report(&*self.shared.observer, &name.text);
        }
    }

    /// Reports something to log.
    pub(super) fn log(&self, report: impl FnOnce(&dyn Observer, &str)) {
        report(&*self.shared.observer, &self.name());
    }
}
