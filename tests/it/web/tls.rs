//! TLS as clients see it: versions, ciphers, client certificates, certificates that change.

use std::sync::Arc;
use std::time::Duration;

use pds_web::Config;
use rcgen::ExtendedKeyUsagePurpose;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::certificates::Authority;
use super::{Running, curl, run, try_curl, write_settled};

fn start(authority: &Authority, more: &str) -> Running {
    Running::start(Config { config_file: Some(authority.web_config(more)), ..Config::default() })
}

impl Running {
    fn tls_url(&self) -> String {
        format!("https://{}/metrics", self.address)
    }
}

/// Whether curl gets the page with this certificate of its own, or without one, over this version of TLS at most.
async fn gets_in(
    authority: &Authority,
    server: &Running,
    client: Option<&(String, String)>,
    version: &str,
) -> bool {
    let (ca, url) = (authority.ca(), server.tls_url());
    let mut args = vec!["--tls-max", version, "--cacert", &ca, &url];
    if let Some((certificate, key)) = client {
        args.extend(["--cert", certificate.as_str(), "--key", key.as_str()]);
    }
    try_curl(&args).await.is_ok_and(|reply| reply.status == 200)
}

#[tokio::test]
async fn https_speaks_http2_unless_configured_otherwise() {
    let authority = Authority::new();
    let server = start(&authority, "");
    let ca = authority.ca();
    let version = async |server: &Running, ask: &str| {
        let url = server.tls_url();
        let write_out = "%{http_version} %{http_code}";
        let args = ["-sS", "--cacert", &ca, ask, "-o", "/dev/null", "-w", write_out, &url];
        let said = run("curl", &args).await;
        String::from_utf8(said.stdout).unwrap()
    };
    assert_eq!(version(&server, "--http2").await, "2 200");
    assert_eq!(version(&server, "--http1.1").await, "1.1 200");
    assert!(try_curl(&[&server.url("/metrics")]).await.is_err(), "plain HTTP is not answered");
    let server = start(&authority, "http_server_config:\n  http2: false\n");
    assert_eq!(version(&server, "--http2").await, "1.1 200");
}

#[tokio::test]
async fn an_http2_client_is_drained_as_well() {
    let authority = Authority::new();
    let server = start(&authority, "");
    server.stub.held.send_replace(true);
    let (url, ca, stub) = (server.tls_url(), authority.ca(), Arc::clone(&server.stub));
    let scrape = tokio::spawn(async move { curl(&["--cacert", &ca, "--http2", &url]).await.status });
    crate::process::until("the scrape is under way", async || stub.held.receiver_count() == 1).await;
    let stopping = tokio::spawn(server.stop());
    tokio::task::yield_now().await;
    stub.held.send_replace(false);
    assert_eq!(scrape.await.unwrap(), 200);
    stopping.await.unwrap();
}

#[tokio::test]
async fn the_configured_minimum_version_is_kept() {
    let authority = Authority::new();
    let server = start(&authority, "  min_version: TLS13\n");
    assert!(!gets_in(&authority, &server, None, "1.2").await);
    assert!(gets_in(&authority, &server, None, "1.3").await);
}

#[tokio::test]
async fn no_weak_cipher_is_offered_and_a_list_of_ciphers_is_kept() {
    let authority = Authority::new();
    let server = start(&authority, "");
    let port = server.address.port().to_string();
    let scan = async |port: &str| {
        let output = run("nmap", &["-Pn", "-p", port, "--script", "ssl-enum-ciphers", "127.0.0.1"]).await;
        String::from_utf8(output.stdout).unwrap()
    };
    let found = scan(&port).await;
    assert!(found.contains("TLSv1.2:") && found.contains("TLSv1.3:"), "{found}");
    assert!(found.contains("least strength: A"), "{found}");
    for weak in ["TLSv1.0", "TLSv1.1", "SSLv3", "CBC", "RC4", "3DES", "TLS_RSA_"] {
        assert!(!found.contains(weak), "{weak}: {found}");
    }
    let only = "  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n  curve_preferences: [CurveP384]\n";
    let server = start(&authority, only);
    let found = scan(&server.address.port().to_string()).await;
    assert!(found.contains("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 (secp384r1)"), "{found}");
    assert_eq!(found.matches("TLS_ECDHE").count(), 1, "{found}");
    assert!(!found.contains("TLSv1.3"), "{found}");
}

#[tokio::test]
async fn each_client_policy_admits_the_right_clients() {
    const CA: &str = "client_ca_file: ca.crt";
    const NAMES: &str = "client_ca_file: ca.crt\n  client_allowed_sans: [10.0.0.1, prometheus.example.com]";
    let (authority, stranger) = (Authority::new(), Authority::new());
    let ours = authority.sign_client("prometheus.example.com");
    let other = authority.sign_client("other.example.com");
    let theirs = stranger.sign_client("prometheus.example.com");
    // Clients without a certificate, with one of ours, with one of ours for another name, and with one of another CA.
    for (policy, more, expected) in [
        ("NoClientCert", "", [true; 4]),
        ("RequestClientCert", "", [true; 4]),
        ("RequireAnyClientCert", "", [false, true, true, true]),
        ("VerifyClientCertIfGiven", CA, [true, true, true, false]),
        ("RequireAndVerifyClientCert", CA, [false, true, true, false]),
        ("RequireAndVerifyClientCert", NAMES, [false, true, false, false]),
        // The name in a self-signed certificate opens nothing.
        ("RequireAnyClientCert", NAMES, [false, true, false, false]),
        // Without a client CA, the system's verify.
        ("VerifyClientCertIfGiven", "", [true, false, false, false]),
    ] {
        let server = start(&authority, &format!("  client_auth_type: {policy}\n  {more}\n"));
        for version in ["1.2", "1.3"] {
            let mut admitted = Vec::new();
            for client in [None, Some(&ours), Some(&other), Some(&theirs)] {
                admitted.push(gets_in(&authority, &server, client, version).await);
            }
            assert_eq!(admitted, expected, "{policy} {more} {version}");
        }
    }
}

#[tokio::test]
async fn a_running_server_never_requires_less_of_clients() {
    let authority = Authority::new();
    let strict = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n";
    let client = authority.sign_client("prometheus.example.com");
    let server = start(&authority, strict);
    let anonymous = async || gets_in(&authority, &server, None, "1.3").await;
    let known = async || gets_in(&authority, &server, Some(&client), "1.3").await;
    assert!(known().await && !anonymous().await);
    for looser in [
        "",
        "  client_auth_type: RequestClientCert\n",
        "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: ca.crt\n",
        "  client_auth_type: RequireAndVerifyClientCert\n",
        "  client_auth_type: RequireAnyClientCert\n",
    ] {
        authority.web_config(looser);
        assert!(known().await && !anonymous().await, "{looser}");
        assert!(server.own_page().contains("web_config_last_reload_successful 0\n"), "{looser}");
    }
    authority.web_config(&format!("{strict}  client_allowed_sans: [other.example.com]\n"));
    assert!(!known().await, "stricter takes effect");
    assert!(server.own_page().contains("web_config_last_reload_successful 1\n"));
}

#[tokio::test]
async fn a_stalled_handshake_times_out_and_delays_no_other() {
    let authority = Authority::new();
    let mut config = Config { config_file: Some(authority.web_config("")), ..Config::default() };
    config.limits.handshake_timeout = Duration::from_millis(500);
    let server = Running::start(config);
    let mut stalled = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
        stalled.push(stream);
    }
    assert_eq!(curl(&["--cacert", &authority.ca(), &server.tls_url()]).await.status, 200);
    for mut stream in stalled {
        let read = tokio::time::timeout(crate::process::DEADLINE, stream.read(&mut [0; 64])).await.unwrap();
        assert_eq!(read.unwrap_or(0), 0);
    }
}

/// One scrape over a connection of its own: the certificate the server showed, if all went well.
async fn scrape(server: &Running, client: &Arc<rustls::ClientConfig>) -> Option<CertificateDer<'static>> {
    let stream = TcpStream::connect(server.address).await.ok()?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::clone(client)).connect(name, stream).await.ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.ok()?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.ok()?;
    reply
        .starts_with(b"HTTP/1.1 200 ")
        .then(|| stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned())
}

/// A client that trusts `authority` and shows a certificate of `signer`.
fn client(authority: &Authority, signer: &Authority) -> Arc<rustls::ClientConfig> {
    let (certificate, key) = signer.sign(&["prometheus"], ExtendedKeyUsagePurpose::ClientAuth);
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    Arc::new(authority.trusted().with_client_auth_cert(chain, key).unwrap())
}

#[tokio::test]
async fn all_certificates_change_during_fifty_scrapes_a_second_without_a_failure() {
    let (authority, next) = (Authority::new(), Authority::new());
    let policy = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n";
    let server = Arc::new(start(&authority, policy));
    let (before, after) = (client(&authority, &authority), client(&authority, &next));
    let mut scrapes = tokio::task::JoinSet::new();
    let mut presented = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    // After a stall, each change still has its time.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for tick in 0..200 {
        ticks.tick().await;
        match tick {
            // First the certificate, for a while without its key, then the key: as careless as can be.
            50 | 120 => {
                let (certificate, key) = authority.sign(&["localhost"], ExtendedKeyUsagePurpose::ServerAuth);
                write_settled(&authority.path("server.crt"), &certificate);
                std::fs::write(authority.path("next.key"), key).unwrap();
            }
            60 | 130 => {
                let key = std::fs::read_to_string(authority.path("next.key")).unwrap();
                write_settled(&authority.path("server.key"), &key);
            }
            // The clients' CA: both for a while, then the next one alone.
            80 => {
                let both = authority.certificate.pem() + &next.certificate.pem();
                write_settled(&authority.path("ca.crt"), &both);
            }
            150 => {
                while let Some(scrape) = scrapes.join_next().await {
                    presented.push(scrape.unwrap());
                }
                write_settled(&authority.path("ca.crt"), &next.certificate.pem());
                assert!(scrape(&server, &before).await.is_none(), "the former CA is out");
            }
            _ => {}
        }
        let (server, client) = (Arc::clone(&server), Arc::clone(if tick < 100 { &before } else { &after }));
        scrapes.spawn(async move { scrape(&server, &client).await });
    }
    presented.extend(scrapes.join_all().await);
    assert_eq!(presented.len(), 200);
    let of_scrape = presented.into_iter().map(|certificate| certificate.expect("a scrape failed").to_vec());
    let different: std::collections::HashSet<_> = of_scrape.collect();
    assert_eq!(different.len(), 3, "the first certificate and its two successors");
}
