//! The token is seen by the service and by no one else: not in logs at any level, not in errors, not in `Debug`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pds_client::Turn;
use pds_core::error_chain::with_sources;
use pds_interface::response_time;
use tracing::Level;

use crate::rig::Log;

use super::server::{Server, ok, status};
use super::transport::{authority, goaway};
use super::{Asking, TOKEN, api, inline, project, request};

/// A text that is cut off in the midst of the token when it is shortened to 200 characters.
const LONG: &str = concat!(
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "s3rvice-acc0unt-t0ken"
);

/// Nor may any part of it be shown.
const PART: &str = "s3rvice-";

/// A service that answers with the token wherever an answer can hold it, on a thread of its own: what it logs
/// itself is not the client's doing.
fn parrot(tls: Option<tokio_rustls::TlsAcceptor>) -> Server {
    let (give, take) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let server = Server::on("127.0.0.1:0", tls, |seen| {
                let body =
                    "{\"message\":\"bad token s3rvice-acc0unt-t0ken, or s3rvice-\\u0061cc0unt-t0ken\"}";
                match seen.number {
                    0 => status(500, body),
                    1 => status(302, "").with("location", format!("/login/{TOKEN}?t={TOKEN}")),
                    2 => ok("").with("content-length", "999").cut(TOKEN),
                    3 => status(500, LONG),
                    _ => status(401, TOKEN).with("www-authenticate", TOKEN).with("retry-after", TOKEN),
                }
            })
            .await;
            give.send(server).unwrap();
            std::future::pending::<()>().await;
        });
    });
    take.recv().unwrap()
}

#[tokio::test]
async fn the_token_is_in_no_log_line_no_error_and_no_debug_output() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    for (scheme, server) in [("http", parrot(None)), ("https", parrot(Some(tls)))] {
        let (log, _guard) = Log::start(Level::TRACE);
        let mut api = api(&format!("{scheme}://{}", server.address));
        api.ca_file = Some(ca.clone());
        api.timeout = Duration::from_secs(5);
        let asking = Asking::new(&api, &[]);
        let mut printed = String::new();
        for _ in 0..6 {
            let error = asking.ask("p", "a").await.unwrap_err();
            printed.push_str(&format!("{} {error:?} {error:#?}\n", with_sources(&error)));
        }
        printed.push_str(&format!("{:?} {:?} {api:?}", asking.client, asking.client.account("p")));
        printed.push_str(&asking.page());
        assert_eq!(server.count(), 5, "the sixth was refused before it was sent");
        assert!(server.seen().iter().all(|seen| seen.header("authorization").unwrap().contains(TOKEN)));
        assert!(printed.contains("bad token [redacted], or [redacted]"), "{printed}");
        assert!(!printed.contains(PART), "{printed}");
        assert!(log.text().contains("hyper"), "the libraries' own lines are captured: {}", log.text());
        assert!(!log.text().contains(PART), "{}", log.text());
    }
}

#[tokio::test]
async fn words_that_end_a_connection_of_http_2_are_redacted_and_shortened() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    let (log, _guard) = Log::start(Level::TRACE);
    let mut api = api(&format!("https://{}", goaway(tls.clone(), format!("bad token {TOKEN}")).await));
    api.ca_file = Some(ca.clone());
    let error = Asking::new(&api, &[]).ask("p", "a").await.unwrap_err();
    let text = with_sources(&error);
    assert!(text.contains("bad token [redacted]") && text.len() < 1_200, "{text}");
    assert!(!format!("{text} {error:?}").contains(PART), "{text}");
    assert!(!log.text().contains(PART), "{:?}", log.lines_with(PART));

    // The requests of the tool to the service and to an exporter.
    api.base_url = format!("https://{}", goaway(tls.clone(), "no token".to_owned()).await).parse().unwrap();
    let (found, _) = pdstool::doctor::network::check(&api).await;
    assert!(found[0].text.contains("no token") && found[0].text.len() < 1_300, "{found:?}");
    let login = STANDARD.encode(format!("user:{TOKEN}"));
    let proxy = goaway(tls.clone(), format!("bad proxy login {TOKEN}, Basic {login}")).await;
    let mut proxied = api.clone();
    proxied.base_url = "http://service.example".parse().unwrap();
    proxied.proxy_url = Some(format!("https://user:{TOKEN}@{proxy}").parse().unwrap());
    let (found, _) = pdstool::doctor::network::check(&proxied).await;
    assert!(found[0].text.contains("bad proxy login [redacted]"), "{found:?}");
    let address = goaway(tls, format!("bad login {TOKEN}, Basic {login}")).await;
    let url = format!("https://user:{TOKEN}@{address}").parse().unwrap();
    let exporter = pdstool::exporter::Exporter::new(&url, None, Some(&ca)).unwrap();
    let error = exporter.status().await.unwrap_err();
    let text = with_sources(&error);
    assert!(text.contains("bad login [redacted], Basic ") && text.len() < 1_200, "{text}");
    assert!(![PART, &login[8..24]].iter().any(|part| format!("{text} {error:?}").contains(part)), "{text}");
}

#[tokio::test]
async fn a_token_echoed_by_a_reply_is_redacted_before_the_reply_is_read() {
    let polled = response_time::RESOURCE.polled();
    let server = Server::start(|seen| match seen.number {
        0 => ok(format!(r#"{{"status":"{TOKEN}"}}"#)),
        1 => ok(format!(r#"{{"status":"success","data":{{"percentiles":"{LONG}"}}}}"#)),
        2 => ok(r#"{"status":"s3rvice-\u0061cc0unt-t0ken"}"#),
        3 => ok(format!(r#"{{"status":"success","data":{{"percentiles":"{}"}}}}"#, "x".repeat(1_000_000))),
        _ => ok(format!(r#"{{"name":"{TOKEN}"}}"#)),
    })
    .await;
    let asking = Asking::of(&server);
    let account = asking.client.account("p");
    for quoted in ["'[redacted]'", "xxx…", "'[redacted]'", "xxx…"] {
        let read = |body: &[u8]| polled.read(body, &[]);
        let read =
            asking.client.read(&Turn::new(&account), response_time::RESOURCE, &request("p", "a"), read).await;
        let Err(error) = read else { panic!("a reply that cannot be used") };
        let printed = format!("{} {error:?}", with_sources(&error));
        assert!(printed.contains(quoted) && !printed.contains(PART), "{printed}");
        assert!(printed.len() < 800, "{} bytes", printed.len());
    }
    assert_eq!(asking.ask("p", "a").await.unwrap(), r#"{"name":"[redacted]"}"#, "what labels are made of");
}

#[tokio::test]
async fn an_echo_is_redacted_however_it_is_escaped_and_whose_token_it_is() {
    let percent = TOKEN.replace('-', "%2D");
    let digits: String = TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect();
    let bodies = [
        format!(r#"{{"name":"{}"}}"#, TOKEN.replace('3', "&#51;")),
        format!(r#"{{"name":"{digits}"}}"#),
        format!(r#"{{"name":"{}"}}"#, TOKEN.replace('a', "\\u0061")),
        format!(r#"{{"name":"{percent}"}}"#),
        r#"{"name":"An0thers-T0ken"}"#.to_owned(),
    ];
    let echoes: Vec<_> = bodies.iter().map(|body| ok(body.clone())).collect();
    let server = Server::start(move |seen| match echoes.get(seen.number) {
        Some(echo) => echo.clone(),
        None if seen.number > echoes.len() => status(302, "").with("location", "//An0thers-T0ken/login"),
        None => ok("").with("content-encoding", TOKEN),
    })
    .await;
    let other = inline("An0thers-T0ken");
    let asking = Asking::new(&api(&format!("http://{}", server.address)), &[project("p-2", other)]);
    for body in bodies {
        assert_eq!(asking.ask("p", "a").await.unwrap(), r#"{"name":"[redacted]"}"#, "{body}");
    }
    let error = asking.ask("p", "a").await.unwrap_err();
    assert!(error.to_string().contains("content encoding '[redacted]'"), "{error}");
    let error = asking.ask("p", "a").await.unwrap_err().to_string();
    assert!(error.contains("302, a redirect to ") && !error.to_lowercase().contains("an0thers"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_read_after_a_reload_removed_its_account_is_redacted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "the-first-t0ken").unwrap();
    let server = Server::start(|seen| match seen.header("authorization").unwrap() {
        "Bearer the-first-t0ken" => status(401, ""),
        sent => ok(format!(r#"{{"name":"{}"}}"#, sent.trim_start_matches("Bearer "))),
    })
    .await;
    let mut api = api(&format!("http://{}", server.address));
    api.token = super::file(&path);
    let asking = Asking::new(&api, &[]);
    api.token = inline(TOKEN);
    let client = asking.client.successor(&api, &[]).unwrap();
    client.take_over(Some(&asking.client));
    for token in ["the-second-t0ken", "the-third-t0ken"] {
        std::fs::write(&path, token).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(asking.ask("p", "a").await.unwrap(), r#"{"name":"[redacted]"}"#);
    }
    let after = Asking { client, telemetry: asking.telemetry.clone() };
    assert_eq!(after.ask("p", "a").await.unwrap(), r#"{"name":"[redacted]"}"#);
}

#[tokio::test]
async fn a_refusal_that_breaks_off_within_the_token_shows_nothing_of_it() {
    let server =
        Server::start(|_| status(500, "").with("content-length", "99").cut("bad token s3rvice-acc0")).await;
    let error = Asking::of(&server).ask("p", "a").await.unwrap_err();
    assert_eq!(error.message(), "bad token [redacted]");
}

#[tokio::test]
async fn no_eight_characters_come_out_wherever_a_message_is_shortened() {
    let server = Server::start(|seen| {
        // The cut moves through the token.
        let text = format!("{}{TOKEN}{}", "x".repeat(90 + 3 * seen.number), "y".repeat(100));
        status(500, text)
    })
    .await;
    let asking = Asking::of(&server);
    for _ in 0..40 {
        let said = with_sources(&asking.ask("p", "a").await.unwrap_err());
        assert!(said.len() < 300, "{said}");
        let part = (8..=TOKEN.len()).map(|end| &TOKEN[end - 8..end]).find(|part| said.contains(part));
        assert_eq!(part, None, "{said}");
    }
}

#[tokio::test]
async fn the_password_of_a_proxy_is_never_shown() {
    let (log, _guard) = Log::start(Level::TRACE);
    let mut api = api("https://service.example.com");
    let proxy = Server::start(|_| status(407, "")).await;
    api.proxy_url = Some(format!("http://user:pr0xy-passw0rd@{}", proxy.address).parse().unwrap());
    let asking = Asking::new(&api, &[]);
    let error = asking.ask("p", "a").await.unwrap_err();
    assert!(proxy.seen()[0].header("proxy-authorization").is_some());
    let printed = format!("{} {error:?} {:?} {}", with_sources(&error), asking.client, log.text());
    assert!(!printed.contains("pr0xy-passw0rd"), "{printed}");

    // It answers for the service, and shows what it was sent.
    let proxy =
        Server::start(|seen| status(502, seen.header("proxy-authorization").unwrap().to_owned())).await;
    let mut api = super::api("http://service.example.com");
    api.proxy_url = Some(format!("http://user:pr0xy%2Dpassw0rd@{}", proxy.address).parse().unwrap());
    let error = Asking::new(&api, &[]).ask("p", "a").await.unwrap_err();
    let whole = "dXNlcjpwcjB4eS1wYXNzdzByZA==";
    let part = (8..whole.len()).map(|end| &whole[end - 8..end]).find(|part| error.message().contains(part));
    assert!(part.is_none() && error.message().starts_with("Basic "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_logged_once_and_not_with_each_request() {
    let (log, _guard) = Log::start(Level::INFO);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "one").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let server = Server::start(|seen| {
        let refuse = seen.header("authorization") == Some("Bearer one");
        if refuse { status(401, "") } else { ok("{}") }
    })
    .await;
    let asking = Asking::with(&server, |api| api.token = super::file(&path));
    let ask = async || {
        for _ in 0..5 {
            let _ = asking.ask("p", "a").await;
            tokio::time::advance(Duration::from_secs(300)).await;
        }
    };
    let assert_told =
        |message: &str| assert_eq!(log.lines_with(message).len(), 1, "{message}: {}", log.text());
    ask().await;
    assert_told("the service refuses the ");
    std::fs::write(&path, "").unwrap();
    ask().await;
    assert_told("token cannot be used");
    std::fs::write(&path, "two").unwrap();
    ask().await;
    for message in [
        "the token can be used again",
        "the service accepts the token again",
        "every user of this machine can read the token file",
    ] {
        assert_told(message);
    }
    assert_eq!(log.text().lines().count(), 5, "{}", log.text());
}

#[tokio::test]
async fn plain_http_is_warned_of_once_unless_it_stays_on_this_machine() {
    for (base, warned) in [
        ("http://api.example.com/x", 1),
        ("https://api.example.com", 0),
        ("http://127.0.0.1:1", 0),
        ("http://localhost:1", 0),
        ("http://[::1]:1", 0),
        ("http://[::ffff:127.0.0.1]:1", 0),
        ("http://10.0.0.1", 1),
    ] {
        let (log, _guard) = Log::start(Level::INFO);
        Asking::new(&api(base), &[]);
        assert_eq!(log.lines_with("plain http").len(), warned, "{base}");
    }
}
