//! Converts the section `tls_server_config` for rustls.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, RootCertStore, ServerConfig};

use super::client_cert::{self, Demands};
use super::file::{File, Named, Pem, Tls};
use super::{ClientAuth, WebConfigError};
use pds_core::certificate;
use pds_core::plain_file::{PlainFile, Sources};

/// A PEM text with the key that names it.
type PemText = (&'static str, PlainFile);

/// The server's side of every handshake, and its requirements for clients; `None` if the file does not configure TLS.
/// Adds settings without effect to `notes`. Relative paths begin at `folder`, the folder of the configuration file.
pub(super) fn build(
    file: &File,
    folder: &Path,
    sources: &mut Sources,
    notes: &mut Vec<String>,
) -> Result<Option<(ServerConfig, Demands)>, WebConfigError> {
    let tls = &file.tls;
    if !tls.enabled {
        return Ok(None);
    }
    let mut read = |pem: &Pem| match pem {
        Pem::Inline(key, text) => {
            Ok((*key, PlainFile { bytes: text.expose().as_bytes().to_vec(), readable_by_others: false }))
        }
        Pem::File(key, path) => super::read(sources, key, &folder.join(path)).map(|text| (*key, text)),
    };
    let missing = |key| WebConfigError::section(format!("missing one of {key} or {key}_file"));
    let cert = tls.cert.as_ref().ok_or_else(|| missing("cert"))?;
    let key = tls.key.as_ref().ok_or_else(|| missing("key"))?;
    let chain = certificates(&read(cert)?)?;
    let key = private_key(&read(key)?, notes)?;
    let provider = Arc::new(provider(tls, notes)?);
    let (min, max) = (tls.min_version, tls.max_version);
    let versions = [("TLS13", &TLS13), ("TLS12", &TLS12)].into_iter();
    let versions: Vec<_> =
        versions.filter(|(name, _)| (min..=max).contains(name)).map(|(_, ours)| ours).collect();
    if versions.is_empty() {
        let problem =
            format!("no TLS version from {min} to {max} can be served: only TLS12 and TLS13 are supported");
        return Err(WebConfigError::section(problem));
    }
    if min < "TLS12" {
        notes.push(format!("min_version {min}: TLS12 is the lowest version, and is in force"));
    }
    let ca = match &tls.client_ca {
        Some(_) if tls.client_auth == ClientAuth::NoClientCert => {
            let problem = "client CA's have been configured without a Client Auth Policy";
            return Err(WebConfigError::section(problem));
        }
        Some(pem) => Some(roots(&read(pem)?)?),
        None => None,
    };
    let demands = Demands::of(tls, ca.is_some(), notes)?;
    let unusable = |problem| move |source| WebConfigError::Tls { problem, source: in_words(source) };
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(unusable("these settings do not work together"))?
        .with_client_cert_verifier(client_cert::verifier(tls, demands, ca, provider)?)
        .with_single_cert(chain, key)
        .map_err(unusable("the certificate and its key cannot be used"))?;
    config.ignore_client_order = tls.prefer_server_cipher_suites;
    let protocols: &[&[u8]] = if file.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Some((config, demands)))
}

/// The suites and curves of the file that are available.
fn provider(tls: &Tls, notes: &mut Vec<String>) -> Result<CryptoProvider, WebConfigError> {
    let mut provider = ring::default_provider();
    if !tls.cipher_suites.is_empty() {
        let mut tls12 = available(
            "cipher_suites",
            &tls.cipher_suites,
            "not offered, because it is not secure enough",
            notes,
        );
        tls12.retain(|suite| suite.tls13().is_none());
        if tls12.is_empty() && tls.max_version < "TLS13" {
            let problem = "none of them can be served with TLS 1.2, and max_version rules out TLS 1.3; use ECDHE \
                           suites with AES-GCM or CHACHA20_POLY1305";
            return Err(WebConfigError::tls("cipher_suites", problem));
        }
        // As in Go, the list does not affect TLS 1.3, whose suites are all safe.
        provider.cipher_suites.retain(|suite| suite.tls13().is_some());
        provider.cipher_suites.extend(tls12);
    }
    if !tls.curve_preferences.is_empty() {
        provider.kx_groups = available("curve_preferences", &tls.curve_preferences, "not available", notes);
        if provider.kx_groups.is_empty() {
            let problem = "none of them can be served; use X25519, CurveP256 or CurveP384";
            return Err(WebConfigError::tls("curve_preferences", problem));
        }
    }
    Ok(provider)
}

/// Entries of a list that rustls supports; adds the others to `notes`.
fn available<T: Copy>(key: &str, asked: &[Named<T>], lacking: &str, notes: &mut Vec<String>) -> Vec<T> {
    let absent = asked.iter().filter(|(_, ours)| ours.is_none());
    notes.extend(absent.map(|(name, _)| format!("{key} {name}: {lacking}")));
    asked.iter().filter_map(|(_, ours)| *ours).collect()
}

/// An error in words, for which the library has only a name.
fn in_words(error: rustls::Error) -> rustls::Error {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
            rustls::Error::General(certificate::in_words(&other))
        }
        rustls::Error::General(text) if text.contains("parse private key") => {
            rustls::Error::General(certificate::UNKNOWN_KEY.to_owned())
        }
        error => error,
    }
}

fn certificates((key, text): &PemText) -> Result<Vec<CertificateDer<'static>>, WebConfigError> {
    let found = CertificateDer::pem_slice_iter(&text.bytes).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if found.is_empty() => Err(WebConfigError::tls(key, "it contains no PEM certificate")),
        found => found.map_err(|_| WebConfigError::tls(key, certificate::NOT_PEM)),
    }
}

fn roots(text: &PemText) -> Result<RootCertStore, WebConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text)? {
        roots.add(certificate).map_err(|error| {
            WebConfigError::tls("client_ca", format!("a certificate cannot be used: {error}"))
        })?;
    }
    Ok(roots)
}

fn private_key(
    (key, text): &PemText,
    notes: &mut Vec<String>,
) -> Result<PrivateKeyDer<'static>, WebConfigError> {
    if text.readable_by_others {
        notes.push(format!("{key}: every user of this machine can read the file"));
    }
    // The parser's error may quote its input, so it is omitted.
    PrivateKeyDer::from_pem_slice(&text.bytes).map_err(|_| {
        let problem = "it contains no PEM private key (PKCS #8, PKCS #1 or SEC 1, not encrypted)";
        WebConfigError::tls(key, problem)
    })
}
