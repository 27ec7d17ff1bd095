//! `pdstool check service` over TLS: the HTTP version, and compression.

use super::simulated::Process;
use super::{Found, ended, pdstool, stdout};
use crate::web::certificates::Authority;

#[test]
fn the_http_version_and_compression_are_found_over_tls() {
    let authority = Authority::new();
    authority.sign_server();
    let at = |name: &str| authority.path(name).to_str().unwrap().to_owned();
    let tls = ["--tls-cert-file".to_owned(), at("server.crt"), "--tls-key-file".to_owned(), at("server.key")];
    for (more, version, compression) in [
        (&[][..], "HTTP/2: all requests share one connection", "replies are not compressed"),
        (
            &["--compress"],
            "HTTP/2: all requests share one connection",
            "replies are compressed (gzip) on request",
        ),
        (&["--no-http2"], "HTTP/1.1: one connection per request in flight", "replies are not compressed"),
    ] {
        let flags: Vec<&str> = tls.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let process = Process::simulate(&flags);
        assert!(process.said("base_url").starts_with("https://"));
        let config = format!(
            "[api]\nbase_url = \"{}\"\ntoken = \"{}\"\nca_file = \"ca.crt\"\n[[projects]]\nid = \"{}\"\napps = [\"{}\"]\n",
            process.said("base_url"),
            process.said("token"),
            process.said("project"),
            process.said("app"),
        );
        std::fs::write(at("pds-exporter.toml"), config).unwrap();
        let mut check = pdstool(&["check", "service", "-o", "json"]);
        let found = Found::of(&check.current_dir(&authority.folder).output().unwrap());
        found.finds("http", "ok", version);
        found.finds("http", "ok", compression);
    }
}

#[test]
fn files_that_are_no_certificate_and_key_are_a_usage_error() {
    let authority = Authority::new();
    authority.sign_server();
    let simulate = |cert: &str, key: &str| {
        let mut command = pdstool(&["simulate", "--listen", "127.0.0.1:0", "--tls-cert-file", cert]);
        let output = command.args(["--tls-key-file", key]).current_dir(&authority.folder).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        ended(&output)
    };
    assert!(simulate("missing.crt", "server.key").contains("cannot use missing.crt for TLS"));
    assert!(simulate("server.crt", "ca.crt").contains("cannot use ca.crt for TLS"));
}
