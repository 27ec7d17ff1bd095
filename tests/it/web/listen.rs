//! Several addresses, IPv6, unix sockets, systemd's sockets.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pds_telemetry::Telemetry;
use pds_web::{Config, Error, systemd};
use tokio::process::{Child, Command};

use super::{Running, curl, try_curl};
use crate::process::until;
use crate::server::free_port;
use crate::tools::tool;

fn on(addresses: &[&str]) -> Config {
    Config { listen_addresses: addresses.iter().map(ToString::to_string).collect(), ..Config::default() }
}

#[tokio::test]
async fn all_addresses_are_served_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("web.sock");
    let unix = format!("unix:{}", socket.display());
    let telemetry = Telemetry::new(false).unwrap();
    let server = on(&["localhost:0", "[::1]:0", &unix]).bind(telemetry.clone()).unwrap();
    let addresses = server.addresses();
    assert!(addresses[0].starts_with("127.0.0.1:") && addresses[1].starts_with("[::1]:"), "{addresses:?}");
    assert_eq!(addresses[2], unix);
    let server = Running::run(server, telemetry);
    for address in &addresses[..2] {
        assert_eq!(curl(&["-g", &format!("http://{address}/metrics")]).await.status, 200, "{address}");
    }
    let through_socket = ["--unix-socket", socket.to_str().unwrap(), "http://localhost/metrics"];
    assert_eq!(curl(&through_socket).await.status, 200);
    server.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn an_unavailable_address_is_named() {
    let telemetry = Telemetry::new(false).unwrap();
    let first = on(&["127.0.0.1:0"]).bind(telemetry.clone()).unwrap();
    let taken = first.addresses().remove(0);
    for (address, expected) in [
        (taken.as_str(), "something listens there already"),
        ("localhost", "the port is missing"),
        ("no-such-host.invalid:80", "the name cannot be resolved"),
        ("192.0.2.1:80", "cannot listen there"),
        ("unix:/no/such/folder/web.sock", "cannot listen there"),
        ("http://127.0.0.1:80/metrics", "an address is not a URL; write 127.0.0.1:80"),
    ] {
        let error = on(&[address]).bind(telemetry.clone()).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains(address), "{error}");
    }
    assert!(matches!(on(&[]).bind(telemetry.clone()), Err(Error::NoAddress)));
    let nothing = Config { systemd_socket: true, ..Config::default() };
    assert!(matches!(nothing.bind(telemetry), Err(Error::NoSystemdSocket)));
}

/// Set where this test binary runs as the program that systemd starts.
const ACTIVATED: &str = "PDS_EXPORTER_TEST_ACTIVATED";

#[tokio::test]
async fn sockets_of_systemd_are_served() {
    if std::env::var_os(ACTIVATED).is_some() {
        let config = Config { systemd_socket: true, ..Config::default() };
        return Running::start_with(config).done.await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("web.sock");
    let tcp = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let mut activate = Command::new(tool("systemd-socket-activate"))
        .args(["-l", &tcp[0], "-l", socket.to_str().unwrap(), "-l", &tcp[1]])
        .args(["-E", &format!("{ACTIVATED}=1"), "--fdname=http:local:more"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "web::listen::sockets_of_systemd_are_served"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    for tcp in tcp {
        let url = format!("http://{tcp}/metrics");
        until("systemd listens", async || try_curl(&[&url]).await.is_ok_and(|reply| reply.status == 200))
            .await;
    }
    let through_socket = ["--unix-socket", socket.to_str().unwrap(), "http://localhost/metrics"];
    assert_eq!(curl(&through_socket).await.status, 200);
    activate.kill().await.unwrap();
}

/// Set where this test binary runs as the program that tells systemd.
const TOLD: &str = "PDS_EXPORTER_TEST_TELLS";

/// `test` as a program of its own, which tells the socket at `path`.
fn teller(test: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("web::listen::{test}")])
        .envs([(TOLD, "1"), ("WATCHDOG_USEC", "20000")])
        .env("NOTIFY_SOCKET", path)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The first messages that `test`, run as a program of its own, sends to systemd.
async fn told<const N: usize>(test: &str) -> [String; N] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify.sock");
    let socket = tokio::net::UnixDatagram::bind(&path).unwrap();
    let _teller = teller(test, &path);
    let mut told = [const { String::new() }; N];
    for text in &mut told {
        let mut message = [0; 512];
        let length = tokio::time::timeout(crate::process::DEADLINE, socket.recv(&mut message)).await.unwrap();
        *text = String::from_utf8(message[..length.unwrap()].to_vec()).unwrap();
    }
    told
}

#[tokio::test]
async fn systemd_is_notified_of_every_step() {
    if std::env::var_os(TOLD).is_some() {
        systemd::ready();
        systemd::reloading();
        systemd::stopping();
        return systemd::watchdog(async || {}).await;
    }
    let told: [String; 5] = told("systemd_is_notified_of_every_step").await;
    assert_eq!(told[0], "READY=1\n");
    assert!(told[1].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{told:?}");
    assert_eq!(told[2..], ["STOPPING=1\n", "WATCHDOG=1\n", "WATCHDOG=1\n"]);
}

#[tokio::test]
async fn systemd_may_listen_on_an_abstract_socket() {
    if std::env::var_os(TOLD).is_some() {
        return systemd::stopping();
    }
    let name = format!("pds-exporter-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let path = format!("@{name}");
    teller("systemd_may_listen_on_an_abstract_socket", Path::new(&path)).wait().await.unwrap();
    let mut message = [0; 64];
    let length = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"STOPPING=1\n");
}

#[tokio::test]
async fn the_watchdog_is_not_notified_while_a_thread_hangs() {
    if std::env::var_os(TOLD).is_some() {
        let hangs = systemd::watchdog(std::future::pending);
        assert!(tokio::time::timeout(Duration::from_millis(200), hangs).await.is_err());
        return systemd::stopping();
    }
    let told: [String; 1] = told("the_watchdog_is_not_notified_while_a_thread_hangs").await;
    assert_eq!(told, ["STOPPING=1\n"]);
}

#[tokio::test]
async fn a_systemd_that_does_not_read_its_socket_stops_nothing() {
    const TEST: &str = "a_systemd_that_does_not_read_its_socket_stops_nothing";
    if std::env::var_os(TOLD).is_some() {
        return systemd::ready();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify.sock");
    let _unread = tokio::net::UnixDatagram::bind(&path).unwrap();
    let filling = tokio::net::UnixDatagram::unbound().unwrap();
    filling.connect(&path).unwrap();
    filling.writable().await.unwrap();
    while filling.try_send(b"STATUS=full").is_ok() {}
    let ended = tokio::time::timeout(crate::process::DEADLINE, teller(TEST, &path).wait()).await;
    assert!(ended.unwrap().unwrap().success());
}
