//! Backfills that stop at any point, and what the same command makes of their replies.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pds_interface::{Tally, TimeRange};
use pds_simulator::Fault;
use pdstool::backfill::journal::Record;

use super::backfill::{NEW_YEAR, backfill, succeeded};
use super::simulated::Simulated;
use super::{Service, TOKEN, ended, pdstool, stderr};
use crate::client::server::{ok, status};
use crate::deploy::command;
use crate::rig::FaultExt as _;

#[test]
fn a_signal_ends_a_run_while_it_writes() {
    const DAYS: u32 = 14;
    let (service, folder) = (Simulated::start(), tempfile::tempdir().unwrap());
    let (file, partial) = (folder.path().join("history.om"), folder.path().join("history.om.partial"));
    let run = || backfill(&service, 24 * DAYS, &file, &["--step", "1m", "--window", "1m"]);
    service.world.faults().set([Fault::status(404)]);
    assert_eq!(run().output().unwrap().status.code(), Some(3));
    // All replies, so that the next run only writes.
    let mut journal = String::new();
    for end in (NEW_YEAR..=NEW_YEAR + i64::from(DAYS) * 86_400).step_by(60).skip(1) {
        let shares = (1..40).map(|threshold| (f64::from(threshold), 1.0)).collect();
        let range = Some(TimeRange { start: end - 60, end });
        let tally = Tally { total: Some(1), shares, range, ..Tally::default() };
        journal += &serde_json::to_string(&Record { end, tally, ..Record::default() }).unwrap();
        journal.push('\n');
    }
    for name in ["00000.jsonl", "00001.jsonl"] {
        std::fs::write(partial.join(name), &journal).unwrap();
    }
    for (signal, said) in [("-INT", "error: interrupted\n"), ("-TERM", "error: interrupted by SIGTERM\n")] {
        let child = run().stderr(Stdio::piped()).spawn().unwrap();
        let is_written = || {
            let entries = std::fs::read_dir(&partial).unwrap();
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("series-"))
        };
        while !is_written() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(command("kill", [signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", ended(&output));
        assert!(stderr(&output).ends_with(said) && !file.exists(), "{}", stderr(&output));
        // Those of the first run do not show that the second writes.
        for entry in std::fs::read_dir(&partial).unwrap().flatten() {
            if !["jsonl", "json"].iter().any(|end| entry.file_name().to_string_lossy().ends_with(end)) {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}

/// A service that states no range and includes the last instant of one. `times` are its requests and runs.
fn unnamed(times: &'static [i64], answers_runs: &'static AtomicBool) -> Service {
    Service::start(move |seen| {
        if seen.target.contains("run-execution-time") && !answers_runs.load(Ordering::SeqCst) {
            return status(404, "no such app");
        }
        let TimeRange { start, end } = seen.range();
        let count = times.iter().filter(|time| (start..=end).contains(&(NEW_YEAR + **time))).count();
        let distribution = if count > 0 { r#"{"1hr":100}"# } else { "{}" };
        ok(format!(
            r#"{{"status":"success","data":{{"total_requests":{count},"distribution":{distribution},"total_runs":{count},"time_series":[]}}}}"#
        ))
    })
}

/// A backfill of three hours of that service into the file of that name.
fn three_hours(service: &Service, file: &std::path::Path, range_end: &str) -> Command {
    let mut command = pdstool(&["backfill", "--start", "2025-01-01", "--end", "2025-01-01T03:00:00Z"]);
    command.args(["--step", "1h", "--window", "1h", "--project", "p-1", "--app", "a"]);
    command.args(["--base-url", &service.url()]).arg(file).env("PDS_EXPORTER__API__TOKEN", TOKEN);
    command.env("PDS_EXPORTER__ACCOUNTING__RANGE_END", range_end);
    command
}

#[test]
fn replies_to_ranges_with_another_end_are_not_resumed() {
    static ANSWERS_RUNS: AtomicBool = AtomicBool::new(true);
    let (service, folder) = (unnamed(&[3600, 3700], &ANSWERS_RUNS), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    let run = |range_end| three_hours(&service, &file, range_end);
    // The first hour is recorded with the request at its end, before the second shows that ends are included.
    let output = run("exclusive").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", ended(&output));
    assert!(stderr(&output).contains("accounting.range_end is wrong"), "{}", stderr(&output));
    let output = run("inclusive").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", ended(&output));
    assert!(stderr(&output).contains("other arguments or another configuration"), "{}", stderr(&output));
    succeeded(&run("inclusive").arg("--restart").output().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    let total = format!("pds_app_requests_total{{project=\"p-1\",app=\"a\"}} 2 {}\n", NEW_YEAR + 10_800);
    assert!(text.contains(&total), "{text}");
}

#[test]
fn replies_without_a_threshold_are_not_resumed_with_it() {
    static ANSWERS_RUNS: AtomicBool = AtomicBool::new(false);
    let (service, folder) = (unnamed(&[10, 3700, 3800, 7300], &ANSWERS_RUNS), tempfile::tempdir().unwrap());
    let file = folder.path().join("history.om");
    let run = |thresholds: &str| {
        let mut command = three_hours(&service, &file, "exclusive");
        command.env("PDS_EXPORTER__POLL__THRESHOLDS", thresholds).output().unwrap()
    };
    assert_eq!(run("30s").status.code(), Some(3), "the app has no runs");
    ANSWERS_RUNS.store(true, Ordering::SeqCst);
    let output = run("30s,1h");
    assert_eq!(output.status.code(), Some(2), "{}", ended(&output));
    assert!(stderr(&output).contains("other arguments or another configuration"), "{}", stderr(&output));
    succeeded(&run("30s"));
}

#[test]
fn a_resumed_run_knows_what_an_earlier_one_found_out_about_ranges() {
    static ANSWERS_RUNS: AtomicBool = AtomicBool::new(false);
    for (times, are_honoured) in [(&[][..], false), (&[10, 3700, 3800, 7300], true)] {
        ANSWERS_RUNS.store(false, Ordering::SeqCst);
        let (service, folder) = (unnamed(times, &ANSWERS_RUNS), tempfile::tempdir().unwrap());
        let file = folder.path().join("history.om");
        let run = || three_hours(&service, &file, "exclusive").output().unwrap();
        assert_eq!(run().status.code(), Some(3), "the app has no runs");
        ANSWERS_RUNS.store(true, Ordering::SeqCst);
        let output = run();
        succeeded(&output);
        let is_said = |call: &str| stderr(&output).contains(&format!("Replies of {call} state no range"));
        assert_eq!(is_said("response_time"), !are_honoured, "{}", stderr(&output));
        assert_eq!(is_said("run_execution_time"), !are_honoured, "{}", stderr(&output));
    }
}
