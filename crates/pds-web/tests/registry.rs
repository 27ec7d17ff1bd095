//! Runs the example of the documentation as it stands there.

#[path = "../examples/registry.rs"]
#[expect(dead_code, reason = "its `main` takes a port of its own")]
mod example;

use pds_web::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// `alice`, with the password `fakepassword`.
const USERS: &str =
    "basic_auth_users:\n  alice: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi\n";

#[tokio::test]
async fn the_example_serves_a_registry_behind_a_web_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("web.yml"), folder.path().join("socket"));
    std::fs::write(&file, USERS).unwrap();
    let config = Config {
        listen_addresses: vec![format!("unix:{}", socket.display())],
        config_file: Some(file),
        ..Config::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let ask = async |header: &str| {
        let mut stream = loop {
            match UnixStream::connect(&socket).await {
                Ok(stream) => break stream,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let request =
            format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let asking = async {
        let stranger = ask("").await;
        assert!(stranger.starts_with("HTTP/1.1 401"), "{stranger}");
        let alice = ask("authorization: Basic YWxpY2U6ZmFrZXBhc3N3b3Jk\r\n").await;
        assert!(
            alice.starts_with("HTTP/1.1 200") && alice.contains("\nexample_scrapes_total 1\n"),
            "{alice}"
        );
        stop.send(()).unwrap();
    };
    let (served, ()) = tokio::join!(example::serve(config, async { drop(stopped.await) }), asking);
    served.unwrap();
}
