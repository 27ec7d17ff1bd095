//! From the section `tls_server_config` to what rustls serves with.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite};

use super::ClientAuth;
use super::client_cert::{self, Demands};
use super::error::WebConfigError;
use super::file::{File, Pem, Tls};
use super::names::Version;
use super::sources::Sources;
use pds_core::plain_file::PlainFile;

/// The server's side of every handshake, and what it asks of clients; `None` if the file asks for no TLS. Settings
/// without effect go to `notes`.
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
    let cert = tls.cert.as_ref().ok_or(WebConfigError::MissingCert)?;
    let key = tls.key.as_ref().ok_or(WebConfigError::MissingKey)?;
    let chain = certificates(cert, "cert", folder, sources)?;
    let key = private_key(key, folder, sources, notes)?;
    let provider = Arc::new(provider(tls, notes)?);
    let versions = Version::served(tls.min_version, tls.max_version);
    if versions.is_empty() {
        let (min, max) = (tls.min_version.as_str(), tls.max_version.as_str());
        return Err(WebConfigError::NoVersion { min, max });
    }
    if tls.min_version < Version::Tls12 {
        let min = tls.min_version.as_str();
        notes.push(format!("min_version {min}: there is nothing below TLS12, which is in force"));
    }
    let (verifier, demands) = client_verifier(tls, folder, sources, &provider, notes)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(WebConfigError::Settings)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(WebConfigError::KeyPair)?;
    config.ignore_client_order = tls.prefer_server_cipher_suites;
    let protocols: &[&[u8]] = if file.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Some((config, demands)))
}

/// The suites and curves of the file, as far as they are available.
fn provider(tls: &Tls, notes: &mut Vec<String>) -> Result<CryptoProvider, WebConfigError> {
    let mut provider = ring::default_provider();
    if let Some(asked) = &tls.cipher_suites {
        for cipher in asked.iter().filter(|cipher| cipher.suite.is_none()) {
            notes.push(format!("cipher_suites {}: not offered, it is not safe enough", cipher.name));
        }
        let is_tls13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
        let tls12: Vec<_> =
            asked.iter().filter_map(|cipher| cipher.suite).filter(|suite| !is_tls13(suite)).collect();
        if tls12.is_empty() && tls.max_version < Version::Tls13 {
            return Err(WebConfigError::NoCipher);
        }
        // As with Go, the list says nothing about TLS 1.3, whose suites are all fine.
        provider.cipher_suites.retain(is_tls13);
        provider.cipher_suites.extend(tls12);
    }
    if let Some(asked) = &tls.curve_preferences {
        for curve in asked.iter().filter(|curve| curve.group.is_none()) {
            notes.push(format!("curve_preferences {}: not available", curve.name));
        }
        let available: Vec<_> = asked.iter().filter_map(|curve| curve.group).collect();
        if available.is_empty() && !asked.is_empty() {
            return Err(WebConfigError::NoCurve);
        }
        // As with Go, an empty list is no list.
        if !available.is_empty() {
            provider.kx_groups = available;
        }
    }
    Ok(provider)
}

fn client_verifier(
    tls: &Tls,
    folder: &Path,
    sources: &mut Sources,
    provider: &Arc<CryptoProvider>,
    notes: &mut Vec<String>,
) -> Result<(Arc<dyn rustls::server::danger::ClientCertVerifier>, Demands), WebConfigError> {
    let ca = match &tls.client_ca {
        Some(_) if tls.client_auth == ClientAuth::NoClientCert => {
            return Err(WebConfigError::ClientCaWithoutPolicy);
        }
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(pem, "client_ca", folder, sources)? {
                let bad = |error: rustls::Error| WebConfigError::Pem {
                    key: "client_ca",
                    problem: format!("a certificate cannot be used: {error}"),
                };
                roots.add(certificate).map_err(bad)?;
            }
            Some(roots)
        }
        None => None,
    };
    let shown = [ClientAuth::RequireAnyClientCert, ClientAuth::RequireAndVerifyClientCert];
    if tls.client_allowed_sans.is_some() && !shown.contains(&tls.client_auth) {
        return Err(WebConfigError::SansWithoutPolicy);
    }
    if tls.client_allowed_sans.is_some()
        && tls.client_auth == ClientAuth::RequireAnyClientCert
        && ca.is_none()
    {
        return Err(WebConfigError::SansUnverified);
    }
    let demands = demands(tls, ca.is_some(), notes);
    let verifier =
        client_cert::verifier(tls.client_auth, demands, ca, tls.client_allowed_sans.clone(), provider)?;
    Ok((verifier, demands))
}

/// What the section demands of clients. If that is more than or different from its wording, `notes` says so.
fn demands(tls: &Tls, has_ca: bool, notes: &mut Vec<String>) -> Demands {
    use ClientAuth::{RequireAndVerifyClientCert, RequireAnyClientCert, VerifyClientCertIfGiven};
    let verifies = [VerifyClientCertIfGiven, RequireAndVerifyClientCert].contains(&tls.client_auth);
    if tls.client_auth == RequireAnyClientCert && has_ca {
        notes.push(
            "client_auth_type RequireAnyClientCert: with a client CA, certificates are verified".to_owned(),
        );
    } else if verifies && !has_ca {
        let policy = tls.client_auth;
        notes.push(format!("client_auth_type {policy:?}: without a client CA, the system's CAs verify"));
    } else if !verifies && has_ca {
        notes.push("client_ca: RequestClientCert verifies nothing".to_owned());
    }
    let required = [RequireAnyClientCert, RequireAndVerifyClientCert].contains(&tls.client_auth);
    Demands {
        mandatory: required,
        verified: verifies || (required && has_ca),
        own_ca: has_ca,
        named: tls.client_allowed_sans.is_some(),
    }
}

fn certificates(
    pem: &Pem,
    key: &'static str,
    folder: &Path,
    sources: &mut Sources,
) -> Result<Vec<CertificateDer<'static>>, WebConfigError> {
    let (key, PlainFile { bytes: text, .. }) = content(pem, key, folder, sources)?;
    let bad = |problem| WebConfigError::Pem { key, problem };
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| bad(format!("not PEM: {error}")))?;
    if found.is_empty() { Err(bad("there is no PEM certificate in it".to_owned())) } else { Ok(found) }
}

fn private_key(
    pem: &Pem,
    folder: &Path,
    sources: &mut Sources,
    notes: &mut Vec<String>,
) -> Result<PrivateKeyDer<'static>, WebConfigError> {
    let (key, PlainFile { bytes: text, readable_by_others }) = content(pem, "key", folder, sources)?;
    if readable_by_others {
        notes.push(format!("{key}: every user of this machine can read the file"));
    }
    // The parser's error may hold what it read, so it is left out.
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| WebConfigError::Pem {
        key,
        problem: "there is no PEM private key in it (PKCS #8, PKCS #1 or SEC 1, not encrypted)".to_owned(),
    })
}

/// The PEM text and the key that names it; a relative path begins at the folder of the configuration file.
fn content(
    pem: &Pem,
    key: &'static str,
    folder: &Path,
    sources: &mut Sources,
) -> Result<(&'static str, PlainFile), WebConfigError> {
    match pem {
        Pem::Inline(text) => {
            Ok((key, PlainFile { bytes: text.expose().as_bytes().to_vec(), readable_by_others: false }))
        }
        Pem::File(path) => {
            let key = match key {
                "cert" => "cert_file",
                "key" => "key_file",
                _ => "client_ca_file",
            };
            sources.read(key, &folder.join(path)).map(|text| (key, text))
        }
    }
}
