//! From the section `tls_server_config` to what rustls serves with.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite};

use super::ClientAuth;
use super::client_cert;
use super::error::WebConfigError;
use super::file::{File, Pem, Tls};
use super::names::Version;
use super::sources::Sources;

/// The server's half of every handshake; `None` where the file asks for no TLS. What has no effect goes to
/// `ignored`.
pub(super) fn build(
    file: &File,
    folder: &Path,
    sources: &mut Sources,
    ignored: &mut Vec<String>,
) -> Result<Option<ServerConfig>, WebConfigError> {
    let tls = &file.tls;
    if !tls.enabled {
        return Ok(None);
    }
    let cert = tls.cert.as_ref().ok_or(WebConfigError::MissingCert)?;
    let key = tls.key.as_ref().ok_or(WebConfigError::MissingKey)?;
    let (chain, key) = (certificates(cert, "cert", folder, sources)?, private_key(key, folder, sources)?);
    let provider = Arc::new(provider(tls, ignored)?);
    let versions = Version::served(tls.min_version, tls.max_version);
    if versions.is_empty() {
        let (min, max) = (tls.min_version.as_str(), tls.max_version.as_str());
        return Err(WebConfigError::NoVersion { min, max });
    }
    if tls.min_version < Version::Tls12 {
        let min = tls.min_version.as_str();
        ignored.push(format!("min_version {min}: there is nothing below TLS12, which is in force"));
    }
    let verifier = client_verifier(tls, folder, sources, &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(WebConfigError::Settings)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(WebConfigError::KeyPair)?;
    config.ignore_client_order = tls.prefer_server_cipher_suites;
    let protocols: &[&[u8]] = if file.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Some(config))
}

/// The suites and curves asked for, as far as we have them.
fn provider(tls: &Tls, ignored: &mut Vec<String>) -> Result<CryptoProvider, WebConfigError> {
    let mut provider = ring::default_provider();
    if let Some(asked) = &tls.cipher_suites {
        for cipher in asked.iter().filter(|cipher| cipher.suite.is_none()) {
            ignored.push(format!("cipher_suites {}: not offered, it is not safe enough", cipher.name));
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
            ignored.push(format!("curve_preferences {}: not available", curve.name));
        }
        provider.kx_groups = asked.iter().filter_map(|curve| curve.group).collect();
        if provider.kx_groups.is_empty() {
            return Err(WebConfigError::NoCurve);
        }
    }
    Ok(provider)
}

fn client_verifier(
    tls: &Tls,
    folder: &Path,
    sources: &mut Sources,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, WebConfigError> {
    let roots = match &tls.client_ca {
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
    client_cert::verifier(tls.client_auth, roots, tls.client_allowed_sans.clone(), provider)
}

fn certificates(
    pem: &Pem,
    key: &'static str,
    folder: &Path,
    sources: &mut Sources,
) -> Result<Vec<CertificateDer<'static>>, WebConfigError> {
    let (key, text) = content(pem, key, folder, sources)?;
    let bad = |problem| WebConfigError::Pem { key, problem };
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| bad(format!("not PEM: {error}")))?;
    if found.is_empty() { Err(bad("there is no PEM certificate in it".to_owned())) } else { Ok(found) }
}

fn private_key(
    pem: &Pem,
    folder: &Path,
    sources: &mut Sources,
) -> Result<PrivateKeyDer<'static>, WebConfigError> {
    let (key, text) = content(pem, "key", folder, sources)?;
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
) -> Result<(&'static str, Vec<u8>), WebConfigError> {
    match pem {
        Pem::Inline(text) => Ok((key, text.expose().as_bytes().to_vec())),
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
