//! The doctor on the way to the service, whose failures are in the table of causes, and on the address of the daemon.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use super::{PROJECT, Patient, answering, polling};
use crate::client::server::{Server, status};
use crate::client::transport::authority;
use crate::process::{Alone, Exporter, assert_has};
use crate::tool::{Found, Service, TOKEN, ended, pdstool};
use crate::web::certificates::Authority;

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
    let (_, said, remedy) = found.only();
    assert!(said.contains("the port is missing"), "{said}");
    assert!(remedy.starts_with("Set --web.listen-address to an address of this machine"), "{remedy}");
    let daemon = crate::process::Exporter::start(&["--demo"]);
    let found = listening(&[daemon.url.trim_start_matches("http://")]);
    assert!(!found.json.to_string().contains("listening address"), "{:#}", found.json);
}

#[test]
fn a_daemon_with_tls_a_password_or_a_socket_is_found_without_its_address() {
    let authority = Authority::new();
    authority.sign_server();
    let tls = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";
    let users = format!("basic_auth_users:\n  me: {}\n", bcrypt::hash("secret", 4).unwrap());
    let ca = format!("--exporter-ca-file={}", authority.path("ca.crt").display());
    let (patient, service) = (Patient::new(), Service::start(answering));
    let file = patient.path("pds-exporter.toml");
    std::fs::write(&file, format!("[api]\n{}", polling(&service, ""))).unwrap();
    let login = "TLS or a password";
    for (web, flag, is_socket, is_read) in [
        ("http_server_config: {http2: true}\n", None, true, true),
        (tls, Some(&ca), false, true),
        (tls, Some(&ca), true, true),
        (tls, None, false, false),
        (&*users, None, false, false),
    ] {
        let alone = Alone::new();
        std::fs::write(authority.path("web.yml"), web).unwrap();
        let folder = alone.path("").canonicalize().unwrap();
        let socket = format!("unix:{}", folder.join("web.sock").display());
        let mut daemon = alone.daemon();
        if is_socket {
            daemon = Command::new(alone.path("pds-exporter"));
            daemon.arg("--web.listen-address=unix:web.sock").current_dir(folder);
        }
        daemon.arg("--demo").arg("--web.config.file").arg(authority.path("web.yml"));
        let daemon = Exporter::of(daemon);
        let scheme = if web == tls { "https" } else { "http" };
        let name = if is_socket { socket } else { daemon.url.replacen("http", scheme, 1) };
        let run = |args: &[&str]| alone.pdstool(args).args(flag).output().unwrap();
        let doctor = Found::of(&run(&["doctor", "-o", "json", "--config.file", file.to_str().unwrap()]));
        assert_eq!((doctor.code, doctor.wrong()), (Some(0), vec![]), "{:#}", doctor.json);
        let said = ended(&run(&["status"]));
        if is_socket && web != tls {
            assert_has(&ended(&run(&["status", "--exporter", &name])), &[&name, env!("CARGO_PKG_VERSION")]);
        }
        if web == users {
            let wrong = daemon.url.replacen("//", "//me:guess@", 1);
            let secure = daemon.url.replacen("http", "https", 1);
            for (address, said, remedy) in [
                (wrong, "it refuses the user or password of its address", "Correct user and password"),
                (secure, ". Use http:// in --exporter.", "Use http:// in --exporter."),
            ] {
                assert_has(&ended(&run(&["status", "--exporter", &address])), &[said]);
                let args = ["doctor", "-o", "json", "--config.file", file.to_str().unwrap()];
                let doctor = Found::of(&run(&[&args[..], &["--exporter", &address]].concat()));
                assert!(doctor.only().2.starts_with(remedy), "{:#}", doctor.json);
            }
        }
        if is_read {
            doctor.says("daemon", &format!("{name} is a demo and polls another service"));
            assert_has(&said, &[&name, env!("CARGO_PKG_VERSION")]);
        } else {
            doctor.finds("daemon", "note", &format!("{name} runs, but requires {login}: use --exporter"));
            let hint = format!(". If it requires {login}, use --exporter https://USER:PASSWORD@NAME");
            assert_has(&said, &[&format!("error: no status from {name}: "), &hint]);
            // Plain HTTP.
            assert_has(&ended(&run(&["status", "--exporter", &daemon.url])), &[&hint]);
        }
    }
}

#[test]
fn an_expired_certificate_of_a_daemon_is_a_problem() {
    let authority = Authority::new();
    authority.sign_server_until(2020);
    let web = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";
    std::fs::write(authority.path("web.yml"), web).unwrap();
    let ca = format!("--exporter-ca-file={}", authority.path("ca.crt").display());
    let (patient, service, alone) = (Patient::new(), Service::start(answering), Alone::new());
    let file = patient.path("pds-exporter.toml");
    std::fs::write(&file, format!("include = [\"none/*.toml\"]\n[api]\n{}", polling(&service, ""))).unwrap();
    let mut daemon = alone.daemon();
    daemon.arg("--demo").arg("--web.config.file").arg(authority.path("web.yml"));
    let _daemon = Exporter::of(daemon);
    let run = |args: &[&str]| alone.pdstool(args).arg(&ca).output().unwrap();
    let doctor = Found::of(&run(&["doctor", "-o", "json", "--config.file", file.to_str().unwrap()]));
    doctor.finds("configuration", "warning", "include[0] matches no file: none/*.toml");
    doctor.finds("daemon", "problem", "no status from https://");
    let text = doctor.json.to_string();
    assert_has(&text, &["certificate expired", "look at its log and certificate"]);
    assert!(!text.contains("requires TLS") && !text.contains("no daemon at"), "{:#}", doctor.json);
    let said = ended(&run(&["status"]));
    assert!(!said.contains("is it running") && !said.contains("USER:PASSWORD"), "{said}");
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
