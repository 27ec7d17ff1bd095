//! The doctor on the way to the service. Its failures are in the table of causes.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use super::{PROJECT, Patient, answering};
use crate::client::server::Server;
use crate::client::transport::authority;
use crate::tool::TOKEN;

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
