//! Client certificates: Go's five policies, and the names that a certificate must have.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::ClientAuth::{
    NoClientCert, RequestClientCert, RequireAndVerifyClientCert, RequireAnyClientCert,
    VerifyClientCertIfGiven,
};
use super::WebConfigError;
use super::file::Tls;

/// Demands on client certificates, besides the password. A running server never drops a requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// A certificate is requested.
    pub requested: bool,
    /// A certificate is required.
    pub mandatory: bool,
    /// Certificates are verified.
    pub verified: bool,
    /// They are verified against a CA of the file, not against the system's.
    pub own_ca: bool,
    /// They must have an allowed name.
    pub named: bool,
}

impl Demands {
    /// The demands of the section. Adds to `notes` where they are stricter than its wording, or differ from it.
    pub(super) fn of(tls: &Tls, has_ca: bool, notes: &mut Vec<String>) -> Result<Self, WebConfigError> {
        let (policy, named) = (tls.client_auth, tls.client_allowed_sans.is_some());
        let mandatory = [RequireAnyClientCert, RequireAndVerifyClientCert].contains(&policy);
        let verifies = [VerifyClientCertIfGiven, RequireAndVerifyClientCert].contains(&policy);
        if named && !mandatory {
            return Err(WebConfigError::section(
                "client_allowed_sans requires client_auth_type to be one of RequireAnyClientCert or \
                 RequireAndVerifyClientCert",
            ));
        }
        if named && !verifies && !has_ca {
            return Err(WebConfigError::section(
                "client_allowed_sans with RequireAnyClientCert needs client_ca or client_ca_file: names in \
                 certificates that are not verified prove nothing",
            ));
        }
        notes.extend(match policy {
            RequireAnyClientCert if has_ca => {
                Some(format!("client_auth_type {policy:?}: with a client CA, certificates are verified"))
            }
            RequestClientCert if has_ca => Some(format!("client_ca: {policy:?} verifies nothing")),
            _ if verifies && !has_ca => {
                Some(format!("client_auth_type {policy:?}: without a client CA, the system's CAs verify"))
            }
            _ => None,
        });
        let (requested, verified) = (policy != NoClientCert, verifies || (mandatory && has_ca));
        Ok(Self { requested, mandatory, verified, own_ca: has_ca, named })
    }
}

/// The verifier that makes `demands`. Certificates are verified against `ca`, or without one against the system's.
pub(super) fn verifier(
    tls: &Tls,
    demands: Demands,
    ca: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, WebConfigError> {
    if !demands.requested {
        return Ok(WebPkiClientVerifier::no_client_auth());
    }
    let mut chain = None;
    if demands.verified {
        let roots = Arc::new(ca.unwrap_or_else(system_roots));
        let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        chain = Some(builder.build().map_err(WebConfigError::ClientCa)?);
    }
    let (mandatory, allowed) = (demands.mandatory, tls.client_allowed_sans.clone());
    Ok(Arc::new(Verifier {
        mandatory,
        chain,
        allowed,
        algorithms: provider.signature_verification_algorithms,
    }))
}

/// The system's trust anchors, as in Go; Mozilla's if the system has none, as in a container.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// Accepts certificates whose key the client has. That alone does not identify the client.
#[derive(Debug)]
struct Verifier {
    mandatory: bool,
    /// Verifies the signer of a certificate, if required.
    chain: Option<Arc<dyn ClientCertVerifier>>,
    /// The subject alternative names of which a certificate must have at least one, if set.
    allowed: Option<Vec<String>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.as_ref().map_or(&[], |chain| chain.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(chain) = &self.chain {
            chain.verify_client_cert(end_entity, intermediates, now)?;
        }
        if let Some(allowed) = &self.allowed {
            let names = names(end_entity).ok_or(CertificateError::BadEncoding)?;
            if !names.iter().any(|name| allowed.contains(name)) {
                return Err(CertificateError::Other(OtherError(Arc::new(NoAllowedName { names }))).into());
            }
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A certificate has none of the allowed names.
#[derive(Debug, thiserror::Error)]
#[error("could not find allowed SANs in client cert, found: {names:?}")]
struct NoAllowedName {
    names: Vec<String>,
}

/// The subject alternative names of the kinds Go reads: DNS names, mail addresses, IP addresses, URIs.
fn names(certificate: &CertificateDer<'_>) -> Option<Vec<String>> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let extension = certificate.tbs_certificate().get_extension::<SubjectAltName>().ok()?;
    let Some((_, SubjectAltName(general_names))) = extension else { return Some(Vec::new()) };
    let name = |name: &GeneralName| match name {
        GeneralName::DnsName(text)
        | GeneralName::Rfc822Name(text)
        | GeneralName::UniformResourceIdentifier(text) => Some(text.to_string()),
        GeneralName::IpAddress(bytes) => ip(bytes.as_bytes()).map(|ip| ip.to_string()),
        _ => None,
    };
    Some(general_names.iter().filter_map(name).collect())
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
        let simple = ["a.example.com", "10.0.0.1", "::1"].map(str::to_owned);
        let mut params = rcgen::CertificateParams::new(simple).unwrap();
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
