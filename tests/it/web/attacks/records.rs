//! Floods of TLS records: each costs the server a decryption or a new key, and requests next to nothing. Empty records,
//! warnings and renegotiation are ended by rustls itself after a few.

use std::io::Write as _;

use rustls::ClientConnection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{attack, http2, in_time};
use crate::process::{Exporter, until};
use crate::web::certificates::Authority;
use crate::web::{curl, write_settled};

/// Bytes that each client sends.
const SENT: usize = 100_000;
const CLIENTS: usize = 8;

/// Records of a connection on which a request has begun: the request byte by byte, with so many `KeyUpdate` between.
fn records(mut client: ClientConnection, key_updates: usize) -> Vec<u8> {
    let mut sent = Vec::new();
    while sent.len() < SENT {
        for _ in 0..key_updates {
            client.refresh_traffic_keys().unwrap();
        }
        client.writer().write_all(b"x").unwrap();
        client.write_tls(&mut sent).unwrap();
    }
    sent
}

#[tokio::test]
async fn a_flood_of_tls_records_ends_its_connection_and_delays_no_other() {
    let authority = Authority::new();
    let web_config = authority.web_config("");
    let (_folder, config) = super::configuration(1);
    write_settled(&config, &(std::fs::read_to_string(&config).unwrap() + "[log]\nlevel = \"debug\"\n"));
    let files =
        ["--config.file", config.to_str().unwrap(), "--web.config.file", web_config.to_str().unwrap()];
    let exporter = Exporter::start(&files);
    let url = format!("{}/-/healthy", exporter.url.replace("http:", "https:"));
    // As many as rustls takes, and none.
    for (name, key_updates) in [("KeyUpdate", 30), ("single bytes", 0)] {
        let mut floods = tokio::task::JoinSet::new();
        for _ in 0..CLIENTS {
            let mut client = (*http2(&authority)).clone();
            client.alpn_protocols.clear();
            let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(client));
            let stream = attack(&exporter).await;
            let mut stream =
                in_time(connector.connect("localhost".try_into().unwrap(), stream)).await.unwrap();
            in_time(stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")).await.unwrap();
            in_time(stream.flush()).await.unwrap();
            let (mut stream, client) = stream.into_inner();
            floods.spawn(async move {
                let bytes = records(client, key_updates);
                // The server closes before everything is sent.
                let _ = stream.write_all(&bytes).await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
        let flooding = tokio::spawn(in_time(floods.join_all()));
        while !flooding.is_finished() {
            // The usual timeout of a scrape.
            let scraped = curl(&["--max-time", "10", "--cacert", &authority.ca(), &url]).await;
            assert_eq!(scraped.status, 200);
        }
        flooding.await.unwrap();
        // Lines are written by a thread of their own.
        until(&format!("all connections with {name} are ended for it"), async || {
            exporter.log().matches("too many frames or records").count() == CLIENTS
        })
        .await;
        exporter.clear_log();
    }
}
