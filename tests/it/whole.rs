//! The whole daemon in one process: the demo's page to the letter, what it costs the service, and where a reload runs.

use std::path::Path;
use std::time::Duration;

use pds_core::clock::Clock;
use pds_exporter::app::daemon::Daemon;
use pds_exporter::app::demo;
use pds_exposition::Format;
use pds_simulator::{Settings, World};
use pds_telemetry::Telemetry;
use tokio::net::TcpListener;

use crate::golden::assert_golden;
use crate::process::until;
use crate::rig::{self, Configuration, page};

#[tokio::test]
async fn the_demo_exposes_this_to_the_letter() {
    let clock = Clock::standing_at("2026-03-01T12:00:00Z".parse().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let loaded = demo::start(listener, clock.clone()).unwrap();
    let daemon = Daemon::build(loaded.config, clock, Telemetry::new(false).unwrap()).await.unwrap();
    let handle = daemon.handle.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(daemon.run(async { drop(stopped.await) }));
    until("every target was asked", async || handle.is_ready()).await;
    stop.send(()).unwrap();
    running.await.unwrap();
    assert_golden(Path::new("tests/it/whole/demo.txt"), &page(&handle.context, Format::Text));
    assert_golden(
        Path::new("tests/it/whole/demo.openmetrics.txt"),
        &page(&handle.context, Format::OpenMetrics),
    );
}

/// Half an hour of polling in paused time: how many requests a minute the service saw, and how many were expected.
async fn requests_a_minute(more: &str) -> (f64, f64) {
    const MINUTES: u32 = 30;
    let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
    let world = World::new(Settings { projects: 2, apps: 6, ..Settings::default() }, clock.clone());
    let config = Configuration::new(&world, &rig::serve(&world).await).tables(more).load();
    let expected = config.requests_per_minute().total;
    let handle = rig::daemon(config, &clock).await;
    // The first round asks everything at once, out of turn.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(handle.is_ready());
    let before = world.requests().total;
    tokio::time::sleep(Duration::from_secs(60) * MINUTES).await;
    let asked = world.requests().total - before;
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
        // Audits add 5 % at the most.
        assert!(
            (expected * 0.98..expected * 1.05).contains(&asked),
            "asked {asked} times a minute, expected {expected}: {more}"
        );
    }
}

#[test]
fn a_plan_is_made_on_the_thread_that_polls() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (polls, requests) = (runtime(), runtime());
    let world = World::new(Settings { projects: 1, apps: 2, ..Settings::default() }, Clock::system());
    let config = || Configuration::new(&world, "http://127.0.0.1:1").load();
    let telemetry = Telemetry::new(false).unwrap();
    let daemon = polls.block_on(Daemon::build(config(), Clock::system(), telemetry)).unwrap();
    let handle = daemon.handle;
    // Nothing runs on the thread that polls: a poll that ends there meanwhile could lose what it has stored.
    let waiting = requests.block_on(async {
        tokio::time::timeout(Duration::from_millis(300), handle.reconfigure(config())).await
    });
    assert!(waiting.is_err(), "a plan was made beside the polls");
    polls.block_on(handle.reconfigure(config())).unwrap();
}
