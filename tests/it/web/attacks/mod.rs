//! Attacks on the real daemon over the loopback, bounded in number and time. Before it was made to withstand them,
//! each of them locked scrapers out, or took all memory.
//!
//! - `connections`: more of them than there may be, and none of them says anything.
//! - `unread`: answers that nobody reads.
//! - `protocol`: floods of HTTP/2 frames and of TLS handshakes.
//! - `records`: floods of TLS records with next to nothing in them.
//! - `passwords`: guesses.

mod connections;
mod passwords;
mod protocol;
mod records;
mod unread;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use super::certificates::Authority;
use super::curl;
use crate::process::{DEADLINE, Exporter};

/// The source address of attacks; scrapes come from 127.0.0.1.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The limits of the shipped manifests.
const MEMORY_LIMIT: u64 = 128 * 1024 * 1024;

/// The daemon with `apps` apps whose service cannot be reached, and `args`.
fn start(apps: usize, args: &[&str]) -> (tempfile::TempDir, Exporter) {
    let (folder, config) = configuration(apps);
    let exporter = Exporter::start(&[&["--config.file", config.to_str().unwrap()], args].concat());
    (folder, exporter)
}

/// A configuration of `apps` apps whose service cannot be reached.
fn configuration(apps: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "[api]\nbase_url = \"http://127.0.0.1:9\"\ntoken = \"t\"\n[poll]\ninterval = \"1h\"\nsettings_interval = \"1h\"\nstale_after = \"2h\"\n[[projects]]\nid = \"p-1\"\napps = [\n".to_owned();
    for app in 0..apps {
        writeln!(text, "  \"p-1-app-with-an-ordinary-name-{app}\",").unwrap();
    }
    text.push_str("]\n");
    let path = folder.path().join("pds-exporter.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// The daemon with one app and TLS; `more` goes on in the TLS section of the web configuration.
fn start_with_tls(authority: &Authority, more: &str) -> (tempfile::TempDir, Exporter) {
    let web_config = authority.web_config(more);
    start(1, &["--web.config.file", web_config.to_str().unwrap()])
}

fn address(exporter: &Exporter) -> SocketAddr {
    exporter.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// A connection of the attacker's that takes next to nothing into its buffer.
async fn attack(exporter: &Exporter) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind((ATTACKER, 0).into()).unwrap();
    in_time(socket.connect(address(exporter))).await.unwrap()
}

/// The same with TLS, speaking HTTP/2.
async fn attack_http2(exporter: &Exporter, client: &Arc<rustls::ClientConfig>) -> TlsStream<TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(client));
    in_time(connector.connect(name, attack(exporter).await)).await.unwrap()
}

/// A client of HTTP/2 that trusts `authority`.
fn http2(authority: &Authority) -> Arc<rustls::ClientConfig> {
    let mut client = authority.trusted().with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(client)
}

/// Fails unless a client that `authority` vouches for gets the page in time.
async fn assert_scraped(authority: &Authority, exporter: &Exporter) {
    let url = format!("{}/metrics", exporter.url.replace("http:", "https:"));
    assert_eq!(in_time(curl(&["--cacert", &authority.ca(), &url])).await.status, 200);
}

/// The outcome of `action`, which is to take a moment.
async fn in_time<T>(action: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, action).await.expect("an answer in time")
}
