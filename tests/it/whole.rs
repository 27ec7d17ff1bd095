//! The whole daemon in one process: the demo's page to the letter, and what it costs the service.

use std::path::Path;
use std::time::Duration;

use pds_exporter::app::daemon::Daemon;
use pds_exporter::app::{self, demo};
use pds_exporter::catalogue::Format;
use pds_exporter::clock::Clock;
use pds_exporter::config::{self, Config};
use pds_exporter::simulator::{self, Settings, World};
use pds_exporter::store::Filter;
use pds_exporter::telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::golden::assert_golden;
use crate::process::until;

/// What stands on the page beside the exporter's own metrics.
pub(crate) fn page(daemon: &app::daemon::Handle, format: Format) -> String {
    let mut page = Vec::new();
    let snapshot = daemon.context().store.snapshot(Instant::now());
    let Ok(()) = snapshot.write(format, &Filter::default(), &mut |chunk: &[u8]| {
        page.extend_from_slice(chunk);
        Ok::<(), std::convert::Infallible>(())
    });
    String::from_utf8(page).unwrap()
}

#[tokio::test]
async fn the_demo_exposes_this_to_the_letter() {
    let clock = Clock::standing_at("2026-03-01T12:00:00Z".parse().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let demo = demo::start(listener, clock.clone()).unwrap();
    let daemon = Daemon::build(demo.loaded.config, clock, Telemetry::new(false).unwrap()).await.unwrap();
    let handle = daemon.handle();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(daemon.run(async { drop(stopped.await) }));
    until("every target was asked", async || handle.is_ready()).await;
    stop.send(()).unwrap();
    running.await.unwrap();
    assert_golden(Path::new("tests/it/whole/demo.txt"), &page(&handle, Format::Text));
    assert_golden(Path::new("tests/it/whole/demo.openmetrics.txt"), &page(&handle, Format::OpenMetrics));
}

/// A configuration that polls all of `world`, which answers at `address`, without a limit of its own.
pub(crate) fn configuration(world: &World, address: &str, more: &str) -> Config {
    let mut text = format!("[api]\nbase_url = \"http://{address}\"\nmax_requests_per_second = 0\n{more}\n");
    for (project, apps) in world.projects() {
        let token = world.token(&project).unwrap();
        let apps: Vec<String> = apps.iter().map(|app| serde_json::Value::from(&**app).to_string()).collect();
        text += &format!(
            "[[projects]]\nid = \"{project}\"\ntoken = \"{}\"\napps = [{}]\n",
            token.expose(),
            apps.join(",")
        );
    }
    config::load_text(Path::new("test.toml"), &text).unwrap().config
}

/// Half an hour of polling in paused time: how many requests a minute the service saw, and how many were expected.
async fn requests_a_minute(more: &str) -> (f64, f64) {
    const MINUTES: u32 = 30;
    let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
    let world = World::new(Settings { projects: 2, apps: 6, ..Settings::default() }, clock.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(simulator::serve(world.clone(), listener, std::future::pending()));
    let config = configuration(&world, &address.to_string(), more);
    let expected = config.requests_per_minute().total;
    let daemon = Daemon::build(config, clock, Telemetry::new(false).unwrap()).await.unwrap();
    let handle = daemon.handle();
    let running = tokio::spawn(daemon.run(std::future::pending()));
    // The first round asks everything at once, out of turn.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(handle.is_ready());
    let before = world.requests().total;
    tokio::time::sleep(Duration::from_secs(60) * MINUTES).await;
    let asked = world.requests().total - before;
    running.abort();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand requests")]
    (asked as f64 / f64::from(MINUTES), expected)
}

#[tokio::test(start_paused = true)]
async fn the_service_sees_as_many_requests_as_expected() {
    for more in [
        "",
        "[poll]\nwindows = [\"1m\"]",
        "[poll]\ninterval = \"30s\"\nwindows = [\"5m\", \"1h\"]",
        "[poll]\ninterval = \"15s\"\n[accounting]\nstep = \"5m\"",
        "[accounting]\nenabled = false",
    ] {
        let (asked, expected) = requests_a_minute(more).await;
        assert!(
            (asked - expected).abs() < expected * 0.02,
            "asked {asked} times a minute, expected {expected}: {more}"
        );
    }
}
