//! The doctor on the way to the service: ports, names, TLS, certificates, proxies.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use super::{PROJECT, Patient, answering};
use crate::client::server::Server;
use crate::client::transport::authority;
use crate::tool::{Service, TOKEN};

/// A server over TLS with a certificate for `name`, its CA's file, and what keeps it alive.
fn secure(name: &str) -> (Server, PathBuf, TempDir, tokio::runtime::Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let (ca, tls): (PathBuf, TlsAcceptor) = authority(folder.path(), name);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(Server::on("127.0.0.1:0", Some(tls), answering));
    (server, ca, folder, runtime)
}

#[test]
fn https_to_a_plain_port_and_http_to_a_tls_port_are_told_apart() {
    let patient = Patient::new();
    let plain = Service::start(answering);
    let url = plain.url().replace("http://", "https://");
    let found = patient.examined(&format!("base_url = \"{url}\"\ntoken = \"{TOKEN}\"\n{PROJECT}"));
    let (check, text, remedy) = found.only();
    assert!(check == "network" && text.contains("speaks plain HTTP, but api.base_url says https"), "{text}");
    assert!(remedy.contains("http://"), "{remedy}");
    assert!(!found.json.to_string().contains("InvalidContentType"));

    let (server, ..) = &secure("127.0.0.1");
    let found = patient
        .examined(&format!("base_url = \"http://{}\"\ntoken = \"{TOKEN}\"\n{PROJECT}", server.address));
    let (check, text, remedy) = found.only();
    assert!(check == "network" && text.contains("speaks TLS, but api.base_url says http"), "{text}");
    assert_eq!(remedy, "Use https:// in api.base_url.");
}

#[test]
fn certificates_are_judged_by_authority_and_name() {
    let patient = Patient::new();
    let (server, ca, _folder, _runtime) = secure("127.0.0.1");
    let api = format!("base_url = \"https://{}\"\ntoken = \"{TOKEN}\"\n", server.address);
    let found = patient.examined(&format!("{api}{PROJECT}"));
    let (_, text, remedy) = found.only();
    assert_eq!(text, "the certificate is signed by an authority that is not trusted");
    assert_eq!(remedy, "Set api.ca_file to a file with the authority's certificate.");
    let trusting = patient.examined(&format!("{api}ca_file = {ca:?}\n{PROJECT}"));
    assert_eq!((trusting.code, trusting.wrong()), (Some(0), vec![]), "{:#}", trusting.json);
    trusting.says("network", "TLS 1.3 with the service, HTTP/2, certificate until ");

    let (other, ca, _folder, _runtime) = secure("elsewhere.example.com");
    let api = format!("base_url = \"https://{}\"\ntoken = \"{TOKEN}\"\n", other.address);
    let found = patient.examined(&format!("{api}ca_file = {ca:?}\n{PROJECT}"));
    assert!(found.only().1.starts_with("the certificate is for another name: "), "{:#}", found.json);
}

#[test]
fn a_port_where_nothing_listens_and_a_name_without_address_are_named() {
    let patient = Patient::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = patient.examined(&format!("base_url = \"http://{closed}\"\ntoken = \"{TOKEN}\"\n{PROJECT}"));
    let (_, text, remedy) = found.only();
    assert!(
        text.contains("refused") && remedy.contains("Check host and port in api.base_url"),
        "{text}: {remedy}"
    );
    let found =
        patient.examined(&format!("base_url = \"https://nowhere.invalid\"\ntoken = \"{TOKEN}\"\n{PROJECT}"));
    let (_, text, remedy) = found.only();
    assert!(text.contains("nowhere.invalid") && remedy.contains("DNS"), "{text}: {remedy}");
}

/// A proxy that answers one request with `reply`; its address.
fn proxy(reply: &'static str) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            request.push(byte[0]);
        }
        let _ = stream.write_all(reply.as_bytes());
    });
    address
}

#[test]
fn a_proxy_is_asked_for_a_tunnel_and_its_refusal_is_explained() {
    let patient = Patient::new();
    for (reply, said, remedy) in [
        (
            "HTTP/1.1 407 Not hunter2-0f-a-pr0xy, dXNlcjpodW50ZXIyLTBmLWEtcHIweHk=\r\n\r\n",
            "requires a password",
            "user:password@",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\n\r\n",
            "refuses a tunnel to api.example.com:443: HTTP/1.1 403",
            "api.proxy_url",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "this is not a proxy", "api.proxy_url"),
        ("HTTP/1.1 200 Connection established\r\n\r\n", "TLS handshake", "firewall"),
    ] {
        let text = format!(
            "base_url = \"https://api.example.com\"\ntoken = \"{TOKEN}\"\nproxy_url = \"http://user:hunter2-0f-a-pr0xy@{}\"\n{PROJECT}",
            proxy(reply)
        );
        let found = patient.examined(&text);
        let (_, text, advice) = found.only();
        assert!(text.contains(said) && advice.contains(remedy), "{text}: {advice}");
        assert!(!text.contains("0f-a-pr0") && !text.contains("ZXIyLTBm"), "{text}");
    }
}
