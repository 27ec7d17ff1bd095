//! Hostile replies to the real daemon, all it can take at once: its memory stays within what the README states.

use std::path::Path;
use std::time::{Duration, Instant};

use pds_exporter::clock::Clock;
use pds_exporter::simulator::{self, Fault, Kind, Settings, World};
use tokio::net::TcpListener;

use crate::process::{Exporter, value};
use crate::real_kill::configuration;

const MIB: f64 = 1024.0 * 1024.0;
const AT_ONCE: f64 = 4.0;
const LARGEST: f64 = 4.0;
/// The README's bound: three times what all replies under way may hold together, beyond what it takes at rest.
const BOUND: f64 = 3.0 * AT_ONCE * LARGEST * MIB;

async fn resident(exporter: &Exporter) -> f64 {
    value(&exporter.get("/metrics").await, "process_resident_memory_bytes").unwrap()
}

/// A text without end where something else stands, or a short one.
fn text_for(field: &str) -> Kind {
    Kind::Value { field: field.to_owned(), json: format!("\"{}\"", "x".repeat(3_900_000)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_replies_take_no_more_memory_than_stated() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(Settings { projects: 2, apps: 12, ..Settings::default() }, Clock::system());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(simulator::serve(world.clone(), listener, std::future::pending()));
    let file = configuration(&world, &address, folder.path());
    let limits =
        format!("[api]\nmax_concurrent_requests = {AT_ONCE}\nmax_response_bytes = \"{LARGEST}MiB\"\n");
    let text = std::fs::read_to_string(&file).unwrap().replace("[api]\n", &limits);
    std::fs::write(Path::new(&file), text).unwrap();
    let exporter = Exporter::start(&["--config.file", &file]);
    exporter.wait_for("/-/ready").await;
    let rest = resident(&exporter).await;
    let mut most: Vec<(String, f64)> = Vec::new();
    for kind in [
        Kind::EndlessBody,
        Kind::HugeBody { bytes: 50_000_000 },
        Kind::HugeBody { bytes: 3_900_000 },
        Kind::ManyDatapoints { count: 1_000_000 },
        Kind::ManyDatapoints { count: 60_000 },
        Kind::GzipBomb { bytes: 20_000_000 },
        Kind::DeepNesting { depth: 1_900_000 },
        text_for("percentiles"),
        text_for("name"),
    ] {
        let name: String = format!("{kind:?}").chars().take(40).collect();
        let asked = world.requests().total;
        world.faults().set([Fault::from(kind)]);
        let (began, mut peak) = (Instant::now(), 0.0f64);
        while began.elapsed() < Duration::from_secs(4) || world.requests().total < asked + 12 {
            peak = peak.max(resident(&exporter).await - rest);
            assert!(peak < BOUND, "{name} took {:.0} MiB, {:.0} may be taken", peak / MIB, BOUND / MIB);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        most.push((name, (peak / MIB).round()));
    }
    for page in ["/metrics", "/", "/api/v1/status"] {
        let length = exporter.get(page).await.len();
        assert!(length < 1_000_000, "{page} has {length} bytes: it quotes what the service said");
    }
    println!("MiB beyond {:.0} at rest: {most:?}", rest / MIB);
    assert!(most.iter().any(|(_, peak)| *peak > 0.0), "nothing arrived at all: {most:?}");
}
