//! The real daemon and a service that floods it: scrapes stay fast.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::process::{Exporter, http, until};

/// A service that answers each request with 1xx replies without end; its address, and how many bytes it has written.
fn flooding() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, written) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicU64::new(0)));
    let flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(2000);
    let total = Arc::clone(&written);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (flood, total) = (flood.clone(), Arc::clone(&total));
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                while stream.write_all(flood.as_bytes()).is_ok() {
                    total.fetch_add(flood.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (address, written)
}

#[tokio::test]
async fn a_flood_of_1xx_replies_does_not_hold_up_scrapes() {
    let (address, written) = flooding();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pds-exporter.toml");
    let apps: Vec<_> = (0..8).map(|app| format!("\"a{app}\"")).collect();
    let text = format!(
        "[api]\nbase_url = \"http://{address}\"\ntoken = \"some-token-or-other\"\ntimeout = \"3s\"\n\
         [poll]\ninterval = \"3s\"\n[[projects]]\nid = \"p\"\napps = [{}]\n",
        apps.join(", ")
    );
    std::fs::write(&file, text).unwrap();
    let exporter = Exporter::start(&["--config.file", file.to_str().unwrap()]);
    until("the flood has begun", async || written.load(Ordering::Relaxed) > 1_000_000).await;
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
    // On the thread that serves, the flood made half of the scrapes wait for seconds.
    println!(
        "scrapes took {:?} at half, {:?} at most; {} MB",
        took[25],
        took[49],
        written.load(Ordering::Relaxed) / 1_000_000
    );
    assert!(took[25] < Duration::from_millis(300), "{took:?}");
    until("the flood ends a request at its timeout", async || {
        exporter.get("/metrics").await.contains("code=\"timeout\"")
    })
    .await;
}
