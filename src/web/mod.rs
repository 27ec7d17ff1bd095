//! Who may read, and in which form: the HTTP server.
//!
//! [`Config`] binds the part, [`Server::serve`] runs it. What is shown comes from a [`Backend`] and from
//! [`Route`]s that are handed in, those of the status [`pages`] among them; the server itself knows no page but its own
//! few sentences.
//!
//! A request passes [`listen`](Listener) (TCP, unix, systemd), a connection with its limits, the rate limit and
//! the password of the [`webconfig`], the table of routes, its handler, and content coding. What it asks for in
//! headers and query is read by pure functions: [`negotiate`] and [`filter::parse`].
//!
//! Deliberately absent: CORS (nobody's script has business here), redirects, access logs, static files.

mod auth;
mod backend;
mod body;
mod compress;
mod connection;
mod error;
pub mod filter;
mod health;
mod listen;
pub mod negotiate;
pub mod notify;
pub mod pages;
mod response;
mod route;
mod router;
mod server;
mod timeouts;
pub mod webconfig;

use std::path::PathBuf;
use std::time::Duration;

pub use backend::{Backend, BoxFuture, Page};
pub use body::ResponseBody;
pub use error::Error;
pub use listen::Listener;
pub use negotiate::Encoding;
pub use response::Response;
pub use route::{HandlerFuture, Methods, PageRequest, Route};
pub use server::Server;

/// What the web flags say.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `--web.listen-address`, any number: `host:port`, `:port` (all interfaces), `[v6]:port`, `unix:/path`.
    pub listen_addresses: Vec<String>,
    /// `--web.systemd-socket`: the sockets systemd handed over take the place of the addresses.
    pub systemd_socket: bool,
    /// `--web.telemetry-path`.
    pub telemetry_path: String,
    /// `--web.route-prefix`: before every path, for a proxy that leaves it there; empty or `/` is none.
    pub route_prefix: String,
    /// `--web.config.file`, in the exporter toolkit's format.
    pub config_file: Option<PathBuf>,
    /// `--web.max-requests`: scrapes at once; 0 is no limit.
    pub max_requests: u32,
    /// `--web.enable-lifecycle`.
    pub enable_lifecycle: bool,
    /// `--web.probes-without-auth`: `/-/healthy` and `/-/ready` need no password, as kubelet has none.
    pub probes_without_auth: bool,
    /// Times and sizes.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen_addresses: vec![":10090".to_owned()],
            systemd_socket: false,
            telemetry_path: "/metrics".to_owned(),
            route_prefix: String::new(),
            config_file: None,
            max_requests: 40,
            enable_lifecycle: false,
            probes_without_auth: false,
            limits: Limits::default(),
        }
    }
}

/// How much time and room a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For the TLS handshake.
    pub handshake_timeout: Duration,
    /// From the first byte of a request (or the start of the connection) to the end of its header.
    pub header_timeout: Duration,
    /// Between requests of a connection that is kept alive.
    pub idle_timeout: Duration,
    /// For taking one piece (256 KiB) of an answer.
    pub write_timeout: Duration,
    /// Of a request's header; more is answered 431.
    pub max_header_bytes: usize,
    /// Connections at once, over all listeners; further ones wait in the kernel's queue.
    pub max_connections: usize,
    /// For finishing what is under way when the server stops.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A handshake and a header are a few packets: what takes longer is no scraper.
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            // Longer than the longest usual scrape interval, so that scrapers keep their connection.
            idle_timeout: Duration::from_secs(300),
            write_timeout: Duration::from_secs(30),
            // Four times what the largest browsers and proxies send.
            max_header_bytes: 32 * 1024,
            // With the poller's connections still below the usual limit of 1024 open files.
            max_connections: 768,
            // Below the 30 s after which Kubernetes kills, above Prometheus' default scrape timeout.
            drain_timeout: Duration::from_secs(15),
        }
    }
}
