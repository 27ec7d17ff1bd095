//! Certificates made for one test.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::WantsClientCert;
use rustls::{ClientConfig, ConfigBuilder};

use super::write_settled;

/// A certificate authority with a folder for what it signs.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    pub(super) certificate: rcgen::Certificate,
}

impl Authority {
    /// A new one; its certificate is `ca.crt`.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "the tests' authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        write_settled(&folder.path().join("ca.crt"), &certificate.pem());
        Self { folder, issuer: Issuer::new(params, key), certificate }
    }

    /// Signs a certificate for the names: its text and its key's.
    pub(super) fn sign(&self, names: &[&str], usage: ExtendedKeyUsagePurpose) -> (String, String) {
        self.sign_until(4096, names, usage)
    }

    fn sign_until(&self, year: i32, names: &[&str], usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let common_name = names[0];
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        // Another name than the authority's, else it would look signed by itself.
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![usage];
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// `server.crt` and `server.key`.
    pub(crate) fn sign_server(&self) {
        self.sign_server_until(4096);
    }

    /// The same, expired at the beginning of `year`, or to expire then.
    pub(crate) fn sign_server_until(&self, year: i32) {
        let names = ["localhost", "127.0.0.1"];
        let (certificate, key) = self.sign_until(year, &names, ExtendedKeyUsagePurpose::ServerAuth);
        write_settled(&self.path("server.crt"), &certificate);
        write_settled(&self.path("server.key"), &key);
        self.set_mode("server.key", 0o600);
    }

    pub(super) fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    /// `<name>.crt` and `<name>.key` for a client of that DNS name.
    pub(super) fn sign_client(&self, name: &str) -> (String, String) {
        let (certificate, key) = self.sign(&[name], ExtendedKeyUsagePurpose::ClientAuth);
        let paths = (self.path(&format!("{name}.crt")), self.path(&format!("{name}.key")));
        write_settled(&paths.0, &certificate);
        write_settled(&paths.1, &key);
        (text(&paths.0), text(&paths.1))
    }

    /// A web configuration file that serves with `server.crt`; `more` goes on in its TLS section.
    pub(crate) fn web_config(&self, more: &str) -> PathBuf {
        self.sign_server();
        let path = self.path("web.yml");
        // Relative paths begin at the file's folder.
        write_settled(
            &path,
            &format!("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{more}"),
        );
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of a client that trusts this authority alone.
    pub(super) fn trusted(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        client.unwrap().with_root_certificates(roots)
    }

    pub(super) fn ca(&self) -> String {
        text(&self.path("ca.crt"))
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
