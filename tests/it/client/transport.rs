//! The way to the service: TLS, HTTP/2, names and addresses, proxies.

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WantsServerCert;
use rustls::{ConfigBuilder, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use pds_client::Client;
use pds_config::Api;
use pds_core::clock::Clock;
use pds_core::error_chain::with_sources;
use pds_telemetry::Telemetry;

use super::server::{DRIP, Seen, Server, ok, status};
use super::{Asking, TOKEN, api, inline, project};
use crate::deploy::{command, succeed};
use crate::process::DEADLINE;

/// TLS of a server that identifies no client.
fn tls() -> ConfigBuilder<ServerConfig, WantsServerCert> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    tls.unwrap().with_no_client_auth()
}

/// A certificate authority of ours as a PEM file in `dir`, and TLS with a certificate of it for `name`.
pub(crate) fn authority(dir: &Path, name: &str) -> (PathBuf, TlsAcceptor) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).unwrap();
    let file = dir.join("ca.pem");
    fs::write(&file, ca.pem()).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let mut tls = tls().with_single_cert(vec![certificate.der().clone()], key.into()).unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (file, TlsAcceptor::from(Arc::new(tls)))
}

/// A server that answers the first request over HTTP/2 with GOAWAY, `words` and eight thousand control characters. Returns
/// its address.
pub(crate) async fn goaway(tls: TlsAcceptor, words: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut stream = tls.accept(listener.accept().await.unwrap().0).await.unwrap();
        // An empty frame SETTINGS.
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        stream.read_exact(&mut [0; 24]).await.unwrap();
        let mut head = [0; 9];
        // Until the frame HEADERS of the request.
        while head[3] != 1 {
            stream.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            stream.read_exact(&mut vec![0; length as usize]).await.unwrap();
        }
        let words = words + &"\x01".repeat(8_000);
        let length = u32::try_from(8 + words.len()).unwrap().to_be_bytes();
        // ENHANCE_YOUR_CALM.
        let frame =
            [&length[1..], &[7, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0, 0, 11], words.as_bytes()].concat();
        stream.write_all(&frame).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.ok();
    });
    address
}

#[tokio::test]
async fn a_private_authority_is_trusted_only_if_ca_file_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    let server = Server::on("127.0.0.1:0", Some(tls), |_| ok("{}")).await;
    let mut api = api(&format!("https://{}", server.address));
    let asking = Asking::new(&api, &[]);
    let error = with_sources(&asking.ask("p", "a").await.unwrap_err());
    let path = format!("GET https://{}/v2/projects/p/apps/a", server.address);
    let told = format!("{path} failed: the certificate's authority is not trusted: ");
    assert!(error.starts_with(&told), "{error}");
    assert!(error.ends_with("invalid peer certificate: UnknownIssuer"), "{error}");
    assert_eq!((asking.ended("tls"), server.count()), (1.0, 0));
    api.ca_file = Some(ca);
    Asking::new(&api, &[]).ask("p", "a").await.unwrap();
}

#[tokio::test]
async fn http_2_carries_all_requests_over_one_connection() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    // The first request makes the connection that the next ones share.
    let reply = |seen: &Seen| ok("{}").beside(32 * seen.number.min(1)).after(Duration::from_millis(20));
    let server = Server::on("127.0.0.1:0", Some(tls), reply).await;
    let mut api = api(&format!("https://{}", server.address));
    api.ca_file = Some(ca);
    let at_once = async |asking: &Arc<Asking>, how_many: usize| {
        let mut asks = tokio::task::JoinSet::new();
        for i in 0..how_many {
            let asking = asking.clone();
            asks.spawn(async move { asking.ask("p", &format!("a{i}")).await.unwrap() });
        }
        asks.join_all().await;
    };
    let asking = Arc::new(Asking::new(&api, &[]));
    at_once(&asking, 1).await;
    at_once(&asking, 100).await;
    assert!(server.seen().iter().all(|seen| seen.version == http::Version::HTTP_2));
    assert_eq!((server.count(), server.connections()), (101, 1));
    assert_eq!(server.most_under_way(), 32);
    // Before the first handshake nobody knows that one connection will do; no more than these are ever made.
    let asking = Arc::new(Asking::new(&api, &[]));
    at_once(&asking, 100).await;
    let made = server.connections();
    assert!(made <= 1 + 32, "{made}");
    at_once(&asking, 100).await;
    assert_eq!(server.connections(), made);
}

#[tokio::test]
async fn hanging_requests_of_one_account_over_http_2_leave_connections_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, tls) = authority(dir.path(), "127.0.0.1");
    let reply = |seen: &Seen| ok("{}").after(if seen.target.ends_with("/hangs") { DEADLINE } else { DRIP });
    let server = Server::on("127.0.0.1:0", Some(tls), reply).await;
    let mut api = api(&format!("https://{}", server.address));
    api.ca_file = Some(ca);
    api.max_concurrent_requests = NonZeroU32::new(104).unwrap();
    let asking = Arc::new(Asking::new(&api, &[project("p-1", None), project("p-2", inline("another"))]));
    asking.ask("p-1", "a").await.unwrap();
    let mut hanging = tokio::task::JoinSet::new();
    for _ in 0..104 {
        let asking = Arc::clone(&asking);
        hanging.spawn(async move { asking.ask("p-1", "hangs").await });
    }
    while server.most_under_way() < 100 {
        tokio::time::sleep(DRIP).await;
    }
    let other = tokio::time::timeout(Duration::from_secs(5), asking.ask("p-2", "a"));
    other.await.expect("the other account waits").unwrap();
    assert!(hanging.try_join_next().is_none() && server.connections() <= 1 + 103);
}

#[tokio::test]
async fn an_invalid_ca_file_is_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |api: &Api| {
        Client::new(api, &[], Arc::new(Telemetry::new(false).unwrap()), Clock::system()).unwrap_err()
    };
    let mut api = api("https://api.example.com");
    let path = dir.path().join("ca.pem");
    api.ca_file = Some(path.clone());
    let error = refusal(&api);
    let told = "No such file or directory (os error 2)";
    assert_eq!(error.to_string(), format!("api.ca_file: cannot read {}: {told}", path.display()));
    fs::write(&path, "not a certificate").unwrap();
    let told = "must hold CA certificates in PEM form: no certificate in it";
    assert_eq!(refusal(&api).to_string(), format!("api.ca_file: {} {told}", path.display()));
}

#[tokio::test]
async fn an_unresolvable_name_has_a_class_of_its_own() {
    // No label may be longer than 63 characters, so no resolver needs to be asked.
    let host = format!("{}.invalid", "x".repeat(64));
    let asking = Asking::new(&api(&format!("http://{host}")), &[]);
    let error = asking.ask("p", "a").await.unwrap_err();
    let told = format!("GET http://{host}/v2/projects/p/apps/a failed: the host's name cannot be resolved");
    assert_eq!((error.to_string(), asking.ended("dns")), (told, 1.0));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_ready_is_given_up_before_the_request_is() {
    // Accepts by the kernel, and never says a word of TLS.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let asking = Asking::new(&api(&format!("https://{}", silent.local_addr().unwrap())), &[]);
    let began = tokio::time::Instant::now();
    let error = asking.ask("p", "a").await.unwrap_err();
    assert_eq!(error.class().as_str(), "connect_timeout", "{}", with_sources(&error));
    let took = began.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(4)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn the_service_may_have_an_ipv6_address() {
    let server = Server::on("[::1]:0", None, |_| ok("{}")).await;
    Asking::of(&server).ask("p", "a").await.unwrap();
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn requests_go_below_the_base_urls_path_with_a_user_agent() {
    let server = Server::start(|_| ok("{}")).await;
    for base in ["/cloud/api", "/cloud/api/"] {
        Asking::new(&api(&format!("http://{}{base}", server.address)), &[]).ask("p/1", "a b").await.unwrap();
    }
    for seen in server.seen() {
        assert_eq!(seen.target, "/cloud/api/v2/projects/p%2F1/apps/a%20b");
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(seen.header("accept"), Some("application/json, text/plain;q=0.9"));
        assert_eq!(seen.header("cache-control"), Some("no-cache"));
        assert_eq!(seen.header("user-agent"), Some(concat!("pds-exporter/", env!("CARGO_PKG_VERSION"))));
    }
}

#[tokio::test]
async fn a_configured_proxy_is_used() {
    let service = Server::start(|_| ok("{}")).await;
    let proxy = Server::start(|_| ok("{}")).await;
    Asking::with(&service, |api| {
        api.proxy_url = Some(format!("http://user:p%40ss@{}", proxy.address).parse().unwrap())
    })
    .ask("p", "a")
    .await
    .unwrap();
    assert_eq!((proxy.count(), service.count()), (1, 0));
    let seen = &proxy.seen()[0];
    assert_eq!(seen.target, format!("http://{}/v2/projects/p/apps/a", service.address));
    assert_eq!(seen.header("proxy-authorization"), Some("Basic dXNlcjpwQHNz"));
}

#[tokio::test]
async fn a_proxy_on_the_way_to_https_never_sees_the_token() {
    let proxy = Server::start(|_| status(403, "")).await;
    let mut api = api("https://service.example.com");
    api.proxy_url = Some(format!("http://{}", proxy.address).parse().unwrap());
    let error = Asking::new(&api, &[]).ask("p", "a").await.unwrap_err();
    assert_eq!(error.class().as_str(), "proxy_refuses");
    let seen = proxy.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("CONNECT", "service.example.com:443"));
    assert!(!format!("{seen:?}").contains(TOKEN));
}

/// A certificate of the kind that `openssl req -x509` makes, its own authority, as a PEM file in `dir`, and TLS with it.
pub(crate) fn self_signed(dir: &Path, adjust: impl FnOnce(&mut CertificateParams)) -> (PathBuf, TlsAcceptor) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    adjust(&mut params);
    let certificate = params.self_signed(&key).unwrap();
    let file = dir.join("self.pem");
    fs::write(&file, certificate.pem()).unwrap();
    let tls = tls().with_single_cert(vec![certificate.der().clone()], key.into()).unwrap();
    (file, TlsAcceptor::from(Arc::new(tls)))
}

#[tokio::test]
async fn a_self_signed_certificate_in_ca_file_is_trusted_for_its_names_and_time() {
    type Adjust = fn(&mut CertificateParams);
    let named = |params: &mut CertificateParams| {
        *params = CertificateParams::new(["another.example".to_owned()]).unwrap();
    };
    let cases: [(Adjust, Option<(&str, &str)>); 4] = [
        (|_| {}, None),
        (|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1), Some(("tls_expired", "Expired"))),
        (
            |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1),
            Some(("tls_not_yet_valid", "NotValidYet")),
        ),
        (named, Some(("tls_name", "not valid for"))),
    ];
    for (adjust, refused) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (file, tls) = self_signed(dir.path(), adjust);
        let server = Server::on("127.0.0.1:0", Some(tls), |_| ok("{}")).await;
        let mut api = api(&format!("https://{}", server.address));
        assert!(Asking::new(&api, &[]).ask("p", "a").await.is_err(), "nobody vouches for it");
        api.ca_file = Some(file);
        let answer = Asking::new(&api, &[]).ask("p", "a").await;
        match (answer, refused) {
            (Ok(_), None) => {}
            (Err(error), Some((class, refused))) => {
                assert_eq!((error.class().as_str(), server.count()), (class, 0));
                assert!(with_sources(&error).contains(refused), "{}", with_sources(&error));
            }
            (answer, refused) => panic!("{answer:?}, but {refused:?}"),
        }
    }
}

// As `openssl x509 -req` makes it, without extensions.
#[tokio::test]
async fn a_certificate_of_version_1_is_named_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let script = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout v1.key -out v1.csr -subj /CN=localhost &&
             openssl x509 -req -in v1.csr -signkey v1.key -out v1.pem -days 30";
    succeed(command("bash", ["-c", script]).current_dir(dir.path()));
    let pem = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let certificate = CertificateDer::from_pem_slice(&pem("v1.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&pem("v1.key")).unwrap();
    // A server of another library: this one refuses the certificate itself.
    let signing = provider.key_provider.load_private_key(key).unwrap();
    let resolver =
        rustls::sign::SingleCertAndKey::from(rustls::sign::CertifiedKey::new(vec![certificate], signing));
    let tls = tls().with_cert_resolver(Arc::new(resolver));
    let server = Server::on("127.0.0.1:0", Some(TlsAcceptor::from(Arc::new(tls))), |_| ok("{}")).await;
    let mut api = api(&format!("https://{}", server.address));
    api.ca_file = Some(dir.path().join("v1.pem"));
    let error = with_sources(&Asking::new(&api, &[]).ask("p", "a").await.unwrap_err());
    assert!(error.contains("version 1") && error.contains("openssl req -x509"), "{error}");
    assert!(!error.contains("Other("), "{error}");

    let one_line = dir.path().join("one line.pem");
    fs::write(&one_line, String::from_utf8(pem("v1.pem")).unwrap().replace('\n', "")).unwrap();
    let web = |cert| {
        let path = dir.path().join("web.yml");
        fs::write(&path, format!("tls_server_config: {{cert_file: {cert}, key_file: v1.key}}")).unwrap();
        with_sources(&pds_web::webconfig::check(&path).unwrap_err())
    };
    let error = web("v1.pem");
    assert!(error.contains("version 1") && !error.contains("Other("), "{error}");
    let client = pds_http::tls_config("api.ca_file", Some(&one_line)).unwrap_err();
    for error in [with_sources(&client), web("one line.pem")] {
        assert!(error.contains("not PEM") && !error.contains('['), "{error}");
    }
}
