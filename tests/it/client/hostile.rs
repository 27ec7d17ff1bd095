//! Replies that are broken, endless or not for us.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use pds_core::error_chain::with_sources;
use pds_core::memory::MemoryBudget;
use pds_interface::{ReplyBody as _, get_app};

use super::server::{DRIP, Reply, Server, ok, port, status};
use super::transport::authority;
use super::{Asking, api, inline, project};
use crate::process::DEADLINE;

/// Asks a server that always gives `reply`; the error's text with `HOST` for its address, and the class.
async fn outcome(reply: Reply) -> (String, &'static str, Server) {
    outcome_within(DEADLINE, reply).await
}

async fn outcome_within(timeout: Duration, reply: Reply) -> (String, &'static str, Server) {
    let server = Server::start(move |_| reply.clone()).await;
    let asking = Asking::with(&server, |api| api.timeout = timeout);
    let error = asking.ask("p", "a").await.unwrap_err();
    assert_eq!(asking.ended(error.class().as_str()), 1.0, "{}", asking.page());
    let text = error.to_string().replace(&server.address.to_string(), "HOST");
    (text, error.class().as_str(), server)
}

const GET: &str = "GET http://HOST/v2/projects/p/apps/a";

#[tokio::test]
async fn a_reply_that_breaks_off_is_an_error() {
    let (text, class, _) = outcome(ok("").with("content-length", "100").cut("{\"id\":")).await;
    assert_eq!((text, class), (format!("{GET} failed: the reply broke off"), "body"));
    let (text, class, _) = outcome(ok("").cut("{\"id\":")).await;
    assert_eq!((text, class), (format!("{GET} failed: the reply broke off"), "body"));
}

#[tokio::test]
async fn a_reply_that_drips_or_does_not_come_takes_no_longer_than_a_request_may() {
    for reply in [ok("").dripping(), ok("").after(DEADLINE)] {
        let (text, class, _) = outcome_within(Duration::from_millis(300), reply).await;
        assert_eq!((text, class), (format!("{GET} got no complete reply within 300ms"), "timeout"));
    }
}

#[tokio::test]
async fn an_endless_reply_is_read_up_to_the_limit_only() {
    let (text, class, server) = outcome(ok("").endless()).await;
    let limit = "returned more than the 1,048,576 bytes of api.max_response_bytes";
    assert_eq!((text, class), (format!("{GET} {limit}"), "too_large"));
    // Beyond the limit lies only what the two sockets hold.
    assert!(server.written() < 16 * 1024 * 1024, "{}", server.written());
}

#[tokio::test]
async fn a_reply_as_large_as_the_limit_is_read() {
    let server = Server::start(|_| ok("{}".to_owned() + &" ".repeat(1_048_574))).await;
    assert_eq!(Asking::of(&server).ask("p", "a").await.unwrap().len(), 1_048_576);
}

#[tokio::test]
async fn a_reply_that_announces_too_much_is_not_waited_for() {
    let (_, class, server) = outcome(ok("").with("content-length", "52428800").dripping()).await;
    assert_eq!(class, "too_large");
    assert!(server.written() < 1000, "{}", server.written());
}

#[tokio::test]
async fn a_redirect_is_an_error_and_the_token_stays_here() {
    let elsewhere = Server::start(|_| ok("{}")).await;
    let location = format!("http://u:pw@{}/login?return=secret#x", elsewhere.address);
    let (text, class, _) = outcome(status(302, "").with("location", location)).await;
    let to = elsewhere.address;
    let told = format!("{GET} returned 302, a redirect to http://{to}/login; redirects are not followed");
    assert_eq!((text, class), (told, "3xx"));
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn an_html_error_page_is_shortened() {
    let (text, class, _) = outcome(status(502, "<html>\n  <h1>Bad Gateway</h1>\n</html>")).await;
    assert_eq!((text, class), (format!("{GET} returned 502: a web page (Bad Gateway)"), "502"));
    let (text, class, _) = outcome(status(404, r#"{"message":"no such app"}"#)).await;
    assert_eq!((text, class), (format!("{GET} returned 404: no such app"), "404"));
    let (text, class, _) = outcome(status(418, "")).await;
    assert_eq!((text, class), (format!("{GET} returned 418"), "4xx"));
}

#[tokio::test]
async fn a_status_counts_even_if_its_body_never_ends() {
    for reply in [status(500, "").endless(), status(500, "").dripping(), status(500, "").cut("oh")] {
        let (_, class, server) = outcome_within(Duration::from_secs(5), reply).await;
        assert_eq!(class, "500");
        assert!(server.written() < 16 * 1024 * 1024, "{}", server.written());
    }
}

#[tokio::test]
async fn a_compressed_reply_is_refused_because_compression_was_not_requested() {
    let (text, class, server) = outcome(ok("bomb").with("content-encoding", "gzip")).await;
    let told = "returned content encoding 'gzip', which was not requested";
    assert_eq!((text, class), (format!("{GET} {told}"), "decode"));
    assert_eq!(server.seen()[0].header("accept-encoding"), Some("identity"));
}

/// Asks a server that writes `bytes` and closes.
async fn raw(bytes: Vec<u8>) -> (String, &'static str) {
    let address = port(bytes);
    let error = Asking::new(&api(&format!("http://{address}")), &[]).ask("p", "a").await.unwrap_err();
    (with_sources(&error).replace(&address.to_string(), "HOST"), error.class().as_str())
}

#[tokio::test]
async fn a_reply_that_is_not_http_differs_from_a_closed_connection() {
    let (text, class) = raw(b"220 smtp.example.com ESMTP\r\n".to_vec()).await;
    assert!(text.starts_with(&format!("{GET} failed: the reply is not HTTP: ")), "{text}");
    assert_eq!(class, "protocol");
    let (text, class) = raw(Vec::new()).await;
    assert!(text.starts_with(&format!("{GET} failed: the connection broke off before a reply: ")), "{text}");
    assert_eq!(class, "reset");
}

#[tokio::test]
async fn a_request_with_more_than_100_interim_replies_ends_at_once() {
    let interim = |count: usize| "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count);
    let (text, class) = raw(interim(101).into_bytes()).await;
    let words = "failed: too many interim (1xx) replies: ";
    assert!(text.starts_with(&format!("{GET} {words}")), "{text}");
    assert!(text.ends_with(": more than 100 interim replies, or 65536 bytes of them"), "{text}");
    assert_eq!(class, "interim");
    let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let asking = Asking::new(&api(&format!("http://{}", listener.local_addr().unwrap())), &[]);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.read(&mut [0; 4096]).await.unwrap() > 0 {
            stream.write_all(format!("{}{reply}", interim(100)).as_bytes()).await.unwrap();
        }
    });
    // On one connection, each with a hundred.
    for _ in 0..3 {
        assert_eq!(asking.ask("p", "a").await.unwrap(), "{}");
    }
}

#[tokio::test]
async fn a_stream_of_http_2_with_more_than_100_interim_replies_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut api = api(&format!("https://{}", listener.local_addr().unwrap()));
    api.ca_file = Some(ca);
    let asking = Asking::new(&api, &[]);
    // Empty SETTINGS, and HEADERS with a status of 103 for the first stream.
    let (settings, head) = (b"\0\0\0\x04\0\0\0\0\0", b"\0\0\x05\x01\x04\0\0\0\x01\x08\x03103");
    let flood = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = tls.accept(stream).await.unwrap();
        stream.write_all(settings).await.unwrap();
        let mut seen = Vec::new();
        // Until its HEADERS.
        while !seen.windows(5).any(|frame| frame == [1, 5, 0, 0, 0]) {
            assert!(stream.read_buf(&mut seen).await.unwrap() > 0);
        }
        let mut written = 0;
        while stream.write_all(&head.repeat(50)).await.is_ok() {
            written += 50;
        }
        written
    });
    let error = asking.ask("p", "a").await.unwrap_err();
    assert_eq!(error.class().as_str(), "interim", "{}", with_sources(&error));
    // The bytes beyond are in two sockets.
    assert!(flood.await.unwrap() < 1_000_000);
}

#[tokio::test]
async fn a_head_without_end_is_not_read_to_its_end() {
    let mut endless = b"HTTP/1.1 200 OK\r\n".to_vec();
    for i in 0..100_000 {
        endless.extend_from_slice(format!("x-{i}: {i}\r\n").as_bytes());
    }
    assert_eq!(raw(endless).await.1, "protocol");
}

#[tokio::test]
async fn a_reply_that_can_not_be_read_is_counted_as_that_and_not_as_a_success() {
    let server = Server::start(|_| ok("<html>")).await;
    let asking = Asking::of(&server);
    let error = asking.read("p", "a", get_app::App::decode).await.unwrap_err();
    let told = "GET http://HOST/v2/projects/p/apps/a returned 200: a web page";
    assert_eq!(with_sources(&error).replace(&server.address.to_string(), "HOST"), told);
    assert_eq!((asking.ended("web_page"), asking.ended("200")), (1.0, 0.0));
}

#[tokio::test]
async fn a_large_reply_is_read_off_the_event_loop_and_a_small_one_on_it() {
    for (length, on_it) in [(100, true), (300_000, false)] {
        let body: &'static str = format!("{{\"name\":\"{}\"}}", "x".repeat(length)).leak();
        let server = Server::start(move |_| ok(body)).await;
        let asking = Asking::of(&server);
        let read = asking.read("p", "a", |_| Ok(std::thread::current().id())).await;
        assert_eq!(read.unwrap().0 == std::thread::current().id(), on_it, "{length} bytes");
    }
}

#[tokio::test]
async fn replies_in_flight_wait_for_one_another_and_all_arrive() {
    // 30 replies of 1 MB, none of which announces its length: 60 MB if all were read at once, with room for 16 MiB.
    let body: &'static str = format!("{{\"name\":\"{}\"}}", "x".repeat(1_000_000)).leak();
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    for (scheme, tls) in [("http", None), ("https", Some(tls))] {
        let reply = move |_: &_| ok(body).after(Duration::from_millis(50));
        let server = Server::on("127.0.0.1:0", tls, reply).await;
        let mut api = api(&format!("{scheme}://{}", server.address));
        api.ca_file = Some(ca.clone());
        // Reading all of them takes long where other tests run beside.
        api.timeout = Duration::from_secs(60);
        let asking = std::sync::Arc::new(Asking::new(&api, &[]));
        // HTTP/2 sends all of them on this connection.
        asking.ask("p", "a").await.unwrap();
        let mut asks = tokio::task::JoinSet::new();
        for _ in 0..30 {
            let asking = std::sync::Arc::clone(&asking);
            asks.spawn(async move { asking.ask("p", "a").await.unwrap().len() });
        }
        assert!(asks.join_all().await.into_iter().all(|length| length == body.len()), "{scheme}");
    }
}

#[tokio::test]
async fn replies_of_one_account_leave_room_for_those_of_others() {
    // More than a small reply may have, and then no end; each of these may have 256 KiB.
    let server = Server::start(|seen| match seen.target.ends_with("/endless") {
        true => ok(vec![b' '; 65 * 1024]).dripping(),
        false => ok(vec![b' '; 100 * 1024]),
    })
    .await;
    let mut api = api(&format!("http://{}", server.address));
    api.timeout = Duration::from_secs(2);
    api.max_response_bytes = 256 * 1024;
    let asking = Asking::new(&api, &[project("p-1", None), project("p-2", inline("another-account"))]);
    // 1.5 MiB for small replies, and for large ones.
    let client = asking.client.clone().with_reply_memory(&MemoryBudget::within(Some(0)));
    let asking = std::sync::Arc::new(Asking { client, ..asking });
    let mut endless = tokio::task::JoinSet::new();
    for _ in 0..31 {
        let asking = std::sync::Arc::clone(&asking);
        endless.spawn(async move {
            loop {
                asking.ask("p-1", "endless").await.unwrap_err();
            }
        });
    }
    while server.most_under_way() < 31 && server.count() < 31 {
        tokio::time::sleep(DRIP).await;
    }
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        asking.ask("p-2", "a").await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_that_is_held_keeps_the_room_it_takes() {
    let body: &'static str = format!("{{\"name\":\"{}\"}}", "x".repeat(1_000_000)).leak();
    let server = Server::start(move |_| ok(body)).await;
    let asking = Asking::with(&server, |api| api.timeout = Duration::from_secs(4));
    let mut held = Vec::new();
    let error = loop {
        match asking.read("p", "a", |_| Ok(())).await {
            Ok((_, fetched)) => held.push(fetched),
            Err(error) => break error,
        }
    };
    assert_eq!((error.class().as_str(), held.len()), ("timeout", 8), "{error}");
    held.pop();
    asking.ask("p", "a").await.unwrap();
}
