//! How long scrapes take while clients attack the exporter, whether the thread that serves stalls, and how much memory
//! they take of one with thousands of apps. All share the cores of the machine.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Barrier;

use crate::http::{tls, trusting_tls};
use crate::process::{Core, Process, role};
use crate::stalls::{BareTimer, of_exporter};
use crate::table::{self, Target};
use crate::web::{Http, Polling, Web, scraper, start, url};

const APPS: usize = 2_000;
/// With values, where memory is measured.
const LOADED_APPS: usize = 8_000;
/// The lowest limit of the shipped manifests, in MB.
const MEMORY: f64 = 134.2;
/// How long scrapes are measured, on an open connection and on new ones.
const TIME: Duration = Duration::from_secs(10);
/// The source address of attacks. Scrapes come from 127.0.0.1.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The repeated act of an attacking client.
#[derive(Clone, Copy)]
enum Attack {
    /// Requests, and then stays silent.
    Idle,
    /// Requests, and never reads the reply.
    Unread,
    /// Breaks a TLS handshake off when the server has computed its part.
    Handshake,
    /// Performs a TLS handshake and leaves.
    Shake,
    /// Sends a megabyte of TLS records: a byte of a header in each, and 30 `KeyUpdate` after it.
    Records,
    /// Gives a scrape up after a millisecond.
    GiveUp,
    /// Scrapes, and reads 256 KB a second.
    Slow,
    /// Sends most of a large header.
    Header,
    /// Sends `WINDOW_UPDATE` frames.
    WindowUpdate,
    /// Requests with a wrong password.
    Password,
    /// Requests 2,500 apps by name.
    Filter,
}

/// The clients of [`Attack::Records`].
const RECORDS: usize = 48;
static PREPARED: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(RECORDS));

/// Name, number of clients, what each does, and how the exporter is configured.
const ATTACKS: &[(&str, usize, Option<Attack>, Web)] = &[
    ("no attack", 0, None, Web::Plain),
    ("no attack, with TLS", 0, None, Web::Tls),
    ("800 idle connections", 800, Some(Attack::Idle), Web::Plain),
    ("700 clients that do not read `/api/v1/status`", 700, Some(Attack::Unread), Web::Plain),
    ("30 clients that break off TLS handshakes (RSA 4096)", 30, Some(Attack::Handshake), Web::Tls),
    ("30 clients whose TLS handshakes need a retry (RSA 4096)", 30, Some(Attack::Shake), Web::TlsRetry),
    ("48 clients that send 1 MB of `KeyUpdate` records", RECORDS, Some(Attack::Records), Web::Tls),
    ("40 clients that give scrapes up", 40, Some(Attack::GiveUp), Web::Plain),
    ("40 clients that read 256 KB/s", 40, Some(Attack::Slow), Web::Plain),
    ("800 clients that send half a header", 800, Some(Attack::Header), Web::Plain),
    ("4 clients that flood with `WINDOW_UPDATE`", 4, Some(Attack::WindowUpdate), Web::Plain),
    ("40 clients that guess passwords (bcrypt, cost 12)", 40, Some(Attack::Password), Web::Passwords),
    ("4 clients that filter by 2,500 apps", 4, Some(Attack::Filter), Web::Plain),
];

/// The 99th percentile of scrapes under each attack, stalls, and the exporter's memory.
pub(crate) fn latency(daemon: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (at, (name, _, attack, web)) in ATTACKS.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let exporter = start(daemon, *web, folder.path(), &unreachable());
        let url = url(&exporter, *web);
        // The first scrape is the first check of the password, which is slow on purpose.
        let open = scraper(folder.path(), *web, Http::One, true);
        runtime.block_on(percentile(&open, &url, Duration::from_secs(1)));
        let attacker = attack.map(|_| attacker(at, &exporter));
        let bare = BareTimer::start();
        let on_open = runtime.block_on(percentile(&open, &url, TIME));
        let on_new =
            runtime.block_on(percentile(&scraper(folder.path(), *web, Http::One, false), &url, TIME));
        drop(attacker);
        table::row(&format!("{name}: open connection"), on_open, 1, Target::AtMost(100.0), "p99 in ms");
        table::row(&format!("{name}: new connection"), on_new, 1, Target::AtMost(1000.0), "p99 in ms");
        let stalls = runtime.block_on(of_exporter(&open, &url));
        // The exporter's timers show a machine that stands still as well as any.
        let bare = bare.late();
        let note = format!("timers late by more than 50 ms; {bare} of a thread that only sleeps");
        table::row(&format!("{name}: stalls"), stalls, 0, Target::AtMost(f64::from(bare)), &note);
        let memory = memory(daemon, at, &runtime);
        let note = format!("MB at peak, {LOADED_APPS} apps");
        table::row(&format!("{name}: memory"), memory, 0, Target::AtMost(MEMORY), &note);
    }
}

/// The memory at peak of an exporter whose apps have values, in MB.
fn memory(daemon: &str, at: usize, runtime: &tokio::runtime::Runtime) -> f64 {
    let (_, _, attack, web) = ATTACKS[at];
    let polling = runtime.block_on(Polling::start(daemon, web, LOADED_APPS, 0, ONCE));
    let (client, url) = (polling.scraper(Http::One, false), polling.url());
    let attacker = attack.map(|_| attacker(at, &polling.exporter));
    // Some get through, others do not.
    runtime.block_on(percentile(&client, &url, TIME));
    drop(attacker);
    polling.exporter.memory().1 as f64 / 1e6
}

fn attacker(at: usize, exporter: &Process) -> Process {
    let mut attacker = role("attacker", Core::Any);
    attacker.args([at.to_string(), exporter.url.trim_start_matches("http://").to_owned()]);
    Process::start(attacker)
}

/// Asks for everything once.
const ONCE: &str = "[poll]\ninterval = \"1h\"\nsettings_interval = \"1h\"\nstale_after = \"2h\"\n";

/// The configuration of apps whose service cannot be reached: only readers keep the exporter busy.
fn unreachable() -> String {
    let mut config = "[api]\nbase_url = \"http://127.0.0.1:9\"\ntoken = \"t\"\n[poll]\ninterval = \"1h\"\n\
        settings_interval = \"1h\"\nstale_after = \"2h\"\n[[projects]]\nid = \"p-1\"\napps = [\n"
        .to_owned();
    for app in 0..APPS {
        writeln!(config, "  \"p-1-app-with-an-ordinary-name-{app}\",").unwrap();
    }
    config.push_str("]\n");
    config
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
    let get = |path: &str, header: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n");
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
        Attack::Shake => {
            // It trusts nobody, so it leaves once the server has computed its part.
            let connector = tokio_rustls::TlsConnector::from(Arc::new(tls(rustls::RootCertStore::empty())));
            connector.connect("localhost".try_into().unwrap(), stream).await.map(|_| ())
        }
        Attack::Records => {
            let connector = tokio_rustls::TlsConnector::from(Arc::new(trusting_tls()));
            let tls = connector.connect("localhost".try_into().unwrap(), stream).await?;
            let (mut stream, mut client) = tls.into_inner();
            client.writer().write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ")?;
            let mut records = Vec::new();
            while records.len() < 1_000_000 {
                for _ in 0..30 {
                    client.refresh_traffic_keys().unwrap();
                }
                client.writer().write_all(b"x")?;
                client.write_tls(&mut records)?;
            }
            // All at once: preparing them takes longer than the exporter needs to read them.
            PREPARED.wait().await;
            stream.write_all(&records).await?;
            until_closed(&mut stream).await
        }
        Attack::GiveUp => {
            let header = "x-prometheus-scrape-timeout-seconds: 0.001\r\nconnection: close\r\n";
            stream.write_all(get("/metrics", header).as_bytes()).await?;
            until_closed(&mut stream).await
        }
        Attack::Slow => {
            stream.write_all(get("/metrics", "connection: close\r\n").as_bytes()).await?;
            while stream.read(&mut [0; 16 * 1024]).await? > 0 {
                tokio::time::sleep(Duration::from_millis(62)).await;
            }
            Ok(())
        }
        Attack::Header => {
            let half = get("/metrics", &format!("x-large: {}\r\n", "x".repeat(31_000)));
            stream.write_all(half.trim_end().as_bytes()).await?;
            until_closed(&mut stream).await
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
