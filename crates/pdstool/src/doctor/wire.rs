//! The protocol of a port (plain HTTP, TLS, something else), and the meaning of a failed TLS handshake.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, Error as TlsError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What TLS is spoken over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The status of the reply to a plain HTTP request without a token, sent to `address`; `None` if there is no reply, or one
/// that is not HTTP.
pub async fn plain_status(address: SocketAddr, host: &str, limit: Duration) -> Option<[u8; 3]> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        io::Result::Ok(head)
    };
    match timeout(limit, exchange).await {
        Ok(Ok([b'H', b'T', b'T', b'P', b'/', _, _, _, _, status @ ..])) => Some(status),
        _ => None,
    }
}

/// A TLS handshake with `host`.
///
/// # Errors
/// If it fails, or takes longer than `limit`.
pub async fn handshake<S: Stream>(
    host: &str,
    stream: S,
    tls: &Arc<ClientConfig>,
    limit: Duration,
) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| io::Error::other(format!("{host} is not a name that a certificate can be for")))?;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    timeout(limit, TlsConnector::from(Arc::clone(tls)).connect(name, stream)).await.map_err(late)?
}

/// Whether `address` answers a TLS handshake, trusted or not.
pub async fn speaks_tls(address: SocketAddr, host: &str, tls: &Arc<ClientConfig>, limit: Duration) -> bool {
    let Ok(Ok(stream)) = timeout(limit, TcpStream::connect(address)).await else { return false };
    match handshake(host, stream, tls, limit).await {
        Ok(_) => true,
        Err(error) => tls_error(&error).is_some_and(|error| !matches!(error, TlsError::InvalidMessage(_))),
    }
}

/// The TLS library's error inside an I/O error.
pub fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>())
}

/// The meaning of a failed handshake, and the remedy.
pub fn explain(error: &io::Error, ca_file: bool) -> (String, &'static str) {
    use CertificateError as Bad;
    let Some(tls) = tls_error(error) else {
        return (
            format!("the connection ended during the TLS handshake: {error}"),
            "Look for a firewall that cuts TLS; if a proxy is needed, set api.proxy_url.",
        );
    };
    let (meaning, remedy) = match tls {
        TlsError::InvalidCertificate(Bad::UnknownIssuer) => {
            let remedy = if ca_file {
                "Add the certificate of the authority that signed the service's to api.ca_file."
            } else {
                "Set api.ca_file to a file with the authority's certificate."
            };
            return ("the certificate is signed by an authority that is not trusted".to_owned(), remedy);
        }
        TlsError::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::BadCertificate) => {
            return (
                "the service requires a client certificate, which is not supported".to_owned(),
                "Use an address of the service that does not require one.",
            );
        }
        TlsError::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            ("the certificate has expired", "Renew the service's certificate; check this machine's clock.")
        }
        TlsError::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            ("the certificate is not valid yet", "Check this machine's clock.")
        }
        TlsError::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => (
            "the certificate is for another name",
            "Use the name that the certificate is for in api.base_url.",
        ),
        _ => ("no trusted TLS connection", "Check the TLS settings of the service."),
    };
    (format!("{meaning}: {tls}"), remedy)
}
