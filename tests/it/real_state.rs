//! The state file and what can become of it, with the real daemon: in use, full disk, read-only; and what counters do
//! when an app leaves the configuration and comes back.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pds_exporter::clock::Clock;
use pds_exporter::interface::TimeRange;
use pds_exporter::simulator::{Settings, World};

use crate::process::{self, Exporter, until, value};
use crate::rig::{self, Configuration};

/// A service with two apps, and where its configuration is written.
struct Rig {
    folder: tempfile::TempDir,
    world: World,
    service: String,
}

impl Rig {
    async fn start() -> Self {
        let world = World::new(Settings { projects: 1, apps: 2, ..Settings::default() }, Clock::system());
        let service = rig::serve(&world).await;
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
        self.folder.path().join("state.redb")
    }

    /// What the page says of the second app: how many requests, and up to when.
    fn counted(&self, page: &str, app: usize) -> Option<(f64, f64)> {
        let labels = self.labels(app);
        let total = value(page, &format!("pds_app_requests_total{{{labels}}}"))?;
        let until =
            format!("pds_app_accounted_until_timestamp_seconds{{{labels},resource=\"response_time\"}}");
        Some((total, value(page, &until)?))
    }

    /// How many requests the app of that number had between two Unix seconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "whole seconds, small counts"
    )]
    fn truth(&self, app: usize, start: f64, end: f64) -> f64 {
        let (project, ids) = self.world.projects().remove(0);
        let range = TimeRange { start: start as i64, end: end as i64 };
        self.world.truth(&project, &ids[app], range).unwrap().requests as f64
    }

    /// Waits until the app is counted some seconds beyond `after`; what the page says then.
    async fn counted_beyond(&self, exporter: &Exporter, app: usize, after: f64) -> (f64, f64) {
        let mut now = (0.0, 0.0);
        until("the counters move", async || {
            let counted = self.counted(&exporter.get("/metrics").await, app);
            now = counted.unwrap_or_default();
            now.1 > after + 2.0
        })
        .await;
        now
    }
}

#[tokio::test]
async fn an_app_that_comes_back_goes_on_counting_and_the_gap_is_asked_for() {
    let rig = Rig::start().await;
    let (config, state) = (rig.configure(2), rig.state().display().to_string());
    let exporter = Exporter::start(&["--config.file", &config, "--state.path", &state]);
    let (total, counted) = rig.counted_beyond(&exporter, 1, 0.0).await;

    rig.configure(1);
    exporter.signal("HUP");
    until("the app is gone from the page", async || {
        rig.counted(&exporter.get("/metrics").await, 1).is_none()
    })
    .await;
    let page = exporter.get("/metrics").await;
    assert!(!page.contains(&rig.labels(1)), "a removed app leaves no series behind");
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
async fn without_a_state_file_counters_begin_anew_with_the_process() {
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
async fn an_app_that_moves_to_another_shard_begins_at_zero_there_and_one_that_stays_goes_on() {
    let rig = Rig::start().await;
    let config = rig.configure(2);
    let (old, new) =
        (rig.state().display().to_string(), rig.folder.path().join("new.redb").display().to_string());
    let start = |state: &str, index: &str, count: &str| {
        Exporter::start(&[
            "--config.file",
            &config,
            "--state.path",
            state,
            "--shard.index",
            index,
            "--shard.count",
            count,
        ])
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
    let (linked, named_otherwise) = (format!("{state}-link"), format!("{state}-other"));
    std::os::unix::fs::symlink(&state, &linked).unwrap();
    std::fs::hard_link(&state, &named_otherwise).unwrap();
    for state in [&state, &linked, &named_otherwise] {
        let args = ["--config.file", &config, "--state.path", state, "--web.listen-address", "127.0.0.1:0"];
        let (code, said) = process::run(&args, &[], Path::new("."));
        assert_eq!(code, Some(1), "{said}");
        let expected = format!(
            "pds-exporter: the state file {state} is in use by another process; every daemon needs one of its own"
        );
        assert!(said.contains(&expected), "{said}");
    }
    assert!(rig.counted_beyond(&exporter, 0, 0.0).await.0 >= 0.0, "the first one goes on");
}

/// The daemon with a file system of its own of that size and with those options for its state.
fn on_a_small_disk(rig: &Rig, config: &str, size: &str) -> (Exporter, PathBuf) {
    let disk = rig.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut command = Command::new("unshare");
    // In a mount namespace of its own, which ends with the process.
    command.args(["--map-root-user", "--mount", "sh", "-c"]);
    command.arg(format!("mount -t tmpfs -o size={size} tmpfs \"$0\" && exec \"$@\""));
    command.arg(&disk).arg(env!("CARGO_BIN_EXE_pds-exporter")).args([
        "--config.file",
        config,
        "--state.path",
    ]);
    command.arg(disk.join("state.redb")).args(["--web.listen-address", "127.0.0.1:0"]);
    let exporter = Exporter::spawn(command).unwrap_or_else(|log| panic!("did not start:\n{log}"));
    let inside = PathBuf::from(format!("/proc/{}/root{}", exporter.pid(), disk.display()));
    (exporter, inside)
}

#[tokio::test]
async fn a_full_disk_stops_the_counters_and_nothing_is_lost_when_there_is_room_again() {
    let rig = Rig::start().await;
    let config = rig.configure(2);
    let (exporter, disk) = on_a_small_disk(&rig, &config, "4m");
    let (total, counted) = rig.counted_beyond(&exporter, 0, 0.0).await;
    let good = "pds_exporter_state_last_commit_successful";
    assert_eq!(value(&exporter.get("/metrics").await, good), Some(1.0));

    let filling = disk.join("filling");
    // Until there is no room left.
    let mut file = std::fs::File::create(&filling).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    until("a commit has failed", async || value(&exporter.get("/metrics").await, good) == Some(0.0)).await;
    until("what stands still leaves the page", async || {
        rig.counted(&exporter.get("/metrics").await, 0).is_none()
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let page = exporter.get("/metrics").await;
    assert_eq!(rig.counted(&page, 0), None, "what is not on disk is not shown");
    let stopped = value(
        &page,
        &format!("pds_app_accounted_until_timestamp_seconds{{{},resource=\"response_time\"}}", rig.labels(0)),
    )
    .unwrap();
    assert!(page.contains("pds_app_window_requests{"), "the rest goes on");
    assert!(exporter.log().contains("counters stand still until"), "{}", exporter.log());

    std::fs::remove_file(&filling).unwrap();
    drop(file);
    let (again, until_again) = rig.counted_beyond(&exporter, 0, stopped).await;
    assert_eq!(again - total, rig.truth(0, counted, until_again), "\n{}", exporter.log());
    assert_eq!(value(&exporter.get("/metrics").await, good), Some(1.0));
}

/// A library that is loaded before the C library and lets calls fail for which there is a file of that name in the
/// folder `$FAULTS`; what was called is noted there in `calls`.
fn failing_calls(folder: &Path) -> PathBuf {
    let library = folder.join("failing.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/real_state/failing.c");
    let output =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

#[tokio::test]
async fn an_error_of_fdatasync_loses_nothing_and_the_file_is_written_whole() {
    let rig = Rig::start().await;
    let (config, state) = (rig.configure(1), rig.state());
    let folder = rig.folder.path();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    command.env("LD_PRELOAD", failing_calls(folder)).env("FAULTS", folder);
    command
        .args(["--config.file", &config, "--web.listen-address", "127.0.0.1:0", "--state.path"])
        .arg(&state);
    let exporter = Exporter::spawn(command).unwrap_or_else(|log| panic!("did not start:\n{log}"));
    let (total, counted) = rig.counted_beyond(&exporter, 0, 0.0).await;
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    let (linked, folder_name) =
        (format!("linkat {}", state.display()), format!("fsync {}", folder.display()));
    let after = calls.split_once(&linked).unwrap_or_else(|| panic!("{linked}: {calls}")).1;
    assert!(after.contains(&folder_name), "the new name survives a crash of the machine: {calls}");

    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&state).unwrap());
    let before = inode();
    std::fs::write(folder.join("fdatasync"), "").unwrap();
    let good = "pds_exporter_state_last_commit_successful";
    until("a commit has failed", async || value(&exporter.get("/metrics").await, good) == Some(0.0)).await;
    assert!(exporter.log().contains("Input/output error"), "{}", exporter.log());
    until("what stands still leaves the page", async || {
        rig.counted(&exporter.get("/metrics").await, 0).is_none()
    })
    .await;
    std::fs::remove_file(folder.join("fdatasync")).unwrap();
    let (again, until_again) = rig.counted_beyond(&exporter, 0, counted + 2.0).await;
    assert_eq!(again - total, rig.truth(0, counted, until_again), "\n{}", exporter.log());
    assert_ne!(inode(), before, "what was not synced cannot be relied on");
    exporter.kill();

    let exporter = Exporter::start(&["--config.file", &config, "--state.path", &state.display().to_string()]);
    let (last, until_last) = rig.counted_beyond(&exporter, 0, until_again).await;
    assert_eq!(last - total, rig.truth(0, counted, until_last), "and all of it is in the file");
}

#[tokio::test]
async fn a_file_system_without_locks_gets_the_same_answer_with_and_without_a_file() {
    let rig = Rig::start().await;
    let (config, state) = (rig.configure(1), rig.state().display().to_string());
    let exporter = Exporter::start(&["--config.file", &config, "--state.path", &state]);
    rig.counted_beyond(&exporter, 0, 0.0).await;
    exporter.kill();
    let folder = rig.folder.path();
    std::fs::write(folder.join("flock"), "").unwrap();
    let (library, faults) = (failing_calls(folder), folder.display().to_string());
    let new = folder.join("new.redb").display().to_string();
    let answers = [state.clone(), new.clone()].map(|path| {
        let environment = [("LD_PRELOAD", library.to_str().unwrap()), ("FAULTS", &faults)];
        let args = ["--config.file", &config, "--state.path", &path, "--web.listen-address", "127.0.0.1:0"];
        let (code, said) = process::run(&args, &environment, Path::new("."));
        assert_eq!(code, Some(1), "{said}");
        let line = said.lines().find(|line| line.starts_with("pds-exporter: ")).unwrap_or_default();
        line.replace(&path, "FILE")
    });
    assert_eq!(
        answers[0],
        "pds-exporter: the state file FILE cannot be locked, and nothing else keeps a second daemon from it; \
         put it on a file system that has flock: Operation not supported (os error 95)"
    );
    assert_eq!(answers[0], answers[1]);
    assert!(!Path::new(&new).exists());
}

#[tokio::test]
async fn a_full_disk_at_the_start_is_a_clear_error_and_leaves_nothing_unfinished() {
    let rig = Rig::start().await;
    let config = rig.configure(1);
    let disk = rig.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c"]).arg(
        "mount -t tmpfs -o size=8k tmpfs \"$0\"; for n in 1 2 3; do timeout 20 \"$@\" 2>&1; echo \"ended with $?\"; done; ls -A \"$0\"",
    );
    command.arg(&disk).arg(env!("CARGO_BIN_EXE_pds-exporter")).args(["--config.file", &config]);
    command.arg("--state.path").arg(disk.join("state.redb")).args(["--web.listen-address", "127.0.0.1:0"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said.matches("No space left on device").count(), 3, "{said}");
    assert_eq!(said.matches("ended with 1").count(), 3, "{said}");
    assert!(said.trim_end().ends_with("ended with 1"), "something is left behind: {said}");
}

#[tokio::test]
async fn a_read_only_disk_is_a_clear_error_that_names_the_file() {
    let rig = Rig::start().await;
    let config = rig.configure(1);
    let disk = rig.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let state = disk.join("state.redb");
    let mut command = Command::new("unshare");
    command.args([
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs -o ro tmpfs \"$0\" && exec \"$@\"",
    ]);
    command.arg(&disk).arg(env!("CARGO_BIN_EXE_pds-exporter")).args([
        "--config.file",
        &config,
        "--state.path",
    ]);
    let output = command.arg(&state).args(["--web.listen-address", "127.0.0.1:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected =
        format!("pds-exporter: the state file {} cannot be used: Read-only file system", state.display());
    assert!(said.contains(&expected), "{said}");
}
