//! Accepts connections until it is stopped, then finishes the requests in progress.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pds_core::error_chain::with_sources;
use pds_core::memory::Holder;
use pds_core::template::Template;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::watch;

use super::auth::Auth;
use super::backend::{self, Backend};
use super::connection::{self, ShutdownPhase};
use super::connection_state::ConnectionState;
use super::connections::{CONNECTION_BYTES, Connected, Connections};
use super::error::{Error, MIN_DESCRIPTORS};
use super::handshake;
use super::listen::{self, Listener, Stream};
use super::route::Route;
use super::router::Router;
use super::tracked_io::TrackedIo;
use super::turns::Turns;
use super::webconfig::Live;
use super::{Config, Observer, systemd};

/// Pause before the next connection is accepted when the system is out of files.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

/// A server that listens but does not serve yet; connections wait in the kernel.
pub struct Server {
    config: Config,
    listeners: Vec<Listener>,
    live: Live,
    auth: Arc<Auth>,
    connections: Arc<Connections>,
}

impl Config {
    /// Opens the addresses (or takes systemd's sockets) and reads the web configuration file. Raises the process' soft
    /// limit of file descriptors to the hard limit, as Go's exporters do. Too few descriptors lower
    /// [`max_connections`](super::Limits::max_connections). Call it inside a tokio runtime.
    ///
    /// # Errors
    /// If an address cannot be listened on, or the web configuration file is bad.
    pub fn bind(mut self, observer: impl Observer) -> Result<Server, Error> {
        let listeners = if self.systemd_socket {
            systemd::listeners()?
        } else {
            let addresses = self.listen_addresses.iter();
            addresses.map(|address| listen::open(address)).collect::<Result<Vec<_>, _>>()?
        };
        if listeners.is_empty() {
            return Err(Error::NoAddress);
        }
        self.check_flags()?;
        let memory = self.memory.share(Holder::Connections);
        let fit = usize::try_from(memory.bytes() / CONNECTION_BYTES).unwrap_or(usize::MAX);
        let most = self.limits.max_connections.min(fit);
        self.limits.max_connections = affordable_connections(most, raise_descriptor_limit()?);
        let observer: Arc<dyn Observer> = Arc::new(observer);
        let live = Live::start(self.config_file.as_deref(), Arc::clone(&observer)).map_err(|source| {
            Error::WebConfig { path: self.config_file.clone().unwrap_or_default(), source }
        })?;
        let connections = Arc::new(Connections::new(self.limits, memory, observer));
        Ok(Server { auth: Auth::new()?, live, connections, config: self, listeners })
    }

    /// Checks the values of flags about addresses, paths, hosts and URLs.
    ///
    /// # Errors
    /// The first one that [`Config::bind`] would refuse whatever the state of the system.
    pub fn check_flags(&self) -> Result<(), Error> {
        self.listen_addresses.iter().try_for_each(|address| listen::check(address))?;
        // Its path may be the route prefix.
        let scheme = self.external_url.as_ref().map_or("http", |url| url.scheme());
        if !matches!(scheme, "http" | "https") {
            let problem = "the scheme of an external URL is http or https";
            return Err(Error::flag("--web.external-url", scheme, problem));
        }
        let metrics = self.telemetry_path.as_str();
        let bad_metrics = |problem| Err(Error::flag("--web.telemetry-path", metrics, problem));
        check_path("--web.telemetry-path", metrics)?;
        check_path("--web.route-prefix", self.prefix())?;
        if matches!(metrics, "" | "/") {
            return bad_metrics("the status page has this path");
        }
        if metrics.starts_with("/-/") {
            return bad_metrics("paths below /-/ are for health and lifecycle");
        }
        if let Some(host) = self.allowed_hosts.iter().find(|host| host.contains('/')) {
            return Err(Error::flag("--web.allowed-hosts", host, "a host has neither scheme nor path"));
        }
        Ok(())
    }

    /// Checks that none of the pages with these `paths`, which may hold `{name}` segments, has the path of the metrics.
    ///
    /// # Errors
    /// If one has.
    pub fn check_pages(&self, mut paths: impl Iterator<Item = String>) -> Result<(), Error> {
        let metrics = &self.telemetry_path;
        match paths.any(|path| Template(&path).values(metrics).is_some()) {
            true => Err(Error::flag("--web.telemetry-path", metrics, "another page has this path")),
            false => Ok(()),
        }
    }

    pub(super) fn prefix(&self) -> &str {
        self.route_prefix.trim_end_matches('/')
    }
}

/// Checks the `path` in the value of `flag`.
fn check_path(flag: &'static str, path: &str) -> Result<(), Error> {
    if !path.is_empty() && !path.starts_with('/') {
        return Err(Error::flag(flag, path, "it must begin with '/'"));
    }
    // Clients send other characters percent-encoded.
    if path.contains(|c: char| !c.is_ascii_graphic() || "?#{}".contains(c)) {
        return Err(Error::flag(flag, path, "it must be visible ASCII without ? # { }"));
    }
    Ok(())
}

impl Server {
    /// The addresses it listens on, for the log.
    pub fn addresses(&self) -> Vec<String> {
        self.listeners.iter().map(ToString::to_string).collect()
    }

    /// The first TCP address; port 0 is resolved.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(Listener::tcp_address)
    }

    /// Serves until `shutdown` completes, then finishes the requests in progress within
    /// [`drain_timeout`](super::Limits::drain_timeout). `pages` follow the server's own routes: the telemetry path and
    /// those below `/-/`.
    pub async fn serve(
        self,
        backend: Arc<dyn Backend>,
        pages: Vec<Route>,
        shutdown: impl Future<Output = ()>,
    ) {
        let Self { config, listeners, live, auth, connections } = self;
        let drain_timeout = config.limits.drain_timeout;
        let mut routes = backend::routes(&backend, &config);
        routes.extend(pages);
        for route in &mut routes {
            route.path.insert_str(0, config.prefix());
        }
        let addresses: Vec<_> = listeners.iter().filter_map(Listener::tcp_address).collect();
        let (phase, watched) = watch::channel(ShutdownPhase::Serving);
        let acceptor = Arc::new(Acceptor {
            router: Arc::new(Router::new(config, &addresses, routes, live, auth)),
            connections: Arc::clone(&connections),
            handshakes: Turns::new(handshake::MAX_CONCURRENT, handshake::MAX_WAITING),
            phase: watched,
        });
        for listener in listeners {
            tokio::spawn(Arc::clone(&acceptor).accept(listener));
        }
        // From here on, only listeners and connections hold it, and watch the phase.
        drop(acceptor);
        shutdown.await;
        phase.send_replace(ShutdownPhase::Draining);
        if tokio::time::timeout(drain_timeout, phase.closed()).await.is_err() {
            let left = connections.open();
            tracing::warn!(connections = left, "aborted requests that did not finish in time");
        }
        phase.send_replace(ShutdownPhase::Closed);
    }
}

/// State that all listeners share.
struct Acceptor {
    router: Arc<Router>,
    connections: Arc<Connections>,
    handshakes: Arc<Turns>,
    phase: watch::Receiver<ShutdownPhase>,
}

impl Acceptor {
    /// Accepts connections until the server stops, then closes the listener.
    async fn accept(self: Arc<Self>, listener: Listener) {
        let accept_all = async {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        let connected = self.connections.admit(peer).await;
                        tokio::spawn(Arc::clone(&self).connection(stream, connected));
                    }
                    Err(error) if is_client_gone(&error) => {}
                    Err(error) => {
                        self.connections.out_of_files(&error, &listener);
                        tokio::time::sleep(OUT_OF_FILES_PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            () = connection::reached(self.phase.clone(), ShutdownPhase::Draining) => {}
            () = accept_all => {}
        }
    }

    /// Serves a connection until it ends, its time is up, or the server stops.
    async fn connection(self: Arc<Self>, stream: Box<dyn Stream>, connected: Connected) {
        tokio::select! {
            () = self.serve(stream, &connected.state) => {}
            why = connected.state.expired() => tracing::debug!(why, "a connection was closed"),
            () = connection::reached(self.phase.clone(), ShutdownPhase::Closed) => {}
        }
    }

    async fn serve(&self, stream: Box<dyn Stream>, state: &ConnectionState) {
        let (stream, http2): (Box<dyn Stream>, _) = match self.router.live.current().tls.clone() {
            None => (stream, false),
            Some(tls) => {
                let stream = Box::new(TrackedIo::below_tls(stream, state.clone()));
                tokio::select! {
                    () = connection::reached(self.phase.clone(), ShutdownPhase::Draining) => return,
                    stream = handshake::accept(stream, tls, &self.handshakes, state.peer()) => match stream {
                        Ok(stream) => {
                            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                            (Box::new(stream), http2)
                        }
                        Err(error) => return tracing::debug!(%error, "a TLS handshake failed"),
                    },
                }
            }
        };
        let router = Arc::clone(&self.router);
        if let Err(error) = connection::serve(stream, http2, router, state, self.phase.clone()).await {
            tracing::debug!(error = with_sources(&error), "a connection ended early");
        }
    }
}

/// Raises the soft limit of file descriptors to the hard limit and returns it; `None` if there is no limit.
///
/// # Errors
/// If it is less than a process needs.
pub fn raise_descriptor_limit() -> Result<Option<u64>, Error> {
    let limit = getrlimit(Resource::Nofile);
    let raised = match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    match raised {
        Some(limit @ ..MIN_DESCRIPTORS) => Err(Error::Descriptors(limit)),
        raised => Ok(raised),
    }
}

/// The maximum number of connections with this many descriptors: three quarters of them.
fn affordable_connections(max_connections: usize, descriptors: Option<u64>) -> usize {
    let Some(limit) = descriptors else { return max_connections };
    let connections = usize::try_from(limit / 4 * 3).unwrap_or(usize::MAX);
    if connections < max_connections {
        tracing::warn!(
            connections,
            descriptors = limit,
            "the limit of open files allows fewer connections than usual"
        );
    }
    connections.min(max_connections)
}

/// Whether the client disconnected before its connection was accepted.
fn is_client_gone(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    [ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest_of_the_process() {
        let descriptors = [None, Some(1024), Some(256), Some(64)];
        let connections = descriptors.map(|descriptors| affordable_connections(256, descriptors));
        assert_eq!(connections, [256, 256, 192, 48]);
    }
}
