//! Why polls fail.

use tokio::time::Duration;

use pds_client::{Class, FetchError};
use pds_interface::RuleError;
use pds_ledger::Refusal;

use super::evidence::Assumption;

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
    /// The service's clock has stepped so far that it is not believed yet.
    #[error(
        "the service's clock ({date}) has stepped by {step} s; it is believed once it has run on for a minute"
    )]
    Clock {
        /// The service's clock.
        date: jiff::Timestamp,
        /// By how many seconds.
        step: i64,
    },
    /// The reply names no readable range, and checks have shown that the range asked for is not what is answered.
    #[error("not added to the counters: {broken}; {}", broken.remedy())]
    NotBelieved {
        /// The assumption that does not hold.
        broken: Assumption,
    },
    /// The service ignores the range it is asked for.
    #[error("{0}")]
    RangeIgnored(String),
    /// The reply cannot be added to the counters.
    #[error("not added to the counters: {0}")]
    Refused(#[from] Refusal),
}

/// The error classes of polls that say nothing of the service.
pub const ANSWERED: [&str; 5] = [UNSETTLED, RANGE_IGNORED, REFUSED, CLOCK, PANIC];

/// The error class of a poll that panicked.
pub const PANIC: &str = "panic";

const UNSETTLED: &str = "unsettled";
const RANGE_IGNORED: &str = "range_ignored";
const REFUSED: &str = "refused";
const CLOCK: &str = "clock";

/// Which other requests of the same poll would fail as well.
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
    /// The class of the failure: for requests that of their code.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.class().as_str(),
            Self::Rule(_) => "identifier",
            Self::Unsettled { .. } => UNSETTLED,
            Self::Clock { .. } => CLOCK,
            Self::Refused(_) | Self::NotBelieved { .. } => REFUSED,
            Self::RangeIgnored(_) => RANGE_IGNORED,
        }
    }

    /// Which other requests of the same poll would fail as well. Failures of the service account or the connection
    /// affect all. A timeout, a server error or a status such as 404 may be about the range, so the counted range and
    /// the windows never block each other.
    pub(super) fn reach(&self) -> Reach {
        let error = match self {
            Self::Fetch(error) => error,
            Self::Clock { .. } => return Reach::All,
            _ => return Reach::Itself,
        };
        match error.class() {
            // A remembered refusal.
            Class::UnauthorizedPaused if error.status() == Some(403) => Reach::SameKind,
            Class::Credentials
            | Class::UnauthorizedPaused
            | Class::Paused
            | Class::Invalid
            | Class::Connect
            | Class::Dns
            | Class::Tls
            | Class::Status(401 | 429) => Reach::All,
            Class::Decode | Class::TooLarge | Class::Status(400 | 413 | 422) => Reach::Itself,
            Class::Timeout | Class::Reset | Class::Protocol | Class::Body | Class::Status(_) => {
                Reach::SameKind
            }
        }
    }

    /// Whether the service refuses just this range: not the account, not for a while, and not because it is down.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(refusal) => !matches!(refusal, Refusal::NotNext { .. } | Refusal::TooOld { .. }),
            Self::Fetch(error) => match error.class() {
                Class::Decode | Class::TooLarge => true,
                Class::Status(status) => {
                    status >= 400 && !matches!(status, 401 | 402 | 403 | 408 | 429 | 502..=504)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the service answered with an error status.
    pub(super) fn is_status(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        matches!(error.class(), Class::Status(_)) || error.status() == Some(403)
    }

    /// Whether the service says that the resource does not exist.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_not_found())
    }

    /// Whether it stops the whole service account, which logs that itself: the token is missing or refused, the service
    /// ignores ranges, or it asked to wait longer than `patience`, the time limit of a request.
    pub(super) fn is_of_account(&self, patience: Duration) -> bool {
        let Self::Fetch(error) = self else { return matches!(self, Self::RangeIgnored(_)) };
        match error.class() {
            Class::Credentials | Class::UnauthorizedPaused | Class::Paused | Class::Status(401) => true,
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
