//! The recipe "Run two replicas": both daemons as its commands configure them, and one Prometheus.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::deploy::steps::Machine;
use crate::deploy::{succeed, yaml};
use crate::docs::blocks;
use crate::process::{Exporter, until};
use crate::rig::{self, Configuration, EVERY_SECOND};
use crate::server::{PROMETHEUS_2, Server, free_port};

/// The values of the environment that the release `name` gives its daemon, by name.
fn environment(objects: &[Value], name: &str) -> BTreeMap<String, String> {
    let is_release = |object: &&Value| {
        object["kind"] == "Deployment" && object["metadata"]["labels"]["app.kubernetes.io/instance"] == name
    };
    let release = objects.iter().find(is_release).unwrap();
    let variables = release["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    variables.iter().map(|one| (text(&one["name"]), text(&one["value"]))).collect()
}

/// The result of `query` by app, over all replicas or only one `job`.
async fn result(prometheus: &Server, query: &str, job: Option<&str>) -> BTreeMap<String, f64> {
    let job = job.map_or_else(String::new, |job| format!("job=\"{job}\""));
    let query = query.replace("\"}[5m]", &format!("\",{job}}}[5m]"));
    let rows = prometheus.query(&query.replace("total[5m]", &format!("total{{{job}}}[5m]"))).await;
    let app = |row: &Value| row["metric"]["app"].as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (app(row), row["value"][1].as_str().unwrap().parse().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_of_two_replicas_is_killed_queries_return_the_result_of_a_single_process() {
    // The first two apps have steady traffic.
    let (world, service) = rig::world(1, 2).await;
    let machine = Machine::new();
    let config = Configuration::new(&world, &service).tables(EVERY_SECOND).write(machine.folder.path());
    let page = fs::read_to_string("docs/how-to.md").unwrap();
    let recipe = page.split("\n## ").find(|part| part.starts_with("Run two replicas")).unwrap();
    succeed(machine.shell(&blocks(recipe, "sh").concat()));
    let releases = yaml(&machine.rendered());

    let replicas = ["pds-a", "pds-b"].map(|name| (name, format!("127.0.0.1:{}", free_port())));
    let jobs = replicas.each_ref().map(|(name, address)| {
        json!({ "job_name": name, "honor_labels": true, "static_configs": [{ "targets": [address] }] })
    });
    let scraping = json!({ "global": { "scrape_interval": "1s" }, "scrape_configs": jobs }).to_string();
    let prometheus =
        Server::prometheus(PROMETHEUS_2, &[("prometheus.yml", &scraping)], "--log.level=warn").await;
    let [_survivor, killed] = replicas.map(|(name, address)| {
        let mut environment = environment(&releases, name);
        let url = environment.insert(
            "PDS_EXPORTER__STATE__PROMETHEUS_URL".to_owned(),
            format!("http://{}", prometheus.address),
        );
        assert!(url.unwrap().starts_with("http://prometheus-operated."));
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
        daemon.args(["--config.file", &config, "--web.listen-address", &address]).envs(environment);
        Exporter::of(daemon)
    });

    let queries = blocks(&fs::read_to_string("docs/query.md").unwrap(), "promql");
    let rates = queries.iter().find(|query| query.contains("accounted_seconds")).unwrap();
    let slow = queries.iter().find(|query| query.starts_with("1 - ")).unwrap();
    let gauges = "max by (app) (pds_app_window_requests)";
    let assert_single = async || {
        for (query, tolerance) in [(rates, 0.1), (slow, 0.02)] {
            let [pair, single] =
                [result(&prometheus, query, None).await, result(&prometheus, query, Some("pds-a")).await];
            assert_eq!(pair.len(), 2, "{query}");
            for (app, value) in &single {
                let apart = (pair[app] - value).abs();
                assert!(apart <= tolerance * value.max(1.0), "{query}: {} of {app}, not {value}", pair[app]);
            }
        }
        assert_eq!(result(&prometheus, gauges, None).await.len(), 2, "no app is without gauges");
    };
    let seconds = "min(increase(pds_app_requests_accounted_seconds_total[5m]))";
    until("both replicas have counted for a while", async || {
        result(&prometheus, &format!("count({seconds} > 15)"), None).await.len() == 1
            && result(&prometheus, &format!("count({seconds} > 15)"), Some("pds-b")).await.len() == 1
    })
    .await;
    assert_single().await;
    killed.kill();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_single().await;
    }
    let down = prometheus.query("up{job=\"pds-b\"} == 0").await;
    assert_eq!(down.len(), 1);
}
