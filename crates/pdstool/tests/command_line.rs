//! The program as a process. The package `pds-exporter` tests its commands, beside the daemon.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

#[test]
fn the_version_is_that_of_the_daemon() {
    let output = Command::new(env!("CARGO_BIN_EXE_pdstool")).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("pdstool {}\n", pds_config::VERSION));
}

#[test]
fn an_unknown_command_is_a_usage_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_pdstool")).arg("no-such-command").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
