//! What is known of how a service counts: the assumptions of counting, and which of them hold for each service account.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::time::{Duration, Instant};

use pds_config::Config;
use pds_interface::{Ignored, TimeRange};
use pds_telemetry::Telemetry;

/// What counting assumes, and a service may not keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// It reads these bounds of a range by their configured names.
    Names(Ignored),
    /// It does not count a range's last instant (`accounting.range_end = "exclusive"`).
    EndExcluded,
    /// It counts a range's last instant (`accounting.range_end = "inclusive"`).
    EndIncluded,
    /// It does not round ranges to more than `accounting.step`.
    Rounding,
    /// Its totals are exact.
    Totals,
}

impl Assumption {
    /// Which one a reply about `answered` breaks, if `asked` was asked for; `None` if they are the same.
    pub fn broken_by(asked: TimeRange, answered: TimeRange) -> Option<Self> {
        match answered.ignores(asked) {
            _ if asked == answered => None,
            Some(ignored) => Some(Self::Names(ignored)),
            None => Some(Self::Rounding),
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Names(Ignored::Start) => "set api.query_names.start; pdstool check service finds the name",
            Self::Names(Ignored::End) => "set api.query_names.end; pdstool check service finds the name",
            Self::Names(Ignored::Both) => {
                "set api.query_names.start and api.query_names.end; pdstool check service finds them"
            }
            Self::EndExcluded => "set accounting.range_end = \"inclusive\"",
            Self::EndIncluded => "set accounting.range_end = \"exclusive\"",
            Self::Rounding => "set accounting.step to what the service rounds to",
            Self::Totals => "set a longer accounting.step, and take the counters for estimates",
        }
    }
}

/// What the service does instead.
impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Names(Ignored::Start) => "the service ignores the start of ranges",
            Self::Names(Ignored::End) => "the service ignores the end of ranges",
            Self::Names(Ignored::Both) => "the service ignores the start and the end of ranges",
            Self::EndExcluded => "the service counts the end of a range in the next one too",
            Self::EndIncluded => "the service leaves out the end of ranges",
            Self::Rounding => "the service rounds ranges to more than accounting.step",
            Self::Totals => "the parts of a range do not add up: the service's totals are estimates",
        })
    }
}

/// What is known of each service account. Kept over reloads that change nothing of it.
#[derive(Debug, Default)]
pub struct Audit(Mutex<HashMap<Arc<str>, Account>>);

/// What is known of one service account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Whether a check passed in which the service told parts from the whole.
    pub(super) passed: bool,
    /// What was found and logged last.
    pub(super) broken: Option<Assumption>,
    /// How far back the oldest range lies that was found to be answered, in seconds.
    pub(super) reach: Option<i64>,
    /// When an app may check again whether replies without a range can be believed.
    again_at: Option<Instant>,
}

/// Between two attempts to find out whether an account's replies without a range can be believed.
const VERIFY_AGAIN: Duration = Duration::from_secs(30);

impl Audit {
    /// The audit of `config`: that of the configuration `before` if it asks the same service in the same way.
    pub fn of(config: &Config, before: Option<(&Config, &Arc<Self>)>, telemetry: &Telemetry) -> Arc<Self> {
        let asks = |config: &Config| {
            let (names, accounting) = (&config.api.query_names, &config.accounting);
            let names = (config.api.base_url.clone(), names.start.clone(), names.end.clone());
            (names, accounting.range_end, accounting.step)
        };
        if let Some((_, audit)) = before.filter(|(before, _)| asks(before) == asks(config)) {
            return Arc::clone(audit);
        }
        telemetry.forget_differences();
        Arc::default()
    }

    /// Whether replies to this account that name no range can be believed: `Ok(false)` while it is not known.
    ///
    /// # Errors
    /// The assumption that does not hold.
    pub fn believes(&self, account: &str) -> Result<bool, Assumption> {
        let account = self.0.lock().get(account).copied().unwrap_or_default();
        match account.broken {
            Some(broken) if !account.passed => Err(broken),
            _ => Ok(account.passed),
        }
    }

    /// Whether a check has found that the service ignores what range it is asked for.
    pub fn ignores_ranges(&self, account: &str) -> bool {
        self.believes(account).is_err_and(|broken| matches!(broken, Assumption::Names(_)))
    }

    /// What is known of this account.
    pub(super) fn account(&self, name: &str) -> MappedMutexGuard<'_, Account> {
        MutexGuard::map(self.0.lock(), |accounts| accounts.entry(name.into()).or_default())
    }
}

impl Account {
    /// Whether it is the caller's turn to find out whether replies without a range can be believed.
    pub(super) fn begin_verification(&mut self) -> bool {
        let now = Instant::now();
        let may = self.again_at.is_none_or(|at| at <= now);
        if may {
            self.again_at = Some(now + VERIFY_AGAIN);
        }
        may
    }

    /// A check found this. Returns whether that is new.
    pub(super) fn breaks(&mut self, broken: Assumption) -> bool {
        // The end of ranges and rounding concern some requests, ignored names all.
        self.passed &= !matches!(broken, Assumption::Names(_));
        self.broken.replace(broken) != Some(broken)
    }
}
