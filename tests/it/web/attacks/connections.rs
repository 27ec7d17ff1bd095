//! Connections that do nothing.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{attack, configuration, in_time, start};
use crate::process::{Exporter, value};

/// The value of `pds_exporter_connections` for `state`.
fn connections(page: &str, state: &str) -> f64 {
    value(page, &format!("pds_exporter_connections{{state=\"{state}\"}}")).unwrap()
}

/// Connections that were used once and do nothing now, and the page that is served beside them.
async fn with_idle(exporter: &Exporter, count: usize) -> (Vec<TcpStream>, String) {
    let mut idle = Vec::new();
    for _ in 0..count {
        let mut stream = attack(exporter).await;
        stream.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        assert!(in_time(stream.read(&mut [0; 1024])).await.unwrap() > 0);
        idle.push(stream);
    }
    assert!(in_time(exporter.get("/-/healthy")).await.contains("healthy"));
    (idle, in_time(exporter.get("/metrics")).await)
}

#[tokio::test]
async fn idle_connections_do_not_block_others() {
    let (_folder, exporter) = start(1, &[]);
    let (_idle, page) = with_idle(&exporter, 800).await;
    assert_eq!(connections(&page, "active"), 1.0);
    assert!(connections(&page, "idle") >= 250.0, "{}", connections(&page, "idle"));
    let said = exporter.log().matches("the connection limit is reached").count();
    assert_eq!(said, 1, "{}", exporter.log());
}

/// The daemon with so few descriptors that fewer connections fit in them.
#[tokio::test]
async fn idle_connections_do_not_take_the_last_descriptors() {
    let (_folder, config) = configuration(1);
    let exporter = Exporter::spawn(started_by("ulimit -n 128 && exec", &config)).unwrap();
    let (_idle, page) = with_idle(&exporter, 300).await;
    let open = connections(&page, "active") + connections(&page, "idle");
    assert!((90.0..=96.0).contains(&open), "{open}");
    let log = exporter.log();
    assert!(log.contains("the limit of open files allows fewer connections than usual"), "{log}");
    assert!(log.lines().count() < 20, "{log}");
}

/// The daemon, started by the shell command `before`.
fn started_by(before: &str, config: &std::path::Path) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{before} \"$0\" \"$@\""), env!("CARGO_BIN_EXE_pds-exporter")]);
    command.args(["--web.listen-address", "127.0.0.1:0", "--config.file", config.to_str().unwrap()]);
    command
}

#[tokio::test]
async fn too_few_descriptors_are_refused_with_the_number_needed() {
    let (_folder, config) = configuration(1);
    for limit in [4, 6, 16, 24, 32, 63] {
        let refused =
            Exporter::spawn(started_by(&format!("ulimit -n {limit} && exec"), &config)).err().unwrap();
        let said = format!("the limit of open files is {limit}; the exporter needs 64");
        assert!(refused.contains(&said), "{refused}");
    }
    let exporter = Exporter::spawn(started_by("ulimit -n 64 && exec", &config)).unwrap();
    exporter.wait_for("/-/ready").await;
    let (_idle, page) = with_idle(&exporter, 100).await;
    assert!(page.contains("pds_up{"), "{page}");
}

/// The limit counts the threads of a user, and does not hold for root: the daemon runs as a user of its own.
#[tokio::test]
async fn without_free_threads_the_daemon_fails_with_an_error_or_serves_with_those_it_has() {
    let (folder, config) = configuration(1);
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let user = if is_root { "setpriv --reuid=54321 --regid=54321 --clear-groups" } else { "unshare --user" };
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut refused, mut serving) = (0, 0);
    for limit in [1, 2, 5, 6, 7, 8, 10, 16] {
        match Exporter::spawn(started_by(&format!("exec prlimit --nproc={limit} {user}"), &config)) {
            Err(log) => {
                assert!(log.contains("cannot be started: ") && !log.contains("panicked"), "{limit}: {log}");
                refused += 1;
            }
            Ok(exporter) => {
                let pages = ["/metrics", "/", "/config", "/api/v1/status", "/metrics?project=p-1"];
                for page in pages.iter().cycle().take(15) {
                    in_time(exporter.get(page)).await;
                }
                assert!(exporter.get("/metrics").await.contains("pds_exporter_panics_total 0\n"), "{limit}");
                assert!(!exporter.log().contains("panicked"), "{limit}: {}", exporter.log());
                serving += 1;
            }
        }
    }
    assert!(refused > 1 && serving > 1, "{refused} {serving}");
}

#[tokio::test]
async fn connections_that_never_end_their_request_do_not_block_others() {
    let (_folder, exporter) = start(1, &[]);
    let mut slow = Vec::new();
    for _ in 0..800 {
        let mut stream = attack(&exporter).await;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
        slow.push(tokio::spawn(async move {
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }));
    }
    // Without waiting for the time that a header may take.
    assert!(in_time(exporter.get("/-/healthy")).await.contains("healthy"));
    assert!(in_time(exporter.get("/metrics")).await.contains("pds_exporter_connections"));
    assert!(slow.iter().filter(|slow| !slow.is_finished()).count() > 200, "they are still there");
}
