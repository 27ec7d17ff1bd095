//! Backfills that stop at any point, and what the same command makes of their replies.

use std::process::Stdio;
use std::time::Duration;

use pds_interface::{Tally, TimeRange};
use pds_simulator::Fault;
use pdstool::backfill::journal::Record;

use super::backfill::{NEW_YEAR, backfill};
use super::simulated::Simulated;
use super::{ended, stderr};
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
