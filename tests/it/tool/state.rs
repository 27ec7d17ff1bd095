//! `pdstool state`: ledgers of a state file and of a Prometheus that answers what it is told.

use std::path::{Path, PathBuf};

use pds_exporter::accounting::{Ledger, LedgerStore};
use pds_exporter::interface::{Resource, response_time, run_execution_time};
use pds_exporter::store::{Key, Owner};
use pds_exporter::telemetry::Telemetry;
use serde_json::{Value, json};

use super::{ended, golden, pdstool, stdout};
use crate::client::server::{Server, ok, status};
use crate::golden::assert_golden;

/// 2023-11-14 22:13:20 UTC.
const AT: i64 = 1_700_000_000;

fn key(app: &str, resource: Resource) -> Key {
    Key { owner: Owner::new("p-1".into(), app.into()), resource }
}

/// A state file with two apps: one that Prometheus is ahead of, one that it does not know.
async fn state_file(folder: &Path) -> PathBuf {
    let path = folder.join("state.redb");
    let telemetry = Telemetry::new(false).unwrap();
    let (ledgers, committer) =
        LedgerStore::open(Some(&path), telemetry, std::time::Duration::from_millis(1)).await.unwrap();
    let ledger = |until: i64, total: u64| {
        let mut ledger = Ledger::open(until);
        (ledger.total, ledger.late, ledger.rechecked_until) = (total, 3, AT - 3600);
        ledger.with_buckets(&[(0.25, total / 2), (1.0, total)])
    };
    let ranker = ledger(AT - 120, 1_000);
    let embed = ledger(AT - 60, 7).put_aside().unwrap();
    let mut runs = Ledger::open(AT - 60);
    (runs.total, runs.unaccounted) = (90, 60);
    let all = vec![
        (key("p-1-ranker", response_time::RESOURCE), ranker),
        (key("p-1-ranker", run_execution_time::RESOURCE), runs),
        (key("p-1-embed", response_time::RESOURCE), embed),
    ];
    ledgers.commit_all(all).await.unwrap();
    ledgers.close();
    committer.finished().await;
    path
}

/// What a Prometheus holds of the two apps.
fn answer() -> Value {
    let mut result = Vec::new();
    let mut put = |name: &str, app: &str, labels: Value, value: i64| {
        let mut metric =
            json!({"__name__": name, "project": "p-1", "app": app, "job": "pds", "instance": "a:1"});
        metric.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        result.push(
            json!({"metric": metric, "value": [AT, value.to_string()], "values": [[AT, value.to_string()]]}),
        );
    };
    let until = "pds_app_accounted_until_timestamp_seconds";
    for (app, cursor, total) in [("p-1-ranker", AT - 60, 1_100), ("p-1-embed", AT - 60, 7)] {
        put(until, app, json!({"resource": "response_time"}), cursor);
        put("pds_app_requests_total", app, json!({}), total);
        let buckets = "pds_app_request_duration_seconds_bucket";
        // Embed's page does not belong together.
        let infinite = if app == "p-1-embed" { total + 1 } else { total };
        for (le, count) in [("0.25", total / 2), ("1.0", total), ("+Inf", infinite)] {
            put(buckets, app, json!({"le": le}), count);
        }
        put("pds_app_unaccounted_seconds_total", app, json!({"resource": "response_time"}), 0);
    }
    put(until, "p-1-ranker", json!({"resource": "run_execution_time"}), AT - 60);
    put("pds_app_runs_total", "p-1-ranker", json!({}), 90);
    put("pds_app_unaccounted_seconds_total", "p-1-ranker", json!({"resource": "run_execution_time"}), 60);
    json!({"status": "success", "data": {"resultType": "vector", "result": result}})
}

/// A Prometheus, and a configuration that names it and perhaps a file.
struct Scene {
    folder: tempfile::TempDir,
    prometheus: Server,
}

impl Scene {
    async fn set() -> Self {
        let time = json!({"resultType": "scalar", "result": [AT, AT.to_string()]});
        let time = json!({"status": "success", "data": time}).to_string().leak();
        let answer = answer().to_string().leak();
        let prometheus = Server::start(|seen| ok(if seen.number == 0 { time } else { answer })).await;
        Self { folder: tempfile::tempdir().unwrap(), prometheus }
    }

    fn config(&self, state_path: &str, url: &str) -> String {
        let text = format!(
            "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"hunter2\"\n\
             [state]\npath = \"{state_path}\"\nprometheus_url = \"{url}\"\n\
             [[projects]]\nid = \"p-1\"\napps = [\"p-1-ranker\", \"p-1-embed\"]\n"
        );
        let path = self.folder.path().join("pds-exporter.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

fn url_of(server: &Server) -> String {
    format!("http://{}", server.address)
}

async fn run(args: &[&str]) -> std::process::Output {
    let mut command = pdstool(&["state"]);
    command.args(args);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test]
async fn ledgers_of_a_file_are_shown_in_every_form_while_an_exporter_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = state_file(folder.path()).await;
    let before = std::fs::read(&path).unwrap();
    let telemetry = Telemetry::new(false).unwrap();
    let in_use = LedgerStore::open(Some(&path), telemetry, std::time::Duration::from_secs(60)).await.unwrap();
    let while_in_use = std::fs::read(&path).unwrap();
    let name = path.display().to_string();
    let mut text = String::new();
    for form in ["table", "wide", "csv", "json"] {
        text += &ended(&run(&["show", "--state.path", &name, "-o", form]).await);
    }
    assert_golden(&golden("state-show.txt"), &text);
    assert_eq!(std::fs::read(&path).unwrap(), while_in_use, "it is only read");
    drop(in_use);
    assert!(!before.is_empty());

    let filtered = run(&["show", "--state.path", &name, "--filter", "EMBED", "-o", "csv"]).await;
    assert_eq!(stdout(&filtered).lines().count(), 2, "{}", stdout(&filtered));
    std::fs::write(&path, "no database").unwrap();
    let damaged = ended(&run(&["show", "--state.path", &name]).await);
    assert!(damaged.starts_with("exit code 1") && damaged.contains("is damaged"), "{damaged}");
}

#[tokio::test]
async fn what_prometheus_holds_is_shown_with_what_it_refuses() {
    let scene = Scene::set().await;
    let config = scene.config("", &url_of(&scene.prometheus));
    let shown = run(&["show", "--config.file", &config, "-o", "wide"]).await;
    assert_golden(&golden("state-show-prometheus.txt"), &ended(&shown));
}

#[tokio::test]
async fn what_differs_is_shown_with_the_origin_that_the_exporter_goes_on_from() {
    let mut text = String::new();
    for form in ["table", "wide", "csv", "json"] {
        let scene = Scene::set().await;
        let path = state_file(scene.folder.path()).await;
        let config = scene.config(path.to_str().unwrap(), &url_of(&scene.prometheus));
        text += &ended(&run(&["diff", "--config.file", &config, "-o", form]).await);
    }
    assert_golden(&golden("state-diff.txt"), &text);
}

#[tokio::test]
async fn what_is_missing_is_said_in_one_sentence() {
    let scene = Scene::set().await;
    let neither = scene.config("", "");
    for (args, said) in [
        (&["show"][..], "no Prometheus: state.prometheus_url is empty"),
        (&["show", "--from", "file"], "no state file: state.path is empty; use --state.path"),
        (&["diff"], "no state file: state.path is empty; use --state.path"),
    ] {
        let output = ended(&run(&[args, &["--config.file", &neither]].concat()).await);
        assert!(output.starts_with("exit code 2") && output.contains(said), "{args:?}: {output}");
    }
    let missing = ended(&run(&["show", "--state.path", "/nowhere/state.redb"]).await);
    assert!(missing.contains("/nowhere/state.redb cannot be used: "), "{missing}");
    let refusing = Server::start(|_| status(401, "no")).await;
    let config = scene.config("", &url_of(&refusing));
    let refused = ended(&run(&["show", "--config.file", &config]).await);
    assert!(refused.starts_with("exit code 1") && refused.contains("answered 401: no"), "{refused}");
}
