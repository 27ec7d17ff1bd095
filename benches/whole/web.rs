//! Exporters with a web configuration, and scrapers with the credentials that it requires.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::fixture::configuration;
use crate::http::tls;
use crate::process::{Core, Process, command, role};

/// The exporter's configuration.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Web {
    Plain,
    Tls,
    /// With a curve that clients offer only when they are asked again.
    TlsRetry,
    Passwords,
}

/// An exporter with this configuration.
pub(crate) fn start(daemon: &str, web: Web, folder: &Path, config: &str) -> Process {
    std::fs::write(folder.join("exporter.toml"), config).unwrap();
    let web_config = match web {
        Web::Plain => String::new(),
        Web::Tls | Web::TlsRetry => {
            certificate(folder);
            let curves = if web == Web::Tls { "" } else { "  curve_preferences: [CurveP384]\n" };
            format!("tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n{curves}")
        }
        Web::Passwords => {
            format!("basic_auth_users:\n  prometheus: {}\n", bcrypt::hash("right", 12).unwrap())
        }
    };
    std::fs::write(folder.join("web.yml"), web_config).unwrap();
    let mut exporter = command(daemon, Core::Any);
    exporter.args(["--web.listen-address=127.0.0.1:0", "--web.config.file"]).arg(folder.join("web.yml"));
    Process::start({
        exporter.arg("--config.file").arg(folder.join("exporter.toml"));
        exporter
    })
}

/// A certificate for localhost with a key that is slow to sign with.
fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-keyout", "server.key", "-out", "server.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The version of HTTP.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Http {
    One,
    Two,
}

impl std::fmt::Display for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::One { "1.1" } else { "2" })
    }
}

/// A scraper with the right password that keeps its connection, or opens one for each scrape.
pub(crate) fn scraper(folder: &Path, web: Web, http: Http, keeps: bool) -> reqwest::Client {
    let mut roots = rustls::RootCertStore::empty();
    if matches!(web, Web::Tls | Web::TlsRetry) {
        roots.add(CertificateDer::from_pem_file(folder.join("server.pem")).unwrap()).unwrap();
    }
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("accept-encoding", "gzip".parse().unwrap());
    // prometheus:right
    headers.insert("authorization", "Basic cHJvbWV0aGV1czpyaWdodA==".parse().unwrap());
    let mut tls = tls(roots);
    let mut builder = reqwest::Client::builder().no_proxy();
    if http == Http::Two {
        tls.alpn_protocols = vec![b"h2".to_vec()];
        builder = builder.http2_prior_knowledge();
    }
    builder
        .tls_backend_preconfigured(tls)
        .default_headers(headers)
        .pool_max_idle_per_host(usize::from(keeps))
        .timeout(Duration::from_secs(30))
        .build()
        .unwrap()
}

/// Its address, by a name that its certificate has.
pub(crate) fn url(exporter: &Process, web: Web) -> String {
    match web {
        Web::Tls | Web::TlsRetry => exporter.url.replace("http:", "https:").replace("127.0.0.1", "localhost"),
        Web::Plain | Web::Passwords => exporter.url.clone(),
    }
}

/// An exporter and the service that it polls.
pub(crate) struct Polling {
    pub(crate) exporter: Process,
    web: Web,
    folder: tempfile::TempDir,
    _upstream: Process,
}

impl Polling {
    /// So many apps, each of which takes `delay` milliseconds to answer; `tables` are those of the configuration. Every
    /// target was asked once when it returns.
    pub(crate) async fn start(daemon: &str, web: Web, apps: usize, delay: usize, tables: &str) -> Self {
        let mut upstream = role("upstream", Core::Any);
        upstream.args([apps.to_string(), delay.to_string()]);
        let (upstream, folder) = (Process::start(upstream), tempfile::tempdir().unwrap());
        let config = configuration(&upstream.url, apps, "max_requests_per_second = 0", tables);
        let exporter = start(daemon, web, folder.path(), &config);
        let polling = Self { exporter, web, folder, _upstream: upstream };
        let (client, ready) = (polling.scraper(Http::One, false), format!("{}/-/ready", polling.url()));
        while !client.get(&ready).send().await.is_ok_and(|reply| reply.status() == 200) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        polling
    }

    pub(crate) fn scraper(&self, http: Http, keeps: bool) -> reqwest::Client {
        scraper(self.folder.path(), self.web, http, keeps)
    }

    pub(crate) fn url(&self) -> String {
        url(&self.exporter, self.web)
    }
}
