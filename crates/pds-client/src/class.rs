//! The closed set of outcomes of requests. An error reaches a label only through it.

use std::error::Error;
use std::io;

/// The kinds of outcome of a request: the values of the label `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The service answered with this HTTP status.
    Status(u16),
    /// No complete reply within `api.timeout`.
    Timeout,
    /// No connection, or none within `api.connect_timeout`.
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
    /// No token; nothing was sent.
    Credentials,
    /// The token was refused not long ago; nothing was sent.
    UnauthorizedPaused,
    /// The token was refused for this path not long ago; nothing was sent.
    ForbiddenPaused,
    /// The service asked to wait; nothing was sent.
    Paused,
    /// The request cannot be sent.
    Invalid,
}

impl Class {
    /// Those without an HTTP status.
    pub const WITHOUT_STATUS: [Self; 14] = [
        Self::Timeout,
        Self::Connect,
        Self::Dns,
        Self::Tls,
        Self::Reset,
        Self::Protocol,
        Self::Body,
        Self::TooLarge,
        Self::Decode,
        Self::Credentials,
        Self::UnauthorizedPaused,
        Self::ForbiddenPaused,
        Self::Paused,
        Self::Invalid,
    ];

    /// The class as a label value. Unusual statuses share one value per hundred, so that no service can make the set
    /// grow.
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
            Self::ForbiddenPaused => "forbidden_paused",
            Self::Paused => "paused",
            Self::Invalid => "invalid",
        }
    }

    /// A network failure of this class, in words.
    pub(super) fn what_broke(self) -> &'static str {
        match self {
            Self::Dns => "the host's name cannot be resolved",
            Self::Tls => "no trusted TLS connection",
            Self::Connect => "cannot connect",
            Self::Protocol => "the reply is not HTTP",
            Self::Body => "the reply broke off",
            _ => "the connection broke off before a reply",
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

/// The class of a library's error, before the head of the reply arrived (`head`) or after it.
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
}
