//! A real Prometheus that scrapes over mutual TLS with a password.

use pds_web::Config;

use super::Running;
use super::auth::user;
use super::certificates::Authority;
use crate::process::until;
use crate::server::{PROMETHEUS_2, Server};

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
    let prometheus =
        Server::prometheus(PROMETHEUS_2, &[("prometheus.yml", &config)], "--log.level=error").await;
    let query = async |expression: &str| {
        let series = prometheus.query(expression).await;
        series.first().and_then(|series| series["value"][1].as_str().map(str::to_owned))
    };
    until("Prometheus has scraped pds_up", async || query("pds_up").await.as_deref() == Some("1")).await;
    assert_eq!(query("up{job=\"right\"}").await.as_deref(), Some("1"));
    for refused in ["wrong_password", "no_certificate"] {
        let up = format!("up{{job=\"{refused}\"}}");
        until(refused, async || query(&up).await.as_deref() == Some("0")).await;
    }
}
