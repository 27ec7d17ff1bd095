//! The exporter under measurement, and the upstream it polls.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::fixture::configuration;
use crate::process::{Core, Process, command, role};
use crate::scrape::Scraper;

/// The requests of a run to the exporter.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) apps: usize,
    /// Milliseconds the upstream waits before it answers.
    pub(crate) delay: u64,
    pub(crate) concurrency: usize,
    /// The most requests a second; 0 is without limit.
    pub(crate) rate: usize,
    /// Tables of the configuration before the projects.
    pub(crate) tables: &'a str,
    pub(crate) core: Core,
    pub(crate) upstream_core: Core,
}

impl<'a> Setting<'a> {
    /// Exporter and upstream on a core each, and an upstream that answers at once.
    pub(crate) const fn new(apps: usize, tables: &'a str) -> Self {
        Self {
            apps,
            delay: 0,
            concurrency: 32,
            rate: 0,
            tables,
            core: Core::First,
            upstream_core: Core::Last,
        }
    }
}

/// Polls again as soon as it can: the shortest interval there is, which [`FOR_A_CORE`] apps or a slow service do not keep.
pub(crate) const WITHOUT_PAUSE: &str =
    "[poll]\ninterval = \"1s\"\nsettings_interval = \"5s\"\n[accounting]\nstep = \"1s\"\n";

/// A number of apps that takes a whole core to poll without pause.
pub(crate) const FOR_A_CORE: usize = 20_000;

/// An exporter with its upstream.
pub(crate) struct Exporter {
    pub(crate) process: Process,
    pub(crate) upstream: Process,
    folder: tempfile::TempDir,
    started: Instant,
}

impl Exporter {
    pub(crate) fn start(daemon: &str, setting: Setting<'_>) -> Self {
        let mut upstream = role("upstream", setting.upstream_core);
        upstream.args([&setting.apps.to_string(), &setting.delay.to_string()]);
        let upstream = Process::start(upstream);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("exporter.toml");
        let Setting { concurrency, rate, .. } = setting;
        let keys = format!("max_concurrent_requests = {concurrency}\nmax_requests_per_second = {rate}\n");
        let tables = setting.tables.replace("FOLDER", &folder.path().display().to_string());
        std::fs::write(&file, configuration(&upstream.url, setting.apps, &keys, &tables)).unwrap();
        let started = Instant::now();
        let process = process(daemon, setting.core, folder.path());
        Self { process, upstream, folder, started }
    }

    /// Ends the process and starts another one with what it left. Returns the time until that one listens.
    pub(crate) fn again(&mut self, daemon: &str, core: Core) -> Duration {
        self.process.end();
        self.started = Instant::now();
        self.process = process(daemon, core, self.folder.path());
        self.started.elapsed()
    }

    /// Waits until every target was asked once.
    pub(crate) fn ready(self) -> Self {
        let address = self.process.url.trim_start_matches("http://").to_owned();
        while !get_status(&address, "/-/ready").contains("200 OK") {
            assert!(self.started.elapsed() < Duration::from_secs(300), "the exporter gets ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Seconds since it was started, without what its upstream took.
    pub(crate) fn since_start(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// From start to the first answered scrape.
    pub(crate) fn first_scrape(&self) -> Duration {
        self.scraper(false).get(|_| ());
        self.started.elapsed()
    }

    pub(crate) fn metrics(&self) -> String {
        format!("{}/metrics", self.process.url)
    }

    pub(crate) fn scraper(&self, gzip: bool) -> Scraper {
        Scraper::new(&self.metrics(), gzip)
    }

    /// The page as text.
    pub(crate) fn page(&self) -> String {
        String::from_utf8_lossy(&self.scraper(false).body()).into_owned()
    }

    /// Requests the upstream has answered.
    pub(crate) fn served(&self) -> f64 {
        served(&self.upstream)
    }

    /// Bytes of its state file.
    pub(crate) fn state_size(&self) -> u64 {
        std::fs::metadata(self.folder.path().join("state.log")).map_or(0, |file| file.len())
    }
}

/// Requests that an upstream has answered.
pub(crate) fn served(upstream: &Process) -> f64 {
    let body = Scraper::new(&format!("{}/served", upstream.url), false).body();
    String::from_utf8_lossy(&body).parse().unwrap()
}

/// The exporter with the configuration in `folder`.
fn process(daemon: &str, core: Core, folder: &Path) -> Process {
    let mut exporter = command(daemon, core);
    exporter.args(["--web.listen-address=127.0.0.1:0", "--log.level=info"]);
    exporter.arg(format!("--config.file={}", folder.join("exporter.toml").display()));
    Process::start(exporter)
}

fn get_status(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    reply
}
