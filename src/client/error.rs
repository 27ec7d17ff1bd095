//! Why a request gave no reply that can be used, and the closed set of classes that label values come from.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use humantime::format_duration;

use super::credentials::CredentialsError;
use crate::interface::spec::DecodeError;

/// A client that can't be built from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The CA file can't be read.
    #[error("api.ca_file: can't read {}", path.display())]
    CaFile {
        /// As configured.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The CA file holds no certificate, or one that is no trust anchor.
    #[error("api.ca_file: {} must hold CA certificates in PEM form: {problem}", path.display())]
    CaCertificates {
        /// As configured.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The proxy's URL is none.
    #[error("api.proxy_url: not the URL of an http or https proxy")]
    Proxy(#[source] reqwest::Error),
    /// TLS can't be set up.
    #[error("can't set up TLS")]
    Tls(#[from] rustls::Error),
    /// The HTTP client can't be set up.
    #[error("can't set up the HTTP client")]
    Http(#[from] reqwest::Error),
}

/// Why a request gave no usable reply. Every text names the request as `METHOD URL` without its query, and none
/// holds a token.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The service answered with a status other than 2xx.
    #[error("{request} answered {status}{}", said(message))]
    Status {
        /// `METHOD URL`.
        request: String,
        /// The HTTP status.
        status: u16,
        /// What the service said of it (section 7), shortened; may be empty.
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
    #[error("{request} failed: {}", what_broke(*class))]
    Transport {
        /// `METHOD URL`.
        request: String,
        /// What kind of failure it was.
        class: Class,
        /// The library's account of it.
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
    /// A compressed reply; none was asked for, and none is unpacked.
    #[error("{request} answered in content encoding '{encoding}', which was not asked for")]
    Encoded {
        /// `METHOD URL`.
        request: String,
        /// The encoding's name.
        encoding: String,
    },
    /// A successful reply whose body is not what the interface says.
    #[error("{request} gave a reply that can't be used")]
    Decode {
        /// `METHOD URL`.
        request: String,
        /// What is wrong with it.
        source: DecodeError,
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
        said(message),
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
    /// A request that no wire can carry. Nothing was sent.
    #[error("{request} was not sent: it is no valid request")]
    Invalid {
        /// `METHOD URL`.
        request: String,
        /// Why.
        source: reqwest::Error,
    },
}

impl FetchError {
    /// Its class, which is what may become a label value.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Status { status, .. } | Self::Redirect { status, .. } => Class::Status(*status),
            Self::Timeout { .. } => Class::Timeout,
            Self::Transport { class, .. } => *class,
            Self::TooLarge { .. } => Class::TooLarge,
            Self::Encoded { .. } | Self::Decode { .. } => Class::Decode,
            Self::Credentials { .. } => Class::Credentials,
            Self::Unauthorized { .. } => Class::UnauthorizedPaused,
            Self::Paused { .. } => Class::Paused,
            Self::NotGet { .. } | Self::Invalid { .. } => Class::Invalid,
        }
    }

    /// The HTTP status that the service answered with, now or when it refused the token.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. }
            | Self::Redirect { status, .. }
            | Self::Unauthorized { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the service says that there is no such thing (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the service refused the token (401, 403), now or earlier.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    /// How long the service asked to wait, where it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Paused { retry_after, .. } | Self::Unauthorized { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// What the service said of it (section 7); empty where it said nothing.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Status { message, .. } | Self::Unauthorized { message, .. } => message,
            _ => "",
        }
    }

    /// Whether anything went out at all.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        !matches!(
            self.class(),
            Class::Credentials | Class::UnauthorizedPaused | Class::Paused | Class::Invalid
        )
    }
}

/// The kinds of outcome of a request: the values of the label `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The service answered with this HTTP status.
    Status(u16),
    /// No complete reply within `api.timeout`.
    Timeout,
    /// No connection, also none within `api.connect_timeout`.
    Connect,
    /// The host's name has no address.
    Dns,
    /// No trusted TLS connection.
    Tls,
    /// The connection ended before a reply began.
    Reset,
    /// The reply is not HTTP.
    Protocol,
    /// The connection ended before the reply did.
    Body,
    /// The reply is larger than `api.max_response_bytes`.
    TooLarge,
    /// The reply's body is not what the interface says.
    Decode,
    /// There is no token; nothing was sent.
    Credentials,
    /// The token was refused not long ago; nothing was sent.
    UnauthorizedPaused,
    /// The service asked to wait; nothing was sent.
    Paused,
    /// The request can't be sent.
    Invalid,
}

impl Class {
    /// The class as a label value. Statuses beyond those seen in the field share one value for each hundred, so
    /// that no service can make the set grow.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status(status) => status_as_str(status),
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
            Self::Body => "body",
            Self::TooLarge => "too_large",
            Self::Decode => "decode",
            Self::Credentials => "credentials",
            Self::UnauthorizedPaused => "unauthorized_paused",
            Self::Paused => "paused",
            Self::Invalid => "invalid",
        }
    }
}

fn status_as_str(status: u16) -> &'static str {
    match status {
        200 => "200",
        201 => "201",
        202 => "202",
        204 => "204",
        400 => "400",
        401 => "401",
        402 => "402",
        403 => "403",
        404 => "404",
        405 => "405",
        408 => "408",
        409 => "409",
        410 => "410",
        422 => "422",
        429 => "429",
        500 => "500",
        501 => "501",
        502 => "502",
        503 => "503",
        504 => "504",
        _ => match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            5 => "5xx",
            _ => "other",
        },
    }
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn what_broke(class: Class) -> &'static str {
    match class {
        Class::Dns => "the host's name can't be resolved",
        Class::Tls => "no trusted TLS connection",
        Class::Connect => "can't connect",
        Class::Protocol => "the reply is not HTTP",
        Class::Body => "the reply broke off",
        _ => "the connection broke off before a reply",
    }
}

/// The class of a library's error from before the reply's head was there (`head`) or after it.
pub(super) fn classify(error: &reqwest::Error, head: bool) -> Class {
    let causes = || std::iter::successors(Some(error as &(dyn Error + 'static)), |error| inner(*error));
    if error.is_dns() {
        Class::Dns
    } else if causes().any(|cause| cause.is::<rustls::Error>()) {
        Class::Tls
    } else if error.is_connect() {
        Class::Connect
    } else if !head {
        Class::Body
    } else if causes().any(|c| c.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)) {
        Class::Protocol
    } else {
        Class::Reset
    }
}

/// The next cause; [`io::Error::source`] skips the error it wraps.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_values_are_a_closed_set_whatever_the_service_answers() {
        let values: std::collections::HashSet<_> =
            (0..=u16::MAX).map(|status| Class::Status(status).as_str()).collect();
        assert_eq!(values.len(), 26);
        assert_eq!(Class::Status(404).as_str(), "404");
        assert_eq!(Class::Status(418).as_str(), "4xx");
        assert_eq!(Class::Status(999).as_str(), "other");
    }

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
