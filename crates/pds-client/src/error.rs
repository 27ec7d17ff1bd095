//! Why a request has no usable reply.

use std::time::Duration;

use humantime::format_duration;

use super::class::Class;
use super::credentials::CredentialsError;

/// Why a request has no usable reply. Every text names the request as `METHOD URL` without its query, and none
/// contains a token.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The service answered with a status other than 2xx.
    #[error("{request} answered {status}{}", excerpt(message))]
    Status {
        /// `METHOD URL`.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The service's message (section 7), shortened. May be empty.
        message: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// The service answered with a redirect.
    #[error("{request} answered {status}, a redirect to {location}; redirects are not followed")]
    Redirect {
        /// `METHOD URL`.
        request: String,
        /// The HTTP status, 3xx.
        status: u16,
        /// Where to, without query.
        location: String,
    },
    /// No complete reply in time.
    #[error("{request} got no complete reply within {}", format_duration(*limit))]
    Timeout {
        /// `METHOD URL`.
        request: String,
        /// `api.timeout`.
        limit: Duration,
    },
    /// The network, or whatever stands between, failed.
    #[error("{request} failed: {}", class.what_broke())]
    Transport {
        /// `METHOD URL`.
        request: String,
        /// What kind of failure it was.
        class: Class,
        /// The error of the library.
        source: reqwest::Error,
    },
    /// A reply larger than what is read.
    #[error("{request} answered with more than the {limit} bytes of api.max_response_bytes")]
    TooLarge {
        /// `METHOD URL`.
        request: String,
        /// `api.max_response_bytes`.
        limit: u64,
    },
    /// A compressed reply. None was requested, and none is decompressed.
    #[error("{request} answered in content encoding '{encoding}', which was not asked for")]
    Encoded {
        /// `METHOD URL`.
        request: String,
        /// The encoding's name.
        encoding: String,
    },
    /// A successful reply whose body is not what the interface says.
    #[error("{request} gave a reply that cannot be used: {problem}")]
    Decode {
        /// `METHOD URL`.
        request: String,
        /// What is wrong with it. In words: the error itself quotes the reply at any length.
        problem: String,
    },
    /// There is no token to send. Nothing was sent.
    #[error("{request} was not sent")]
    Credentials {
        /// `METHOD URL`.
        request: String,
        /// Why there is none.
        source: CredentialsError,
    },
    /// The service refused this token not long ago. Nothing was sent.
    #[error(
        "{request} was not sent: the service refused this token with {status}{}; asked again when the token changes or {} have passed",
        excerpt(message),
        format_duration(*retry_after)
    )]
    Unauthorized {
        /// `METHOD URL`.
        request: String,
        /// The refusal's status, 401 or 403.
        status: u16,
        /// The refusal's message.
        message: String,
        /// Until it is asked again with the same token, in whole seconds.
        retry_after: Duration,
    },
    /// The service asked this service account to wait, longer than a request may. Nothing was sent.
    #[error("{request} was not sent: the service asked to wait for another {}", format_duration(*retry_after))]
    Paused {
        /// `METHOD URL`.
        request: String,
        /// How much longer, in whole seconds.
        retry_after: Duration,
    },
    /// [`super::Client::fetch`] only reads. Nothing was sent.
    #[error("{request} was not sent: only GET is, outside of explicit calls")]
    NotGet {
        /// `METHOD URL`.
        request: String,
    },
    /// The request is invalid. Nothing was sent.
    #[error("{request} was not sent: it is not a valid request")]
    Invalid {
        /// `METHOD URL`.
        request: String,
        /// Why.
        source: reqwest::Error,
    },
}

impl FetchError {
    /// Its class, the only part that may become a label value.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Status { status, .. } | Self::Redirect { status, .. } => Class::Status(*status),
            Self::Timeout { .. } => Class::Timeout,
            Self::Transport { class, .. } => *class,
            Self::TooLarge { .. } => Class::TooLarge,
            Self::Encoded { .. } | Self::Decode { .. } => Class::Decode,
            Self::Credentials { .. } => Class::Credentials,
            Self::Unauthorized { status: 403, .. } => Class::ForbiddenPaused,
            Self::Unauthorized { .. } => Class::UnauthorizedPaused,
            Self::Paused { .. } => Class::Paused,
            Self::NotGet { .. } | Self::Invalid { .. } => Class::Invalid,
        }
    }

    /// The HTTP status of the reply, or of the earlier refusal of the token.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. }
            | Self::Redirect { status, .. }
            | Self::Unauthorized { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the service answered 404.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the service refused the token (401, 403), now or earlier.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    /// How long the service asked to wait, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Paused { retry_after, .. } | Self::Unauthorized { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// The service's message (section 7); empty if there is none.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Status { message, .. } | Self::Unauthorized { message, .. } => message,
            _ => "",
        }
    }

    /// Whether anything was sent.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        !matches!(
            self.class(),
            Class::Credentials
                | Class::UnauthorizedPaused
                | Class::ForbiddenPaused
                | Class::Paused
                | Class::Invalid
        )
    }
}

fn excerpt(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_request_and_what_to_expect() {
        let request = || "GET https://api.example.com/v2/projects".to_owned();
        let refused = FetchError::Status {
            request: request(),
            status: 401,
            message: "token expired".into(),
            retry_after: None,
        };
        assert_eq!(
            refused.to_string(),
            "GET https://api.example.com/v2/projects answered 401: token expired"
        );
        assert!(refused.is_unauthorized() && !refused.is_not_found() && refused.was_sent());
        let paused = FetchError::Unauthorized {
            request: request(),
            status: 401,
            message: "token expired".into(),
            retry_after: Duration::from_secs(270),
        };
        assert_eq!(
            paused.to_string(),
            "GET https://api.example.com/v2/projects was not sent: the service refused this token with 401: \
             token expired; asked again when the token changes or 4m 30s have passed"
        );
        assert!(paused.is_unauthorized() && !paused.was_sent());
    }
}
