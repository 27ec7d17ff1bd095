//! Prometheus and Alertmanager as processes, and what they are asked.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::for_prometheus_2;
use crate::process::{get, until};
use crate::tools::tool;

/// The Prometheus of Debian 12.
pub(super) const PROMETHEUS_2: &str = "prometheus";
/// A current one.
pub(super) const PROMETHEUS_3: &str = "prometheus-3";

/// A shipped configuration as `program` reads it.
pub(super) fn for_program(program: &str, config: &str) -> String {
    if program == PROMETHEUS_2 { for_prometheus_2(config) } else { config.to_owned() }
}

/// A port of the loopback that nobody listens on at the moment.
pub(super) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server with a folder of its own, killed at the end.
pub(super) struct Server {
    child: Child,
    /// `127.0.0.1:port`
    pub(super) address: String,
    folder: TempDir,
}

impl Server {
    /// The Prometheus `program` with `prometheus.yml` and the files beside it.
    pub(super) async fn prometheus(program: &str, files: &[(&str, &str)], argument: &str) -> Self {
        // Debian's Prometheus has a folder of the system as its default.
        Self::any_prometheus(program, files, &["--storage.tsdb.path=data", argument]).await
    }

    /// Prometheus as an agent.
    pub(super) async fn agent(program: &str, config: &str) -> Self {
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
    pub(super) async fn alertmanager(config: &str) -> Self {
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

    async fn start(
        program: &str,
        files: &[(&str, &str)],
        arguments: impl Fn(&Path, &str) -> Vec<String>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let address = format!("127.0.0.1:{}", free_port());
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(tool(program))
            .args(arguments(folder.path(), &address))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, address, folder };
        let ready = format!("http://{}/-/ready", server.address);
        until(&format!("{program} is ready"), async || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{program} ended:\n{}", server.log());
            get(&ready).await.is_ok_and(|reply| reply.status() == 200)
        })
        .await;
        server
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The JSON at this path and query.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let mut url = reqwest::Url::parse(&format!("http://{}{path}", self.address)).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let reply = get(url.as_str()).await.unwrap();
        let text = reply.text().await.unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    /// The series that an expression gives Prometheus now, each with its labels and value.
    pub(super) async fn query(&self, expression: &str) -> Vec<Value> {
        let answer = self.get("/api/v1/query", &[("query", expression)]).await;
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
