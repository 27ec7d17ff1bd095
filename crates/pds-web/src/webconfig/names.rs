//! Go's names of TLS versions, cipher suites and curves, and their counterparts in rustls.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::ring::cipher_suite as suite;
use rustls::crypto::ring::kx_group;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// A TLS version; the first two cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Tls10,
    Tls11,
    Tls12,
    Tls13,
}

impl Version {
    const ALL: [Self; 4] = [Self::Tls10, Self::Tls11, Self::Tls12, Self::Tls13];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == name)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Tls10 => "TLS10",
            Self::Tls11 => "TLS11",
            Self::Tls12 => "TLS12",
            Self::Tls13 => "TLS13",
        }
    }

    /// The versions in a range that can be served.
    pub(super) fn served(min: Self, max: Self) -> Vec<&'static SupportedProtocolVersion> {
        [(Self::Tls13, &rustls::version::TLS13), (Self::Tls12, &rustls::version::TLS12)]
            .into_iter()
            .filter(|(version, _)| (min..=max).contains(version))
            .map(|(_, served)| served)
            .collect()
    }
}

/// A cipher suite by Go's name.
#[derive(Debug)]
pub(super) struct Cipher {
    pub(super) name: &'static str,
    /// `None`: a CBC suite or one without forward secrecy, which rustls does not have.
    pub(super) suite: Option<SupportedCipherSuite>,
}

/// A curve by Go's name.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) group: Option<&'static dyn SupportedKxGroup>,
}

const fn cipher_row(name: &'static str, suite: Option<SupportedCipherSuite>) -> Cipher {
    Cipher { name, suite }
}

/// The suites of Go's `tls.CipherSuites()` in any version that exporters were built with.
static CIPHERS: [Cipher; 17] = [
    cipher_row("TLS_AES_128_GCM_SHA256", Some(suite::TLS13_AES_128_GCM_SHA256)),
    cipher_row("TLS_AES_256_GCM_SHA384", Some(suite::TLS13_AES_256_GCM_SHA384)),
    cipher_row("TLS_CHACHA20_POLY1305_SHA256", Some(suite::TLS13_CHACHA20_POLY1305_SHA256)),
    cipher_row(
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        Some(suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ),
    cipher_row(
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        Some(suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ),
    cipher_row("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Some(suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)),
    cipher_row("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Some(suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)),
    cipher_row(
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        Some(suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    cipher_row(
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        Some(suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    cipher_row("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", None),
    cipher_row("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", None),
    cipher_row("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", None),
    cipher_row("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", None),
    cipher_row("TLS_RSA_WITH_AES_128_CBC_SHA", None),
    cipher_row("TLS_RSA_WITH_AES_256_CBC_SHA", None),
    cipher_row("TLS_RSA_WITH_AES_128_GCM_SHA256", None),
    cipher_row("TLS_RSA_WITH_AES_256_GCM_SHA384", None),
];

static CURVES: [Curve; 4] = [
    Curve { name: "X25519", group: Some(kx_group::X25519) },
    Curve { name: "CurveP256", group: Some(kx_group::SECP256R1) },
    Curve { name: "CurveP384", group: Some(kx_group::SECP384R1) },
    Curve { name: "CurveP521", group: None },
];

pub(super) fn cipher(name: &str) -> Option<&'static Cipher> {
    CIPHERS.iter().find(|cipher| cipher.name == name)
}

pub(super) fn curve(name: &str) -> Option<&'static Curve> {
    CURVES.iter().find(|curve| curve.name == name)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring;

    use super::*;

    #[test]
    fn every_suite_and_curve_of_rustls_has_its_name() {
        for suite in ring::ALL_CIPHER_SUITES {
            assert!(CIPHERS.iter().any(|cipher| cipher.suite == Some(*suite)), "{suite:?}");
        }
        assert_eq!(CURVES.iter().filter(|curve| curve.group.is_some()).count(), ring::ALL_KX_GROUPS.len());
    }

    #[test]
    fn versions_are_a_range() {
        let served = |min, max| Version::served(min, max).len();
        assert_eq!(served(Version::Tls10, Version::Tls13), 2);
        assert_eq!(served(Version::Tls13, Version::Tls13), 1);
        assert_eq!(served(Version::Tls10, Version::Tls11), 0);
        assert_eq!(served(Version::Tls13, Version::Tls12), 0);
    }
}
