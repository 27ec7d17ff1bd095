//! A real Prometheus that scrapes over mutual TLS with a password.

use std::process::Stdio;

use pds_exporter::web::Config;
use tokio::process::Command;

use super::auth::user;
use super::certificates::Authority;
use super::{Running, try_curl};
use crate::process::until;
use crate::tools::tool;

#[tokio::test]
async fn prometheus_scrapes_over_mutual_tls_with_a_password() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign_client("prometheus.example.com");
    let more = format!(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n  client_allowed_sans: [prometheus.example.com]\n{}",
        user("prom")
    );
    let server =
        Running::start(Config { config_file: Some(authority.web_config(&more)), ..Config::default() });
    let job = |name: &str, password: &str, certificates: &str| {
        format!(
            "  - job_name: {name}
    scheme: https
    basic_auth: {{ username: prom, password: {password} }}
    tls_config: {{ ca_file: {}, {certificates} }}
    static_configs: [{{ targets: ['{}'] }}]
",
            authority.ca(),
            server.address
        )
    };
    let with_certificate = format!("cert_file: {certificate}, key_file: {key}");
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n{}{}{}",
        job("right", "secret", &with_certificate),
        job("wrong_password", "guess", &with_certificate),
        job("no_certificate", "secret", ""),
    );
    std::fs::write(authority.path("prometheus.yml"), config).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _prometheus = Command::new(tool("prometheus"))
        .arg(format!("--config.file={}", authority.path("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", authority.path("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let api = format!("http://127.0.0.1:{port}/api/v1/query");
    let query = async |expression: &str| {
        let expression = format!("query={expression}");
        let reply = try_curl(&["-G", "--data-urlencode", &expression, &api]).await.ok()?;
        let reply: serde_json::Value = serde_json::from_slice(&reply.body).ok()?;
        reply["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
    };
    until("Prometheus has scraped pds_up", async || query("pds_up").await.as_deref() == Some("1")).await;
    assert_eq!(query("up{job=\"right\"}").await.as_deref(), Some("1"));
    for refused in ["wrong_password", "no_certificate"] {
        let up = format!("up{{job=\"{refused}\"}}");
        until(refused, async || query(&up).await.as_deref() == Some("0")).await;
    }
}
