//! The web server of a Prometheus exporter.
//!
//! It is to exporters in Rust what exporter-toolkit is to those in Go: listeners (TCP, unix, systemd), TLS, users and
//! limits as in the toolkit's web configuration file, negotiation of format and compression, probes and lifecycle. It
//! knows neither metrics nor the exporter behind it.
//!
//! [`Config`] binds the server, [`Server::serve`] runs it. A [`Backend`] and [`Route`]s provide its pages; an
//! [`Observer`] receives its events. An exporter whose metrics live in a `prometheus::Registry`, behind the users and
//! TLS of a web configuration file:
//!
//! ```no_run
#![doc = include_str!("../examples/registry.rs")]
//! ```
//!
//! # Scarce resources
//!
//! A peer that holds less of a resource than another gets the next part of it, whatever others do: a connection as soon
//! as one is idle, a request slot within two seconds if there are fewer peers than slots, a TLS handshake or a password
//! check after at most one by each other peer. Unread responses and connections share one memory budget; work for a
//! client stops when it stops reading. Bytes that cost a client little (TLS records, HTTP/2 frames, headers that drip)
//! have a rate and a time.
//!
//! # The path of a request
//!
//! - `listen`, [`systemd`]: a connection is taken (TCP, unix, systemd); `connections` bounds their number. `turns` hands
//!   out all that is scarce.
//! - `handshake`: TLS as the [`webconfig`] says.
//! - `connection`: HTTP/1 or HTTP/2; `tracked_io` reports its bytes to `connection_state`, which bounds its times,
//!   and bounds its TLS records and HTTP/2 frames (`meter`).
//! - `router`: `auth` checks the password, `hosts` refuses requests of other sites, `request_slots` bounds requests and
//!   unread answers.
//! - `route`, `backend`: the handler. [`negotiate`] chooses format and compression.
//! - `response`: the answer, and its way out.
//!
//! Deliberately absent: CORS (no script of another site needs access), redirects to other hosts, access logs,
//! static files.

#[cfg(not(target_os = "linux"))]
compile_error!("the web server bounds what the kernel buffers with socket options that only Linux has");

mod auth;
mod backend;
mod connection;
mod connection_state;
mod connections;
mod error;
mod handshake;
mod health;
mod hosts;
mod listen;
mod meter;
pub mod negotiate;
mod request_slots;
mod response;
mod route;
mod router;
mod server;
pub mod systemd;
mod tracked_io;
mod turns;
pub mod webconfig;

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

pub use auth::Credentials;
pub use backend::Backend;
pub use error::Error;
pub use health::local_address;
pub use listen::try_listen;
pub use negotiate::{Encoding, Negotiated};
use pds_core::memory::MemoryBudget;
pub use pds_exposition::Format;
pub use response::{Response, ResponseBody};
pub use route::{BoxFuture, PageRequest, Route};
pub use server::{Server, raise_descriptor_limit};

/// Fixed limits, besides those of [`Limits`].
pub mod limits {
    pub use super::connection::MAX_STREAMS;
    pub use super::meter::{
        BURST, FRAMES, Meter, PER_SECOND, RECEIVED_PER_RECORD, RECORDS, SENT_PER_FRAME, Units,
    };
    pub use super::request_slots::{ANSWER_DIVISOR, MAX_WAIT, MAX_WAITING};
    pub use super::response::MAX_PIECE_BYTES;
}

/// The web flags.
#[derive(Clone, Debug)]
pub struct Config {
    /// The exporter's name, as its probes and its password prompt show it.
    pub name: String,
    /// `--web.listen-address`, any number: `host:port`, `:port` (all interfaces), `[v6]:port`, `unix:/path`.
    pub listen_addresses: Vec<String>,
    /// `--web.systemd-socket`: the sockets that systemd passed replace the addresses.
    pub systemd_socket: bool,
    /// `--web.telemetry-path`.
    pub telemetry_path: String,
    /// `--web.route-prefix`: before every path, for a proxy that does not strip it; empty or `/` means none.
    pub route_prefix: String,
    /// `--web.external-url`: its host may send lifecycle requests from a browser.
    pub external_url: Option<url::Url>,
    /// `--web.allowed-hosts`: further names under which browsers may reach the exporter.
    pub allowed_hosts: Vec<String>,
    /// `--web.config.file`, in the exporter toolkit's format.
    pub config_file: Option<PathBuf>,
    /// `--web.max-requests`: requests answered at once, without probes; 0 means unlimited.
    pub max_requests: u32,
    /// `--web.enable-lifecycle`.
    pub enable_lifecycle: bool,
    /// `--web.probes-without-auth`: `/-/healthy` and `/-/ready` require no password, as the kubelet has none.
    pub probes_without_auth: bool,
    /// Memory that responses and connections share with the rest of the process.
    pub memory: MemoryBudget,
    /// Times and sizes.
    pub limits: Limits,
}

/// Receives the server's events, one method per event, so that the program can count them. Methods run on the serving
/// thread and must return at once.
#[expect(unused_variables, reason = "names of arguments are documentation")]
pub trait Observer: Debug + Send + Sync + 'static {
    /// So many more connections answer a request, and so many more answer none; fewer if negative.
    fn connections(&self, active: i32, idle: i32) {}

    /// The web configuration file was read. If not `good`, the last good one stays in force.
    fn web_config_read(&self, good: bool) {}
}

/// Ignores all events.
impl Observer for () {}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "exporter".to_owned(),
            listen_addresses: Vec::new(),
            systemd_socket: false,
            telemetry_path: "/metrics".to_owned(),
            route_prefix: String::new(),
            external_url: None,
            allowed_hosts: Vec::new(),
            config_file: None,
            max_requests: 40,
            enable_lifecycle: false,
            probes_without_auth: false,
            memory: MemoryBudget::default(),
            limits: Limits::default(),
        }
    }
}

/// Time and size limits for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time limit of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time limit from the first byte of a request (or the start of the connection) to the end of its header.
    pub header_timeout: Duration,
    /// Time limit between the requests of a connection.
    pub idle_timeout: Duration,
    /// Time limit for reading any part of a pending response.
    pub unread_timeout: Duration,
    /// Time limit for reading one piece (256 KiB) of a response.
    pub write_timeout: Duration,
    /// Age at which a connection ends after the request in progress, so that it does not outlive a revoked certificate
    /// for long.
    pub max_connection_age: Duration,
    /// Maximum size of a request's header; a larger one gets 431.
    pub max_header_bytes: usize,
    /// Maximum connections over all listeners, if memory and descriptors allow; idle ones are closed for new ones.
    pub max_connections: usize,
    /// Time limit of the requests in progress when the server stops.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A handshake or a header is a few packets; no scraper takes longer.
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            // Longer than the usual scrape intervals, so that scrapers keep their connection.
            idle_timeout: Duration::from_secs(300),
            // Prometheus' default scrape timeout, after which a scraper has given up.
            unread_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            // A handshake per half hour costs nothing.
            max_connection_age: Duration::from_secs(1800),
            // Four times the size that the largest browsers and proxies send.
            max_header_bytes: 32 * 1024,
            // More than all scrapers and browsers keep; memory for connections allows no more.
            max_connections: 256,
            // Below the grace period of Kubernetes (30 s), above Prometheus' default scrape timeout.
            drain_timeout: Duration::from_secs(15),
        }
    }
}
