//! Reports about a service account.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Shared;
use super::observer::Observer;

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
