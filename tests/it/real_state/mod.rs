//! The state file with the real daemon: in use, removed from and added to the configuration, moved between shards; and
//! what a bad disk does to it.

mod disk;
mod silent;

use std::path::{Path, PathBuf};
use std::process::Command;

use pds_interface::{TimeRange, response_time};
use pds_ledger::Key;
use pds_simulator::World;

use crate::process::{self, Exporter, until_page, value};
use crate::rig::{self, Configuration};

/// A service with two apps, and where its configuration is written.
struct Rig {
    folder: tempfile::TempDir,
    world: World,
    service: String,
}

impl Rig {
    async fn start() -> Self {
        let (world, service) = rig::world(1, 2).await;
        Self { folder: tempfile::tempdir().unwrap(), world, service }
    }

    /// Writes a configuration of the first `apps` apps that counts every second, and says where it is.
    fn configure(&self, apps: usize) -> String {
        let tables = "[poll]\ninterval = \"1s\"\nsettle = \"1s\"\n[accounting]\nstep = \"1s\"";
        let written = Configuration::new(&self.world, &self.service).tables(tables).first_apps(apps);
        written.write(self.folder.path())
    }

    /// The labels of the app of that number as they stand on the page.
    fn labels(&self, app: usize) -> String {
        let (project, ids) = self.world.projects().remove(0);
        format!("project=\"{project}\",app=\"{}\"", ids[app])
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state.log")
    }

    /// An exporter of the first `apps` apps with the state file.
    fn exporter(&self, apps: usize) -> Exporter {
        let (config, state) = (self.configure(apps), self.state().display().to_string());
        Exporter::start(&["--config.file", &config, "--state.path", &state])
    }

    /// The daemon with the first `apps` apps and this state file.
    fn program(&self, apps: usize, state: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
        command.args(["--config.file", &self.configure(apps), "--web.listen-address", "127.0.0.1:0"]);
        command.arg("--state.path").arg(state);
        command
    }

    /// The page's figures of the second app: how many requests, and up to when.
    fn counted(&self, page: &str, app: usize) -> Option<(f64, f64)> {
        let labels = self.labels(app);
        let total = value(page, &format!("pds_app_requests_total{{{labels}}}"))?;
        let until =
            format!("pds_app_accounted_until_timestamp_seconds{{{labels},resource=\"response_time\"}}");
        Some((total, value(page, &until)?))
    }

    /// The state file's entry of the app of that number: how many requests, and up to when.
    async fn on_disk(&self, state: &Path, app: usize) -> (f64, f64) {
        let id = self.world.projects().remove(0).1.remove(app);
        let ledgers = pds_ledger::state::read(state).await.unwrap();
        let of_app = |(key, _): &&(Key, _)| key.owner.app == id && key.resource == response_time::RESOURCE;
        let (_, ledger) = ledgers.iter().find(of_app).unwrap();
        (ledger.total as f64, ledger.until as f64)
    }

    /// How many requests the app of that number had between two Unix seconds.
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds, small counts")]
    fn truth(&self, app: usize, start: f64, end: f64) -> f64 {
        let (project, ids) = self.world.projects().remove(0);
        let range = TimeRange { start: start as i64, end: end as i64 };
        self.world.truth(&project, &ids[app], range).unwrap().requests as f64
    }

    /// Waits until the app is counted some seconds beyond `after`; what the page says then.
    async fn counted_beyond(&self, exporter: &Exporter, app: usize, after: f64) -> (f64, f64) {
        let mut now = (0.0, 0.0);
        until_page(exporter, "the counters move", |page| {
            now = self.counted(page, app).unwrap_or_default();
            now.1 > after + 2.0
        })
        .await;
        now
    }
}

#[tokio::test]
async fn a_re_added_app_continues_counting_and_fills_the_gap() {
    let rig = Rig::start().await;
    let exporter = rig.exporter(2);
    let (total, counted) = rig.counted_beyond(&exporter, 1, 0.0).await;

    rig.configure(1);
    exporter.signal("HUP");
    until_page(&exporter, "the app is gone from the page", |page| rig.counted(page, 1).is_none()).await;
    let page = exporter.get("/metrics").await;
    let mut left = page.lines().filter(|line| line.contains(&rig.labels(1)));
    assert!(left.all(|line| line.starts_with("pds_app_gone_timestamp_seconds{")), "{page}");
    let other = rig.counted(&page, 0).unwrap();

    rig.configure(2);
    exporter.signal("HUP");
    let (again, until_again) = rig.counted_beyond(&exporter, 1, counted + 1.0).await;
    assert!(again >= total, "the counter went back");
    assert_eq!(again - total, rig.truth(1, counted, until_again), "and the gap was asked for");
    let unaccounted =
        format!("pds_app_unaccounted_seconds_total{{{},resource=\"response_time\"}}", rig.labels(1));
    assert_eq!(value(&exporter.get("/metrics").await, &unaccounted), Some(0.0));
    assert!(
        rig.counted(&exporter.get("/metrics").await, 0).unwrap() >= other,
        "the app that stayed kept its counter"
    );
}

#[tokio::test]
async fn without_a_state_file_counters_restart_with_the_process() {
    let rig = Rig::start().await;
    let config = rig.configure(1);
    let exporter = Exporter::start(&["--config.file", &config]);
    let (_, counted) = rig.counted_beyond(&exporter, 0, 0.0).await;
    exporter.kill();
    let exporter = Exporter::start(&["--config.file", &config]);
    let (total, until) = rig.counted_beyond(&exporter, 0, counted).await;
    assert!(total <= rig.truth(0, counted, until), "nothing from before the start is counted");
}

#[tokio::test]
async fn without_restore_an_app_begins_at_zero_on_another_shard_and_others_continue() {
    let rig = Rig::start().await;
    let config = rig.configure(2);
    let (old, new) =
        (rig.state().display().to_string(), rig.folder.path().join("new.log").display().to_string());
    let start = |state: &str, index: &str, count: &str| {
        let shard = ["--shard.index", index, "--shard.count", count];
        Exporter::start(&[&["--config.file", &config, "--state.path", state], &shard[..]].concat())
    };
    let alone = start(&old, "0", "1");
    let before = [rig.counted_beyond(&alone, 0, 0.0).await, rig.counted_beyond(&alone, 1, 0.0).await];
    alone.kill();
    // The first count of shards over which the two apps are parted.
    for count in 2..20 {
        let count = count.to_string();
        let kept = start(&old, "0", &count);
        kept.wait_for("/-/ready").await;
        let page = kept.get("/metrics").await;
        let here: Vec<usize> = (0..2).filter(|app| rig.counted(&page, *app).is_some()).collect();
        let [stays] = here[..] else { continue };
        let moves = 1 - stays;
        let stayed = rig.counted_beyond(&kept, stays, before[stays].1).await;
        assert_eq!(stayed.0 - before[stays].0, rig.truth(stays, before[stays].1, stayed.1));
        for index in 1..count.parse().unwrap() {
            let other = start(&new, &index.to_string(), &count);
            other.wait_for("/-/ready").await;
            if rig.counted(&other.get("/metrics").await, moves).is_some() {
                let moved = rig.counted_beyond(&other, moves, before[moves].1).await;
                assert!(
                    moved.0 <= rig.truth(moves, before[moves].1, moved.1),
                    "nothing from before it moved"
                );
                return;
            }
            other.kill();
        }
    }
    panic!("no shard of any count has one app alone");
}

#[tokio::test]
async fn a_second_daemon_on_the_same_file_ends_with_a_clear_error() {
    let rig = Rig::start().await;
    let (config, state) = (rig.configure(1), rig.state().display().to_string());
    let exporter = Exporter::start(&["--config.file", &config, "--state.path", &state]);
    let (_, before) = rig.counted_beyond(&exporter, 0, 0.0).await;
    let (linked, named_otherwise) = (format!("{state}-link"), format!("{state}-other"));
    std::os::unix::fs::symlink(&state, &linked).unwrap();
    std::fs::hard_link(&state, &named_otherwise).unwrap();
    for state in [&state, &linked, &named_otherwise] {
        let args = ["--config.file", &config, "--state.path", state, "--web.listen-address", "127.0.0.1:0"];
        let (code, said) = process::run(&args, &[], Path::new("."));
        assert_eq!(code, Some(1), "{said}");
        let expected = format!(
            "pds-exporter: the state file {state} is in use by another process; each daemon needs its own"
        );
        assert!(said.contains(&expected), "{said}");
    }
    // The first one goes on.
    rig.counted_beyond(&exporter, 0, before).await;
}
