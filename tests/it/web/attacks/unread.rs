//! Answers that nobody reads.

use tokio::io::AsyncWriteExt as _;

use super::protocol::{PREFACE, frame, headers};
use super::{Authority, MEMORY_LIMIT, attack, attack_http2, http2, in_time, start};
use crate::process::{get, until};

/// With so many apps an answer is over a megabyte.
const APPS: usize = 2_000;

#[tokio::test]
async fn seven_hundred_clients_that_do_not_read_cost_bounded_memory_and_no_scrape() {
    let (_folder, exporter) = start(APPS, &[]);
    let answer = in_time(exporter.get("/api/v1/status")).await.len();
    assert!(answer > 1_000_000, "{answer}");
    let mut unread = Vec::new();
    for reader in 0..700 {
        let mut stream = attack(&exporter).await;
        // As many different answers as there can be.
        let path = ["/api/v1/status", "/", "/metrics", "/config"][reader % 4];
        let request = format!("GET {path}?name=app&x={reader} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        unread.push(stream);
        if reader % 100 == 0 {
            assert!(in_time(exporter.get("/-/healthy")).await.contains("healthy"));
        }
    }
    // Scrapes get through long before the readers are let go.
    let url = format!("{}/metrics", exporter.url);
    until("a scrape gets through", async || get(&url).await.is_ok_and(|reply| reply.status() == 200)).await;
    let peak = exporter.peak_memory();
    println!("peak with 700 unread answers of {answer} bytes: {} KiB", peak / 1024);
    assert!(peak < MEMORY_LIMIT, "{peak}");
}

#[tokio::test]
async fn http2_clients_with_a_window_of_zero_cost_bounded_memory_and_no_scrape() {
    const STREAMS: u32 = 720;
    let authority = Authority::new();
    let web_config = authority.web_config("");
    let (_folder, exporter) = start(APPS, &["--web.config.file", web_config.to_str().unwrap()]);
    let client = http2(&authority);
    let mut unread = Vec::new();
    for _ in 0..STREAMS / pds_web::limits::MAX_STREAMS {
        let mut stream = attack_http2(&exporter, &client).await;
        // SETTINGS_INITIAL_WINDOW_SIZE is 0.
        let mut bytes = [PREFACE, &frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
        for number in 0..pds_web::limits::MAX_STREAMS {
            bytes.extend(headers(2 * number + 1, "/api/v1/status"));
        }
        stream.write_all(&bytes).await.unwrap();
        unread.push(stream);
    }
    let args = ["--cacert", &authority.ca(), &format!("{}/metrics", exporter.url.replace("http:", "https:"))];
    until("a scrape gets through", async || {
        crate::web::try_curl(&args).await.is_ok_and(|reply| reply.status == 200)
    })
    .await;
    let peak = exporter.peak_memory();
    println!("peak with {STREAMS} streams of a window of zero: {} KiB", peak / 1024);
    assert!(peak < MEMORY_LIMIT, "{peak}");
}
