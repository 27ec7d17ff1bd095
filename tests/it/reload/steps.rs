//! Each step of a reload fails in turn.

use super::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pds_client::TokenSource;
use pds_core::clock::Clock;
use pds_core::secret::Secret;
use pds_exporter::app::daemon::Daemon;
use pds_telemetry::Telemetry;

use crate::process::{assert_lacks, http};
use crate::rig::{Configuration, whole_page};

/// A token that expired on 14 July 2017.
const EXPIRED: &str = "eyJhbGciOiJub25lIn0.eyJleHAiOjE1MDAwMDAwMDB9.c2lnbmF0dXJl";

/// Series that change at a failed reload or without any, and why; these are the beginnings of their names.
const CHANGING: &[(&str, &str)] = &[
    ("pds_exporter_config_last_reload_successful ", "states the failure"),
    ("pds_exporter_connections{", "counts the connections of this test"),
    ("pds_exporter_loop_stall_seconds", "is measured all the time"),
    ("pds_exporter_memory_budget_used_bytes ", "counts the memory of these connections"),
    ("process_", "is about the process"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_that_fails_at_any_step_changes_no_series() {
    let running = Running::start().await;
    let in_force = async || -> BTreeMap<String, f64> {
        let page = running.exporter.get("/metrics").await;
        let is_kept = |line: &&str| !CHANGING.iter().any(|(begin, _)| line.starts_with(begin));
        let kept: Vec<&str> = page.lines().filter(is_kept).collect();
        series(&kept.join("\n")).map(|(name, value)| (name.to_owned(), value)).collect()
    };
    // No poll comes in between.
    let paused = ["interval", "settings_interval"].iter().fold(running.text.clone(), |text, key| {
        let line = |line: &str| match line.split_once(" = ") {
            Some((name, _)) if name == *key => format!("{key} = \"30days\"\n"),
            _ => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    });
    running.follow(&paused).await;
    let mut before = BTreeMap::new();
    until("the page stands still", async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = in_force().await;
        now == std::mem::replace(&mut before, now.clone())
    })
    .await;
    assert!(before.keys().any(|name| name.starts_with("pds_app_requests_total{")), "{before:#?}");
    let line = |line: &str| match line.starts_with("token") {
        true => format!("token = \"{EXPIRED}\"\n"),
        false => format!("{line}\n"),
    };
    let with_another_token: String = paused.lines().map(line).collect();
    assert!(with_another_token.contains(EXPIRED));
    for (step, text) in [
        ("reading the file", format!("{with_another_token}\n[poll")),
        ("checking it", with_another_token.replace("[poll]", "[poll]\nnovel = 1")),
        (
            "the CA file of the service",
            with_another_token.replace("[api]", "[api]\nca_file = \"/nowhere.pem\""),
        ),
        ("the state file", format!("{with_another_token}\n[state]\npath = \"elsewhere\"\n")),
        (
            "the CA file of Prometheus",
            format!(
                "{with_another_token}\n[state]\nprometheus_url = \"https://127.0.0.1:1\"\nprometheus_ca_file = \"/nowhere.pem\"\n\
                 [[projects]]\nid = \"p-new\"\ntoken_file = \"/nowhere-token\"\n"
            ),
        ),
    ] {
        std::fs::write(&running.file, text).unwrap();
        let (status, told) = running.reload().await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{step}: {told}");
        assert_eq!(running.metric(SUCCESSFUL).await, Some(0.0), "{step}");
        let now = in_force().await;
        let changed =
            before.iter().filter(|(name, value)| now.get(*name) != Some(value)).map(|(name, _)| name);
        let new = now.keys().filter(|name| !before.contains_key(*name));
        assert_eq!(changed.chain(new).collect::<Vec<_>>(), [""; 0], "{step}");
    }
    // Nothing is said of tokens that are not used.
    assert_lacks(&running.exporter.log(), &["/nowhere-token"]);
    running.follow(&running.text).await;
    running.assert_still_polling().await;
}

#[tokio::test]
async fn a_client_that_cannot_be_built_for_a_plan_changes_no_series() {
    let world = World::new(Settings { projects: 1, apps: 2, ..Settings::default() }, Clock::system());
    let load = || Configuration::new(&world, "http://127.0.0.1:1").load();
    let daemon = Daemon::build(load(), Clock::system(), Telemetry::new(false).unwrap()).await.unwrap();
    let context = &daemon.handle.context;
    let before = whole_page(context);
    // The files were there when the configuration was loaded.
    let gone = Some(PathBuf::from("/nowhere.pem"));
    let prometheus = "[state]\nprometheus_url = \"https://127.0.0.1:1\"\n";
    let mut of_service = load();
    of_service.api.ca_file = gone.clone();
    let mut of_prometheus = Configuration::new(&world, "http://127.0.0.1:1").tables(prometheus).load();
    of_prometheus.state.prometheus.as_mut().unwrap().ca_file = gone;
    for mut config in [of_service, of_prometheus] {
        config.api.token = Some(TokenSource::Inline(Secret::new(EXPIRED)));
        config.projects.iter_mut().for_each(|project| project.token = None);
        assert!(daemon.handle.reconfigure(config).await.is_err());
        assert_eq!(whole_page(context), before);
    }
}

impl Running {
    /// On the page that is kept for a second.
    pub(super) async fn compressed_metric(&self, series: &str) -> Option<f64> {
        let request = http().get(format!("{}/metrics", self.exporter.url)).header("accept-encoding", "gzip");
        let body = request.send().await.unwrap().bytes().await.unwrap();
        value(&std::io::read_to_string(flate2::read::GzDecoder::new(&*body)).unwrap(), series)
    }
}
