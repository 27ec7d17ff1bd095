//! Who may connect: Go's five policies for client certificates, and the names a certificate must hold.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::ClientAuth;
use super::error::WebConfigError;

/// The verifier for a policy. `roots` is what certificates are verified against, where they are.
pub(super) fn verifier(
    policy: ClientAuth,
    roots: Option<RootCertStore>,
    allowed_sans: Option<Vec<String>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, WebConfigError> {
    let webpki = |name| {
        let roots = roots.clone().ok_or(WebConfigError::PolicyWithoutClientCa(name))?;
        Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)))
    };
    let any = |mandatory| Arc::new(Unverified { mandatory, provider: Arc::clone(provider) });
    let verifier: Arc<dyn ClientCertVerifier> = match policy {
        ClientAuth::NoClientCert => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuth::RequestClientCert => any(false),
        ClientAuth::RequireAnyClientCert => any(true),
        ClientAuth::VerifyClientCertIfGiven => webpki("VerifyClientCertIfGiven")?
            .allow_unauthenticated()
            .build()
            .map_err(WebConfigError::ClientCa)?,
        ClientAuth::RequireAndVerifyClientCert => {
            webpki("RequireAndVerifyClientCert")?.build().map_err(WebConfigError::ClientCa)?
        }
    };
    Ok(match allowed_sans {
        None => verifier,
        Some(allowed) => Arc::new(Named { allowed, verifier }),
    })
}

/// Takes any certificate whose key the client has. Nothing is known of who that is.
#[derive(Debug)]
struct Unverified {
    mandatory: bool,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Unverified {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Further asks that the certificate holds one of the allowed subject alternative names.
#[derive(Debug)]
struct Named {
    allowed: Vec<String>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for Named {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.verifier.verify_client_cert(end_entity, intermediates, now)?;
        let names = names(end_entity).ok_or(CertificateError::BadEncoding)?;
        if names.iter().any(|name| self.allowed.contains(name)) {
            Ok(verified)
        } else {
            Err(CertificateError::Other(OtherError(Arc::new(NoAllowedName { names }))).into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// A certificate that is good and holds none of the allowed names.
#[derive(Debug)]
struct NoAllowedName {
    names: Vec<String>,
}

impl fmt::Display for NoAllowedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not find allowed SANs in client cert, found: {:?}", self.names)
    }
}

impl std::error::Error for NoAllowedName {}

/// The subject alternative names of the kinds Go reads: DNS names, mail addresses, IP addresses, URIs.
fn names(certificate: &CertificateDer<'_>) -> Option<Vec<String>> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let Some(extension) = certificate.subject_alternative_name().ok()? else { return Some(Vec::new()) };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(text) | GeneralName::RFC822Name(text) | GeneralName::URI(text) => {
            Some((*text).to_owned())
        }
        GeneralName::IPAddress(bytes) => ip(bytes).map(|ip| ip.to_string()),
        _ => None,
    };
    Some(extension.value.general_names.iter().filter_map(name).collect())
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_kinds_of_names_are_read() {
        let mut params = rcgen::CertificateParams::new([
            "a.example.com".to_owned(),
            "10.0.0.1".to_owned(),
            "::1".to_owned(),
        ])
        .unwrap();
        params.subject_alt_names.push(rcgen::SanType::URI("spiffe://x/y".try_into().unwrap()));
        params.subject_alt_names.push(rcgen::SanType::Rfc822Name("m@example.com".try_into().unwrap()));
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        assert_eq!(
            names(certificate.der()).unwrap(),
            ["a.example.com", "10.0.0.1", "::1", "spiffe://x/y", "m@example.com"]
        );
        assert_eq!(names(&CertificateDer::from(vec![1, 2, 3])), None);
    }
}
