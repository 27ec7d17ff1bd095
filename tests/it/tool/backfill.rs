//! History as an OpenMetrics file: complete, in the format's order, and once each whatever interrupts it.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use pds_interface::{TimeRange, response_time, run_execution_time};
use pds_simulator::{Fault, Kind, THRESHOLDS};

use super::simulated::Simulated;
use super::{ended, golden, pdstool, stderr};
use crate::deploy::{command, output};
use crate::golden::assert_golden;
use crate::process::{assert_has, mounted};
use crate::rig::FaultExt as _;

/// 2025-01-01T00:00:00Z
pub(super) const NEW_YEAR: i64 = 1_735_689_600;

/// `pdstool backfill` of the first app from New Year 2025 on, into `file`.
pub(super) fn backfill(service: &Simulated, hours: u32, file: &Path, more: &[&str]) -> Command {
    let end = jiff::Timestamp::from_second(NEW_YEAR + i64::from(hours) * 3600).unwrap().to_string();
    let (project, apps) = service.world.projects().remove(0);
    let token = service.world.token(&project).unwrap();
    let mut command = pdstool(&["backfill", "--start", "2025-01-01", "--end", &end]);
    command.args(["--base-url", &service.url, "--project", &project, "--app", &apps[0]]).args(more).arg(file);
    command.env("PDS_EXPORTER__API__TOKEN", token.expose());
    command.env("PDS_EXPORTER__API__MAX_REQUESTS_PER_SECOND", "0");
    command
}

pub(super) fn succeeded(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", ended(output));
}

#[test]
fn history_has_the_families_and_labels_of_the_daemon() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    let more =
        ["--step", "30m", "--window", "5m", "--window", "30m", "--window", "300s", "--label", "job=pds"];
    let output = backfill(&service, 1, &file, &more).output().unwrap();
    succeeded(&output);
    assert_golden(&golden("history.om"), &std::fs::read_to_string(&file).unwrap());
    let said = stderr(&output).replace(folder.path().to_str().unwrap(), "FOLDER");
    assert_golden(&golden("history.txt"), &said);
    assert_eq!(service.world.requests().total, 2 * 2 * 2, "a window as long as the step shares its request");
    assert!(!folder.path().join("history.om.partial").exists());
}

#[test]
fn a_strict_parser_reads_history() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    let other = service.world.projects().remove(0).1.remove(1);
    succeeded(&backfill(&service, 6, &file, &["--app", &other]).output().unwrap());
    // That parser takes the buckets of a histogram's second point in time for doubles of the first; Prometheus, which
    // reads them in `real_backfill`, does not.
    let text = std::fs::read_to_string(&file).unwrap();
    let (buckets, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.contains("pds_app_request_duration_seconds"));
    std::fs::write(&file, rest.join("\n") + "\n").unwrap();
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_fd_to_metric_families as read\n\
                  print(sum(len(family.samples) for family in read(open(sys.argv[1]))))";
    let samples: usize = output(command("python3", ["-c", script]).arg(&file)).trim().parse().unwrap();
    assert_eq!(samples, rest.iter().filter(|line| !line.starts_with('#')).count());
    // An app: 73 points of each bucket, and three lines about the family.
    assert_eq!(buckets.len(), 3 + 2 * 73 * (THRESHOLDS.len() + 1));
}

#[test]
fn an_interrupted_run_resumes_with_the_same_result() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let (whole, resumed) = (folder.path().join("whole.om"), folder.path().join("resumed.om"));
    succeeded(&backfill(&service, 8, &whole, &[]).output().unwrap());
    let all = service.world.requests().total;

    // The first half is answered. Then as many requests wait as the tool keeps in flight, and none is on its way.
    let endless = Fault::from(Kind::Latency { millis: 3_600_000 }).on(run_execution_time::RESOURCE);
    service.world.faults().set([endless]);
    let mut interrupted = backfill(&service, 8, &resumed, &[]);
    interrupted.env("PDS_EXPORTER__API__MAX_CONCURRENT_REQUESTS", "16");
    let child = interrupted.stderr(Stdio::piped()).spawn().unwrap();
    while service.world.requests().total < all + all / 2 + 16 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = command("kill", ["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", ended(&output));
    assert!(stderr(&output).contains("run the same command to resume") && !resumed.exists());

    service.world.faults().clear();
    let before = service.world.requests().entries.len();
    let output = backfill(&service, 8, &resumed, &[]).output().unwrap();
    succeeded(&output);
    assert!(stderr(&output).contains("done by an earlier run"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&whole).unwrap(), std::fs::read_to_string(&resumed).unwrap());
    let journal = service.world.requests();
    let sent: Vec<_> = journal.entries.iter().skip(before).map(|entry| (entry.call, entry.range)).collect();
    assert_eq!(sent.iter().collect::<HashSet<_>>().len(), sent.len(), "each once: {sent:?}");
    assert_eq!(sent.len() as u64, all / 2);
}

#[test]
fn a_failing_service_leaves_a_state_to_resume_from() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    // It is one of the first, and not the first.
    service.world.faults().set([Fault::status(404).with_probability(0.05).times(1)]);
    let output = backfill(&service, 4, &file, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", ended(&output));
    assert!(stderr(&output).contains("returned 404: an injected fault"), "{}", stderr(&output));
    let output = backfill(&service, 4, &file, &[]).output().unwrap();
    succeeded(&output);
    assert!(stderr(&output).contains("done by an earlier run"), "{}", stderr(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    let (project, apps) = service.world.projects().remove(0);
    let (app, end) = (&apps[0], NEW_YEAR + 4 * 3600);
    let truth = service.world.truth(&project, app, TimeRange { start: NEW_YEAR, end }).unwrap().requests;
    let last = format!("pds_app_requests_total{{project=\"{project}\",app=\"{app}\"}} {truth} {end}\n");
    assert!(text.contains(&last), "{last} is missing:\n{text}");
}

#[test]
fn a_full_or_read_only_disk_is_a_clear_error_and_the_run_resumes_later() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let disks = r#"set -e
        mount -t tmpfs -o size=48k tmpfs "$0"
        "$@" || echo "exit code $?" >&2
        mount -o remount,ro tmpfs "$0"
        "$@" || echo "exit code $?" >&2
        mount -o remount,rw,size=64m tmpfs "$0""#;
    let run = backfill(&service, 72, &folder.path().join("history.om"), &[]);
    let output = mounted(disks, folder.path(), &run).output().unwrap();
    succeeded(&output);
    let said = stderr(&output);
    let parts = ["No space left on device", "Read-only file system", "done by an earlier run", "Wrote "];
    assert_has(&said, &parts);
    assert_eq!(said.matches("exit code 1\n").count(), 2, "{said}");
}

#[test]
fn unwritable_output_is_an_error_unless_its_reader_has_left() {
    for (to, code) in [(">/dev/full", 1), ("| true", 0)] {
        let shell = format!("set -o pipefail; \"$0\" metrics {to}");
        let output = Command::new("bash").args(["-c", &shell, &crate::process::pdstool()]).output().unwrap();
        let said = stderr(&output);
        assert!(
            output.status.code() == Some(code) && said.contains("No space left") == (code == 1),
            "{to} {output:?}"
        );
    }
}

#[test]
fn a_step_without_a_count_is_unaccounted_and_reported() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    service.world.faults().set([
        Fault::value("total_requests", "null").on(response_time::RESOURCE).times(1),
        Fault::value("total_runs", "\"many\"").on(run_execution_time::RESOURCE).times(1),
    ]);
    let output = backfill(&service, 1, &file, &["--step", "30m", "--window", "30m"]).output().unwrap();
    succeeded(&output);
    assert!(
        stderr(&output).contains("Up to 30 min of the range has no usable count in 2 counters"),
        "{}",
        stderr(&output)
    );
    let text = std::fs::read_to_string(&file).unwrap();
    let unaccounted = text.lines().filter(|line| line.starts_with("pds_app_unaccounted_seconds_total{"));
    let last: Vec<&str> = unaccounted.filter(|line| line.ends_with(&(NEW_YEAR + 3600).to_string())).collect();
    assert!(last.len() == 2 && last.iter().all(|line| line.contains("} 1800 ")), "{last:?}");
}

#[test]
fn only_the_same_run_resumes_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.om");
    let failing = Simulated::start();
    failing.world.faults().set([Fault::status(404)]);
    let run = |more: &[&str]| backfill(&failing, 1, &file, more).output().unwrap();
    assert_eq!(run(&[]).status.code(), Some(3));
    let other = run(&["--step", "1h"]);
    assert_eq!(other.status.code(), Some(2), "{}", ended(&other));
    assert!(stderr(&other).contains("a run with other arguments"), "{}", stderr(&other));
    assert_eq!(run(&["--step", "1h", "--restart"]).status.code(), Some(3), "begins anew");
    let plan = folder.path().join("history.om.partial/plan.json");
    std::fs::write(&plan, "").unwrap();
    for _ in ["an empty plan", "no plan"] {
        let output = run(&[]);
        assert_eq!(output.status.code(), Some(2), "{}", ended(&output));
        assert!(stderr(&output).contains("has no valid plan.json; use --restart"), "{}", stderr(&output));
        let _ = std::fs::remove_file(&plan);
    }
    std::fs::create_dir(&plan).unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", ended(&output));
    assert!(stderr(&output).contains("plan.json: not a regular file"), "{}", stderr(&output));
    std::fs::remove_dir(&plan).unwrap();
    assert_eq!(run(&["--restart"]).status.code(), Some(3), "begins anew");
    std::fs::write(&file, "precious").unwrap();
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_folder_that_is_not_of_a_run_is_refused_and_files_of_others_stay() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let (file, partial) = (folder.path().join("history.om"), folder.path().join("history.om.partial"));
    let (notes, elsewhere) = (partial.join("notes.txt"), folder.path().join("elsewhere"));
    let refused = |more: &[&str]| {
        let output = backfill(&service, 1, &file, more).output().unwrap();
        let is_refused = output.status.code() == Some(2) && stderr(&output).contains("not of an earlier run");
        assert!(is_refused && !file.exists(), "{}", ended(&output));
    };
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &partial).unwrap();
    refused(&[]);
    refused(&["--restart"]);
    std::fs::remove_file(&partial).unwrap();
    std::fs::create_dir(&partial).unwrap();
    std::fs::write(&notes, "precious").unwrap();
    refused(&[]);
    refused(&["--restart"]);
    std::fs::remove_file(&notes).unwrap();

    // The file appears while the run waits for its first reply.
    let disturbed_by = |path: &Path| {
        service.world.faults().set([Fault::from(Kind::Latency { millis: 500 }).times(1)]);
        let before = service.world.requests().total;
        let mut run = backfill(&service, 1, &file, &["--restart"]);
        let child = run.stderr(Stdio::piped()).spawn().unwrap();
        while service.world.requests().total == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::write(path, "precious").unwrap();
        child.wait_with_output().unwrap()
    };
    let output = disturbed_by(&file);
    assert_eq!(output.status.code(), Some(1), "{}", ended(&output));
    assert!(stderr(&output).contains("history.om: File exists"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    std::fs::remove_file(&file).unwrap();
    succeeded(&disturbed_by(&notes));
    assert_eq!(std::fs::read_dir(&partial).unwrap().count(), 1, "only {}", notes.display());
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "precious");
}

#[test]
fn arguments_that_cannot_work_are_refused_before_any_request() {
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    for (line, why) in [
        ("--start 2025-01-02 --end 2025-01-01", "no whole step"),
        ("--start 2025-01-01 --end 2999-01-01", "has not settled"),
        ("--start 2025-01-01T00:01:00Z --end 2025-01-01T00:04:00Z", "no whole step"),
        ("--start 2025-01-01 --step 7m", "must divide a day"),
        ("--start then --end now", "write a time"),
        ("--start 3000y", "before 1970"),
        ("--start 2025-01-01 --window 100000y", "at most 30days"),
        ("--start 2025-01-01 --label job=a --label job=b", "the label job is given twice"),
    ] {
        let mut command =
            pdstool(&["backfill", "--base-url", &service.url, "--project", "p-1", "--app", "a"]);
        let output = command.args(line.split(' ')).arg(&file).output().unwrap();
        let is_refused = output.status.code() == Some(2) && stderr(&output).contains(why);
        assert!(is_refused, "{line}: {}", ended(&output));
    }
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    for (name, code, why) in [
        ("new/", 2, "names no file"),
        ("missing/history.om", 1, "cannot make the folder"),
        ("history.om", 2, "already exists"),
    ] {
        let output = backfill(&service, 1, &folder.path().join(name), &[]).output().unwrap();
        let is_refused = output.status.code() == Some(code) && stderr(&output).contains(why);
        assert!(is_refused, "{name}: {}", ended(&output));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the link");
    assert_eq!(service.world.requests().total, 0);
}
