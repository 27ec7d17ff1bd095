//! A daemon and its service in this process, with real time.

use std::future::pending;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_exporter::app::daemon::{Daemon, Handle};
use pds_exporter::app::serve::Served;
use pds_exporter::pages::{PagesConfig, StatusPages};
use pds_exporter::status::Source;
use pds_simulator::{Fault, Settings, World, serve};
use pds_telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::process::until;
use crate::rig::Configuration;

use super::look;

/// The pages are behind a proxy.
pub(super) const PREFIX: &str = "/behind/a/proxy";
/// Polls every second.
pub(super) const RHYTHM: &str = "[poll]\ninterval = \"1s\"\nsettings_interval = \"3s\"\nsettle = \"1s\"";

/// A daemon, its service, and where their pages are.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) service: JoinHandle<()>,
    service_url: String,
    pub(super) handle: Handle,
    pub(super) url: String,
}

impl Stage {
    /// Starts a service of some apps, and a daemon whose configuration `write` makes of the usual one: all apps, polled
    /// every second.
    pub(super) async fn of(write: impl FnOnce(Configuration<'_>) -> Configuration<'_>) -> Self {
        Self::with(Clock::system(), [], write).await
    }

    /// The same by this clock, with a service that has these faults from the start.
    pub(super) async fn with<const N: usize>(
        clock: Clock,
        faults: [Fault; N],
        write: impl FnOnce(Configuration<'_>) -> Configuration<'_>,
    ) -> Self {
        let world = World::new(Settings::default(), clock.clone());
        world.faults().set(faults);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service_url = format!("http://{}", listener.local_addr().unwrap());
        let usual = Configuration::new(&world, &service_url)
            .api("max_retries = 0\ntimeout = \"5s\"\nmax_requests_per_second = 0\n")
            .tables(RHYTHM);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(write(usual).text().as_bytes()).unwrap();
        let loaded = pds_config::load(file.path(), []).unwrap();
        let service = tokio::spawn(serve(world.clone(), listener));

        let telemetry = Telemetry::new(true).unwrap();
        let flags = pds_web::Config {
            listen_addresses: vec!["127.0.0.1:0".to_owned()],
            route_prefix: PREFIX.to_owned(),
            ..pds_web::Config::default()
        };
        let server = flags.bind(telemetry.clone()).unwrap();
        let url = format!("http://{}{PREFIX}/", server.addresses()[0]);
        let daemon = Daemon::build(loaded.config, clock, telemetry).await.unwrap();
        let handle = daemon.handle.clone();
        let source = Source::new(handle.context.clone(), handle.plan().await, loaded.explained);
        let groups = pds_telemetry::catalogue::catalogue();
        let shown = PagesConfig { prefix: PREFIX, replies: true, ..PagesConfig::default() };
        let pages = StatusPages::new(source.clone(), groups, shown).routes();
        let served = Arc::new(Served::new(handle.clone(), source, None, None));
        tokio::spawn(daemon.run(pending()));
        tokio::spawn(server.serve(served, pages, pending()));
        Self { world, service, service_url, handle, url }
    }

    /// Waits until every target was asked, and then for so many polls more.
    pub(super) async fn filled(&self, polls: u32) {
        until("every target was asked", async || self.handle.is_ready()).await;
        tokio::time::sleep(Duration::from_secs(1) * polls).await;
    }

    /// Lets the browser look at it as the part `part` of the script.
    pub(super) async fn look(&self, part: &str, folder: Option<&Path>) {
        look(part, &self.url, folder, &[("SERVICE", &self.service_url)]).await;
    }
}
