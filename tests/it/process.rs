//! The real daemon as a process: started on a free port, scraped, killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::deploy::list;
use crate::server::free_port;

/// Time limit of everything that should take a moment; reached only on a failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The most lines that a failure shows of a page or log.
const MAX_SHOWN: usize = 20;

/// The program `pdstool`, which lies beside the daemon: the tests of its own crate make cargo build it.
pub(crate) fn pdstool() -> String {
    Path::new(env!("CARGO_BIN_EXE_pds-exporter")).with_file_name("pdstool").display().to_string()
}

/// A folder with both programs, beside which no exporter of another test runs.
pub(crate) struct Alone(tempfile::TempDir);

impl Alone {
    pub(crate) fn new() -> Self {
        let built = Path::new(env!("CARGO_BIN_EXE_pds-exporter")).parent().unwrap();
        let alone = Self(tempfile::tempdir_in(built).unwrap());
        for program in ["pds-exporter", "pdstool"] {
            std::fs::hard_link(built.join(program), alone.path(program)).unwrap();
        }
        alone
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The daemon with a port of its own among its flags, where `pdstool` finds it.
    pub(crate) fn daemon(&self) -> Command {
        let mut command = Command::new(self.path("pds-exporter"));
        command.arg(format!("--web.listen-address=127.0.0.1:{}", free_port()));
        command
    }

    /// `pdstool` with these arguments and nothing of this process's environment.
    pub(crate) fn pdstool(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("pdstool"));
        command.env_clear().args(args);
        command
    }
}

/// A running `pds-exporter`.
pub(crate) struct Exporter {
    child: Child,
    /// Its log.
    log: Arc<Mutex<Vec<String>>>,
    /// `http://127.0.0.1:port`
    pub(crate) url: String,
}

impl Exporter {
    /// Starts the daemon with `args` on a free port of the loopback, and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
        command.args(args).args(["--web.listen-address", "127.0.0.1:0"]);
        Self::of(command)
    }

    /// The daemon that `command` starts.
    pub(crate) fn of(command: Command) -> Self {
        Self::spawn(command).unwrap_or_else(|log| panic!("the exporter ended without listening:\n{log}"))
    }

    /// The same, and waits until every target was polled.
    pub(crate) async fn ready(args: &[&str]) -> Self {
        let exporter = Self::start(args);
        exporter.wait_for("/-/ready").await;
        exporter
    }

    /// The demo, every target of which was polled.
    pub(crate) async fn demo() -> Self {
        Self::ready(&["--demo"]).await
    }

    /// Starts `command`, a daemon that is to listen; its log where it ends before.
    pub(crate) fn spawn(mut command: Command) -> Result<Self, String> {
        let_clients_be_built();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, stderr) = (Arc::clone(&log), BufReader::new(child.stderr.take().unwrap()));
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        let began = Instant::now();
        loop {
            if let Some(address) = log.lock().unwrap().iter().find_map(|line| listening(line)) {
                return Ok(Self { child, url: format!("http://{address}"), log: Arc::clone(&log) });
            }
            if reader.is_finished() || began.elapsed() > DEADLINE {
                let _ = child.kill();
                let _ = child.wait();
                let _ = reader.join();
                return Err(log.lock().unwrap().join("\n"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// All it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Forgets what it has logged so far.
    pub(crate) fn clear_log(&self) {
        self.log.lock().unwrap().clear();
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        peak_memory(self.pid()).unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal by name: `TERM`, `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new(crate::tools::tool("kill"))
            .args([&format!("-{name}"), &self.pid().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// SIGTERM, and what it ended with.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < DEADLINE, "did not end after SIGTERM:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The page at `path`; panics unless it answers 200.
    pub(crate) async fn get(&self, path: &str) -> String {
        let reply = get(&format!("{}{path}", self.url)).await.unwrap();
        assert_eq!(reply.status(), 200, "{path}");
        reply.text().await.unwrap()
    }

    /// The status.
    pub(crate) async fn status(&self) -> Value {
        serde_json::from_str(&self.get("/api/v1/status").await).unwrap()
    }

    /// The reasons of its verdict.
    pub(crate) async fn reasons(&self) -> Vec<Value> {
        list(&self.status().await["summary"]["reasons"]).to_vec()
    }

    /// Waits until `path` answers 200.
    pub(crate) async fn wait_for(&self, path: &str) {
        let url = format!("{}{path}", self.url);
        until(&format!("{path} answers 200"), async || {
            get(&url).await.is_ok_and(|reply| reply.status() == 200)
        })
        .await;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory that a process has had, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// reqwest builds no client, not even one for plain http, before the process has chosen its cryptography.
pub(crate) fn let_clients_be_built() {
    // The second call finds it chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client of plain HTTP. It trusts nobody: decoding the system's certificates takes longer than most requests.
pub(crate) fn http() -> reqwest::Client {
    let_clients_be_built();
    reqwest::Client::builder().tls_certs_only([]).build().unwrap()
}

/// Asks for `url`.
pub(crate) async fn get(url: &str) -> reqwest::Result<reqwest::Response> {
    http().get(url).send().await
}

/// `command` in a mount namespace of its own, which ends with it, after `script`, whose `$0` is `path`.
pub(crate) fn mounted(script: &str, path: &Path, command: &Command) -> Command {
    let mut mounted = Command::new("unshare");
    mounted.args(["--map-root-user", "--mount", "sh", "-c", &format!("{script} && exec \"$@\"")]);
    mounted.arg(path).arg(command.get_program()).args(command.get_args());
    mounted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    mounted
}

/// Asks again and again until `condition` holds; fails with `what` after [`DEADLINE`].
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < DEADLINE, "waited for: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The same with the metrics of `exporter`.
pub(crate) async fn until_page(exporter: &Exporter, what: &str, mut wanted: impl FnMut(&str) -> bool) {
    until(what, async || wanted(&exporter.get("/metrics").await)).await;
}

/// A run of the daemon that is to end by itself: exit code and what it wrote to both outputs.
pub(crate) fn run(args: &[&str], environment: &[(&str, &str)], folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    let output = command.args(args).envs(environment.iter().copied()).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// The address in the log line that says where the daemon listens.
fn listening(line: &str) -> Option<String> {
    // As logfmt or as JSON.
    let rest = line.split_once("address=").or_else(|| line.split_once("\"address\":\""));
    let rest = rest.filter(|_| line.contains("listening"))?.1;
    Some(rest.split([' ', '"', ',']).next().unwrap_or_default().to_owned())
}

/// Fails unless `text` has each of these parts.
#[track_caller]
pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    if let Some(missing) = parts.iter().find(|part| !text.contains(**part)) {
        panic!("no {missing:?} in:\n{}", about(text, missing));
    }
}

/// Fails if `text` has one of these parts, with the lines that hold it.
#[track_caller]
pub(crate) fn assert_lacks(text: &str, parts: &[&str]) {
    if let Some(part) = parts.iter().find(|part| text.contains(**part)) {
        panic!("{part:?} is in:\n{}", about(text, part));
    }
}

/// At most [`MAX_SHOWN`] lines of `text`: those with the word that `part` begins with, or the last ones.
fn about(text: &str, part: &str) -> String {
    let word = part.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(part)).collect();
    let lines =
        if lines.is_empty() { text.lines().filter(|line| line.contains(word)).collect() } else { lines };
    let lines = if lines.is_empty() { text.lines().collect() } else { lines };
    let left_out = lines.len().saturating_sub(MAX_SHOWN);
    let cut = |line: &&str| line.chars().take(400).collect::<String>();
    lines[left_out..].iter().map(cut).collect::<Vec<_>>().join("\n")
}

/// Writes the file anew, with what `change` makes of its text.
pub(crate) fn edit(path: impl AsRef<Path>, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, change(text)).unwrap();
}

/// The value of the one series of `page` that begins with `series` up to its value.
pub(crate) fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// All series of `page` as (name with labels, value).
pub(crate) fn series(page: &str) -> impl Iterator<Item = (&str, f64)> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}")))
        .map(|(series, value)| (series, value.parse().unwrap()))
}
