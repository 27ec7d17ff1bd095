//! Certificate and key of a server, on the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::error::ToolError;

/// TLS of the simulated service.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Serve over TLS with this certificate chain (PEM). Clients can use HTTP/2.
    #[arg(long, value_name = "FILE", requires = "tls_key_file", conflicts_with = "write_config")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_key_file: Option<PathBuf>,
    /// Do not offer HTTP/2 over TLS.
    #[arg(long, requires = "tls_cert_file")]
    pub no_http2: bool,
}

impl TlsArgs {
    /// What accepts TLS connections, if certificate and key are given.
    ///
    /// # Errors
    /// If the files do not hold a certificate and its key.
    pub fn acceptor(&self) -> Result<Option<TlsAcceptor>, ToolError> {
        let (Some(cert_file), Some(key_file)) = (&self.tls_cert_file, &self.tls_key_file) else {
            return Ok(None);
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(cert_file)
            .and_then(Iterator::collect)
            .map_err(|error| unusable(cert_file, &error))?;
        let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| unusable(key_file, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(cert_file, &error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| unusable(cert_file, &error))?;
        let protocols: &[&[u8]] = if self.no_http2 { &[b"http/1.1"] } else { &[b"h2", b"http/1.1"] };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> ToolError {
    ToolError::Usage(format!("cannot use {} for TLS: {error}", file.display()))
}
