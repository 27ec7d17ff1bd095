//! Why polls fail.

use tokio::time::Duration;

use pds_client::{Class, FetchError};
use pds_core::units;
use pds_interface::RuleError;
use pds_ledger::Refusal;

use super::evidence::Violation;

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The request failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The request cannot be built: an identifier cannot be part of a path.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The range had not settled by the service's own clock.
    #[error("the range to {end} had not settled by the service's clock ({date}); it will be requested again")]
    Unsettled {
        /// End of the range, Unix seconds.
        end: i64,
        /// The service's clock.
        date: jiff::Timestamp,
    },
    /// The service's clock is so far off that it is not trusted yet.
    #[error("the service's clock ({date}) is {} off; it is trusted once it has advanced for a minute", off(*step))]
    Clock {
        /// The service's clock.
        date: jiff::Timestamp,
        /// By how many seconds.
        step: i64,
    },
    /// The service answers for another range than requested, as its reply states or checks found.
    #[error("{text}")]
    NotBelieved {
        /// The violation that a check has found.
        violation: Violation,
        /// The service's behaviour, and the key to set.
        text: String,
    },
    /// The reply cannot be added to the counters.
    #[error("not added to the counters: {0}")]
    Refused(#[from] Refusal),
}

fn off(step: i64) -> String {
    units::seconds(step.unsigned_abs() as f64)
}

/// The error class of a poll after which another request of the account was answered.
pub const ANSWERED_SINCE: &str = "answered_since";

/// The error class of a poll that panicked.
pub const PANIC: &str = "panic";

/// The error class of a 404 for a list, whose path has no id: the address is wrong, or the call is missing.
pub const ADDRESS: &str = "address";

const RANGE_IGNORED: &str = "range_ignored";

/// The other requests of the same poll that would fail as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// None: the failure is about this request or its reply.
    Itself,
    /// Those for the same kind of range.
    SameKind,
    /// All.
    All,
}

impl PollError {
    /// The class of the failure; for a failed request, that of its code.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.class().as_str(),
            Self::Rule(_) => "identifier",
            Self::Unsettled { .. } => "unsettled",
            Self::Clock { .. } => "clock",
            Self::NotBelieved { violation: Violation::IgnoresBounds(_), .. } => RANGE_IGNORED,
            Self::Refused(_) | Self::NotBelieved { .. } => "refused",
        }
    }

    /// The other requests of the same poll that would fail as well. Failures of the service account or the connection
    /// affect all. A timeout, a server error or a status such as 404 may be about the range, so the counted range and
    /// the windows never block each other.
    pub(super) fn reach(&self) -> Reach {
        let error = match self {
            Self::Fetch(error) => error,
            Self::Clock { .. } => return Reach::All,
            _ => return Reach::Itself,
        };
        match error.class() {
            class if class.is_no_connection() => Reach::All,
            Class::Credentials
            | Class::UnauthorizedPaused
            | Class::Paused
            | Class::Invalid
            | Class::Status(401 | 407 | 429) => Reach::All,
            Class::Decode | Class::ErrorReply | Class::TooLarge | Class::Status(400 | 413 | 422) => {
                Reach::Itself
            }
            _ => Reach::SameKind,
        }
    }

    /// Whether the service refuses only this range: not the account, not temporarily, and not because it is down.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(refusal) => !matches!(refusal, Refusal::NotNext { .. } | Refusal::TooOld(_)),
            Self::Fetch(error) => match error.class() {
                Class::Decode | Class::ErrorReply | Class::TooLarge => true,
                Class::Status(status) => {
                    status >= 400 && !matches!(status, 401 | 402 | 403 | 408 | 429 | 502..=504)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether it is an error of the server, which may be temporary.
    pub(super) fn is_server_error(&self) -> bool {
        matches!(self, Self::Fetch(error) if matches!(error.class(), Class::Status(500..) | Class::ErrorReply))
    }

    /// Whether the service did not reply, or not in full.
    pub(super) fn is_silence(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        matches!(error.class(), Class::Timeout | Class::Reset | Class::Body)
    }

    /// Whether the service says that the resource does not exist.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_not_found())
    }

    /// Whether it stops the whole service account, which logs that itself: the token is missing or refused, the service
    /// ignores ranges, or its Retry-After exceeds `patience`, the time limit of a request.
    pub(super) fn is_of_account(&self, patience: Duration) -> bool {
        let Self::Fetch(error) = self else { return self.class() == RANGE_IGNORED };
        match error.class() {
            Class::Credentials
            | Class::UnauthorizedPaused
            | Class::ForbiddenPaused
            | Class::Paused
            | Class::Status(401) => true,
            Class::Status(429 | 503) => error.retry_after() > Some(patience),
            _ => false,
        }
    }

    /// Whether a shorter range may succeed.
    pub(super) fn is_of_size(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        matches!(error.class(), Class::Timeout | Class::TooLarge | Class::Status(413 | 422 | 500..=599))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pds_diagnosis::{Cause, cause::ALL};

    use super::*;

    #[test]
    fn each_class_has_one_cause() {
        let known: Vec<&str> = ALL.iter().flat_map(|cause| cause.classes).copied().collect();
        assert_eq!(known.iter().collect::<HashSet<_>>().len(), known.len(), "{known:?}");
        let errors = (0..=u16::MAX).filter(|status| status / 100 != 2).map(Class::Status);
        let requests = errors.chain(Class::WITHOUT_STATUS.iter().copied()).map(Class::as_str);
        let others =
            ["identifier", "unsettled", "clock", RANGE_IGNORED, "refused", PANIC, ADDRESS, ANSWERED_SINCE];
        let all: HashSet<&str> = requests.chain(others).collect();
        assert_eq!(all, known.iter().copied().collect(), "classes that polls have, and that causes explain");
        assert_eq!(Cause::of_class("504").code, "service_error");
    }
}
