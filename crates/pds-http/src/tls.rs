//! Trust anchors of the client.

use std::path::Path;
use std::sync::Arc;

use pds_core::plain_file;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::BuildError;

/// The size of a file of trust anchors; all of Mozilla's take a quarter of a megabyte.
const MAX_CA_BYTES: u64 = 16 * 1024 * 1024;

/// TLS with the built-in trust anchors of Mozilla, as a container may have none, and those of the file that the key
/// `key` names.
///
/// # Errors
/// If that file cannot be used.
pub fn tls_config(key: &'static str, ca_file: Option<&Path>) -> Result<rustls::ClientConfig, BuildError> {
    let mut anchors = rustls::RootCertStore::empty();
    anchors.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = ca_file {
        let path = || path.to_owned();
        let unreadable = |source| BuildError::CaFile { key, path: path(), source };
        let pem = plain_file::read(&path(), MAX_CA_BYTES).map_err(unreadable)?.bytes;
        let bad = |problem: String| BuildError::CaCertificates { key, path: path(), problem };
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            anchors.add(certificate).map_err(|error| bad(error.to_string()))?;
            found = true;
        }
        if !found {
            return Err(bad("no certificate in it".to_owned()));
        }
    }
    // Set here instead of for the process: nothing is global.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(anchors)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
