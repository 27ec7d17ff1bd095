//! The web server with real clients: curl, nmap, Prometheus, systemd.

mod attacks;
mod auth;
pub(crate) mod certificates;
mod http;
mod limits;
mod listen;
mod scrape;
mod tls;
mod webconfig;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use ::http::StatusCode;
use bytes::Bytes;
use pds_exporter::store::Filter;
use pds_exposition::Format;
use pds_telemetry::Telemetry;
use pds_web::{Backend, BoxFuture, Config, Encoding, Negotiated, PageRequest, Response, Route, Server};
use tokio::process::Command;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::tools::tool;

/// A daemon that shows what a test wants.
#[derive(Default)]
pub(super) struct Stub {
    /// Further lines of the page.
    lines: AtomicUsize,
    /// No page is made while they are held.
    held: tokio::sync::watch::Sender<bool>,
    unready: AtomicBool,
    /// Whether the configuration is bad.
    is_bad: AtomicBool,
    quit: Notify,
}

impl Stub {
    fn page(&self, format: Format, filter: &Filter) -> Bytes {
        let mut page = String::from("# HELP pds_up x\n# TYPE pds_up gauge\npds_up 1\n");
        if !filter.is_empty() {
            page = format!("# {filter:?}\n");
        }
        for line in 0..self.lines.load(Ordering::Relaxed) {
            page.push_str(&format!("pds_up{{app=\"{line}\"}} 1\n"));
        }
        page.push_str(format.trailer());
        page.into()
    }
}

impl Backend for Stub {
    fn metrics(&self, asked: Negotiated, _: Encoding, request: PageRequest) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let mut held = self.held.subscribe();
            // Goes on when the client has left, as a render does.
            let made =
                tokio::spawn(async move { held.wait_for(|held| !held).await.map(|_| request).unwrap() });
            let request = made.await.unwrap();
            let page = self.page(asked.format, &Filter::parse(request.raw_query()));
            Response::metrics(asked, Encoding::Identity, page)
        })
    }

    fn ready(&self) -> Result<(), String> {
        if self.unready.load(Ordering::Relaxed) {
            Err("3 of 12 targets were asked".to_owned())
        } else {
            Ok(())
        }
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async {
            let is_bad = self.is_bad.load(Ordering::Relaxed);
            if is_bad { Err("poll.interval: not a duration".to_owned()) } else { Ok(()) }
        })
    }

    fn quit(&self) {
        self.quit.notify_one();
    }
}

/// A running server.
pub(super) struct Running {
    address: SocketAddr,
    stub: Arc<Stub>,
    telemetry: Telemetry,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

impl Running {
    /// Starts with a free port of the loopback.
    fn start(config: Config) -> Self {
        Self::start_with(Config { listen_addresses: vec!["127.0.0.1:0".to_owned()], ..config })
    }

    fn start_with(config: Config) -> Self {
        let telemetry = Telemetry::new(false).unwrap();
        Self::run(config.bind(telemetry.clone()).unwrap(), telemetry)
    }

    fn run(server: Server, telemetry: Telemetry) -> Self {
        let address = server.tcp_address().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let stub = Arc::new(Stub::default());
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { drop(stopped.await) };
        let done = tokio::spawn(server.serve(Arc::clone(&stub) as Arc<dyn Backend>, pages(), shutdown));
        Self { address, stub, telemetry, stop, done }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Stops and waits for the drain.
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.done.await.unwrap();
    }

    /// The exporter's own metrics.
    fn own_page(&self) -> String {
        crate::rig::own_page(&self.telemetry)
    }
}

/// Pages as the daemon registers them.
fn pages() -> Vec<Route> {
    vec![
        Route::page("/", |_| async {
            Response::html(StatusCode::OK, "<!doctype html><title>x</title>").etag("v1")
        }),
        Route::page("/apps/{project}/{app}", |ask| async move {
            Response::json(StatusCode::OK, format!("{:?}", (ask.segment("project"), ask.segment("app"))))
        }),
    ]
}

/// The reply that curl got.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    /// The header lines, names in lower case.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Runs curl; `Err` holds its exit code and what it said.
pub(super) async fn try_curl(args: &[&str]) -> Result<Reply, (i32, String)> {
    let output = run("curl", &[&["-q", "-sS", "-i", "--max-time", "60"], args].concat()).await;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err((output.status.code().unwrap(), said));
    }
    let end = output.stdout.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&output.stdout[..end]).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    Ok(Reply { status, headers: lines.map(header).collect(), body: output.stdout[end + 4..].to_vec() })
}

/// Runs curl, which is to get an answer.
pub(super) async fn curl(args: &[&str]) -> Reply {
    try_curl(args).await.unwrap_or_else(|(code, said)| panic!("curl {args:?} ended with {code}: {said}"))
}

/// Runs a program to its end.
pub(super) async fn run(program: &str, args: &[&str]) -> Output {
    Command::new(tool(program)).args(args).kill_on_drop(true).output().await.unwrap()
}

/// Writes a file that was left alone for a while, as one is that a running server may take over.
pub(super) fn write_settled(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    // Each version another time: the same second and length twice would be the same version.
    static AGE: AtomicUsize = AtomicUsize::new(1_000_000);
    let age = Duration::from_millis(AGE.fetch_sub(1, Ordering::Relaxed) as u64);
    std::fs::File::options().write(true).open(&new).unwrap().set_modified(SystemTime::now() - age).unwrap();
    std::fs::rename(&new, path).unwrap();
}
