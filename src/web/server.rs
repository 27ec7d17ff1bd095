//! Takes connections until told to stop, then finishes what is under way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::connection::{self, Stage};
use super::daemon::{self, Daemon};
use super::error::Error;
use super::listen::{self, Listener, Stream};
use super::route::Route;
use super::site::Site;
use super::{Config, Limits};
use crate::own::Own;

/// How long taking connections pauses where the system has no more files to give; asking at once again would
/// only burn the processor.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

/// A server that listens already and serves nothing yet: connections wait.
#[derive(Debug)]
pub struct Server {
    config: Config,
    listeners: Vec<Listener>,
}

impl Config {
    /// Opens the addresses (or takes systemd's sockets) and reads the web configuration file. To be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// Where an address can't be listened on or the web configuration file is bad.
    pub fn bind(self, own: &Own) -> Result<Server, Error> {
        let listeners = if self.systemd_socket {
            listen::from_systemd()?
        } else {
            self.listen_addresses.iter().map(|address| listen::open(address)).collect::<Result<_, _>>()?
        };
        self.bind_to(listeners, own)
    }

    /// The same with listeners that are open already.
    ///
    /// # Errors
    /// As [`Config::bind`].
    pub fn bind_to(self, listeners: Vec<Listener>, _own: &Own) -> Result<Server, Error> {
        if listeners.is_empty() {
            return Err(Error::NoAddress);
        }
        let problem = match self.telemetry_path.as_str() {
            path if !path.starts_with('/') => Some("it must begin with '/'"),
            path if path.starts_with("/-/") => Some("paths below /-/ are for health and lifecycle"),
            path if path.contains(['?', '#', '{', '}']) => Some("it may hold none of ? # { }"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Error::TelemetryPath { path: self.telemetry_path, problem });
        }
        Ok(Server { config: self, listeners })
    }
}

impl Server {
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
    pub async fn serve(self, daemon: Arc<dyn Daemon>, pages: Vec<Route>, shutdown: impl Future<Output = ()>) {
        let Self { config, listeners } = self;
        let limits = config.limits;
        let mut routes = daemon::routes(&daemon, &config.telemetry_path);
        routes.extend(pages);
        let (stage, watched) = watch::channel(Stage::Serving);
        let acceptor = Arc::new(Acceptor {
            site: Arc::new(Site::new(&config, routes)),
            limits,
            places: Arc::new(Semaphore::new(limits.max_connections)),
            stage: watched,
        });
        for listener in listeners {
            tokio::spawn(Arc::clone(&acceptor).accept(listener));
        }
        shutdown.await;
        stage.send_replace(Stage::Draining);
        acceptor.drained(limits.drain_timeout).await;
        stage.send_replace(Stage::Closed);
    }
}

/// What all listeners share.
struct Acceptor {
    site: Arc<Site>,
    limits: Limits,
    /// One permit for each connection.
    places: Arc<Semaphore>,
    stage: watch::Receiver<Stage>,
}

impl Acceptor {
    /// Takes connections until the server stops; then the listener is closed.
    async fn accept(self: Arc<Self>, listener: Listener) {
        let mut stage = self.stage.clone();
        tokio::select! {
            () = connection::reached(&mut stage, Stage::Draining) => {}
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
                    tracing::warn!(%error, %listener, "a connection can't be taken");
                    tokio::time::sleep(OUT_OF_FILES_PAUSE).await;
                }
            }
        }
    }

    async fn connection(&self, stream: Box<dyn Stream>) {
        connection::serve(stream, false, Arc::clone(&self.site), self.limits, self.stage.clone()).await;
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
