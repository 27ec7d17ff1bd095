//! The closed set of outcomes of requests. Errors become label values only through it.

use std::error::Error;
use std::io;

/// Declares the classes without an HTTP status: each with its label value, and a description of the failure.
macro_rules! classes {
    ($($class:ident $value:literal $words:literal,)+) => {
        /// The kinds of outcome of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Class {
            /// The service answered with this HTTP status.
            Status(u16),
            $(#[doc = $words] $class,)+
        }

        impl Class {
            /// Classes without an HTTP status.
            pub const WITHOUT_STATUS: &[Self] = &[$(Self::$class),+];

            /// The name of the class. Unusual statuses share one name per hundred, so that no service can make the set
            /// grow.
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::Status(status) => status_as_str(status),
                    $(Self::$class => $value,)+
                }
            }

            /// Description of the failure.
            pub(super) fn words(self) -> &'static str {
                match self {
                    Self::Status(_) => "an HTTP status",
                    $(Self::$class => $words,)+
                }
            }
        }
    };
}

classes! {
    Timeout "timeout" "no complete reply within `api.timeout`",
    Dns "dns" "the host's name cannot be resolved",
    ConnectRefused "connect_refused" "the connection is refused",
    ConnectTimeout "connect_timeout" "no connection within `api.connect_timeout`",
    Connect "connect" "cannot connect",
    TlsExpired "tls_expired" "the certificate has expired",
    TlsNotYetValid "tls_not_yet_valid" "the certificate is not valid yet",
    TlsUnknownCa "tls_unknown_ca" "the certificate's authority is not trusted",
    TlsSelfSigned "tls_self_signed" "the certificate is self-signed",
    TlsName "tls_name" "the certificate is for another name",
    TlsPlain "tls_plain" "the port does not speak TLS",
    Tls "tls" "no trusted TLS connection",
    ProxyConnect "proxy_connect" "the proxy cannot be reached, or cannot reach the service",
    ProxyLogin "proxy_login" "the proxy requires a login",
    ProxyTls "proxy_tls" "no trusted TLS connection to the proxy",
    ProxyRefuses "proxy_refuses" "the proxy refuses a tunnel",
    Reset "reset" "the connection broke off before a reply",
    Protocol "protocol" "the reply is not HTTP",
    Body "body" "the reply broke off",
    Interim "interim" "too many interim (1xx) replies",
    WebPage "web_page" "a web page answers instead of the service",
    TooLarge "too_large" "the reply is larger than `api.max_response_bytes`",
    Decode "decode" "the reply does not match the interface",
    ErrorReply "error_reply" "a successful reply reports an error",
    Credentials "credentials" "no token; nothing was sent",
    UnauthorizedPaused "unauthorized_paused" "the token was refused recently; nothing was sent",
    ForbiddenPaused "forbidden_paused" "the token was refused for this path recently; nothing was sent",
    Paused "paused" "the service requested a pause; nothing was sent",
    Invalid "invalid" "the request cannot be sent",
}

/// Kinds of failure to connect; all classes whose names begin with a kind share its value of the label `code`.
const CONNECTING: [&str; 3] = ["connect", "tls", "proxy"];

impl Class {
    /// The value of the label `code`: `connect`, `tls` and `proxy` for every class of that kind.
    pub fn code(self) -> &'static str {
        let name = self.as_str();
        CONNECTING.into_iter().find(|kind| name.starts_with(kind)).unwrap_or(name)
    }

    /// Whether no connection to the service was made.
    pub fn is_no_connection(self) -> bool {
        self == Self::Dns || CONNECTING.contains(&self.code())
    }
}

/// The statuses with a label value of their own, the usual status first.
const STATUSES: [&str; 21] = [
    "200", "201", "202", "204", "400", "401", "402", "403", "404", "405", "407", "408", "409", "410", "422",
    "429", "500", "501", "502", "503", "504",
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

/// How much of the reply had arrived when an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStage {
    /// Less than status and headers.
    BeforeHead,
    /// Status and headers.
    AfterHead,
}

/// The class of an error of `reqwest` or `hyper`, through a proxy (`proxied`) or not.
pub fn classify(error: &(dyn Error + 'static), stage: ReplyStage, proxied: bool) -> Class {
    let causes = || std::iter::successors(Some(error), |error| inner(*error));
    let io = |kinds: &[io::ErrorKind]| {
        causes().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|io| kinds.contains(&io.kind())))
    };
    let client = || causes().find_map(|cause| cause.downcast_ref::<reqwest::Error>());
    let connecting = client().is_some_and(reqwest::Error::is_connect);
    // The library exports no type of its tunnels' errors.
    let tunnel = causes().map(ToString::to_string).find(|text| text.starts_with("tunnel error: "));
    let tls = causes().find_map(|cause| cause.downcast_ref::<rustls::Error>());
    if let Some(tunnel) = tunnel {
        match tunnel.rsplit(": ").next() {
            Some("proxy authorization required") => Class::ProxyLogin,
            Some("unsuccessful") => Class::ProxyRefuses,
            _ if tls.is_some() => Class::ProxyTls,
            _ => Class::ProxyConnect,
        }
    } else if let Some(tls) = tls {
        of_tls(tls)
    } else if connecting && io(&[io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset]) {
        Class::Tls
    } else if connecting && proxied {
        Class::ProxyConnect
    } else if client().is_some_and(reqwest::Error::is_dns) {
        Class::Dns
    } else if connecting && client().is_some_and(reqwest::Error::is_timeout) {
        Class::ConnectTimeout
    } else if connecting && io(&[io::ErrorKind::ConnectionRefused]) {
        Class::ConnectRefused
    } else if connecting {
        Class::Connect
    } else if io(&[io::ErrorKind::QuotaExceeded]) {
        Class::Interim
    } else if stage == ReplyStage::AfterHead {
        Class::Body
    } else if causes().any(|c| c.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)) {
        Class::Protocol
    } else {
        Class::Reset
    }
}

fn of_tls(error: &rustls::Error) -> Class {
    use rustls::{CertificateError as Bad, Error as Tls};
    match error {
        Tls::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => Class::TlsExpired,
        Tls::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => Class::TlsNotYetValid,
        Tls::InvalidCertificate(Bad::UnknownIssuer) => Class::TlsUnknownCa,
        Tls::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => Class::TlsName,
        Tls::InvalidMessage(_) => Class::TlsPlain,
        Tls::General(text) if text == pds_core::certificate::OWN_AUTHORITY => Class::TlsSelfSigned,
        _ => Class::Tls,
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
        assert_eq!(values.len(), 27);
        assert_eq!(Class::Status(404).as_str(), "404");
        assert_eq!(Class::Status(418).as_str(), "4xx");
        assert_eq!(Class::Status(999).as_str(), "other");
        assert_eq!([Class::ConnectRefused, Class::TlsExpired].map(Class::code), ["connect", "tls"]);
    }
}
