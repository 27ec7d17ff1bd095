//! The closed set of outcomes of requests. An error reaches a label only through it.

use std::error::Error;
use std::io;

/// Declares the classes without an HTTP status: each with its label value.
macro_rules! classes {
    ($($(#[$doc:meta])+ $class:ident = $value:literal,)+) => {
        /// The kinds of outcome of a request: the values of the label `code`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Class {
            /// The service answered with this HTTP status.
            Status(u16),
            $($(#[$doc])+ $class,)+
        }

        impl Class {
            /// Those without an HTTP status.
            pub const WITHOUT_STATUS: &[Self] = &[$(Self::$class),+];

            /// The class as a label value. Unusual statuses share one value per hundred, so that no service can make
            /// the set grow.
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::Status(status) => status_as_str(status),
                    $(Self::$class => $value,)+
                }
            }
        }
    };
}

classes! {
    /// No complete reply within `api.timeout`.
    Timeout = "timeout",
    /// No connection, or none within `api.connect_timeout`.
    Connect = "connect",
    /// The host's name has no address.
    Dns = "dns",
    /// No trusted TLS connection.
    Tls = "tls",
    /// The connection ended before a reply began.
    Reset = "reset",
    /// The reply is not HTTP.
    Protocol = "protocol",
    /// The connection ended before the reply did.
    Body = "body",
    /// The reply is larger than `api.max_response_bytes`.
    TooLarge = "too_large",
    /// The reply's body is not what the interface says.
    Decode = "decode",
    /// No token; nothing was sent.
    Credentials = "credentials",
    /// The token was refused not long ago; nothing was sent.
    UnauthorizedPaused = "unauthorized_paused",
    /// The token was refused for this path not long ago; nothing was sent.
    ForbiddenPaused = "forbidden_paused",
    /// The service asked to wait; nothing was sent.
    Paused = "paused",
    /// The request cannot be sent.
    Invalid = "invalid",
}

impl Class {
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

/// The statuses that are values of their own, the usual one first.
const STATUSES: [&str; 20] = [
    "200", "201", "202", "204", "400", "401", "402", "403", "404", "405", "408", "409", "410", "422", "429",
    "500", "501", "502", "503", "504",
];

fn status_as_str(status: u16) -> &'static str {
    let own = STATUSES.iter().copied().find(|own| own.parse() == Ok(status));
    own.unwrap_or(match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    })
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
