//! Prometheus and Alertmanager as processes in folders of their own, and queries to them.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::{command, succeed};
use crate::process::{get, http, until};
use crate::tools::tool;

/// The Prometheus of Debian 12.
pub(crate) const PROMETHEUS_2: &str = "prometheus";
/// A current one.
pub(crate) const PROMETHEUS_3: &str = "prometheus-3";

/// A port of the loopback that is this process' own until it ends: processes of tests lock a file for each. The system
/// assigns higher ports only.
pub(crate) fn free_port() -> u16 {
    static LOCKED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let locks = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ports");
    fs::create_dir_all(&locks).unwrap();
    // Ports of tests that have just ended come last.
    let first = 20_000 + u16::try_from(std::process::id() * 16 % 12_000).unwrap();
    let mut ports = (first..32_000).chain(20_000..first);
    let is_own = |port: &u16| {
        let lock = File::create(locks.join(port.to_string())).unwrap();
        let is_own = lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", *port)).is_ok();
        LOCKED.lock().unwrap().extend(Some(lock).filter(|_| is_own));
        is_own
    };
    ports.find(is_own).unwrap()
}

/// A server with a folder of its own, killed at the end.
pub(crate) struct Server {
    process: Process,
    /// `127.0.0.1:port`
    pub(crate) address: String,
    folder: TempDir,
}

impl Server {
    /// The Prometheus `program` with `prometheus.yml` and the files beside it.
    pub(crate) async fn prometheus(program: &str, files: &[(&str, &str)], arguments: &str) -> Self {
        // Debian's Prometheus has a folder of the system as its default.
        let own = ["--storage.tsdb.path=data"].into_iter();
        Self::any_prometheus(program, files, &own.chain(arguments.split(' ')).collect::<Vec<_>>()).await
    }

    /// The Prometheus `program` that scrapes the exporter at `url` every second.
    pub(crate) async fn scraping(program: &str, url: &str) -> Self {
        let target = url.trim_start_matches("http://");
        let text = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n- {{job_name: pds, static_configs: [{{targets: ['{target}']}}]}}\n"
        );
        Self::prometheus(program, &[("prometheus.yml", &text)], "--storage.tsdb.retention.time=50y").await
    }

    /// A Prometheus that scrapes nothing and answers about the blocks in `data`.
    pub(crate) async fn over(data: &Path) -> Self {
        Self::over_with(PROMETHEUS_2, data, "--query.lookback-delta=5m").await
    }

    /// The same by the Prometheus `program` with one more argument.
    pub(crate) async fn over_with(program: &str, data: &Path, argument: &str) -> Self {
        let data = format!("--storage.tsdb.path={}", data.display());
        let files = [("prometheus.yml", "global: {}\n")];
        Self::any_prometheus(program, &files, &[&data, "--storage.tsdb.retention.time=100y", argument]).await
    }

    /// A VictoriaMetrics that holds these samples, as OpenMetrics writes them.
    pub(crate) async fn victoria_metrics(samples: &str) -> Self {
        let server = Self::start_until("victoria-metrics", &[], "/health", |_, address| {
            let own = ["-storageDataPath=data", "-retentionPeriod=100y"].map(str::to_owned);
            own.into_iter().chain([format!("-httpListenAddr={address}")]).collect()
        });
        let server = server.await;
        let url = format!("http://{}", server.address);
        // It takes milliseconds.
        let lines = samples.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}000\n"));
        let import = http().post(format!("{url}/api/v1/import/prometheus")).body(lines.collect::<String>());
        assert_eq!(import.send().await.unwrap().status(), 204);
        assert!(get(&format!("{url}/internal/force_flush")).await.is_ok());
        server
    }

    /// Prometheus as an agent.
    pub(crate) async fn agent(program: &str, config: &str) -> Self {
        let mode = if program == PROMETHEUS_2 { "--enable-feature=agent" } else { "--agent" };
        let agent = ["--storage.agent.path=data", mode];
        Self::any_prometheus(program, &[("prometheus.yml", config)], &agent).await
    }

    async fn any_prometheus(program: &str, files: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::start(program, files, |_, address| {
            let own = ["--config.file=prometheus.yml".to_owned(), format!("--web.listen-address={address}")];
            own.into_iter().chain(arguments.iter().map(|argument| (*argument).to_owned())).collect()
        })
        .await
    }

    /// Alertmanager with this configuration.
    pub(crate) async fn alertmanager(config: &str) -> Self {
        Self::start("prometheus-alertmanager", &[("alertmanager.yml", config)], |folder, address| {
            let (config, data) = (folder.join("alertmanager.yml"), folder.join("data"));
            vec![
                format!("--config.file={}", config.display()),
                format!("--storage.path={}", data.display()),
                format!("--web.listen-address={address}"),
                "--cluster.listen-address=".to_owned(),
            ]
        })
        .await
    }

    /// A registry of images.
    pub(crate) async fn registry() -> Self {
        let file =
            "version: 0.1\nstorage: { filesystem: { rootdirectory: data } }\nhttp: { addr: ADDRESS }\n";
        Self::start_until("docker-registry", &[], "/v2/", |folder, address| {
            let path = folder.join("registry.yml");
            fs::write(&path, file.replace("ADDRESS", address)).unwrap();
            vec!["serve".to_owned(), path.display().to_string()]
        })
        .await
    }

    async fn start(
        program: &str,
        files: &[(&str, &str)],
        arguments: impl Fn(&Path, &str) -> Vec<String>,
    ) -> Self {
        Self::start_until(program, files, "/-/ready", arguments).await
    }

    /// Waits until the server answers at this path.
    async fn start_until(
        program: &str,
        files: &[(&str, &str)],
        path: &str,
        arguments: impl Fn(&Path, &str) -> Vec<String>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_all(folder.path(), files);
        let address = format!("127.0.0.1:{}", free_port());
        let arguments = arguments(folder.path(), &address);
        let ready = format!("http://{address}{path}");
        let process = Process::start(program, &arguments, folder.path(), &ready).await;
        Self { process, address, folder }
    }

    /// Kills it and starts it again, with its data.
    pub(crate) async fn restart(&mut self) {
        self.process.end();
        let Process { program, arguments, ready, .. } = &self.process;
        self.process = Process::start(program, arguments, self.folder.path(), ready).await;
    }

    /// The JSON at this path and query.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        json_of(&format!("http://{}", self.address), path, query).await
    }

    /// The series that an expression gives Prometheus now, each with its labels and value.
    pub(crate) async fn query(&self, expression: &str) -> Vec<Value> {
        self.result("/api/v1/query", &[("query", expression)]).await
    }

    /// The values of an expression at that time, each with its labels `project` and `app`.
    pub(crate) async fn by_app(&self, expression: &str, time: Timestamp) -> Vec<(String, String, f64)> {
        let rows = self.result("/api/v1/query", &[("query", expression), ("time", &time.to_string())]).await;
        let text = |row: &Value, name: &str| row["metric"][name].as_str().unwrap_or_default().to_owned();
        let number = |row: &Value| row["value"][1].as_str().unwrap().parse().unwrap();
        rows.iter().map(|row| (text(row, "project"), text(row, "app"), number(row))).collect()
    }

    /// The points of an expression that gives at most one series, as seconds and values.
    pub(crate) async fn range(&self, expression: &str, times: (i64, i64, i64)) -> Vec<(i64, f64)> {
        let rows = self.range_of_all(expression, times).await;
        assert!(rows.len() < 2, "{expression}: {rows:?}");
        let points = rows.iter().flat_map(|row| row["values"].as_array().unwrap());
        points
            .map(|point| (point[0].as_f64().unwrap() as i64, point[1].as_str().unwrap().parse().unwrap()))
            .collect()
    }

    /// The series that an expression gives between two Unix seconds, at every `step` seconds.
    pub(crate) async fn range_of_all(
        &self,
        expression: &str,
        (start, end, step): (i64, i64, i64),
    ) -> Vec<Value> {
        let (start, end, step) = (start.to_string(), end.to_string(), step.to_string());
        // Otherwise VictoriaMetrics moves the seconds to multiples of the step.
        let exactly = ("nocache", "1");
        let query = [("query", expression), ("start", &*start), ("end", &*end), ("step", &*step), exactly];
        self.result("/api/v1/query_range", &query).await
    }

    async fn result(&self, path: &str, query: &[(&str, &str)]) -> Vec<Value> {
        result_of(&format!("http://{}", self.address), path, query).await
    }
}

/// The JSON that the server at `url` gives for this path and query.
async fn json_of(url: &str, path: &str, query: &[(&str, &str)]) -> Value {
    let mut url = reqwest::Url::parse(&format!("{url}{path}")).unwrap();
    url.query_pairs_mut().extend_pairs(query);
    let text = get(url.as_str()).await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
}

/// The result of a query that the Prometheus API at `url` answers.
pub(crate) async fn result_of(url: &str, path: &str, query: &[(&str, &str)]) -> Vec<Value> {
    let answer = json_of(url, path, query).await;
    assert_eq!(answer["status"], "success", "{query:?}: {answer}");
    answer["data"]["result"].as_array().unwrap().clone()
}

/// Makes `data` the storage of a Prometheus that has the samples of `text`, which is OpenMetrics.
pub(crate) fn create_blocks(text: &Path, data: &Path) {
    let arguments = ["tsdb", "create-blocks-from", "--max-block-duration=744h", "openmetrics"];
    succeed(command("promtool", arguments).args([text, data]));
}

/// Writes these files into `folder`.
pub(crate) fn write_all(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A program that serves HTTP, killed at the end.
pub(crate) struct Process {
    child: Child,
    program: String,
    arguments: Vec<String>,
    ready: String,
}

impl Process {
    /// Starts `program` in `folder`, with its output in `{program}.log`, and waits until `ready` answers 200.
    pub(crate) async fn start(program: &str, arguments: &[String], folder: &Path, ready: &str) -> Self {
        let path = folder.join(format!("{program}.log"));
        let log = fs::File::create(&path).unwrap();
        let child = Command::new(tool(program))
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let (program, arguments, ready) = (program.to_owned(), arguments.to_vec(), ready.to_owned());
        let mut process = Self { child, program, arguments, ready };
        until(&format!("{} is ready", process.program), async || {
            let ended = process.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended:\n{}", fs::read_to_string(&path).unwrap_or_default());
            get(&process.ready).await.is_ok_and(|reply| reply.status() == 200)
        })
        .await;
        process
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
