//! How long scrapes take while clients attack the exporter. Both share the cores of the machine.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::http::tls;
use crate::process::{Core, Process, command, role};
use crate::table::{Table, Target};

const APPS: usize = 2_000;
/// How long scrapes are measured, on an open connection and on new ones.
const TIME: Duration = Duration::from_secs(10);
/// Where attacks come from. Scrapes come from 127.0.0.1.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What the exporter is configured with.
#[derive(Clone, Copy, PartialEq)]
enum Web {
    Plain,
    Tls,
    Passwords,
}

/// What an attacking client does again and again.
#[derive(Clone, Copy)]
enum Attack {
    /// Requests, and then stays silent.
    Idle,
    /// Requests, and never reads the reply.
    Unread,
    /// Breaks a TLS handshake off when the server has computed its part.
    Handshake,
    /// Sends `WINDOW_UPDATE` frames.
    WindowUpdate,
    /// Requests with a wrong password.
    Password,
    /// Requests 2,500 apps by name.
    Filter,
}

/// Name, number of clients, what each does, and how the exporter is configured.
const ATTACKS: &[(&str, usize, Option<Attack>, Web)] = &[
    ("no attack", 0, None, Web::Plain),
    ("no attack, with TLS", 0, None, Web::Tls),
    ("800 idle connections", 800, Some(Attack::Idle), Web::Plain),
    ("700 clients that do not read `/api/v1/status`", 700, Some(Attack::Unread), Web::Plain),
    ("30 clients that break off TLS handshakes (RSA 4096)", 30, Some(Attack::Handshake), Web::Tls),
    ("4 clients that flood with `WINDOW_UPDATE`", 4, Some(Attack::WindowUpdate), Web::Plain),
    ("40 clients that guess passwords (bcrypt, cost 12)", 40, Some(Attack::Password), Web::Passwords),
    ("4 clients that filter by 2,500 apps", 4, Some(Attack::Filter), Web::Plain),
];

/// The 99th percentile of scrapes under each attack, and the exporter's memory.
pub(crate) fn latency(daemon: &str, table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (at, (name, _, attack, web)) in ATTACKS.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let exporter = start(daemon, *web, folder.path());
        let url = match web {
            Web::Tls => exporter.url.replace("http:", "https:").replace("127.0.0.1", "localhost"),
            Web::Plain | Web::Passwords => exporter.url.clone(),
        };
        // The first scrape is the first check of the password, which is slow on purpose.
        let open = scraper(folder.path(), *web, true);
        runtime.block_on(percentile(&open, &url, Duration::from_secs(1)));
        let attacker = attack.map(|_| {
            let mut attacker = role("attacker", Core::Any);
            attacker.args([at.to_string(), exporter.url.trim_start_matches("http://").to_owned()]);
            Process::start(attacker)
        });
        let on_open = runtime.block_on(percentile(&open, &url, TIME));
        let on_new = runtime.block_on(percentile(&scraper(folder.path(), *web, false), &url, TIME));
        drop(attacker);
        let note = format!("p99 in ms; memory at peak {:.0} MB", exporter.memory().1 as f64 / 1e6);
        table.row(&format!("{name}: open connection"), on_open, 1, Target::AtMost(100.0), &note);
        table.row(&format!("{name}: new connection"), on_new, 1, Target::AtMost(1000.0), "p99 in ms");
    }
}

/// An exporter of apps whose service cannot be reached: only readers keep it busy.
fn start(daemon: &str, web: Web, folder: &std::path::Path) -> Process {
    let mut config = "[api]\nbase_url = \"http://127.0.0.1:9\"\ntoken = \"t\"\n[poll]\ninterval = \"1h\"\n\
        settings_interval = \"1h\"\nstale_after = \"2h\"\n[[projects]]\nid = \"p-1\"\napps = [\n"
        .to_owned();
    for app in 0..APPS {
        writeln!(config, "  \"p-1-app-with-an-ordinary-name-{app}\",").unwrap();
    }
    config.push_str("]\n");
    std::fs::write(folder.join("exporter.toml"), config).unwrap();
    let web_config = match web {
        Web::Plain => String::new(),
        Web::Tls => {
            certificate(folder);
            "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n".to_owned()
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
fn certificate(folder: &std::path::Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-keyout", "server.key", "-out", "server.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A scraper with the right password that keeps its connection, or opens one for each scrape.
fn scraper(folder: &std::path::Path, web: Web, keeps: bool) -> reqwest::Client {
    let mut roots = rustls::RootCertStore::empty();
    if web == Web::Tls {
        roots
            .add(rustls::pki_types::CertificateDer::from_pem_file(folder.join("server.pem")).unwrap())
            .unwrap();
    }
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("accept-encoding", "gzip".parse().unwrap());
    // prometheus:right
    headers.insert("authorization", "Basic cHJvbWV0aGV1czpyaWdodA==".parse().unwrap());
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls(roots))
        .default_headers(headers)
        .pool_max_idle_per_host(usize::from(keeps))
        .timeout(Duration::from_secs(30))
        .build()
        .unwrap()
}

/// The 99th percentile of scrapes, one after the other, in milliseconds. A refused scrape counts as long as waiting for
/// an answer in vain.
async fn percentile(client: &reqwest::Client, url: &str, time: Duration) -> f64 {
    let (began, mut took) = (Instant::now(), Vec::new());
    while began.elapsed() < time {
        let sent = Instant::now();
        let reply =
            async { client.get(format!("{url}/metrics")).send().await?.error_for_status()?.bytes().await };
        let answered = reply.await.is_ok_and(|page| page.len() > 1000);
        took.push(if answered { sent.elapsed().as_secs_f64() * 1e3 } else { 30_000.0 });
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    took.sort_by(f64::total_cmp);
    took[took.len() * 99 / 100]
}

/// Attacks `address` as the row `at` says, until this process is ended.
pub(crate) async fn attack(at: usize, address: &str) {
    let (_, clients, attack, _) = ATTACKS[at];
    let address: SocketAddr = address.parse().unwrap();
    for _ in 0..clients {
        tokio::spawn(async move {
            loop {
                // The exporter may close or refuse a connection: the next one follows.
                let _ = Box::pin(once(attack.unwrap(), address)).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("listening to nobody, attacking {address}");
    std::future::pending::<()>().await;
}

async fn once(attack: Attack, address: SocketAddr) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    socket.bind((ATTACKER, 0).into())?;
    let mut stream = socket.connect(address).await?;
    let get = |path: &str, header: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n{header}\r\n");
    match attack {
        Attack::Idle => {
            stream.write_all(get("/-/healthy", "").as_bytes()).await?;
            until_closed(&mut stream).await
        }
        Attack::Unread => {
            stream.write_all(get("/api/v1/status", "").as_bytes()).await?;
            tokio::time::sleep(TIME).await;
            Ok(())
        }
        Attack::Handshake => {
            let config = Arc::new(tls(rustls::RootCertStore::empty()));
            let mut client = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello)?;
            stream.write_all(&hello).await?;
            stream.read(&mut [0; 16]).await.map(|_| ())
        }
        Attack::WindowUpdate => {
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
            let update = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01".repeat(1_000);
            while stream.write_all(&update).await.is_ok() {}
            Ok(())
        }
        Attack::Password => {
            stream
                .write_all(get("/metrics", "authorization: Basic cHJvbWV0aGV1czp3cm9uZw==\r\n").as_bytes())
                .await?;
            stream.read(&mut [0; 16]).await.map(|_| ())
        }
        Attack::Filter => {
            let names: String = (0..2_500).map(|app| format!("&app=a{app}")).collect();
            let request = get(&format!("/metrics?project=p-1{names}"), "connection: close\r\n");
            stream.write_all(request.as_bytes()).await?;
            until_closed(&mut stream).await
        }
    }
}

async fn until_closed(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}
