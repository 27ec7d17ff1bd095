//! `pdstool state`: ledgers of a state file, and cursors in a Prometheus that has scraped the exporters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pds_core::clock::Clock;
use pds_interface::{Resource, Tally, TimeRange, response_time, run_execution_time};
use pds_ledger::{Key, Ledger, LedgerStore, Owner, Unobserved};

use super::{ended, golden, pdstool, stdout};
use crate::client::server::{Server, status};
use crate::golden::assert_golden;
use crate::restore::prometheus::Prometheus;

/// 2023-11-14 22:13:20 UTC.
const AT: i64 = 1_700_000_000;

/// An app, what the file holds of it, and the cursor of Prometheus.
type Origins = (&'static str, Option<(i64, u64)>, Option<i64>);

/// The requests of each app in both origins: how many seconds before now the cursor is, and the file's total.
const REQUESTS: &[Origins] = &[
    ("p-1-ahead-in-file", Some((60, 50)), Some(180)),
    ("p-1-ahead-in-prometheus", Some((120, 1_000)), Some(60)),
    ("p-1-only-in-file", Some((60, 7)), None),
    ("p-1-only-in-prometheus", None, Some(60)),
    ("p-1-removed", Some((60, 3)), None),
    ("p-1-same", Some((60, 12)), Some(60)),
    (SET_ASIDE, Some((600, 7)), Some(60)),
];

/// The file has it from before another shard counted it.
const SET_ASIDE: &str = "p-1-set-aside";

fn key(app: &str, resource: Resource) -> Key {
    Key { owner: Owner::new("p-1".into(), app.into()), resource }
}

/// The file's side of [`REQUESTS`], and the runs of one app.
pub(super) async fn state_file(folder: &Path) -> PathBuf {
    let path = folder.join("state.log");
    let (ledgers, committer) =
        LedgerStore::open(Some(&path), Arc::new(Unobserved), std::time::Duration::from_millis(1))
            .await
            .unwrap();
    let in_file = REQUESTS.iter().filter_map(|(app, file, _)| Some((*app, (*file)?)));
    let mut all: Vec<_> = in_file
        .map(|(app, (ago, total))| {
            let range = TimeRange { start: AT - ago - 60, end: AT - ago };
            let shares = vec![(0.25, (total / 2) as f64 / total as f64), (1.0, 1.0)];
            let reply = Tally { total: Some(total), shares, ..Tally::default() };
            let mut ledger = Ledger::open(range.start).add(range, &reply, true, AT).unwrap();
            (ledger.accounted, ledger.late, ledger.rechecked_until) = (0, 3, AT - 3600);
            let ledger = if app == SET_ASIDE { ledger.put_aside().unwrap() } else { ledger };
            (key(app, response_time::RESOURCE), ledger)
        })
        .collect();
    let mut runs = Ledger::open(AT - 60);
    (runs.total, runs.unaccounted) = (90, 60);
    all.push((key("p-1-same", run_execution_time::RESOURCE), runs));
    ledgers.commit_all(all).await.unwrap();
    committer.finished().await;
    path
}

/// A page with the other side of [`REQUESTS`], and the same runs as in the file.
fn page() -> String {
    let mut page = String::new();
    let mut put = |app: &str, resource: &str, ago: i64| {
        let labels = format!("project=\"p-1\",app=\"{app}\",resource=\"{resource}\"");
        page += &format!("pds_app_accounted_until_timestamp_seconds{{{labels}}} {}\n", AT - ago);
    };
    for (app, _, scraped) in REQUESTS {
        scraped.iter().for_each(|ago| put(app, "response_time", *ago));
    }
    put("p-1-same", "run_execution_time", 60);
    page
}

/// A Prometheus, and a configuration that names it and perhaps a file.
struct Scene {
    folder: tempfile::TempDir,
    prometheus: Prometheus,
}

impl Scene {
    async fn set() -> Self {
        let prometheus = Prometheus::start(Clock::standing_at("2023-11-14T22:13:20Z".parse().unwrap())).await;
        prometheus.scrape(&page(), &[("job", "pds"), ("instance", "a:1")]);
        Self { folder: tempfile::tempdir().unwrap(), prometheus }
    }

    fn url(&self) -> String {
        format!("http://{}", self.prometheus.address)
    }

    fn config(&self, state_path: &str, url: &str) -> String {
        let apps = REQUESTS.iter().map(|(app, ..)| format!("\"{app}\""));
        let apps: Vec<String> = apps.filter(|app| !app.contains("removed")).collect();
        let text = format!(
            "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"hunter2\"\n\
             [state]\npath = \"{state_path}\"\nprometheus_url = \"{url}\"\n\
             [[projects]]\nid = \"p-1\"\napps = [{}]\n",
            apps.join(", ")
        );
        let path = self.folder.path().join("pds-exporter.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

async fn run(args: &[&str]) -> std::process::Output {
    let mut command = pdstool(&["state"]);
    command.args(args);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// The results with these arguments in each format.
async fn in_every_form(args: &[&str]) -> String {
    let mut text = String::new();
    for form in ["table", "wide", "csv", "json"] {
        text += &ended(&run(&[args, &["-o", form]].concat()).await);
    }
    text
}

#[tokio::test]
async fn ledgers_of_a_file_are_shown_in_every_form_while_an_exporter_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = state_file(folder.path()).await;
    let in_use = LedgerStore::open(Some(&path), Arc::new(Unobserved), std::time::Duration::from_secs(60))
        .await
        .unwrap();
    let while_in_use = std::fs::read(&path).unwrap();
    let name = path.display().to_string();
    assert_golden(&golden("state-show.txt"), &in_every_form(&["show", "--state.path", &name]).await);
    assert_eq!(std::fs::read(&path).unwrap(), while_in_use, "it is only read");
    drop(in_use);

    let filtered = run(&["show", "--state.path", &name, "--filter", "SAME", "-o", "csv"]).await;
    assert_eq!(stdout(&filtered).lines().count(), 3, "{}", stdout(&filtered));
    std::fs::write(&path, "no database").unwrap();
    let damaged = ended(&run(&["show", "--state.path", &name]).await);
    assert!(damaged.starts_with("exit code 1") && damaged.contains("is damaged"), "{damaged}");
}

#[tokio::test]
async fn the_cursors_in_prometheus_are_shown_in_every_form() {
    let scene = Scene::set().await;
    let config = scene.config("", &scene.url());
    let text = in_every_form(&["show", "--config.file", &config]).await;
    assert_golden(&golden("state-show-prometheus.txt"), &text);

    // The same where there is a file as well.
    let path = state_file(scene.folder.path()).await;
    let config = scene.config(path.to_str().unwrap(), &scene.url());
    let from_prometheus = run(&["show", "--config.file", &config, "--from", "prometheus"]).await;
    assert!(text.starts_with(&ended(&from_prometheus)));
}

#[tokio::test]
async fn differences_are_shown_with_the_ledger_that_the_exporter_would_use() {
    let scene = Scene::set().await;
    let path = state_file(scene.folder.path()).await;
    let config = scene.config(path.to_str().unwrap(), &scene.url());
    let text = in_every_form(&["diff", "--config.file", &config]).await;
    assert_golden(&golden("state-diff.txt"), &text);
}

#[tokio::test]
async fn a_missing_source_is_reported_in_one_sentence() {
    let scene = Scene::set().await;
    let neither = scene.config("", "");
    for (args, said) in [
        (&["show"][..], "no source: state.path and state.prometheus_url are empty; use --state.path"),
        (&["show", "--from", "prometheus"], "no Prometheus: state.prometheus_url is empty"),
        (&["show", "--from", "file"], "no state file: state.path is empty; use --state.path"),
        (&["diff"], "no state file: state.path is empty; use --state.path"),
    ] {
        let output = ended(&run(&[args, &["--config.file", &neither]].concat()).await);
        assert!(output.starts_with("exit code 2") && output.contains(said), "{args:?}: {output}");
    }
    let missing = ended(&run(&["show", "--state.path", "/nowhere/state.log"]).await);
    assert!(missing.contains("/nowhere/state.log cannot be used: its directory does not exist"), "{missing}");
    let missing = ended(&run(&["show", "--state.path", "nowhere.log"]).await);
    assert!(missing.contains("nowhere.log cannot be used: No such file"), "{missing}");
    let refusing = Server::start(|_| status(401, "no")).await;
    let config = scene.config("", &format!("http://{}", refusing.address));
    let refused = ended(&run(&["show", "--config.file", &config]).await);
    assert!(refused.starts_with("exit code 1") && refused.contains("returned 401: no"), "{refused}");
}
