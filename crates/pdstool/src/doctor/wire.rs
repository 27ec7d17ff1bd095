//! The protocol of a port (plain HTTP, TLS, something else), and the meaning of a failed TLS handshake.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, Error as TlsError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The reply of a port to a plain HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// HTTP.
    Http,
    /// HTTP 400, as web servers reply on their TLS ports.
    BadRequest,
    /// A TLS record.
    Tls,
    /// Nothing, or the connection was closed.
    Nothing,
    /// Something else.
    Other,
}

/// Sends a plain HTTP request without a token to `address`.
pub async fn plain(address: SocketAddr, host: &str, limit: Duration) -> Plain {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; 12];
        let mut length = 0;
        while let Some(rest) = head.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match stream.read(rest).await? {
                0 => break,
                read => length += read,
            }
        }
        io::Result::Ok((head, length))
    };
    let Ok(Ok((head, length))) = timeout(limit, exchange).await else { return Plain::Nothing };
    match head.get(..length).unwrap_or_default() {
        [] => Plain::Nothing,
        // A TLS alert or handshake record, version 3.x.
        [0x15 | 0x16, 3, ..] => Plain::Tls,
        [b'H', b'T', b'T', b'P', b'/', .., b'4', b'0', b'0'] => Plain::BadRequest,
        [b'H', b'T', b'T', b'P', b'/', ..] => Plain::Http,
        _ => Plain::Other,
    }
}

/// Whether `address` answers a TLS handshake, trusted or not.
pub async fn speaks_tls(
    address: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    limit: Duration,
) -> bool {
    let handshake = async {
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(config).connect(name, stream).await.map(drop)
    };
    match timeout(limit, handshake).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => match tls_error(&error) {
            Some(TlsError::InvalidMessage(_)) | None => false,
            Some(_) => true,
        },
        Err(_) => false,
    }
}

/// The TLS library's error inside an I/O error.
#[must_use]
pub fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>())
}

/// The meaning of a failed handshake, and the remedy.
#[must_use]
pub fn explain(error: &io::Error, ca_file: bool) -> (String, &'static str) {
    let Some(tls) = tls_error(error) else {
        return (
            format!("the connection ended during the TLS handshake: {error}"),
            "Look for a firewall that cuts TLS; if a proxy is needed, set api.proxy_url.",
        );
    };
    match tls {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => (
            "the certificate is signed by an authority that is not trusted".to_owned(),
            if ca_file {
                "Add the certificate of the authority that signed the service's to api.ca_file."
            } else {
                "Set api.ca_file to a file with the authority's certificate."
            },
        ),
        TlsError::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            (
                format!("the certificate has expired: {tls}"),
                "Renew the service's certificate; check this machine's clock.",
            )
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => (format!("the certificate is not valid yet: {tls}"), "Check this machine's clock."),
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => (
            format!("the certificate is for another name: {tls}"),
            "Use the name that the certificate is for in api.base_url.",
        ),
        TlsError::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::BadCertificate) => {
            (
                "the service requires a client certificate, which is not supported".to_owned(),
                "Use an address of the service that does not require one.",
            )
        }
        _ => (format!("no trusted TLS connection: {tls}"), "Check the TLS settings of the service."),
    }
}
