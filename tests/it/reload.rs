//! Reloads of the real daemon: all or nothing, one at a time; unchanged parts keep their state.

mod lost;
mod steps;

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use pds_interface::{Resource, Scope};
use pds_simulator::{Settings, World};
use reqwest::StatusCode;
use tempfile::TempDir;

use crate::process::{Exporter, series, until, until_page, value};
use crate::rig;

const SUCCESSFUL: &str = "pds_exporter_config_last_reload_successful";

/// A running daemon with the service that it polls and the file that says so.
struct Running {
    world: World,
    exporter: Exporter,
    file: String,
    /// The first contents of the file.
    text: String,
    folder: TempDir,
}

impl Running {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(flags: &[&str]) -> Self {
        let settings = Settings { projects: 1, apps: 2, ..Settings::default() };
        let (world, folder, file) = rig::service(settings).await;
        // An hour: only a reload that forgets the schedule asks for settings twice.
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("settings_interval = \"5s\"", "settings_interval = \"1h\"");
        std::fs::write(&file, &text).unwrap();
        let exporter =
            Exporter::ready(&[&["--config.file", &file, "--web.enable-lifecycle"], flags].concat()).await;
        Self { world, exporter, file, text, folder }
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

    /// Reloads the file with this text.
    async fn follow(&self, text: impl AsRef<[u8]>) {
        std::fs::write(&self.file, text).unwrap();
        assert_eq!(self.reload().await.0, 200);
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
async fn a_stop_does_not_wait_for_a_slow_reload() {
    let running = Running::start().await;
    std::fs::write(&running.file, format!("include = [\"more-*\"]\n{}", running.text)).unwrap();
    let path = |file: u32| running.folder.path().join(format!("more-{file}"));
    assert!(std::process::Command::new("mkfifo").arg(path(0)).status().unwrap().success());
    assert!(running.reload().await.1.contains("not a regular file"));
    (1..30).for_each(|file| std::fs::write(path(file), "# nothing\n".repeat(100_000)).unwrap());
    running.exporter.signal("HUP");
    assert!(running.exporter.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_bad_file_changes_nothing_and_is_reported() {
    let running = Running::start().await;
    let started = running.metric("pds_exporter_config_last_reload_success_timestamp_seconds").await;
    std::fs::write(&running.file, format!("{}\n[poll]\ninterval = \"-1\"\n", running.with_one_app()))
        .unwrap();
    assert_eq!(running.compressed_metric(SUCCESSFUL).await, Some(1.0));
    let (status, text) = running.reload().await;
    assert!(status.is_server_error(), "{status}: {text}");
    assert_eq!(running.compressed_metric(SUCCESSFUL).await, Some(0.0), "at once");
    running.assert_still_polling().await;

    std::fs::write(&running.file, running.with_one_app().replace("settle", "setle")).unwrap();
    let (status, text) = running.reload().await;
    let named = format!("the configuration {} is not valid:\npoll.setle: ", running.file);
    assert!(status == 500 && text.contains(&named), "{status}: {text}");
    let page = running.exporter.get("/config").await;
    assert!(page.contains("poll.setle: ") && page.contains("Refused "), "{page}");
    let refusals = || running.exporter.log().matches("the configuration was not reloaded").count();
    until("both refusals are logged", async || refusals() == 2).await;
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
    assert!(!running.exporter.get("/config").await.contains("setle"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn remaining_targets_keep_data_schedule_and_counters_and_removed_ones_vanish() {
    let running = Running::start().await;
    let [stays, goes] = &*running.apps() else { panic!("two apps") };
    let counted = format!(
        "pds_app_accounted_until_timestamp_seconds{{project=\"{}\",app=\"{stays}\",resource=\"response_time\"}}",
        running.world.projects()[0].0
    );
    let first = running.metric(&counted).await.unwrap();
    until("something is counted", async || running.metric(&counted).await > Some(first)).await;
    let series_of = |page: &str, app: &str| -> HashMap<String, f64> {
        let label = format!("app=\"{app}\"");
        series(page)
            .filter(|(name, _)| name.contains(&label))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    };
    let before = running.exporter.get("/metrics").await;
    assert!(!series_of(&before, goes).is_empty());
    let asked = || running.world.requests().by_call.get("get_app").copied().unwrap_or_default();
    let asked_before = asked();

    running.follow(running.with_one_app()).await;
    let after = running.exporter.get("/metrics").await;
    let left: Vec<_> = series_of(&after, goes).into_keys().collect();
    assert!(left.len() == 1 && left[0].starts_with("pds_app_gone_timestamp_seconds{"), "{left:?}");
    let after = series_of(&after, stays);
    for (name, before) in series_of(&before, stays) {
        let now = after.get(&name).unwrap_or_else(|| panic!("{name} is gone"));
        let counter = name.contains("_total{") || name.contains("_bucket{") || name.contains("_until_");
        assert!(!counter || *now >= before, "{name} went back from {before} to {now}");
    }
    let before = running.metric(&counted).await;
    until("counting goes on", async || running.metric(&counted).await > before).await;
    assert_eq!(asked(), asked_before, "the settings were due in an hour");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_objective_follows_the_configuration() {
    let running = Running::start().await;
    let objectives = async || -> Vec<(String, f64)> {
        let page = running.exporter.get("/metrics").await;
        let found = series(&page).filter(|(name, _)| name.starts_with("pds_app_objective_ratio{"));
        found.map(|(name, share)| (name.to_owned(), share)).collect()
    };
    assert_eq!(objectives().await, []);
    let (project, app) = (running.world.projects()[0].0.clone(), running.apps()[0].clone());
    for (objective, threshold) in [("500ms", "0.5"), ("1m", "60.0")] {
        let objective = format!("objective = {{ threshold = \"{objective}\", share = 0.95 }}\napps = ");
        running.follow(running.with_one_app().replace("apps = ", &objective)).await;
        let labels = format!("project=\"{project}\",app=\"{app}\",threshold=\"{threshold}\"");
        assert_eq!(objectives().await, [(format!("pds_app_objective_ratio{{{labels}}}"), 0.95)]);
    }
    running.follow(&running.text).await;
    assert_eq!(objectives().await, []);
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
    // The last file has both apps.
    running.until_targets("all targets are there", targets(2)).await;
    assert_eq!(running.metric(SUCCESSFUL).await, Some(1.0));
    assert_eq!(running.metric("pds_exporter_panics_total").await, Some(0.0));
    running.assert_still_polling().await;
}

impl Running {
    /// The file with an `include`, without projects, and the text of these.
    fn apart(&self) -> (String, String) {
        let (main, projects) = self.text.split_once("[[projects]]").unwrap();
        (format!("include = [\"projects.d/*.toml\"]\n{main}"), format!("[[projects]]{projects}"))
    }

    async fn until_targets(&self, what: &str, targets: f64) {
        until(what, async || self.metric("pds_exporter_targets").await == Some(targets)).await;
    }

    fn count(&self, message: &str) -> usize {
        self.exporter.log().matches(message).count()
    }
}

const RELOADED: &str = "the configuration was reloaded";
const REFUSED: &str = "the configuration was not reloaded";
const FOLLOW: &[&str] = &["--config.auto-reload-interval=100ms"];

/// The targets of a project with this many apps, and of its account.
fn targets(apps: usize) -> f64 {
    let of_app = Resource::all().filter(|resource| resource.polled().scope == Scope::App).count();
    (apps * of_app + Resource::COUNT - of_app) as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn files_are_followed_when_they_are_new_changed_bad_moved_or_removed() {
    let running = Running::start_with(FOLLOW).await;
    let (main, both) = running.apart();
    let second = serde_json::Value::from(&*running.apps()[1]).to_string();
    let one = both.replace(&format!(",{second}"), "");
    let file = |name: &str| running.folder.path().join("projects.d").join(name);
    std::fs::create_dir(file("")).unwrap();

    std::fs::write(file("search.toml"), &one).unwrap();
    std::fs::write(&running.file, &main).unwrap();
    running.until_targets("the included file is read", targets(1)).await;
    std::fs::write(file("search.toml"), &both).unwrap();
    running.until_targets("the changed file is read", targets(2)).await;

    std::fs::write(file("bad.toml"), "[api]\ntimeout = \"1s\"\n").unwrap();
    until("the bad file is refused", async || running.metric(SUCCESSFUL).await == Some(0.0)).await;
    running.assert_still_polling().await;
    until("the refusal is logged", async || running.count(REFUSED) > 0).await;
    let log = running.exporter.log();
    let named = format!("{}: api: an included file may hold only [[projects]]", file("bad.toml").display());
    assert!(log.contains(&named), "{log}");
    assert_eq!(running.count(REFUSED), 1, "a bad file is refused once: {log}");
    assert_eq!(running.metric("pds_exporter_targets").await, Some(targets(2)));
    std::fs::remove_file(file("bad.toml")).unwrap();
    until("the files are good again", async || running.metric(SUCCESSFUL).await == Some(1.0)).await;

    let reloads = running.count(RELOADED);
    std::fs::rename(file("search.toml"), file("moved.toml")).unwrap();
    until("the moved file is read", async || running.count(RELOADED) == reloads + 1).await;
    assert_eq!(running.metric("pds_exporter_targets").await, Some(targets(2)));

    std::fs::write(file("twice.toml"), &one).unwrap();
    until("a project in two files is refused", async || running.count(REFUSED) == 2).await;
    let log = running.exporter.log();
    let first = format!("at {}: projects[0].id", file("moved.toml").display());
    assert!(log.contains(&first) && log.contains("twice.toml: projects[0].id: duplicate"), "{log}");
    std::fs::remove_file(file("moved.toml")).unwrap();
    running.until_targets("the other file is left", targets(1)).await;

    std::fs::remove_file(file("twice.toml")).unwrap();
    until("nothing to poll is refused", async || running.count(REFUSED) == 3).await;
    std::fs::remove_file(&running.file).unwrap();
    until("no file is refused", async || running.count(REFUSED) == 4).await;
    assert_eq!(running.metric("pds_exporter_targets").await, Some(targets(1)));
    std::fs::write(&running.file, &running.text).unwrap();
    running.until_targets("the file is back", targets(2)).await;
    assert_eq!(running.metric("pds_exporter_panics_total").await, Some(0.0));
}

/// A volume as Kubernetes makes it of a ConfigMap: the file is a link through `..data`, which is a link to a folder
/// with the content, and changes by a rename.
fn swap_volume(volume: &Path, revision: u32, text: &str) {
    let content = volume.join(format!("..revision-{revision}"));
    std::fs::create_dir(&content).unwrap();
    std::fs::write(content.join("pds-exporter.toml"), text).unwrap();
    symlink(format!("..revision-{revision}"), volume.join("..data_tmp")).unwrap();
    std::fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    if revision > 1 {
        std::fs::remove_dir_all(volume.join(format!("..revision-{}", revision - 1))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_config_map_that_is_swapped_is_followed() {
    let running = Running::start().await;
    let volume = tempfile::tempdir().unwrap();
    swap_volume(volume.path(), 1, &running.with_one_app());
    let file = volume.path().join("pds-exporter.toml");
    symlink("..data/pds-exporter.toml", &file).unwrap();
    let exporter = Exporter::ready(&["--config.file", &file.display().to_string(), FOLLOW[0]]).await;
    let polled = async || value(&exporter.get("/metrics").await, "pds_exporter_targets");
    assert_eq!(polled().await, Some(targets(1)));
    swap_volume(volume.path(), 2, &running.text);
    until("the new revision is read", async || polled().await == Some(targets(2))).await;
    swap_volume(volume.path(), 3, "[[");
    until("a bad revision is refused", async || exporter.log().contains(REFUSED)).await;
    swap_volume(volume.path(), 4, &running.with_one_app());
    until("the next one is read", async || polled().await == Some(targets(1))).await;
    until("two reloads are logged", async || exporter.log().matches(RELOADED).count() == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_the_flag_no_file_is_followed() {
    let running = Running::start().await;
    std::fs::write(&running.file, running.with_one_app()).unwrap();
    running.assert_still_polling().await;
    assert_eq!((running.count(RELOADED), running.count(REFUSED)), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_of_the_configuration_has_keys_and_no_flags() {
    let running = Running::start_with(FOLLOW).await;
    let page = running.exporter.get("/config").await;
    assert!(page.contains("poll.settle") && !page.contains("--web.enable-lifecycle"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn series_of_a_resource_vanish_when_polling_stops_and_return() {
    let running = Running::start().await;
    let families = ["pds_app_info{", "pds_app_requests_total{", "pds_app_runs_total{"];
    let exporter = &running.exporter;
    until_page(exporter, "all are shown", |page| families.iter().all(|name| page.contains(name))).await;
    let only = running.text.replace("[poll]\n", "[poll]\nresources = [\"response_time\"]\n");
    running.follow(only).await;
    running.until_targets("only response times are polled", 2.0).await;
    let page = exporter.get("/metrics").await;
    assert!(page.contains("pds_up{") && page.contains("pds_app_requests_total{"), "{page}");
    for gone in ["pds_app_info{", "pds_app_runs_total{", "pds_project_info{"] {
        assert!(!page.contains(gone), "{gone}: {page}");
    }
    running.follow(&running.text).await;
    running.until_targets("everything is polled again", targets(2)).await;
    until_page(exporter, "the settings are back", |page| page.contains("pds_app_info{")).await;
}
