//! `pdstool check service` over TLS: the HTTP version, and compression.

use std::sync::Arc;

use pds_core::clock::Clock;
use pds_simulator::{Quirks, Settings, World};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::{Found, pdstool};
use crate::rig::{self, Configuration, terminate_tls};
use crate::web::certificates::Authority;

#[test]
fn the_http_version_and_compression_are_found_over_tls() {
    const HTTP_2: &str = "HTTP/2: all requests share one connection";
    const HTTP_1: &str = "HTTP/1.1: one connection per request in flight";
    let authority = Authority::new();
    authority.sign_server();
    let runtime = Runtime::new().unwrap();
    for (protocols, compresses, version, compression) in [
        (&["h2", "http/1.1"][..], false, HTTP_2, "replies are not compressed"),
        (&["h2", "http/1.1"], true, HTTP_2, "replies are compressed (gzip) on request"),
        (&["http/1.1"], false, HTTP_1, "replies are not compressed"),
    ] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let certificate = CertificateDer::from_pem_file(authority.path("server.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(authority.path("server.key")).unwrap();
        let mut tls = tls.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let quirks = Quirks { compresses, ..Quirks::default() };
        let world = World::new(Settings { projects: 1, quirks, ..Settings::default() }, Clock::system());
        let tls = TlsAcceptor::from(Arc::new(tls));
        let address = runtime.block_on(async { terminate_tls(&rig::serve(&world).await, tls).await });
        let url = format!("https://{address}");
        let folder = authority.folder.path();
        let file = Configuration::new(&world, &url).api("ca_file = \"ca.crt\"\n").write(folder);
        let mut check = pdstool(&["check", "service", "-o", "json", "--config.file", &file]);
        let found = Found::of(&check.current_dir(folder).output().unwrap());
        found.finds("http", "ok", version);
        found.finds("http", "ok", compression);
    }
}
