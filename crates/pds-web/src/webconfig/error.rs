//! What can be wrong with a web configuration file, in the exporter toolkit's words where they are clear.

use std::io;
use std::path::PathBuf;

/// The first thing wrong with a web configuration file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebConfigError {
    /// A file cannot be read.
    #[error("cannot read {what} {}", path.display())]
    Read {
        /// The key that names it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not valid YAML of this format; the text holds no values, as they may be secret.
    #[error("{0}")]
    Yaml(String),
    /// TLS without a certificate.
    #[error("tls_server_config: missing one of cert or cert_file")]
    MissingCert,
    /// TLS without a key.
    #[error("tls_server_config: missing one of key or key_file")]
    MissingKey,
    /// No certificate, key or CA where one is expected.
    #[error("tls_server_config.{key}: {problem}")]
    Pem {
        /// The key it stands at.
        key: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The certificate and the key do not belong together.
    #[error("tls_server_config: the certificate and its key cannot be used")]
    KeyPair(#[source] rustls::Error),
    /// `client_auth_type`.
    #[error(
        "tls_server_config.client_auth_type: invalid ClientAuth: {0}; use NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert"
    )]
    ClientAuth(String),
    /// A client CA without a policy that uses it.
    #[error("tls_server_config: client CA's have been configured without a Client Auth Policy")]
    ClientCaWithoutPolicy,
    /// Names in certificates that anybody can make.
    #[error(
        "tls_server_config: client_allowed_sans with RequireAnyClientCert needs client_ca or client_ca_file: names in certificates that are not verified prove nothing"
    )]
    SansUnverified,
    /// Names of clients that need not show any.
    #[error(
        "tls_server_config: client_allowed_sans requires client_auth_type to be one of RequireAnyClientCert or RequireAndVerifyClientCert"
    )]
    SansWithoutPolicy,
    /// `min_version`, `max_version`.
    #[error("tls_server_config.{key}: unknown TLS version: {version}; use TLS12 or TLS13")]
    UnknownVersion {
        /// The key.
        key: &'static str,
        /// What stands there.
        version: String,
    },
    /// No version of the range can be served.
    #[error(
        "tls_server_config: no TLS version from {min} to {max} can be served: there are only TLS12 and TLS13"
    )]
    NoVersion {
        /// `min_version`.
        min: &'static str,
        /// `max_version`.
        max: &'static str,
    },
    /// `cipher_suites`.
    #[error("tls_server_config.cipher_suites: unknown cipher: {0}")]
    UnknownCipher(String),
    /// No cipher suite of the list can be served.
    #[error(
        "tls_server_config.cipher_suites: none of them can be served with TLS 1.2, and max_version rules out TLS 1.3; use ECDHE suites with AES-GCM or CHACHA20_POLY1305"
    )]
    NoCipher,
    /// `curve_preferences`.
    #[error("tls_server_config.curve_preferences: unknown curve: {0}")]
    UnknownCurve(String),
    /// No curve of the list can be served.
    #[error(
        "tls_server_config.curve_preferences: none of them can be served; use X25519, CurveP256 or CurveP384"
    )]
    NoCurve,
    /// Every setting is valid, but not together.
    #[error("tls_server_config: these settings do not work together")]
    Settings(#[source] rustls::Error),
    /// Client certificates cannot be verified.
    #[error("tls_server_config: the client CA cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
    /// A header that cannot be configured.
    #[error(
        "http_server_config.headers: HTTP header {0:?} can not be configured; only Strict-Transport-Security, X-Content-Type-Options, X-Frame-Options, X-XSS-Protection and Content-Security-Policy can"
    )]
    Header(String),
    /// A header with an invalid value.
    #[error(
        "http_server_config.headers: invalid value for {name}. Expected one of: {expected}, but got: {value:?}"
    )]
    HeaderValue {
        /// The header.
        name: String,
        /// What it may be.
        expected: String,
        /// What it is.
        value: String,
    },
    /// A password that is not a bcrypt hash.
    #[error(
        "basic_auth_users.{user}: not a bcrypt hash ($2a$, $2b$ or $2y$ with a cost from 04 to 31); make one with: htpasswd -nBC 10 {user}"
    )]
    User {
        /// The user.
        user: String,
    },
    /// `rate_limit`.
    #[error("rate_limit.{key}: {problem}")]
    Rate {
        /// The key.
        key: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
}
