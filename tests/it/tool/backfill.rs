//! History as an OpenMetrics file: complete, in the format's order, and once each whatever interrupts it.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use super::history::{NEW_YEAR, answer, requests, service};
use super::{Service, TOKEN, ended, golden, pdstool, stderr};
use crate::client::server::{ok, status};
use crate::deploy::{command, output};
use crate::golden::assert_golden;
use crate::process::mounted;

/// `pdstool backfill` of app `p-1-a` from New Year 2025 on, into `file`.
pub(crate) fn backfill(url: &str, hours: u32, file: &Path, more: &[&str]) -> Command {
    let end = jiff::Timestamp::from_second(NEW_YEAR + i64::from(hours) * 3600).unwrap().to_string();
    let mut command = pdstool(&["backfill", "--start", "2025-01-01", "--end", &end]);
    command.args(["--base-url", url, "--project", "p-1", "--app", "p-1-a"]).args(more).arg(file);
    command.env("PDS_EXPORTER__API__TOKEN", TOKEN).env("PDS_EXPORTER__API__MAX_REQUESTS_PER_SECOND", "0");
    command
}

fn succeeded(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", ended(output));
}

#[test]
fn history_has_the_families_and_labels_of_the_daemon() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    let more = ["--step", "30m", "--window", "5m", "--window", "30m", "--label", "job=pds"];
    let output = backfill(&service.url(), 1, &file, &more).output().unwrap();
    succeeded(&output);
    assert_golden(&golden("history.om"), &std::fs::read_to_string(&file).unwrap());
    let said = stderr(&output).replace(folder.path().to_str().unwrap(), "FOLDER");
    assert_golden(&golden("history.txt"), &said);
    assert_eq!(service.requests().len(), 2 * 2 * 2, "a window as long as the step shares its request");
    assert!(!folder.path().join("history.om.partial").exists());
}

#[test]
fn a_strict_parser_reads_history() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    succeeded(&backfill(&service.url(), 6, &file, &["--app", "p-1-b"]).output().unwrap());
    // That parser takes the buckets of a histogram's second point in time for doubles of the first; Prometheus, which
    // reads them in `real_backfill`, does not.
    let text = std::fs::read_to_string(&file).unwrap();
    let (buckets, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.contains("pds_app_request_duration_seconds"));
    std::fs::write(&file, rest.join("\n") + "\n").unwrap();
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_fd_to_metric_families as read\n\
                  print(sum(len(family.samples) for family in read(open(sys.argv[1]))))";
    let samples: usize = output(command("python3", ["-c", script]).arg(&file)).trim().parse().unwrap();
    // An app: 72 steps with 5 gauges of response times and one of runs, in each of them two datapoints of 3 gauges, and 73
    // points of 8 counters and of 3 buckets.
    assert_eq!((samples, buckets.len()), (2 * (72 * (5 + 1 + 2 * 3) + 73 * 8), 3 + 2 * 73 * 3));
}

#[test]
fn an_interrupted_run_resumes_with_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, resumed) = (folder.path().join("whole.om"), folder.path().join("resumed.om"));
    let undisturbed = service();
    succeeded(&backfill(&undisturbed.url(), 8, &whole, &[]).output().unwrap());

    // After a third of the requests the service holds its breath, so that the tool is in the middle of it.
    let held = Arc::new((Mutex::new(false), Condvar::new()));
    let breath = Arc::new(AtomicBool::new(true));
    let reached = Arc::clone(&held);
    let holding = Arc::clone(&breath);
    let service = Service::start(move |seen| {
        if seen.number >= 60 && holding.load(Ordering::SeqCst) {
            *reached.0.lock().unwrap() = true;
            reached.1.notify_all();
            return answer(seen).after(std::time::Duration::from_secs(3600));
        }
        answer(seen)
    });
    let child = backfill(&service.url(), 8, &resumed, &[]).stderr(Stdio::piped()).spawn().unwrap();
    let mut is_held = held.0.lock().unwrap();
    while !*is_held {
        is_held = held.1.wait(is_held).unwrap();
    }
    drop(is_held);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", ended(&output));
    assert!(stderr(&output).contains("run the same command to resume") && !resumed.exists());

    breath.store(false, Ordering::SeqCst);
    // Requests of the first run may still arrive; those of the second have a token of their own.
    let again = "hunter2-once-more";
    let mut command = backfill(&service.url(), 8, &resumed, &[]);
    let output = command.env("PDS_EXPORTER__API__TOKEN", again).output().unwrap();
    succeeded(&output);
    assert!(stderr(&output).contains("done by an earlier run"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&whole).unwrap(), std::fs::read_to_string(&resumed).unwrap());
    let header = format!("Bearer {again}");
    let mut times: HashMap<String, usize> = HashMap::new();
    for seen in service.server.seen().iter().filter(|seen| seen.header("authorization") == Some(&header)) {
        *times.entry(seen.target.clone()).or_default() += 1;
    }
    assert!(times.values().all(|count| *count == 1), "each once: {times:?}");
    let (sent, all) = (times.len(), undisturbed.requests().len());
    assert!(sent < all, "{sent} of {all} requests were sent again");
}

#[test]
fn a_failing_service_leaves_a_state_to_resume_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.om");
    let left = Arc::new(AtomicUsize::new(20));
    let count = Arc::clone(&left);
    let service = Service::start(move |seen| {
        let some = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if some.is_ok() { answer(seen) } else { status(404, r#"{"message":"no such app"}"#) }
    });
    let output = backfill(&service.url(), 4, &file, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", ended(&output));
    assert!(stderr(&output).contains("returned 404: no such app"), "{}", stderr(&output));
    left.store(usize::MAX, Ordering::SeqCst);
    succeeded(&backfill(&service.url(), 4, &file, &[]).output().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    let end = NEW_YEAR + 4 * 3600;
    let last = format!(
        "pds_app_requests_total{{project=\"p-1\",app=\"p-1-a\"}} {} {end}\n",
        requests(NEW_YEAR, end)
    );
    assert!(text.contains(&last), "{last} is missing:\n{text}");
}

#[test]
fn a_full_or_read_only_disk_is_a_clear_error_and_the_run_resumes_later() {
    let service = service();
    let folder = tempfile::tempdir().unwrap();
    for (options, code, reason) in [
        ("size=48k", 1, "No space left on device"),
        ("ro", 1, "Read-only file system"),
        ("size=64m", 0, "Wrote "),
    ] {
        let run = backfill(&service.url(), 72, &folder.path().join("history.om"), &[]);
        let mount = format!("mount -t tmpfs -o {options} tmpfs \"$0\"");
        let output = mounted(&mount, folder.path(), &run).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{options}: {}", ended(&output));
        assert!(stderr(&output).contains(reason), "{options}: {}", stderr(&output));
    }
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
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.om");
    let service = Service::start(|seen| match seen.target.contains("start=2025-01-01T00%3A30") {
        true => ok(r#"{"data":{"total_requests":null,"total_runs":"many"},"status":"success"}"#),
        false => answer(seen),
    });
    let output = backfill(&service.url(), 1, &file, &["--step", "30m", "--window", "30m"]).output().unwrap();
    succeeded(&output);
    assert!(stderr(&output).contains("1 h of the range has no usable count"), "{}", stderr(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(
        "pds_app_unaccounted_seconds_total{project=\"p-1\",app=\"p-1-a\",resource=\"response_time\"} 1800 "
    ));
}

#[test]
fn only_the_same_run_resumes_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.om");
    let failing = Service::start(|_| status(404, ""));
    let run = |more: &[&str]| backfill(&failing.url(), 1, &file, more).output().unwrap();
    assert_eq!(run(&[]).status.code(), Some(3));
    let other = run(&["--step", "1h"]);
    assert_eq!(other.status.code(), Some(2), "{}", ended(&other));
    assert!(stderr(&other).contains("a run with other arguments"), "{}", stderr(&other));
    assert_eq!(run(&["--step", "1h", "--restart"]).status.code(), Some(3), "begins anew");
    std::fs::write(&file, "precious").unwrap();
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn an_unavailable_range_is_refused() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    for (start, end, step) in [
        ("2025-01-02", "2025-01-01", "5m"),
        ("2025-01-01", "2999-01-01", "5m"),
        ("2025-01-01T00:01:00Z", "2025-01-01T00:04:00Z", "5m"),
        ("2025-01-01", "2025-01-02", "7m"),
        ("then", "now", "5m"),
    ] {
        let mut command = pdstool(&["backfill", "--start", start, "--end", end, "--step", step]);
        command.args(["--base-url", &service.url(), "--project", "p-1", "--app", "a"]).arg(&file);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{start} {end} {step}: {}", ended(&output));
    }
    assert_eq!(service.requests(), [""; 0]);
}
