//! The path to the service, step by step: name, connection, proxy, TLS. Stops at the first step that fails.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use jiff::Timestamp;
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;
use url::Url;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use pds_config::Api;
use pds_core::error_chain::with_sources;
use pds_core::redact::Redactor;
use pds_core::secret::Secret;
use pds_core::units;
use pds_http::tls_config;

use super::wire::{self, Stream, explain};
use crate::report::Finding;

/// Longest reply of a proxy to CONNECT.
const MAX_PROXY_REPLY: usize = 16 << 10;

/// A certificate that expires within this time is worth a warning.
const CERTIFICATE_SOON: f64 = 14.0 * 86_400.0;

/// What a step leads to, or what is wrong there.
type Step<T> = Result<T, Finding>;

/// Checks the path to the service step by step. Returns whether requests can reach it, too.
pub async fn check(api: &Api) -> (Vec<Finding>, bool) {
    let mut found = Vec::new();
    let followed = match tls_config("api.ca_file", api.ca_file.as_deref()) {
        Ok(tls) => Way { found: &mut found, api, tls: Arc::new(tls) }.follow().await,
        Err(error) => Err(Finding::problem(with_sources(&error), "Correct api.ca_file.")),
    };
    let reached = followed.is_ok();
    found.extend(followed.err());
    (found, reached)
}

/// The host and port that an address leads to.
fn host_and_port(uri: &Uri) -> (&str, u16) {
    let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    (uri.host().unwrap_or_default().trim_matches(['[', ']']), uri.port_u16().unwrap_or(usual))
}

/// The configured proxy on the way to `uri`.
fn proxy(api: &Api, uri: &Uri) -> Option<Intercept> {
    Matcher::builder().all(api.proxy_url.as_ref()?.as_str()).build().intercept(uri)
}

/// The way to the service.
struct Way<'a> {
    /// The findings so far.
    found: &'a mut Vec<Finding>,
    api: &'a Api,
    tls: Arc<ClientConfig>,
}

impl Way<'_> {
    async fn follow(&mut self) -> Step<()> {
        let uri: Uri = self.api.base_url.as_str().parse().unwrap_or_default();
        let (host, port) = host_and_port(&uri);
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let Some(proxy) = proxy(self.api, &uri) else {
            let (stream, address) = self.connect("api.base_url", host, port).await?;
            if !is_https {
                return self.plain(host, address).await;
            }
            return self.secure("service", host, stream, Some(address)).await.map(drop);
        };
        let (proxy_host, proxy_port) = host_and_port(proxy.uri());
        let (stream, _) = self.connect("api.proxy_url", proxy_host, proxy_port).await?;
        let stream: Box<dyn Stream> = if proxy.uri().scheme() == Some(&Scheme::HTTPS) {
            Box::new(self.secure("proxy", proxy_host, stream, None).await?)
        } else {
            Box::new(stream)
        };
        if !is_https {
            self.found
                .push(Finding::note(format!("the proxy {proxy_host}:{proxy_port} forwards plain http")));
            return Ok(());
        }
        // An IPv6 address stands in brackets there.
        let service = format!("{}:{port}", uri.host().unwrap_or_default());
        let stream = self.tunnel(stream, &proxy, &service).await?;
        self.secure("service", host, stream, None).await.map(drop)
    }

    /// Reports a step that succeeded.
    fn ok(&mut self, text: String, began: Instant) {
        self.found.push(Finding { seconds: Some(began.elapsed().as_secs_f64()), ..Finding::ok(text) });
    }

    /// Resolves the name and connects to the first address that accepts.
    async fn connect(&mut self, key: &str, host: &str, port: u16) -> Step<(TcpStream, SocketAddr)> {
        let limit = self.api.connect_timeout;
        let within = format!("within {}", units::seconds(limit.as_secs_f64()));
        let began = Instant::now();
        let addresses: Vec<SocketAddr> = match timeout(limit, lookup_host((host, port))).await {
            Ok(Ok(addresses)) => addresses.collect(),
            Ok(Err(error)) => {
                let remedy = format!("Check the name in {key}, and this machine's DNS (/etc/resolv.conf).");
                return Err(Finding::problem(format!("{host} has no address: {error}"), remedy));
            }
            Err(_) => {
                let remedy = "Check this machine's DNS (/etc/resolv.conf).";
                return Err(Finding::problem(format!("DNS gave no answer for {host} {within}"), remedy));
            }
        };
        if host.parse::<std::net::IpAddr>().is_err() {
            let shown: Vec<_> = addresses.iter().take(4).map(|address| address.ip().to_string()).collect();
            self.ok(format!("{host} is {}", shown.join(", ")), began);
        }
        let mut failures = Vec::new();
        for address in addresses {
            let began = Instant::now();
            match timeout(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    if !failures.is_empty() {
                        let text =
                            format!("some addresses do not accept connections: {}", failures.join("; "));
                        let remedy = "Repair these addresses, or remove them from DNS.";
                        self.found.push(Finding::warning(text, remedy));
                    }
                    self.ok(format!("{address} accepts connections"), began);
                    return Ok((stream, address));
                }
                Ok(Err(error)) => failures.push(format!("{address}: {error}")),
                Err(_) => failures.push(format!("{address}: no answer {within}")),
            }
        }
        let remedy = if failures.iter().all(|failure| failure.contains("refused")) {
            format!("Nothing listens there. Check host and port in {key}.")
        } else {
            format!("Check {key}, routes and firewalls; if a proxy is needed, set api.proxy_url.")
        };
        Err(Finding::problem(format!("no connection: {}", failures.join("; ")), remedy))
    }

    /// `http` in the configuration: whether the port speaks it.
    async fn plain(&mut self, host: &str, address: SocketAddr) -> Step<()> {
        let limit = self.api.connect_timeout;
        let began = Instant::now();
        let (text, remedy) = match wire::plain_status(address, host, limit).await {
            // Web servers answer 400 on their TLS ports.
            None | Some([b'4', b'0', b'0']) if wire::speaks_tls(address, host, &self.tls, limit).await => {
                ("speaks TLS, but api.base_url says http", "Use https:// in api.base_url.")
            }
            Some(_) => {
                self.ok(format!("{address} speaks HTTP"), began);
                return Ok(());
            }
            None => ("does not answer HTTP requests", "Check the port in api.base_url."),
        };
        Err(Finding::problem(format!("{address} {text}"), remedy))
    }

    /// A TLS handshake. Where it fails at `address`, without a proxy, the port may speak plain HTTP instead.
    async fn secure<S: Stream>(
        &mut self,
        with: &str,
        host: &str,
        stream: S,
        address: Option<SocketAddr>,
    ) -> Step<TlsStream<S>> {
        let limit = self.api.connect_timeout;
        let began = Instant::now();
        let error = match wire::handshake(host, stream, &self.tls, limit).await {
            Ok(stream) => {
                self.describe(with, &stream, began);
                return Ok(stream);
            }
            Err(error) => error,
        };
        let tls = wire::tls_error(&error);
        let is_other = matches!(tls, Some(rustls::Error::InvalidMessage(_)));
        let (text, remedy) = match address {
            Some(address)
                if (is_other || tls.is_none())
                    && wire::plain_status(address, host, limit).await.is_some() =>
            {
                let remedy =
                    "Set api.base_url to the TLS port; or to http://, if the network may read the token.";
                (format!("{address} speaks plain HTTP, but api.base_url says https"), remedy)
            }
            None if is_other => {
                let key = if with == "proxy" { "api.proxy_url" } else { "api.base_url" };
                (format!("{host} does not speak TLS, but {key} says https"), "Use http://, or the TLS port.")
            }
            _ => explain(&error, self.api.ca_file.is_some()),
        };
        Err(Finding::problem(text, remedy))
    }

    /// The TLS connection, and how long the certificate is still valid.
    fn describe<S>(&mut self, with: &str, stream: &TlsStream<S>, began: Instant) {
        let (_, connection) = stream.get_ref();
        let version = match connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS",
        };
        let http = if connection.alpn_protocol() == Some(b"h2") { "HTTP/2" } else { "HTTP/1.1" };
        let chain = connection.peer_certificates().unwrap_or_default();
        let certificate = chain.first().and_then(|first| Certificate::from_der(first).ok());
        let expiry = certificate.and_then(|certificate| {
            let expiry = certificate.tbs_certificate().validity().not_after.to_unix_duration();
            Timestamp::UNIX_EPOCH.checked_add(expiry).ok()
        });
        let until =
            expiry.map(|expiry| format!(", certificate until {}", units::time(expiry))).unwrap_or_default();
        self.ok(format!("{version} with the {with}, {http}{until}"), began);
        let left = expiry.map(|expiry| expiry.duration_since(Timestamp::now()).as_secs_f64());
        if let Some(left) = left.filter(|left| *left < CERTIFICATE_SOON) {
            let text = format!("the certificate of the {with} expires in {}", units::seconds(left.max(0.0)));
            self.found.push(Finding::warning(text, "Renew it."));
        }
    }

    /// Asks the proxy for a tunnel to `service`, a host with its port.
    async fn tunnel(
        &mut self,
        mut stream: Box<dyn Stream>,
        proxy: &Intercept,
        service: &str,
    ) -> Step<Box<dyn Stream>> {
        let began = Instant::now();
        let login = proxy.basic_auth().and_then(|login| login.to_str().ok());
        let login = login.map(|login| format!("Proxy-Authorization: {login}\r\n")).unwrap_or_default();
        let request = format!("CONNECT {service} HTTP/1.1\r\nHost: {service}\r\n{login}\r\n");
        let exchange = async {
            stream.write_all(request.as_bytes()).await?;
            let mut reply = Vec::new();
            // Byte by byte: what follows the head belongs to the service.
            while !reply.ends_with(b"\r\n\r\n")
                && reply.len() < MAX_PROXY_REPLY
                && let Ok(byte) = stream.read_u8().await
            {
                reply.push(byte);
            }
            io::Result::Ok(String::from_utf8_lossy(&reply).lines().next().unwrap_or_default().to_owned())
        };
        let status = match timeout(self.api.connect_timeout, exchange).await {
            Ok(Ok(status)) => {
                let password = self.api.proxy_url.as_ref().and_then(Url::password).map(Secret::new);
                Redactor::of(password.as_ref()).text(status)
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        let (text, remedy) = match status.split_whitespace().nth(1).filter(|_| status.starts_with("HTTP/")) {
            Some("200") => {
                self.ok(format!("the proxy opens a tunnel to {service}"), began);
                return Ok(stream);
            }
            Some("407") => (
                format!("the proxy requires a password: {status}"),
                "Add user and password to api.proxy_url: http://user:password@proxy:3128.",
            ),
            Some(_) => (
                format!("the proxy refuses a tunnel to {service}: {status}"),
                "Allow the proxy to reach the service, or leave api.proxy_url empty.",
            ),
            None => {
                (format!("this is not a proxy: {status}"), "Check host, port and scheme in api.proxy_url.")
            }
        };
        Err(Finding::problem(text, remedy))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_proxy_is_asked_for_an_ipv6_address_in_brackets() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = format!(
            "[api]\nbase_url = \"https://[2001:db8::1]\"\ntoken = \"t\"\nproxy_url = \"http://{}\"\n\
             [[projects]]\nid = \"p-1\"\n",
            proxy.local_addr().unwrap()
        );
        let config = pds_config::load_text(Path::new("x.toml"), &text).unwrap().config;
        let asked = async {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let mut line = [0; "CONNECT [2001:db8::1]:443".len()];
            stream.read_exact(&mut line).await.unwrap();
            String::from_utf8_lossy(&line).into_owned()
        };
        let (asked, _) = tokio::join!(asked, check(&config.api));
        assert_eq!(asked, "CONNECT [2001:db8::1]:443");
    }
}
