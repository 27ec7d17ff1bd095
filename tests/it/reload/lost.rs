//! No change is lost: a reload that has begun is finished, and a change during the start is loaded.

use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;

use pds_config::flags::CommandLine;
use pds_core::clock::Clock;
use pds_exporter::app::daemon::Daemon;
use pds_exporter::app::serve::{ConfigSource, Served};
use pds_exporter::status::Source;
use pds_telemetry::Telemetry;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_is_finished_although_its_client_disconnects() {
    let running = Running::start().await;
    std::fs::write(&running.file, running.with_one_app()).unwrap();
    let address = running.exporter.url.trim_start_matches("http://");
    let targets = async || running.metric("pds_exporter_targets").await;
    // A server that reads a request together with the end of its connection does not begin to answer it.
    for _ in 0..8 {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.write_all(b"POST /-/reload HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        drop(client);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    until("it is reloaded", async || targets().await == Some(super::targets(1))).await;
    let listed = async || running.exporter.get("/api/v1/status").await.contains(&*running.apps()[1]);
    until("the status has followed", async || !listed().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_changes_during_the_start_is_loaded() {
    let (world, _folder, file) = rig::service(Settings { projects: 1, ..Settings::default() }).await;
    let line = CommandLine::parse(["pds-exporter", "--config.file", &file].map(OsString::from)).unwrap();
    let source = ConfigSource::new(&line.flags, Vec::new());
    let (checksum, loaded) = source.read();
    let (loaded, text) = (loaded.unwrap(), std::fs::read_to_string(&file).unwrap());
    std::fs::write(&file, text.replace("[poll]\n", "[poll]\nwindows = [\"7m\"]\n")).unwrap();
    let telemetry = Telemetry::new(false).unwrap();
    let daemon = Daemon::build(loaded.config, Clock::system(), telemetry).await.unwrap();
    let handle = daemon.handle.clone();
    let status = Source::new(handle.context.clone(), handle.plan().await, loaded.explained);
    let served = Served::new(handle.clone(), status, Some((source, checksum)), None);
    tokio::spawn(daemon.run(std::future::pending()));
    tokio::spawn(async move { served.follow_files(Duration::from_millis(10)).await });
    until("the change is loaded", async || handle.plan().await.shown().window == 7 * 60).await;
    assert!(world.requests().total > 0);
}
