//! Disks that are full, read-only, without locks, or that fail to sync.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Rig;
use crate::deploy::succeed;
use crate::process::{self, Exporter, assert_has, mounted, until, until_page, value};

/// The errors of the daemon, which ends with 1.
fn refused(mut command: Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

/// The daemon with a file system of its own of that size and with those options for its state.
fn on_a_small_disk(rig: &Rig, size: &str) -> (Exporter, PathBuf) {
    let disk = rig.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size={size} tmpfs \"$0\"");
    let exporter = Exporter::of(mounted(&mount, &disk, &rig.program(2, &disk.join("state.log"))));
    let inside = PathBuf::from(format!("/proc/{}/root{}", exporter.pid(), disk.display()));
    (exporter, inside)
}

#[tokio::test]
async fn a_full_disk_stops_the_counters_and_nothing_is_lost_when_there_is_room_again() {
    let rig = Rig::start().await;
    let (exporter, disk) = on_a_small_disk(&rig, "4m");
    let (total, counted) = rig.counted_beyond(&exporter, 0, 0.0).await;
    let good = "pds_exporter_state_last_commit_successful";
    assert_eq!(value(&exporter.get("/metrics").await, good), Some(1.0));

    let filling = disk.join("filling");
    // Until there is no room left.
    let mut file = std::fs::File::create(&filling).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    until_page(&exporter, "a commit has failed", |page| value(page, good) == Some(0.0)).await;
    // A small commit may still fit into the last block of the file.
    let mut last_shown = Instant::now();
    until("what stands still leaves the page", async || {
        if let Some(counted) = rig.counted(&exporter.get("/metrics").await, 0) {
            last_shown = Instant::now();
            let on_disk = rig.on_disk(&disk.join("state.log"), 0).await;
            assert!(on_disk >= counted, "{counted:?} is shown, {on_disk:?} on disk");
        }
        last_shown.elapsed() > Duration::from_secs(3)
    })
    .await;
    let page = exporter.get("/metrics").await;
    let up = format!("pds_up{{{},resource=\"response_time\"}}", rig.labels(0));
    assert_eq!(value(&page, &up), Some(1.0), "the service has answered");
    assert!(page.contains("pds_app_window_requests{"), "the rest goes on");
    until("the log says so", async || exporter.log().contains("nothing is counted until")).await;

    std::fs::remove_file(&filling).unwrap();
    drop(file);
    let (again, until_again) = rig.counted_beyond(&exporter, 0, counted).await;
    assert_eq!(again - total, rig.truth(0, counted, until_again), "\n{}", exporter.log());
    assert_eq!(value(&exporter.get("/metrics").await, good), Some(1.0));
}

/// A library that is loaded before the C library and lets calls fail for which there is a file of that name in the
/// folder `$FAULTS`; what was called is noted there in `calls`.
fn failing_calls(folder: &Path) -> PathBuf {
    let library = folder.join("failing.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/real_state/failing.c");
    succeed(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source));
    library
}

#[tokio::test]
async fn an_error_of_any_write_loses_nothing_and_the_file_is_written_whole() {
    let rig = Rig::start().await;
    let (folder, state) = (rig.folder.path(), rig.state());
    let mut command = rig.program(1, &state);
    command.env("LD_PRELOAD", failing_calls(folder)).env("FAULTS", folder);
    let exporter = Exporter::of(command);
    let (total, counted) = rig.counted_beyond(&exporter, 0, 0.0).await;
    let calls = || std::fs::read_to_string(folder.join("calls")).unwrap();
    let calls_at_start = calls();
    let (renamed, folder_name) =
        (format!("rename {}", state.display()), format!("fsync {}", folder.display()));
    let after = calls_at_start.split_once(&renamed).unwrap_or_else(|| panic!("{calls_at_start}")).1;
    assert!(after.contains(&folder_name), "the new name survives a crash of the machine: {after}");

    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&state).unwrap());
    let good = "pds_exporter_state_last_commit_successful";
    let mut until_again = counted;
    for faults in [&["pwrite64"][..], &["fdatasync"], &["fdatasync", "rename"]] {
        let before = inode();
        faults.iter().for_each(|fault| std::fs::write(folder.join(fault), "").unwrap());
        exporter.clear_log();
        until_page(&exporter, "a commit has failed", |page| value(page, good) == Some(0.0)).await;
        // The line comes after the metric, through a pipe.
        until("the log says why", async || exporter.log().contains("Input/output error")).await;
        until_page(&exporter, "what stands still is gone", |page| rig.counted(page, 0).is_none()).await;
        let renames = || calls().matches(&renamed).count();
        let tried = renames();
        std::fs::remove_file(folder.join(faults[0])).unwrap();
        // Data that was not synced cannot be relied on: the file is written whole, and renamed.
        if let Some(rename) = faults.get(1) {
            until("renaming has failed", async || renames() > tried).await;
            std::fs::remove_file(folder.join(rename)).unwrap();
        }
        let again;
        (again, until_again) = rig.counted_beyond(&exporter, 0, until_again + 2.0).await;
        assert_eq!(again - total, rig.truth(0, counted, until_again), "{faults:?}\n{}", exporter.log());
        assert!(faults[0] == "pwrite64" || inode() != before, "{faults:?}: the file is a new one");
    }
    exporter.kill();

    let exporter = rig.exporter(1);
    let (last, until_last) = rig.counted_beyond(&exporter, 0, until_again).await;
    assert_eq!(last - total, rig.truth(0, counted, until_last), "and all of it is in the file");
}

#[tokio::test]
async fn a_file_system_without_locks_gets_the_same_answer_with_and_without_a_file() {
    let rig = Rig::start().await;
    let exporter = rig.exporter(1);
    rig.counted_beyond(&exporter, 0, 0.0).await;
    exporter.kill();
    let (config, state) = (rig.configure(1), rig.state().display().to_string());
    let folder = rig.folder.path();
    std::fs::write(folder.join("flock"), "").unwrap();
    let (library, faults) = (failing_calls(folder), folder.display().to_string());
    let new = folder.join("new.log").display().to_string();
    let answers = [state, new.clone()].map(|path| {
        let environment = [("LD_PRELOAD", library.to_str().unwrap()), ("FAULTS", &faults)];
        let args = ["--config.file", &config, "--state.path", &path, "--web.listen-address", "127.0.0.1:0"];
        let (code, said) = process::run(&args, &environment, Path::new("."));
        assert_eq!(code, Some(1), "{said}");
        let line = said.lines().find(|line| line.starts_with("pds-exporter: ")).unwrap_or_default();
        line.replace(&path, "FILE")
    });
    assert_eq!(
        answers[0],
        "pds-exporter: the state file FILE cannot be locked, so a second daemon could use it; \
         put it on a file system that supports flock: Operation not supported (os error 95)"
    );
    assert_eq!(answers[0], answers[1]);
    assert!(!Path::new(&new).exists());
}

#[tokio::test]
async fn a_full_disk_at_the_start_is_a_clear_error_and_leaves_nothing_unfinished() {
    let rig = Rig::start().await;
    let disk = rig.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let three_times = "mount -t tmpfs -o size=8k tmpfs \"$0\"; for n in 1 2 3; do timeout 20 \"$@\" 2>&1; echo \"ended with $?\"; done; ls -A \"$0\"; exit";
    let program = rig.program(1, &disk.join("state.log"));
    let said = succeed(mounted(three_times, &disk, &program));
    assert_eq!(said.matches("No space left on device").count(), 3, "{said}");
    assert_eq!(said.matches("ended with 1").count(), 3, "{said}");
    assert!(said.trim_end().ends_with("ended with 1\nstate.log.lock"), "something is left behind: {said}");
}

#[tokio::test]
async fn a_read_only_disk_is_a_clear_error_that_names_the_file() {
    let rig = Rig::start().await;
    let disk = rig.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let state = disk.join("state.log");
    let said = refused(mounted("mount -t tmpfs -o ro tmpfs \"$0\"", &disk, &rig.program(1, &state)));
    let expected =
        format!("pds-exporter: the directory of the state file {} is not writable", state.display());
    assert_has(&said, &[&expected, "daemon's user: Read-only file system"]);
}

#[tokio::test]
async fn a_file_size_limit_acts_like_a_full_disk_and_ends_nothing() {
    let rig = Rig::start().await;
    let exporter = rig.exporter(1);
    let (_, counted) = rig.counted_beyond(&exporter, 0, 0.0).await;
    let pid = exporter.pid().to_string();
    let limit = |size: &str| {
        let limits = [&format!("--fsize={size}:"), "--pid", &pid];
        assert!(Command::new("prlimit").args(limits).status().unwrap().success());
    };
    limit("1");
    let good = "pds_exporter_state_last_commit_successful";
    until_page(&exporter, "a commit has failed", |page| value(page, good) == Some(0.0)).await;
    let up = format!("pds_up{{{},resource=\"response_time\"}}", rig.labels(0));
    assert_eq!(value(&exporter.get("/metrics").await, &up), Some(1.0), "polls go on");
    limit("unlimited");
    rig.counted_beyond(&exporter, 0, counted + 1.0).await;
}

#[tokio::test]
async fn without_proc_everything_is_served_but_process_metrics() {
    let rig = Rig::start().await;
    let program = rig.program(1, &rig.state());
    let exporter = Exporter::of(mounted("mount -t tmpfs tmpfs \"$0\"", Path::new("/proc"), &program));
    rig.counted_beyond(&exporter, 0, 0.0).await;
    exporter.signal("HUP");
    until("it is reloaded", async || exporter.log().contains("the configuration was reloaded")).await;
    for path in ["/", "/config", "/api/v1/status"] {
        exporter.get(path).await;
    }
    let page = exporter.get("/metrics").await;
    assert!(!page.contains("\nprocess_resident_memory_bytes "), "{page}");
    assert_eq!(value(&page, "pds_exporter_panics_total"), Some(0.0), "{}", exporter.log());
    assert!(exporter.terminate().success());
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_of_the_state_is_refused_at_once() {
    let rig = Rig::start().await;
    let (config, state) = (rig.configure(1), rig.state());
    for pipe in ["state.log.lock", "state.log"] {
        let pipe = rig.folder.path().join(pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let state = state.to_str().unwrap();
        let arguments =
            ["--config.file", &config, "--state.path", state, "--web.listen-address", "127.0.0.1:0"];
        let (code, said) = process::run(&arguments, &[], Path::new("."));
        assert!(code == Some(1) && said.contains("not a regular file"), "{}: {said}", pipe.display());
        std::fs::remove_file(&pipe).unwrap();
    }
    assert!(Command::new("mkfifo").arg(&state).status().unwrap().success());
    let mut tool = Command::new(process::pdstool());
    let output = tool.args(["state", "show", "--state.path"]).arg(&state).output().unwrap();
    assert_has(&String::from_utf8_lossy(&output.stderr), &["not a regular file"]);
}

#[tokio::test]
async fn a_file_that_is_mounted_by_itself_is_refused_with_a_remedy() {
    let rig = Rig::start().await;
    let (file, state) = (rig.folder.path().join("mounted"), rig.state());
    for path in [&file, &state] {
        std::fs::write(path, "").unwrap();
    }
    let bind = format!("mount --bind \"$0\" {}", state.display());
    let said = refused(mounted(&bind, &file, &rig.program(1, &state)));
    assert_has(&said, &["is itself a mount point", "mount its directory instead"]);
}
