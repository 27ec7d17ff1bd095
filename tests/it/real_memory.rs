//! Hostile replies to the real daemon, as many as it reads at once: their cost stays within the documented limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pds_simulator::{Fault, Kind, Settings};

use crate::client::server::{Server, ok, status};
use crate::client::transport::authority;
use crate::deploy::memory::MIB;
use crate::process::Exporter;
use crate::rig::{self, EVERY_SECOND, nested};

/// The largest reply by default, MiB.
const LARGEST: f64 = 2.0;
/// The bound in docs/troubleshooting.md beyond the memory at rest, MiB. The manifests in `deploy/` allow 192.
const MEMORY: f64 = 80.0;
/// Seconds of processor time per MiB of replies, as docs/troubleshooting.md states it. This build is not even optimised.
pub(crate) const PROCESSOR: f64 = 0.1;

/// Seconds of processor that it has taken so far, the system's for it included. Its own
/// `process_cpu_seconds_total` has whole seconds only.
fn processor(exporter: &Exporter) -> f64 {
    // Hundredths of a second: proc_pid_stat(5). The name in parentheses may hold blanks.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", exporter.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..=12].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

/// Just below the largest reply.
const BYTES: usize = 1_900_000;

/// A text of that length where something else stands, or a short one.
fn text_for(field: &str) -> Kind {
    Kind::Value { field: field.to_owned(), json: format!("\"{}\"", "x".repeat(BYTES)) }
}

/// A list of that length, of `element`, in the place of a field.
fn list_for(field: &str, element: &str) -> Kind {
    let elements = vec![element; BYTES / (element.len() + 1)];
    Kind::Value { field: field.to_owned(), json: format!("[{}]", elements.join(",")) }
}

/// An object of that length in the place of a field; `element` is the value of each of its names.
fn object_for(field: &str, element: &str) -> Kind {
    let entries: Vec<String> =
        (0..BYTES / (element.len() + 10)).map(|name| format!("\"{name:06}\":{element}")).collect();
    Kind::Value { field: field.to_owned(), json: format!("{{{}}}", entries.join(",")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_replies_take_no_more_memory_and_processor_than_stated() {
    let (world, _folder, file) =
        rig::service(Settings { projects: 2, apps: 40, ..Settings::default() }).await;
    let exporter = Exporter::ready(&["--config.file", &file]).await;
    let most_memory = || exporter.peak_memory() as f64 / MIB as f64;
    let rest = most_memory();
    let mut costs: Vec<String> = Vec::new();
    for kind in [
        Kind::EndlessBody,
        Kind::HugeBody { bytes: 50_000_000 },
        Kind::HugeBody { bytes: BYTES as u64 },
        Kind::GzipBomb { bytes: 20_000_000 },
        nested(BYTES / 2 - 10),
        text_for("percentiles"),
        text_for("name"),
        list_for("start_date", "[]"),
        list_for("region", "{}"),
        list_for("entrypoint", "\"x\""),
        list_for("total_requests", "1e400"),
        list_for("time_series", "{}"),
        list_for("time_series", r#"{"timestamp":1,"p50":0.5,"p90":0.9,"p99":1.5}"#),
        list_for("thresholds", "80"),
        list_for("domains", "{}"),
        object_for("percentiles", "1"),
        object_for("distribution", "[]"),
        object_for("latestBuildId", "[{}]"),
    ] {
        let name: String = format!("{kind:?}").chars().take(40).collect();
        let (asked, used, began) = (world.requests().total, processor(&exporter), Instant::now());
        world.faults().set([Fault::from(kind)]);
        while began.elapsed() < Duration::from_secs(2) || world.requests().total < asked + 80 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let memory = most_memory() - rest;
        assert!(memory < MEMORY, "{name} took {memory:.0} MiB, {MEMORY:.0} may be taken");
        let replies = (world.requests().total - asked) as f64;
        let per_mib = (processor(&exporter) - used) / (replies * LARGEST);
        assert!(
            per_mib < PROCESSOR,
            "{name} took {per_mib:.3} s of processor a MiB, {PROCESSOR} may be taken"
        );
        costs.push(format!("{name}: {replies} replies, {memory:.0} MiB so far, {per_mib:.4} s a MiB"));
    }
    for page in ["/metrics", "/", "/api/v1/status"] {
        let length = exporter.get(page).await.len();
        assert!(length < 1_000_000, "{page} has {length} bytes: it quotes what the service said");
    }
    println!("beyond {rest:.0} MiB at rest:\n{}", costs.join("\n"));
    assert!(most_memory() > rest, "nothing arrived at all: {costs:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn unread_replies_over_http_2_take_no_more_memory_than_stated() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(folder.path(), "127.0.0.1");
    let endless = Arc::new(AtomicBool::new(false));
    let attacks = Arc::clone(&endless);
    let reply = move |_: &_| if attacks.load(Ordering::Relaxed) { ok("").endless() } else { status(500, "") };
    let server = Server::on("127.0.0.1:0", Some(tls), reply).await;
    let apps: Vec<String> = (0..500).map(|app| format!("\"a-{app}\"")).collect();
    let config = format!(
        "[api]\nbase_url = \"https://{}\"\nca_file = \"{}\"\ntoken = \"none\"\n\
         max_requests_per_second = 0\nmax_concurrent_requests = 500\n{EVERY_SECOND}\
         [[projects]]\nid = \"p-1\"\napps = [{}]\n",
        server.address,
        ca.display(),
        apps.join(", ")
    );
    let file = folder.path().join("pds-exporter.toml");
    std::fs::write(&file, config).unwrap();
    let exporter = Exporter::ready(&["--config.file", file.to_str().unwrap()]).await;
    let rest = exporter.peak_memory();
    endless.store(true, Ordering::Relaxed);
    let asked = server.count();
    while server.count() < asked + 1000 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let memory = (exporter.peak_memory() - rest) as f64 / MIB as f64;
    println!("{memory:.0} MiB beyond {} MiB at rest", rest / MIB);
    assert!(memory < MEMORY, "{memory:.0} MiB, {MEMORY:.0} may be taken");
}
