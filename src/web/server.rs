//! Takes connections until told to stop, then finishes what is under way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::auth::Auth;
use super::backend::{self, Backend};
use super::connection::{self, ServerState};
use super::error::Error;
use super::listen::{self, Listener, Stream};
use super::route::Route;
use super::router::Router;
use super::webconfig::Live;
use super::{Config, Limits};
use crate::telemetry::Telemetry;

/// How long taking connections pauses where the system has no more files to give; asking at once again would
/// only burn the processor.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

/// A server that listens already and serves nothing yet: connections wait.
pub struct Server {
    config: Config,
    listeners: Vec<Listener>,
    live: Arc<Live>,
    auth: Arc<Auth>,
}

impl Config {
    /// Opens the addresses (or takes systemd's sockets) and reads the web configuration file. To be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// Where an address can't be listened on or the web configuration file is bad.
    pub fn bind(self, telemetry: &Telemetry) -> Result<Server, Error> {
        let listeners = if self.systemd_socket {
            listen::from_systemd()?
        } else {
            self.listen_addresses.iter().map(|address| listen::open(address)).collect::<Result<_, _>>()?
        };
        self.bind_to(listeners, telemetry)
    }

    /// The same with listeners that are open already.
    ///
    /// # Errors
    /// As [`Config::bind`].
    pub fn bind_to(self, listeners: Vec<Listener>, telemetry: &Telemetry) -> Result<Server, Error> {
        if listeners.is_empty() {
            return Err(Error::NoAddress);
        }
        self.check_paths()?;
        let live = Live::start(self.config_file.as_deref(), telemetry).map_err(|source| {
            Error::WebConfig { path: self.config_file.clone().unwrap_or_default(), source }
        })?;
        Ok(Server { auth: Auth::new()?, live: Arc::new(live), config: self, listeners })
    }

    fn check_paths(&self) -> Result<(), Error> {
        let bad = |flag, path: &str, problem| Err(Error::Path { flag, path: path.to_owned(), problem });
        for (flag, path) in
            [("--web.telemetry-path", self.telemetry_path.as_str()), ("--web.route-prefix", self.prefix())]
        {
            if !path.is_empty() && !path.starts_with('/') {
                return bad(flag, path, "it must begin with '/'");
            }
            if path.contains(['?', '#', '{', '}', ' ']) {
                return bad(flag, path, "it may hold none of ? # { } and no space");
            }
        }
        match self.telemetry_path.as_str() {
            path @ ("" | "/") => bad("--web.telemetry-path", path, "the status page is there"),
            path if path.starts_with("/-/") => {
                bad("--web.telemetry-path", path, "paths below /-/ are for health and lifecycle")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn prefix(&self) -> &str {
        self.route_prefix.trim_end_matches('/')
    }
}

impl Server {
    /// Whether connections need TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.live.current().tls.is_some()
    }

    /// Where it listens, as texts for the log.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.listeners.iter().map(ToString::to_string).collect()
    }

    /// The first TCP address, with the real port where port 0 was asked for.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(Listener::tcp_address)
    }

    /// Serves until `shutdown` completes, then finishes what is under way within [`Limits::drain_timeout`].
    /// `pages` come after the routes of the server's own: the telemetry path and those below `/-/`.
    pub async fn serve(
        self,
        daemon: Arc<dyn Backend>,
        pages: Vec<Route>,
        shutdown: impl Future<Output = ()>,
    ) {
        let Self { config, listeners, live, auth } = self;
        let limits = config.limits;
        let mut routes = backend::routes(&daemon, &config.telemetry_path);
        routes.extend(pages);
        for route in &mut routes {
            route.path.insert_str(0, config.prefix());
        }
        let (stage, watched) = watch::channel(ServerState::Serving);
        let acceptor = Arc::new(Acceptor {
            site: Arc::new(Router::new(&config, routes, Arc::clone(&live), auth)),
            live,
            limits,
            places: Arc::new(Semaphore::new(limits.max_connections)),
            stage: watched,
        });
        for listener in listeners {
            tokio::spawn(Arc::clone(&acceptor).accept(listener));
        }
        shutdown.await;
        stage.send_replace(ServerState::Draining);
        acceptor.drained(limits.drain_timeout).await;
        stage.send_replace(ServerState::Closed);
    }
}

/// What all listeners share.
struct Acceptor {
    site: Arc<Router>,
    live: Arc<Live>,
    limits: Limits,
    /// One permit for each connection.
    places: Arc<Semaphore>,
    stage: watch::Receiver<ServerState>,
}

impl Acceptor {
    /// Takes connections until the server stops; then the listener is closed.
    async fn accept(self: Arc<Self>, listener: Listener) {
        let mut stage = self.stage.clone();
        tokio::select! {
            () = connection::reached(&mut stage, ServerState::Draining) => {}
            () = self.accept_all(&listener) => {}
        }
    }

    async fn accept_all(self: &Arc<Self>, listener: &Listener) {
        // Ends only with the semaphore, which nobody closes.
        while let Ok(place) = Arc::clone(&self.places).acquire_owned().await {
            match listener.accept().await {
                Ok(stream) => {
                    let acceptor = Arc::clone(self);
                    tokio::spawn(async move {
                        acceptor.connection(stream).await;
                        drop(place);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, %listener, "a connection cannot be taken");
                    tokio::time::sleep(OUT_OF_FILES_PAUSE).await;
                }
            }
        }
    }

    async fn connection(&self, stream: Box<dyn Stream>) {
        let (site, limits, stage) = (Arc::clone(&self.site), self.limits, self.stage.clone());
        let Some(tls) = self.live.current().tls.clone() else {
            return connection::serve(stream, false, site, limits, stage).await;
        };
        let mut stopping = self.stage.clone();
        let handshake = tokio::time::timeout(limits.handshake_timeout, TlsAcceptor::from(tls).accept(stream));
        tokio::select! {
            () = connection::reached(&mut stopping, ServerState::Draining) => {}
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => {
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    connection::serve(Box::new(stream), http2, site, limits, stage).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_elapsed) => tracing::debug!("a TLS handshake took too long"),
            },
        }
    }

    /// Completes once no connection is left, or with the time that is given for it.
    async fn drained(&self, within: Duration) {
        let all = u32::try_from(self.limits.max_connections).unwrap_or(u32::MAX);
        if tokio::time::timeout(within, self.places.acquire_many(all)).await.is_err() {
            let left = self.limits.max_connections - self.places.available_permits();
            tracing::warn!(connections = left, "what was under way did not end in time and is broken off");
        }
    }
}

/// The client was gone before it was taken.
fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::NotConnected
    )
}
