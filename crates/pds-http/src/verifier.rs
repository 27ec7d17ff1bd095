//! Trust in certificates of servers.

use std::sync::Arc;
use std::time::Duration;

use pds_core::certificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, VerifierBuilderError};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// Trusts certificates signed by the anchors, and each certificate of `ca_file` itself, for the names and the time that
/// it states: `openssl req -x509` makes certificates that are their own authority, which the standard verifier refuses
/// in a server.
#[derive(Debug)]
pub(crate) struct Verifier {
    anchored: Arc<WebPkiServerVerifier>,
    itself: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Trusts `anchors`, and the certificates of servers that are in `itself`.
    ///
    /// # Errors
    /// If there are no anchors.
    pub(crate) fn new(
        anchors: RootCertStore,
        itself: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let anchored = WebPkiServerVerifier::builder_with_provider(anchors.into(), provider).build()?;
        Ok(Self { anchored, itself })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.anchored.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if verified.is_err() && self.itself.contains(end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity).map_err(in_words)?, server_name)?;
            verify_dates(end_entity, now)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified.map_err(in_words)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.anchored.verify_tls12_signature(message, certificate, signature).map_err(in_words)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.anchored.verify_tls13_signature(message, certificate, signature).map_err(in_words)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.anchored.supported_verify_schemes()
    }
}

fn verify_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let certificate = Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let validity = certificate.tbs_certificate().validity();
    let now = Duration::from_secs(now.as_secs());
    if now < validity.not_before.to_unix_duration() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.to_unix_duration() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

/// An error that the library only has a name for, in words and with a remedy.
fn in_words(error: Error) -> Error {
    let Error::InvalidCertificate(CertificateError::Other(other)) = &error else { return error };
    Error::General(certificate::in_words(other))
}
