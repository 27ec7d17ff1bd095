//! What keeps the series: Prometheus as it is in Debian 12 and in sid, VictoriaMetrics. Each scrapes the exporters
//! and evaluates the shipped rules that join them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::text;
use crate::process::{get, until};
use crate::tools::tool;

/// Which engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// This program.
    Prometheus(&'static str),
    /// VictoriaMetrics, whose rules a program of its own evaluates. New samples show in queries after some seconds.
    VictoriaMetrics,
}

/// A running engine.
pub(super) struct Engine {
    /// Where its HTTP API is.
    pub(super) url: String,
    kind: Kind,
    _servers: Vec<Server>,
    folder: TempDir,
}

/// The label that all its scraped series have, and no others.
pub(super) const SELECTOR: &str = "job=\"pds-exporter\"";

impl Engine {
    /// Starts one that scrapes `targets` every second. It listens on `host`, an address of the loopback that nobody else
    /// uses.
    pub(super) async fn start(kind: Kind, host: &str, targets: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let scrape = format!(
            "scrape_configs:\n- job_name: pds-exporter\n  static_configs: [{{targets: [{}]}}]\n",
            targets.join(", ")
        );
        let rules = text("prometheus/rules/recording.yml");
        let (joined, _) = rules.split_once("  - name: pds-apps").unwrap();
        fs::write(folder.path().join("rules.yml"), joined).unwrap();
        let url = format!("http://{host}:9090");
        let mut engine = Self { url: url.clone(), kind, _servers: Vec::new(), folder };
        match kind {
            Kind::Prometheus(program) => {
                let global =
                    "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n";
                fs::write(engine.folder.path().join("prometheus.yml"), format!("{global}{scrape}")).unwrap();
                let listen = format!("--web.listen-address={host}:9090");
                let arguments = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", &listen];
                engine.run(program, &arguments, &format!("{url}/-/ready")).await;
            }
            Kind::VictoriaMetrics => {
                let global = "global: {scrape_interval: 1s}\n";
                fs::write(engine.folder.path().join("scrape.yml"), format!("{global}{scrape}")).unwrap();
                let listen = format!("-httpListenAddr={host}:9090");
                let arguments = [
                    "-storageDataPath=data",
                    "-promscrape.config=scrape.yml",
                    "-retentionPeriod=1y",
                    // 30 s each in production.
                    "-search.latencyOffset=5s",
                    &listen,
                ];
                engine.run("victoria-metrics", &arguments, &format!("{url}/health")).await;
                let rules = format!("http://{host}:8880");
                let arguments = [
                    "-rule=rules.yml".to_owned(),
                    "-evaluationInterval=1s".to_owned(),
                    "-rule.evalDelay=5s".to_owned(),
                    format!("-httpListenAddr={host}:8880"),
                    format!("-datasource.url={url}"),
                    format!("-remoteWrite.url={url}"),
                    "-remoteWrite.flushInterval=100ms".to_owned(),
                ];
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                engine.run("vmalert", &arguments, &format!("{rules}/health")).await;
            }
        }
        engine
    }

    async fn run(&mut self, program: &str, arguments: &[&str], ready: &str) {
        self._servers.push(Server::start(program, arguments, self.folder.path(), ready).await);
    }

    /// Whether a rule sees what the rules before it have just recorded, as those that join counters need. vmalert writes
    /// results some time later.
    pub(super) fn shows_results_of_rules_at_once(&self) -> bool {
        matches!(self.kind, Kind::Prometheus(_))
    }

    /// What an expression gives now.
    pub(super) async fn query(&self, expression: &str) -> Vec<Value> {
        let mut url = reqwest::Url::parse(&format!("{}/api/v1/query", self.url)).unwrap();
        url.query_pairs_mut().append_pair("query", expression);
        let reply = get(url.as_str()).await.unwrap().text().await.unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap_or_else(|error| panic!("{error}: {reply}"));
        assert_eq!(reply["status"], "success", "{expression}: {reply}");
        reply["data"]["result"].as_array().unwrap().clone()
    }

    /// What its programs have logged.
    pub(super) fn log(&self) -> String {
        let logs = ["prometheus", "prometheus-3", "victoria-metrics", "vmalert"];
        let logs = logs.map(|name| fs::read_to_string(self.folder.path().join(format!("{name}.log"))));
        logs.into_iter().flatten().collect()
    }
}

/// A program that serves HTTP until it is dropped.
struct Server(Child);

impl Server {
    /// Starts `program` in `folder`, and waits until `ready` answers 200.
    async fn start(program: &str, arguments: &[&str], folder: &Path, ready: &str) -> Self {
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
        let mut server = Self(child);
        until(&format!("{program} is ready"), async || {
            let ended = server.0.try_wait().unwrap();
            assert!(ended.is_none(), "{program} ended:\n{}", fs::read_to_string(&path).unwrap_or_default());
            get(ready).await.is_ok_and(|reply| reply.status() == 200)
        })
        .await;
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
