//! Why a request has no usable reply.

use std::error::Error;
use std::time::Duration;

use humantime::format_duration;

use pds_core::units::count;

use super::class::Class;
use super::credentials::CredentialsError;

/// A request without a usable reply. Its text contains no token.
#[derive(Debug, thiserror::Error)]
#[error("{request} {reason}")]
pub struct FetchError {
    /// `METHOD URL`, without the query.
    pub request: String,
    /// Why.
    #[source]
    pub reason: Reason,
}

/// Why a request has no usable reply.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The service answered with a status other than 2xx.
    #[error("returned {status}{}", excerpt(message))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The service's message (section 7), shortened. May be empty.
        message: String,
        /// The pause that it requested.
        retry_after: Option<Duration>,
    },
    /// The service answered with a redirect.
    #[error("returned {status}, a redirect to {location}; redirects are not followed")]
    Redirect {
        /// The HTTP status, 3xx.
        status: u16,
        /// URL without query.
        location: String,
    },
    /// The port expects TLS, as its reply to a plain request states.
    #[error("returned 400: {0}")]
    TlsPort(String),
    /// No complete reply within `api.timeout`.
    #[error("got no complete reply within {}", format_duration(*.0))]
    Timeout(Duration),
    /// The network, or a proxy or gateway on the way, failed.
    #[error("failed: {}{}", class.words(), proxy.as_ref().map(|proxy| format!(" (proxy {proxy})")).unwrap_or_default())]
    Transport {
        /// Kind of the failure.
        class: Class,
        /// Host and port of the proxy on the way.
        proxy: Option<String>,
        /// The error of the library.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A web page instead of a reply, or with status 401 or 403: of a login, a gateway or a proxy, so it says nothing about
    /// the token.
    #[error("returned {status}: {title}")]
    WebPage {
        /// The HTTP status.
        status: u16,
        /// The page by its title, in words.
        title: String,
    },
    /// A reply larger than the limit.
    #[error("returned more than the {} bytes of api.max_response_bytes", count(*.0))]
    TooLarge(u64),
    /// A compressed reply. None was requested, and none is decompressed.
    #[error("returned content encoding '{0}', which was not requested")]
    Encoded(String),
    /// A successful reply whose body violates the interface, in words, as the error itself would quote the whole reply.
    #[error("returned a reply that cannot be used: {0}")]
    Decode(String),
    /// A successful reply that reports an error instead, in the service's words.
    #[error("returned an error: {0}")]
    Reported(String),
    /// There is no token to send. Nothing was sent.
    #[error("was not sent")]
    Credentials(#[from] CredentialsError),
    /// The service recently refused this token. Nothing was sent.
    #[error(
        "was not sent: the service refused this token with {status}{}; retried once the token changes or {} have passed",
        excerpt(message),
        format_duration(*retry_after)
    )]
    RecentlyRefused {
        /// The refusal's status, 401 or 403.
        status: u16,
        /// The refusal's message.
        message: String,
        /// Time until the next request with the same token, in whole seconds.
        retry_after: Duration,
    },
    /// The service requested a pause of this service account that is longer than a request may wait; this many whole
    /// seconds are left. Nothing was sent.
    #[error("was not sent: the service requested a pause, which ends in {}", format_duration(*.0))]
    Paused(Duration),
    /// [`super::Client::read`] only reads. Nothing was sent.
    #[error("was not sent: only explicit calls may use methods other than GET")]
    NotGet,
    /// The request is invalid. Nothing was sent.
    #[error("was not sent: it is not a valid request")]
    Invalid(#[from] http::Error),
}

impl FetchError {
    /// Its class, the only part that may become a label value.
    pub fn class(&self) -> Class {
        match &self.reason {
            Reason::Status { status, .. } | Reason::Redirect { status, .. } => Class::Status(*status),
            Reason::TlsPort(_) => Class::Protocol,
            Reason::Timeout(_) => Class::Timeout,
            Reason::Transport { class, .. } => *class,
            Reason::WebPage { .. } => Class::WebPage,
            Reason::TooLarge(_) => Class::TooLarge,
            Reason::Encoded(_) | Reason::Decode(_) => Class::Decode,
            Reason::Reported(_) => Class::ErrorReply,
            Reason::Credentials(_) => Class::Credentials,
            Reason::RecentlyRefused { status: 403, .. } => Class::ForbiddenPaused,
            Reason::RecentlyRefused { .. } => Class::UnauthorizedPaused,
            Reason::Paused(_) => Class::Paused,
            Reason::NotGet | Reason::Invalid(_) => Class::Invalid,
        }
    }

    /// The HTTP status of the reply, or of the earlier refusal of the token.
    pub fn status(&self) -> Option<u16> {
        match &self.reason {
            Reason::Status { status, .. }
            | Reason::Redirect { status, .. }
            | Reason::RecentlyRefused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the service answered 404, or 410.
    pub fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    /// Whether the service refused the token (401, 403), now or earlier.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    /// The pause that the service requested, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.reason {
            Reason::Status { retry_after, .. } => *retry_after,
            Reason::Paused(retry_after) | Reason::RecentlyRefused { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// The service's message (section 7); empty if there is none.
    pub fn message(&self) -> &str {
        match &self.reason {
            Reason::Status { message, .. } | Reason::RecentlyRefused { message, .. } => message,
            Reason::WebPage { title, .. } => title,
            _ => "",
        }
    }
}

fn excerpt(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// `wait` in whole seconds, rounded up, for log lines and errors.
pub(super) fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}
