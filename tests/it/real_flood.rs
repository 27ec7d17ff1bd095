//! The real daemon and a service that floods it: scrapes stay fast.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::client::server::flooding;
use crate::process::{Exporter, http, until, until_page};

#[tokio::test]
async fn a_flood_of_1xx_replies_does_not_hold_up_scrapes() {
    let (address, written, _) = flooding();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    let apps: Vec<_> = (0..8).map(|app| format!("\"a{app}\"")).collect();
    let text = format!(
        "[api]\nbase_url = \"http://{address}\"\ntoken = \"some-token-or-other\"\ntimeout = \"30s\"\n\
         [poll]\ninterval = \"3s\"\n[[projects]]\nid = \"p\"\napps = [{}]\n",
        apps.join(", ")
    );
    std::fs::write(&file, text).unwrap();
    let exporter = Exporter::start(&["--config.file", file.to_str().unwrap()]);
    until("the flood has begun", async || written.load(Ordering::Relaxed) > 1_000_000).await;
    let other = Exporter::start(&["--demo"]);
    let (took, usual) = tokio::join!(scrapes(&exporter), scrapes(&other));
    // On the thread that serves, a flood without limit made half of the scrapes wait for seconds.
    println!(
        "scrapes took {:?} at half, {:?} at most, {:?} without a flood; {} MB",
        took[25],
        took[49],
        usual[25],
        written.load(Ordering::Relaxed) / 1_000_000
    );
    assert!(took[25] < Duration::from_millis(300) + 4 * usual[25], "{took:?} {usual:?}");
    until_page(&exporter, "the flood has ended requests", |page| page.contains("code=\"interim\"")).await;
    assert!(!exporter.get("/metrics").await.contains("code=\"timeout\""), "a flood is no time to wait");
    let [took, usual] = [exporter, other].map(|exporter| {
        let began = Instant::now();
        assert!(exporter.terminate().success());
        began.elapsed()
    });
    // Requests may take 30 s.
    assert!(
        took < Duration::from_secs(1) + 4 * usual,
        "SIGTERM took {took:?}, and {usual:?} without a flood"
    );
}

/// The durations of scrapes, the shortest first.
async fn scrapes(exporter: &Exporter) -> Vec<Duration> {
    let (client, url) = (http(), format!("{}/metrics", exporter.url));
    let mut took = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        let page = client.get(&url).send().await.unwrap();
        assert_eq!(page.status(), 200);
        page.bytes().await.unwrap();
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took.sort();
    took
}
