//! Idle and stuck clients, too many clients, and the end. `attacks` has slow ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pds_web::{Config, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{Reply, Running, curl, try_curl};
use crate::process::until;

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

async fn connect(server: &Running) -> TcpStream {
    TcpStream::connect(server.address).await.unwrap()
}

/// Reads until the server closes; what came.
async fn read_to_close(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    // A reset is an end as well.
    let _ = tokio::time::timeout(crate::process::DEADLINE, stream.read_to_end(&mut read)).await.unwrap();
    String::from_utf8_lossy(&read).into_owned()
}

/// A request that is under way.
fn begun(url: &str) -> JoinHandle<Result<Reply, (i32, String)>> {
    let url = url.to_owned();
    tokio::spawn(async move { try_curl(&[&url]).await })
}

#[tokio::test]
async fn an_idle_connection_outlives_the_time_for_a_header() {
    let limits = Limits { header_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Running::start(Config { limits, ..Config::default() });
    let mut silent = connect(&server).await;
    let mut kept = connect(&server).await;
    let mut scrape = async || {
        kept.write_all(REQUEST).await.unwrap();
        assert!(kept.read(&mut [0; 4096]).await.unwrap() > 0);
    };
    scrape().await;
    // This takes as long as a header may.
    assert_eq!(read_to_close(&mut silent).await, "");
    scrape().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_the_end() {
    let limits = Limits { idle_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Running::start(Config { limits, ..Config::default() });
    let mut idle = connect(&server).await;
    idle.write_all(REQUEST).await.unwrap();
    assert!(read_to_close(&mut idle).await.ends_with("pds_up 1\n"));
}

#[tokio::test]
async fn a_header_that_is_too_large_is_refused() {
    let server = Running::start(Config::default());
    let large = format!("X-Large: {}", "x".repeat(40 * 1024));
    assert_eq!(curl(&["-H", &large, &server.url("/metrics")]).await.status, 431);
    let fine = format!("X-Large: {}", "x".repeat(20 * 1024));
    assert_eq!(curl(&["-H", &fine, &server.url("/metrics")]).await.status, 200);
}

#[tokio::test]
async fn requests_above_the_limit_get_503() {
    let server = Running::start(Config { max_requests: 2, ..Config::default() });
    server.stub.held.send_replace(true);
    let url = server.url("/metrics");
    let held = [begun(&url), begun(&url)];
    until("both places are taken", async || server.stub.held.receiver_count() == 2).await;
    let refused = curl(&[&url]).await;
    let sentence = "Limit of concurrent requests (2) or of their memory reached; try again later.\n";
    assert_eq!((refused.status, refused.text()), (503, sentence));
    assert_eq!(curl(&[&server.url("/")]).await.status, 503, "all pages count");
    for probe in ["/-/healthy", "/-/ready"] {
        assert_eq!(curl(&[&server.url(probe)]).await.status, 200, "pods live on probes");
    }
    server.stub.held.send_replace(false);
    for scrape in held {
        assert_eq!(scrape.await.unwrap().unwrap().status, 200);
    }
    assert_eq!(curl(&[&url]).await.status, 200);
}

#[tokio::test]
async fn a_scrape_counts_until_its_body_is_read_and_a_stuck_reader_is_disconnected() {
    let limits = Limits { write_timeout: Duration::from_secs(4), ..Limits::default() };
    let server = Running::start(Config { max_requests: 1, limits, ..Config::default() });
    // More than the kernel takes for a client that reads nothing.
    server.stub.lines.store(1_000_000, Ordering::Relaxed);
    let mut stuck = connect(&server).await;
    stuck.write_all(REQUEST).await.unwrap();
    stuck.readable().await.unwrap();
    let url = server.url("/metrics");
    assert_eq!(curl(&[&url]).await.status, 503);
    server.stub.lines.store(0, Ordering::Relaxed);
    until("the stuck reader lost its place", async || curl(&[&url]).await.status == 200).await;
    assert!(!read_to_close(&mut stuck).await.ends_with("app=\"999999\"} 1\n"), "it was cut off");
}

#[tokio::test]
async fn a_connection_above_the_cap_takes_the_place_of_an_idle_one() {
    let limits = Limits { max_connections: 3, ..Limits::default() };
    let server = Running::start(Config { limits, ..Config::default() });
    let mut held = [connect(&server).await, connect(&server).await, connect(&server).await];
    assert_eq!(curl(&[&server.url("/metrics")]).await.status, 200);
    assert_eq!(read_to_close(&mut held[0]).await, "", "the oldest was closed");
}

#[tokio::test]
async fn a_connection_ends_at_its_age_after_the_request_in_progress() {
    let limits = Limits { max_connection_age: Duration::from_secs(2), ..Limits::default() };
    let server = Running::start(Config { limits, ..Config::default() });
    let mut kept = connect(&server).await;
    kept.write_all(REQUEST).await.unwrap();
    kept.readable().await.unwrap();
    server.stub.held.send_replace(true);
    let mut busy = connect(&server).await;
    busy.write_all(REQUEST).await.unwrap();
    assert!(read_to_close(&mut kept).await.ends_with("pds_up 1\n"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.stub.held.send_replace(false);
    assert!(read_to_close(&mut busy).await.ends_with("pds_up 1\n"));
}

#[tokio::test]
async fn the_scrape_timeout_of_the_client_is_kept() {
    let server = Running::start(Config::default());
    server.stub.held.send_replace(true);
    let asked = "X-Prometheus-Scrape-Timeout-Seconds: 0.2";
    let reply = curl(&["-H", asked, &server.url("/metrics")]).await;
    assert_eq!((reply.status, reply.text()), (503, "The page was not rendered within 0.2 s.\n"));
}

#[tokio::test]
async fn a_page_counts_until_it_is_rendered_even_if_its_client_has_disconnected() {
    let server = Running::start(Config { max_requests: 1, ..Config::default() });
    server.stub.held.send_replace(true);
    let url = server.url("/metrics");
    curl(&["-H", "X-Prometheus-Scrape-Timeout-Seconds: 0.01", &url]).await;
    for page in ["/metrics", "/", "/apps/p/a"] {
        let refused = curl(&[&server.url(page)]).await;
        let sentence = "Limit of concurrent requests (1) or of their memory reached; try again later.\n";
        assert_eq!((refused.status, refused.text()), (503, sentence), "{page}");
    }
    server.stub.held.send_replace(false);
    until("its place is free", async || curl(&[&url]).await.status == 200).await;
}

#[tokio::test]
async fn shutdown_finishes_requests_in_progress_and_takes_no_new_ones() {
    let server = Running::start(Config::default());
    server.stub.held.send_replace(true);
    let (url, stub) = (server.url("/metrics"), Arc::clone(&server.stub));
    let mut idle = connect(&server).await;
    idle.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(idle.read(&mut [0; 1024]).await.unwrap() > 0);
    let scrape = begun(&url);
    until("the scrape is under way", async || stub.held.receiver_count() == 1).await;
    let stopping = tokio::spawn(server.stop());
    read_to_close(&mut idle).await;
    until("nothing new is taken", async || try_curl(&[&url]).await.is_err_and(|(code, _)| code == 7)).await;
    assert!(!stopping.is_finished() && !scrape.is_finished());
    stub.held.send_replace(false);
    let reply = scrape.await.unwrap().unwrap();
    assert!(reply.status == 200 && reply.text().ends_with("pds_up 1\n"));
    assert_eq!(reply.header("connection"), Some("close"));
    stopping.await.unwrap();
}

#[tokio::test]
async fn requests_that_outlive_the_drain_are_cut_off() {
    let limits = Limits { drain_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Running::start(Config { limits, ..Config::default() });
    server.stub.held.send_replace(true);
    let (scrape, stub) = (begun(&server.url("/metrics")), Arc::clone(&server.stub));
    until("the scrape is under way", async || stub.held.receiver_count() == 1).await;
    server.stop().await;
    let (code, _) = scrape.await.unwrap().unwrap_err();
    assert_eq!(code, 52, "curl: empty reply");
}
