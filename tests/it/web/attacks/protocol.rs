//! Floods that cost the client little: HTTP/2 frames, TLS handshakes.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{assert_scraped, attack, attack_http2, http2, in_time, start_with_tls};
use crate::web::certificates::Authority;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One HTTP/2 frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// The frame of a whole request for `path`.
pub(super) fn headers(stream: u32, path: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    // GET and https of the static table; path and authority as literals.
    let block = [vec![0x82, 0x87, 0x04], text(path), vec![0x01], text("localhost")].concat();
    frame(1, 0x5, stream, &block)
}

#[tokio::test]
async fn a_flood_of_http2_frames_ends_its_connection_and_nothing_else() {
    let authority = Authority::new();
    let (_folder, exporter) = start_with_tls(&authority, "");
    let client = http2(&authority);
    let floods = [
        ("WINDOW_UPDATE", frame(8, 0, 0, &[0, 0, 0, 1])),
        ("PING", frame(6, 0, 0, b"pingping")),
        ("SETTINGS", frame(4, 0, 0, &[])),
        ("PRIORITY", frame(2, 0, 1, &[0, 0, 0, 0, 1])),
    ];
    for (name, flood) in floods {
        let mut stream = attack_http2(&exporter, &client).await;
        // After a request a connection may idle for minutes.
        let mut bytes = [PREFACE, &frame(4, 0, 0, &[]), &headers(1, "/-/healthy")].concat();
        bytes.extend(flood.repeat(20_000));
        let attack = async {
            // The server may close before everything is sent; what it said until then is of no interest.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        };
        let ended = tokio::time::timeout(std::time::Duration::from_secs(20), attack).await;
        assert!(ended.is_ok(), "the connection outlives a flood of {name}");
        assert_scraped(&authority, &exporter).await;
    }
}

#[tokio::test]
async fn requests_that_are_reset_at_once_end_their_connection() {
    let authority = Authority::new();
    let (_folder, exporter) = start_with_tls(&authority, "");
    let mut stream = attack_http2(&exporter, &http2(&authority)).await;
    let mut bytes = [PREFACE, &frame(4, 0, 0, &[])].concat();
    for number in 0..5_000 {
        bytes.extend(headers(2 * number + 1, "/metrics"));
        bytes.extend(frame(3, 0, 2 * number + 1, &[0, 0, 0, 8]));
    }
    let _ = in_time(stream.write_all(&bytes)).await;
    let _ = in_time(stream.read_to_end(&mut Vec::new())).await;
    assert_scraped(&authority, &exporter).await;
}

#[tokio::test]
async fn half_handshakes_delay_a_new_connection_by_their_turn_only() {
    let authority = Authority::new();
    let (_folder, exporter) = start_with_tls(&authority, "");
    // The hello of a real client, sent again and again.
    let config = http2(&authority);
    let mut client = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut half = Vec::new();
    for _ in 0..200 {
        let mut stream = attack(&exporter).await;
        stream.write_all(&hello).await.unwrap();
        half.push(stream);
    }
    assert_scraped(&authority, &exporter).await;
    // Each of them was answered as well.
    for mut stream in half {
        assert!(in_time(stream.read(&mut [0; 16])).await.unwrap() > 0);
    }
}
