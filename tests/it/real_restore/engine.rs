//! The stores of the series: Prometheus as it is in Debian 12 and in sid, VictoriaMetrics.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{Process, result_of, write_all};

/// The kind of engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// This program.
    Prometheus(&'static str),
    /// VictoriaMetrics. New samples show in queries after some seconds.
    VictoriaMetrics,
    /// VictoriaMetrics behind two Prometheus servers that scrape the same, each on its own, and write to it.
    Pair,
}

/// A running engine.
pub(super) struct Engine {
    /// The address of its HTTP API.
    pub(super) url: String,
    _processes: Vec<Process>,
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
        let url = format!("http://{host}:9090");
        let mut engine = Self { url: url.clone(), _processes: Vec::new(), folder };
        let listen = format!("-httpListenAddr={host}:9090");
        // The offset is 30 s in production.
        let victoria_metrics =
            ["-storageDataPath=data", "-retentionPeriod=1y", "-search.latencyOffset=5s", &listen];
        match kind {
            Kind::Prometheus(program) => {
                let global = "global: {scrape_interval: 1s}\n";
                write_all(engine.folder.path(), &[("prometheus.yml", &format!("{global}{scrape}"))]);
                let listen = format!("--web.listen-address={host}:9090");
                let arguments = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", &listen];
                engine.run(program, &arguments, &format!("{url}/-/ready")).await;
            }
            Kind::VictoriaMetrics => {
                let global = "global: {scrape_interval: 1s}\n";
                write_all(engine.folder.path(), &[("scrape.yml", &format!("{global}{scrape}"))]);
                let arguments = [&victoria_metrics[..], &["-promscrape.config=scrape.yml"]].concat();
                engine.run("victoria-metrics", &arguments, &format!("{url}/health")).await;
            }
            Kind::Pair => {
                engine.run("victoria-metrics", &victoria_metrics, &format!("{url}/health")).await;
                for (program, interval, port) in [("prometheus", 1, 9091), ("prometheus-3", 2, 9092)] {
                    let labels = format!("external_labels: {{replica: {program}}}");
                    let global = format!("global: {{scrape_interval: {interval}s, {labels}}}\n");
                    let queue = "queue_config: {batch_send_deadline: 1s}";
                    let write = format!("remote_write: [{{url: '{url}/api/v1/write', {queue}}}]\n");
                    let file = format!("{program}.yml");
                    write_all(engine.folder.path(), &[(&file, &format!("{global}{scrape}{write}"))]);
                    let (config, data) =
                        (format!("--config.file={file}"), format!("--storage.tsdb.path={program}"));
                    let listen = format!("--web.listen-address={host}:{port}");
                    let ready = format!("http://{host}:{port}/-/ready");
                    engine.run(program, &[&config, &data, &listen], &ready).await;
                }
            }
        }
        engine
    }

    async fn run(&mut self, program: &str, arguments: &[&str], ready: &str) {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self._processes.push(Process::start(program, &arguments, self.folder.path(), ready).await);
    }

    /// The value of an expression now.
    pub(super) async fn query(&self, expression: &str) -> Vec<Value> {
        result_of(&self.url, "/api/v1/query", &[("query", expression)]).await
    }

    /// The log of its programs.
    pub(super) fn log(&self) -> String {
        let logs = ["prometheus", "prometheus-3", "victoria-metrics"];
        let logs = logs.map(|name| fs::read_to_string(self.folder.path().join(format!("{name}.log"))));
        logs.into_iter().flatten().collect()
    }
}
