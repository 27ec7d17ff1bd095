//! What keeps the series: Prometheus as it is in Debian 12 and in sid, VictoriaMetrics. Each scrapes the exporters
//! and evaluates the shipped rules that join them.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::text;
use crate::server::{Process, result_of, write_all};

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
        let rules = text("prometheus/rules/recording.yml");
        let (joined, _) = rules.split_once("  - name: pds-apps").unwrap();
        write_all(folder.path(), &[("rules.yml", joined)]);
        let url = format!("http://{host}:9090");
        let mut engine = Self { url: url.clone(), kind, _processes: Vec::new(), folder };
        match kind {
            Kind::Prometheus(program) => {
                let global =
                    "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n";
                write_all(engine.folder.path(), &[("prometheus.yml", &format!("{global}{scrape}"))]);
                let listen = format!("--web.listen-address={host}:9090");
                let arguments = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", &listen];
                engine.run(program, &arguments, &format!("{url}/-/ready")).await;
            }
            Kind::VictoriaMetrics => {
                let global = "global: {scrape_interval: 1s}\n";
                write_all(engine.folder.path(), &[("scrape.yml", &format!("{global}{scrape}"))]);
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
                let listen = format!("-httpListenAddr={host}:8880");
                let (source, target) = (format!("-datasource.url={url}"), format!("-remoteWrite.url={url}"));
                let arguments = [
                    "-rule=rules.yml",
                    // Each evaluation reads the results of the one before: they show after two seconds. 30 s each in
                    // production, as above.
                    "-evaluationInterval=5s",
                    "-rule.evalDelay=5s",
                    "-remoteWrite.flushInterval=100ms",
                    &listen,
                    &source,
                    &target,
                ];
                engine.run("vmalert", &arguments, &format!("{rules}/health")).await;
            }
        }
        engine
    }

    async fn run(&mut self, program: &str, arguments: &[&str], ready: &str) {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self._processes.push(Process::start(program, &arguments, self.folder.path(), ready).await);
    }

    /// Whether a rule sees what the rules before it have recorded in the same evaluation. With vmalert it sees what they
    /// recorded in the evaluation before.
    pub(super) fn rules_see_each_other_at_once(&self) -> bool {
        matches!(self.kind, Kind::Prometheus(_))
    }

    /// The growth of `counter` between two times in seconds at which it has samples, as a query, and how far the engine
    /// may extrapolate it: Prometheus looks at what lies within a range, so it needs one that is a little longer.
    pub(super) async fn increase(&self, counter: &str, first: f64, last: f64) -> (f64, f64) {
        let milliseconds = ((last - first) * 1000.0).round();
        let more = if self.rules_see_each_other_at_once() { 1.0 } else { 0.0 };
        let range = milliseconds + more;
        let found = self.query(&format!("increase({counter}[{range}ms] @ {last})")).await;
        let increase: f64 = found[0]["value"][1].as_str().unwrap().parse().unwrap();
        (increase, increase * more / milliseconds + 1e-6)
    }

    /// What an expression gives now.
    pub(super) async fn query(&self, expression: &str) -> Vec<Value> {
        result_of(&self.url, "/api/v1/query", &[("query", expression)]).await
    }

    /// What its programs have logged.
    pub(super) fn log(&self) -> String {
        let logs = ["prometheus", "prometheus-3", "victoria-metrics", "vmalert"];
        let logs = logs.map(|name| fs::read_to_string(self.folder.path().join(format!("{name}.log"))));
        logs.into_iter().flatten().collect()
    }
}
