//! The path to the service, step by step: name, connection, proxy, TLS. Stops at the first step that fails.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

use pds_core::error_chain::with_sources;
use pds_core::units;
use pds_exporter::config::Api;
use pds_http::tls_config;

use super::wire::{self, Plain, explain};
use crate::report::Report;

const CHECK: &str = "network";

/// Longest reply of a proxy to CONNECT.
const MAX_PROXY_REPLY: usize = 16 << 10;

/// A certificate that expires within this time is worth a warning.
const CERTIFICATE_SOON: f64 = 14.0 * 86_400.0;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Checks the path to the service step by step. Returns whether requests can reach it.
pub async fn check(report: &mut Report, api: &Api) -> bool {
    follow(report, api).await.is_some()
}

/// `None` after a problem.
async fn follow(report: &mut Report, api: &Api) -> Option<()> {
    let limit = api.connect_timeout;
    let (host, port) = host_and_port(&api.base_url);
    let tls = match tls_config("api.ca_file", api.ca_file.as_deref()) {
        Ok(tls) => Arc::new(tls),
        Err(error) => {
            report.problem(CHECK, with_sources(&error), "Correct api.ca_file.");
            return None;
        }
    };
    let proxy = api.proxy_url.as_ref().filter(|_| !excepted(api.no_proxy.as_deref(), &host));
    let is_https = api.base_url.scheme() == "https";
    let Some(proxy) = proxy else {
        let (stream, address) = connect(report, "api.base_url", &host, port, limit).await?;
        let way = Way { address, host: &host, limit, ca_file: api.ca_file.is_some(), tls };
        return if is_https { way.secure(report, stream).await } else { way.plain(report).await };
    };
    let (proxy_host, proxy_port) = host_and_port(proxy);
    let (stream, _) = connect(report, "api.proxy_url", &proxy_host, proxy_port, limit).await?;
    let stream: Box<dyn Stream> = match proxy.scheme() {
        "https" => Box::new(handshake(report, "proxy", &proxy_host, stream, &tls, limit, api).await?),
        _ => Box::new(stream),
    };
    if !is_https {
        report.note(CHECK, format!("the proxy {proxy_host}:{proxy_port} forwards plain http"));
        return Some(());
    }
    let stream = tunnel(report, stream, proxy, &host, port, limit).await?;
    handshake(report, "service", &host, stream, &tls, limit, api).await.map(drop)
}

/// The host and port that a URL leads to.
fn host_and_port(url: &Url) -> (String, u16) {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    (host, url.port_or_known_default().unwrap_or(443))
}

/// Whether `NO_PROXY` names the host, itself or by its domain.
fn excepted(no_proxy: Option<&str>, host: &str) -> bool {
    let mut names = no_proxy.unwrap_or_default().split(',').map(|name| name.trim().trim_start_matches('.'));
    names.any(|name| {
        let inside = host.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'));
        name == "*" || (!name.is_empty() && inside)
    })
}

/// Resolves the name and connects to the first address that accepts.
async fn connect(
    report: &mut Report,
    key: &str,
    host: &str,
    port: u16,
    limit: Duration,
) -> Option<(TcpStream, SocketAddr)> {
    let began = Instant::now();
    let found = timeout(limit, lookup_host((host, port))).await;
    let addresses: Vec<SocketAddr> = match found {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            let remedy = format!("Check the name in {key}, and this machine's DNS (/etc/resolv.conf).");
            report.problem(CHECK, format!("{host} has no address: {error}"), remedy);
            return None;
        }
        Err(_) => {
            let text =
                format!("DNS gave no answer for {host} within {}", units::seconds(limit.as_secs_f64()));
            report.problem(CHECK, text, "Check this machine's DNS (/etc/resolv.conf).");
            return None;
        }
    };
    if host.parse::<std::net::IpAddr>().is_err() {
        let shown: Vec<String> = addresses.iter().take(4).map(|address| address.ip().to_string()).collect();
        report.ok_after(CHECK, format!("{host} is {}", shown.join(", ")), began.elapsed());
    }
    let mut failures = Vec::new();
    for address in addresses {
        let began = Instant::now();
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                if !failures.is_empty() {
                    let text = format!("some addresses do not accept connections: {}", failures.join("; "));
                    report.warning(CHECK, text, "Repair these addresses, or remove them from DNS.");
                }
                report.ok_after(CHECK, format!("{address} accepts connections"), began.elapsed());
                return Some((stream, address));
            }
            Ok(Err(error)) => failures.push(format!("{address}: {error}")),
            Err(_) => {
                failures.push(format!("{address}: no answer within {}", units::seconds(limit.as_secs_f64())));
            }
        }
    }
    let refused = failures.iter().all(|failure| failure.contains("refused"));
    let remedy = if refused {
        format!("Nothing listens there. Check host and port in {key}.")
    } else {
        format!("Check {key}, routes and firewalls; if a proxy is needed, set api.proxy_url.")
    };
    report.problem(CHECK, format!("no connection: {}", failures.join("; ")), remedy);
    None
}

/// The service, without a proxy.
struct Way<'a> {
    address: SocketAddr,
    host: &'a str,
    limit: Duration,
    ca_file: bool,
    tls: Arc<ClientConfig>,
}

impl Way<'_> {
    /// `https` in the configuration: a TLS handshake, and if it fails, what the port speaks instead.
    async fn secure(&self, report: &mut Report, stream: TcpStream) -> Option<()> {
        let began = Instant::now();
        match shake(self.host, stream, &self.tls, self.limit).await {
            Ok(stream) => {
                describe(report, "service", &stream, began.elapsed());
                Some(())
            }
            Err(error) => {
                let plain = matches!(
                    wire::plain(self.address, self.host, self.limit).await,
                    Plain::Http | Plain::BadRequest
                );
                let no_tls = wire::tls_error(&error)
                    .is_none_or(|error| matches!(error, rustls::Error::InvalidMessage(_)));
                if plain && no_tls {
                    let text = format!("{} speaks plain HTTP, but api.base_url says https", self.address);
                    let remedy =
                        "Set api.base_url to the TLS port; or to http://, if the network may read the token.";
                    report.problem(CHECK, text, remedy);
                } else {
                    let (text, remedy) = explain(&error, self.ca_file);
                    report.problem(CHECK, text, remedy);
                }
                None
            }
        }
    }

    /// `http` in the configuration: whether the port speaks it.
    async fn plain(&self, report: &mut Report) -> Option<()> {
        let began = Instant::now();
        let spoken = wire::plain(self.address, self.host, self.limit).await;
        let tls = match (spoken, server_name(self.host)) {
            (Plain::Http, _) => false,
            (Plain::Tls, _) => true,
            (_, Some(name)) => wire::speaks_tls(self.address, name, Arc::clone(&self.tls), self.limit).await,
            (_, None) => false,
        };
        if tls {
            let text = format!("{} speaks TLS, but api.base_url says http", self.address);
            report.problem(CHECK, text, "Use https:// in api.base_url.");
            return None;
        }
        match spoken {
            Plain::Http | Plain::BadRequest => {
                report.ok_after(CHECK, format!("{} speaks HTTP", self.address), began.elapsed());
                Some(())
            }
            _ => {
                let text = format!("{} does not answer HTTP requests", self.address);
                report.problem(CHECK, text, "Check the port in api.base_url.");
                None
            }
        }
    }
}

fn server_name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}

async fn shake<S: Stream>(
    host: &str,
    stream: S,
    tls: &Arc<ClientConfig>,
    limit: Duration,
) -> io::Result<TlsStream<S>> {
    let name = server_name(host)
        .ok_or_else(|| io::Error::other(format!("{host} is not a name that a certificate can be for")))?;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    timeout(limit, TlsConnector::from(Arc::clone(tls)).connect(name, stream)).await.map_err(late)?
}

/// A handshake behind a proxy, or with it.
async fn handshake<S: Stream>(
    report: &mut Report,
    with: &str,
    host: &str,
    stream: S,
    tls: &Arc<ClientConfig>,
    limit: Duration,
    api: &Api,
) -> Option<TlsStream<S>> {
    let began = Instant::now();
    match shake(host, stream, tls, limit).await {
        Ok(stream) => {
            describe(report, with, &stream, began.elapsed());
            Some(stream)
        }
        Err(error) => {
            let no_tls = matches!(wire::tls_error(&error), Some(rustls::Error::InvalidMessage(_)));
            let (text, remedy) = if no_tls {
                let key = if with == "proxy" { "api.proxy_url" } else { "api.base_url" };
                (format!("{host} does not speak TLS, but {key} says https"), "Use http://, or the TLS port.")
            } else {
                explain(&error, api.ca_file.is_some())
            };
            report.problem(CHECK, text, remedy);
            None
        }
    }
}

/// The TLS connection, and how long the certificate is still valid.
fn describe<S>(report: &mut Report, with: &str, stream: &TlsStream<S>, took: Duration) {
    let (_, connection) = stream.get_ref();
    let version = match connection.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    };
    let http = match connection.alpn_protocol() {
        Some(b"h2") => "HTTP/2",
        _ => "HTTP/1.1",
    };
    let expiry = connection
        .peer_certificates()
        .and_then(|chain| x509_parser::parse_x509_certificate(chain.first()?).ok())
        .and_then(|(_, certificate)| {
            Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
        });
    let until =
        expiry.map(|expiry| format!(", certificate until {}", units::time(expiry))).unwrap_or_default();
    report.ok_after(CHECK, format!("{version} with the {with}, {http}{until}"), took);
    let left = expiry.map(|expiry| expiry.duration_since(Timestamp::now()).as_secs_f64());
    if let Some(left) = left.filter(|left| *left < CERTIFICATE_SOON) {
        let text = format!("the certificate of the {with} expires in {}", units::seconds(left.max(0.0)));
        report.warning(CHECK, text, "Renew it.");
    }
}

/// Asks the proxy for a tunnel to the service.
async fn tunnel(
    report: &mut Report,
    mut stream: Box<dyn Stream>,
    proxy: &Url,
    host: &str,
    port: u16,
    limit: Duration,
) -> Option<Box<dyn Stream>> {
    let began = Instant::now();
    let login =
        login(proxy).map(|login| format!("Proxy-Authorization: Basic {login}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n");
    let exchange = async {
        stream.write_all(request.as_bytes()).await?;
        let mut reply = Vec::new();
        // Byte by byte: what follows the head belongs to the service.
        while !reply.ends_with(b"\r\n\r\n") && reply.len() < MAX_PROXY_REPLY {
            match stream.read_u8().await {
                Ok(byte) => reply.push(byte),
                Err(_) => break,
            }
        }
        io::Result::Ok(String::from_utf8_lossy(&reply).lines().next().unwrap_or_default().to_owned())
    };
    let status = match timeout(limit, exchange).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    match status.split_whitespace().nth(1).filter(|_| status.starts_with("HTTP/")) {
        Some("200") => {
            report.ok_after(CHECK, format!("the proxy opens a tunnel to {host}:{port}"), began.elapsed());
            Some(stream)
        }
        Some("407") => {
            let remedy = "Add user and password to api.proxy_url: http://user:password@proxy:3128.";
            report.problem(CHECK, format!("the proxy requires a password: {status}"), remedy);
            None
        }
        Some(_) => {
            let remedy = "Allow the proxy to reach the service, or exclude the host with NO_PROXY.";
            report.problem(CHECK, format!("the proxy refuses a tunnel to {host}:{port}: {status}"), remedy);
            None
        }
        None => {
            let text = format!("this is not a proxy: {status}");
            report.problem(CHECK, text, "Check host, port and scheme in api.proxy_url.");
            None
        }
    }
}

/// User and password of the proxy as HTTP sends them.
fn login(proxy: &Url) -> Option<String> {
    use base64::Engine as _;
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = Some(proxy.username()).filter(|user| !user.is_empty())?;
    let login = format!("{}:{}", decoded(user), decoded(proxy.password().unwrap_or_default()));
    Some(base64::engine::general_purpose::STANDARD.encode(login))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_excepted_from_the_proxy_by_name_and_domain() {
        assert!(excepted(Some("*"), "a.example.com") && excepted(Some("x, .example.com"), "a.example.com"));
        assert!(excepted(Some("10.0.0.1"), "10.0.0.1") && excepted(Some("example.com"), "example.com"));
        assert!(!excepted(Some("ample.com,"), "example.com") && !excepted(None, "example.com"));
    }
}
