//! Why polls fail.

use tokio::time::Duration;

use crate::accounting::Refusal;
use crate::accounting::ledger_store::NotCommitted;
use crate::client::{Class, FetchError};
use crate::interface::RuleError;

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The request got no reply that counts.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The request cannot be made: an identifier that no path can carry.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The reply had not settled by the service's own clock.
    #[error(
        "by the service's clock the range to {end} had not settled at {date}; it will be asked for again"
    )]
    Unsettled {
        /// End of the range, Unix seconds.
        end: i64,
        /// The service's clock.
        date: jiff::Timestamp,
    },
    /// The reply cannot be added to the counters.
    #[error("not added to the counters: {0}")]
    Refused(#[from] Refusal),
    /// The counters could not be written to the state file.
    #[error(transparent)]
    NotCommitted(#[from] NotCommitted),
}

/// The classes of polls that fail although each request got its reply.
pub const ANSWERED: [&str; 3] = [UNSETTLED, REFUSED, STATE];

const UNSETTLED: &str = "unsettled";
const REFUSED: &str = "refused";
const STATE: &str = "state";

/// Which requests of the same poll would fail likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// No other: it failed for what it asked or for what was answered.
    Itself,
    /// Those that ask for the same sort of range.
    SameSort,
    /// All.
    All,
}

impl PollError {
    /// The class of the failure: of requests that of their code, else a word of its own.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.class().as_str(),
            Self::Rule(_) => "identifier",
            Self::Unsettled { .. } => UNSETTLED,
            Self::Refused(_) => REFUSED,
            Self::NotCommitted(_) => STATE,
        }
    }

    /// Which other requests of the same poll would fail likewise. What concerns the service account or the connection
    /// concerns all. A timeout, a server error or a status such as 404 may be of the range: the counted range and the
    /// windows never keep one another from being asked for.
    pub(super) fn reach(&self) -> Reach {
        let Self::Fetch(error) = self else { return Reach::Itself };
        match error.class() {
            // A refusal that is remembered.
            Class::UnauthorizedPaused if error.status() == Some(403) => Reach::SameSort,
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
                Reach::SameSort
            }
        }
    }

    /// Whether the service answered, with a status that says no.
    pub(super) fn is_status(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        matches!(error.class(), Class::Status(_)) || error.status() == Some(403)
    }

    /// Whether the service says that there is no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_not_found())
    }

    /// Whether it stops the whole service account, which says so itself: its token is missing or refused, or the
    /// service asked it to wait for longer than a request may take, `patience`.
    pub(super) fn is_of_account(&self, patience: Duration) -> bool {
        let Self::Fetch(error) = self else { return false };
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
