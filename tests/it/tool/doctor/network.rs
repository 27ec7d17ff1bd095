//! The doctor on the way to the service, whose failures are in the table of causes, and on the address of the daemon.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use super::{PROJECT, Patient, answering, polling};
use crate::client::server::{Server, status};
use crate::client::transport::authority;
use crate::tool::{Service, TOKEN, pdstool};

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
fn a_certificate_that_is_trusted_is_described() {
    let patient = Patient::new();
    let (server, ca, _folder, _runtime) = secure("127.0.0.1");
    let api = format!("base_url = \"https://{}\"\ntoken = \"{TOKEN}\"\n", server.address);
    let trusting = patient.examined(&format!("{api}ca_file = {ca:?}\n{PROJECT}"));
    assert_eq!((trusting.code, trusting.wrong()), (Some(0), vec![]), "{:#}", trusting.json);
    trusting.says("network", "answers over HTTP/2.0, with a certificate until ");
}

#[test]
fn an_address_that_another_program_has_is_a_problem() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let text = polling(&service, "");
    let listening = |addresses: &[&str]| {
        patient.examined_by(&text, |command| {
            *command = pdstool(&["doctor", "-o", "json"]);
            command.args(addresses.iter().flat_map(|address| ["--web.listen-address", address]))
        })
    };
    let other = Service::start(|_| status(404, ""));
    let taken = other.server.address.to_string();
    let found = listening(&[&taken]);
    let (check, said, remedy) = found.only();
    let in_use = format!("--web.listen-address \"{taken}\": something listens there already: ");
    assert!(check == "listening address" && said.starts_with(&in_use), "{said}");
    assert!(remedy.starts_with("Stop the program that uses it, or set another address"), "{remedy}");
    found.says("daemon", &format!("no daemon at http://{taken}: HTTP status 404 Not Found"));
    let socket = format!("unix:{}", patient.path("web.sock").display());
    let found = listening(&["127.0.0.1:0", &socket, &taken]);
    assert!(found.only().1.starts_with(&in_use), "{:#}", found.json);
    found.says("daemon", "no daemon at http://127.0.0.1:0; use --exporter");
    found.says("listening address", "web.sock is free");
    let found = listening(&["10090"]);
    assert!(found.only().1.contains("the port is missing"), "{:#}", found.json);
    let daemon = crate::process::Exporter::start(&["--demo"]);
    let found = listening(&[daemon.url.trim_start_matches("http://")]);
    assert!(!found.json.to_string().contains("listening address"), "{:#}", found.json);
}

#[test]
fn the_status_of_a_proxy_that_refuses_a_tunnel_is_reported() {
    let patient = Patient::new();
    let proxy = Service::start(|seen| {
        let is_known = seen.header("proxy-authorization") == Some("Basic dXNlcjpwQHNz");
        status(if is_known { 502 } else { 407 }, "")
    });
    let address = proxy.server.address;
    let found = patient.examined(&format!(
        "base_url = \"https://service.example.com\"\nproxy_url = \"http://user:p%40ss@{address}\"\ntoken = \"{TOKEN}\"\n{PROJECT}"
    ));
    let (check, said, _) = found.only();
    let refuses = format!("the proxy refuses a tunnel to the service ({address})");
    assert!(
        check == "network" && said.starts_with(&refuses) && said.ends_with(": 502 Bad Gateway"),
        "{said}"
    );
}
