//! Connections that do nothing.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{attack, configuration, in_time, start};
use crate::process::Exporter;

/// The value of `pds_exporter_connections` for `state`.
fn connections(page: &str, state: &str) -> f64 {
    let series = format!("pds_exporter_connections{{state=\"{state}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

/// So many connections that were used once and do nothing now, and the page that is served beside them.
async fn with_idle(exporter: &Exporter, count: usize) -> (Vec<TcpStream>, String) {
    let mut idle = Vec::new();
    for _ in 0..count {
        let mut stream = attack(exporter).await;
        stream.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
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
    let said = exporter.log().matches("the limit on connections is reached").count();
    assert_eq!(said, 1, "{}", exporter.log());
}

/// The daemon with so few descriptors that fewer connections fit in them.
#[tokio::test]
async fn idle_connections_do_not_take_the_last_descriptors() {
    let (_folder, config) = configuration(1);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pds-exporter")]);
    command.args(["--web.listen-address", "127.0.0.1:0", "--config.file", config.to_str().unwrap()]);
    let exporter = Exporter::spawn(command).unwrap();
    let (_idle, page) = with_idle(&exporter, 300).await;
    let open = connections(&page, "active") + connections(&page, "idle");
    assert!((90.0..=96.0).contains(&open), "{open}");
    let log = exporter.log();
    assert!(log.contains("the limit of open files allows fewer connections than usual"), "{log}");
    assert!(log.lines().count() < 20, "{log}");
}

#[tokio::test]
async fn connections_without_a_request_do_not_block_others() {
    let (_folder, exporter) = start(1, &[]);
    let mut slow = Vec::new();
    for _ in 0..800 {
        let mut stream = attack(&exporter).await;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
        slow.push(stream);
    }
    // Without waiting for the time that a header may take.
    assert!(in_time(exporter.get("/-/healthy")).await.contains("healthy"));
    assert!(in_time(exporter.get("/metrics")).await.contains("pds_exporter_connections"));
}
