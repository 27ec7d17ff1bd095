//! The parts of an exporter in tests: a service, a configuration of its apps, and the daemon or its parts.

mod configuration;
mod fault;
mod log;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pds_client::{Client, Turn};
use pds_config::Config;
use pds_core::clock::Clock;
use pds_exporter::app::daemon::{Daemon, Handle};
use pds_exporter::poll::plan::Target;
use pds_exporter::poll::{Context, Plan, execute};
use pds_exporter::store::Filter;
use pds_exposition::Format;
use pds_interface::{TimeRange, response_time};
use pds_ledger::{Committer, Key, LedgerStore, Watermark};
use pds_simulator::{Settings, World};
use pds_telemetry::Telemetry;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

pub(crate) use configuration::Configuration;
pub(crate) use fault::{FaultExt, html, nested};
pub(crate) use log::Log;

/// Tables that poll and count as often as possible.
pub(crate) const EVERY_SECOND: &str =
    "[poll]\ninterval = \"1s\"\nsettings_interval = \"5s\"\nsettle = \"1s\"\n[accounting]\nstep = \"1s\"\n";

/// Serves `world` on a free port of the loopback until the test ends. Returns its base URL.
pub(crate) async fn serve(world: &World) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(pds_simulator::serve(world.clone(), listener));
    url
}

/// Terminates TLS before the service at `url` until the test ends. Returns the address for clients.
pub(crate) async fn terminate_tls(url: &str, tls: TlsAcceptor) -> SocketAddr {
    let (listener, service) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), url.replace("http://", ""));
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (tls, service) = (tls.clone(), service.clone());
            tokio::spawn(async move {
                let mut client = tls.accept(client).await?;
                copy_bidirectional(&mut client, &mut TcpStream::connect(service).await?).await
            });
        }
    });
    address
}

/// A service of so many projects and apps, and its base URL.
pub(crate) async fn world(projects: usize, apps: usize) -> (World, String) {
    let world = World::new(Settings { projects, apps, ..Settings::default() }, Clock::system());
    let url = serve(&world).await;
    (world, url)
}

/// A service with these settings, and the path of a configuration of all its apps in a folder: counted every second.
pub(crate) async fn service(settings: Settings) -> (World, TempDir, String) {
    let (world, folder) = (World::new(settings, Clock::system()), tempfile::tempdir().unwrap());
    let config = Configuration::new(&world, &serve(&world).await)
        .api("max_requests_per_second = 0\nmax_retries = 1\n")
        .tables(EVERY_SECOND)
        .write(folder.path());
    (world, folder, config)
}

/// The most requests that come late where `usual` is expected: six standard deviations, and more for small counts.
pub(crate) fn most_late(usual: f64) -> f64 {
    if usual > 0.0 { usual + 6.0 * usual.sqrt() + 5.0 } else { 0.0 }
}

/// Runs a daemon without a web server until the test ends.
pub(crate) async fn daemon(config: Config, clock: &Clock) -> Handle {
    let daemon = Daemon::build(config, clock.clone(), Telemetry::new(false).unwrap()).await.unwrap();
    let handle = daemon.handle.clone();
    tokio::spawn(daemon.run(std::future::pending()));
    handle
}

/// The parts for polls by hand, of a new process with this state file or none.
pub(crate) async fn open(state: Option<&Path>, clock: &Clock) -> (Context, Committer) {
    let telemetry = Telemetry::new(false).unwrap();
    let (ledgers, committer) =
        LedgerStore::open(state, Arc::new(telemetry.clone()), Duration::ZERO).await.unwrap();
    (context(ledgers, telemetry, clock), committer)
}

/// The same with these ledgers.
pub(crate) fn context(ledgers: LedgerStore, telemetry: Telemetry, clock: &Clock) -> Context {
    Context::new(ledgers, telemetry, clock.clone())
}

/// The plan of `config` for polls by hand; after a reload, `before` is the former plan.
pub(crate) fn plan(config: Config, context: &Context, before: Option<&Plan>) -> Plan {
    let (telemetry, clock) = (context.telemetry.clone(), context.clock.clone());
    let client = match before {
        Some(before) => before.client.successor(&config.api, &config.accounts()),
        None => Client::new(&config.api, &config.accounts(), Arc::new(telemetry), clock.clone()),
    };
    let client = client.unwrap().retrying_refused_after(config.poll.settings_interval);
    if let Some(before) = before {
        client.take_over(Some(&before.client));
    }
    let watermark = match before {
        Some(before) => before.watermark.reconfigured(&config.counted_ranges()),
        None => Watermark::new(&config.counted_ranges(), clock),
    };
    Plan::new(Arc::new(config), client, watermark, context, before)
}

/// Polls the wanted targets once, one after the other.
pub(crate) async fn poll(context: &Context, plan: &Plan, wanted: impl Fn(&Target) -> bool) {
    for target in plan.targets.iter().filter(|target| wanted(target)) {
        execute::poll(context, plan, target, Turn::new(&target.account)).await;
    }
}

/// The count that the ledger of `key` should have of `range`.
pub(crate) fn truth(world: &World, key: &Key, range: TimeRange) -> u64 {
    let truth = world.truth(&key.owner.project, &key.owner.app, range).unwrap();
    if key.resource == response_time::RESOURCE { truth.requests } else { truth.runs }
}

/// The page without the exporter's own metrics.
pub(crate) fn page(context: &Context, format: Format) -> String {
    let mut page = Vec::new();
    let snapshot = context.store.snapshot(Instant::now(), &Filter::default());
    let Ok(()) = snapshot.write(format, &mut |chunk: &[u8]| {
        page.extend_from_slice(chunk);
        Ok::<(), Infallible>(())
    });
    String::from_utf8(page).unwrap()
}

/// The exporter's own metrics in text format.
pub(crate) fn own_page(telemetry: &Telemetry) -> String {
    let mut own = Vec::new();
    telemetry.write(&mut own, Format::Text, |_| true);
    String::from_utf8(own).unwrap()
}

/// The page in text format with the exporter's own metrics.
pub(crate) fn whole_page(context: &Context) -> String {
    page(context, Format::Text) + &own_page(&context.telemetry)
}
