//! The configuration loaded anew by the real daemon: all of it or nothing, one after the other, and what stays stays.

use std::collections::HashMap;

use pds_exporter::clock::Clock;
use pds_exporter::simulator::{self, Settings, World};
use reqwest::StatusCode;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::process::{Exporter, series, until, value};
use crate::real_kill::configuration;

const SUCCESSFUL: &str = "pds_exporter_config_last_reload_successful";

/// A running daemon with the service that it polls and the file that says so.
struct Running {
    world: World,
    exporter: Exporter,
    file: String,
    /// What the file holds at first.
    text: String,
    _folder: TempDir,
}

impl Running {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(Settings { projects: 1, apps: 2, ..Settings::default() }, Clock::system());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(simulator::serve(world.clone(), listener, std::future::pending()));
        let file = configuration(&world, &address, folder.path());
        // So long that only a reload which forgets the schedule would ask for settings twice.
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("settings_interval = \"5s\"", "settings_interval = \"1h\"");
        std::fs::write(&file, &text).unwrap();
        let exporter = Exporter::start(&["--config.file", &file, "--web.enable-lifecycle"]);
        exporter.wait_for("/-/ready").await;
        Self { world, exporter, file, text, _folder: folder }
    }

    fn apps(&self) -> Vec<std::sync::Arc<str>> {
        self.world.projects()[0].1.clone()
    }

    /// The file without its second app.
    fn with_one_app(&self) -> String {
        let second = serde_json::Value::from(&*self.apps()[1]).to_string();
        self.text.replace(&format!(",{second}"), "")
    }

    async fn reload(&self) -> (StatusCode, String) {
        let url = format!("{}/-/reload", self.exporter.url);
        let reply = reqwest::Client::new().post(url).send().await.unwrap();
        (reply.status(), reply.text().await.unwrap())
    }

    async fn metric(&self, series: &str) -> Option<f64> {
        value(&self.exporter.get("/metrics").await, series)
    }

    async fn assert_still_polling(&self) {
        let before = self.world.requests().total;
        until("the service is asked on", async || self.world.requests().total > before + 4).await;
        assert!(self.exporter.get("/metrics").await.contains(&*self.apps()[1]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_bad_file_changes_nothing_and_says_so() {
    let running = Running::start().await;
    let started = running.metric("pds_exporter_config_last_reload_success_timestamp_seconds").await;
    std::fs::write(&running.file, format!("{}\n[poll]\ninterval = \"-1\"\n", running.with_one_app()))
        .unwrap();
    let (status, text) = running.reload().await;
    assert!(status.is_server_error(), "{status}: {text}");
    // The exporter's own metrics are handed out unchanged for a second.
    until("the page says so", async || running.metric(SUCCESSFUL).await == Some(0.0)).await;
    running.assert_still_polling().await;

    std::fs::write(&running.file, running.with_one_app().replace("settle", "setle")).unwrap();
    let (status, text) = running.reload().await;
    let named = format!("the configuration {} is not valid:\npoll.setle: ", running.file);
    assert!(status == 500 && text.contains(&named), "{status}: {text}");
    let refusals = || running.exporter.log().matches("the configuration was not loaded").count();
    assert_eq!(refusals(), 2);
    running.exporter.signal("HUP");
    until("the signal's reload fails, too", async || refusals() == 3).await;
    running.assert_still_polling().await;
    assert_eq!(running.metric(SUCCESSFUL).await, Some(0.0));
    let last = running.metric("pds_exporter_config_last_reload_success_timestamp_seconds").await;
    assert_eq!(last, started);
    running.assert_still_polling().await;

    std::fs::write(&running.file, &running.text).unwrap();
    running.exporter.signal("HUP");
    until("the good file is loaded", async || running.metric(SUCCESSFUL).await == Some(1.0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_stays_keeps_its_data_schedule_and_counters_and_what_goes_vanishes() {
    let running = Running::start().await;
    let [stays, goes] = &*running.apps() else { panic!("two apps") };
    let counted = format!(
        "pds_app_accounted_until_timestamp_seconds{{project=\"{}\",app=\"{stays}\",resource=\"response_time\"}}",
        running.world.projects()[0].0
    );
    let first = running.metric(&counted).await.unwrap();
    until("something is counted", async || running.metric(&counted).await > Some(first)).await;
    let of = |page: &str, app: &str| -> HashMap<String, f64> {
        let label = format!("app=\"{app}\"");
        series(page)
            .filter(|(name, _)| name.contains(&label))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    };
    let before = running.exporter.get("/metrics").await;
    assert!(!of(&before, goes).is_empty());
    let asked = || running.world.requests().by_call.get("get_app").copied().unwrap_or_default();
    let asked_before = asked();

    std::fs::write(&running.file, running.with_one_app()).unwrap();
    assert_eq!(running.reload().await.0, 200);
    let after = running.exporter.get("/metrics").await;
    assert!(of(&after, goes).is_empty(), "{after}");
    let after = of(&after, stays);
    for (name, before) in of(&before, stays) {
        let now = after.get(&name).unwrap_or_else(|| panic!("{name} is gone"));
        let counter = name.contains("_total{") || name.contains("_bucket{") || name.contains("_until_");
        assert!(!counter || *now >= before, "{name} went back from {before} to {now}");
    }
    let before = running.metric(&counted).await;
    until("counting goes on", async || running.metric(&counted).await > before).await;
    assert_eq!(asked(), asked_before, "the settings were due in an hour");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reloads_at_once_follow_one_another() {
    let running = Running::start().await;
    let texts = [running.text.clone(), running.with_one_app()];
    for round in 0..6 {
        // Six rounds: the last one writes the first text.
        std::fs::write(&running.file, &texts[(round + 1) % 2]).unwrap();
        running.exporter.signal("HUP");
        let (a, b, c, d) =
            tokio::join!(running.reload(), running.reload(), running.reload(), running.reload());
        for (status, text) in [a, b, c, d] {
            assert_eq!(status, 200, "{text}");
        }
    }
    // The last file has both apps: 3 targets each, 2 of the project, 1 of the account.
    until("all targets are there", async || running.metric("pds_exporter_targets").await == Some(9.0)).await;
    assert_eq!(running.metric(SUCCESSFUL).await, Some(1.0));
    assert_eq!(running.metric("pds_exporter_panics_total").await, Some(0.0));
    running.assert_still_polling().await;
}
