//! Problems of certificates in words: the TLS library only has names for some.

use std::fmt::Debug;

/// A server's certificate that is marked as that of an authority.
pub const OWN_AUTHORITY: &str = "the server's certificate is marked as that of a certificate authority (CA:TRUE); to \
                                 trust it, add this certificate itself to the CA file";

/// A file that is not PEM. The parser's own error quotes the file, which may hold a private key.
pub const NOT_PEM: &str =
    "not PEM: each certificate needs the lines BEGIN CERTIFICATE and END CERTIFICATE around it";

/// A key of a kind that the TLS library does not know.
pub const UNKNOWN_KEY: &str =
    "the key cannot be used; use RSA of 2,048 bits or more, ECDSA on P-256 or P-384, or Ed25519";

/// A problem of a server's certificate that the library only has a name for, with a remedy if there is one.
pub fn in_words(problem: &impl Debug) -> String {
    let name = format!("{problem:?}");
    if name.contains("UnsupportedCertVersion") {
        "the server's certificate has X.509 version 1, which states no names; create one of version 3, for example \
         with openssl req -x509 -addext subjectAltName=DNS:HOST"
            .to_owned()
    } else if name.contains("CaUsedAsEndEntity") {
        OWN_AUTHORITY.to_owned()
    } else {
        let name = name.replace("Other", "").replace("Error", "");
        format!("the server's certificate cannot be used: {}", name.trim_matches(['(', ')']))
    }
}
