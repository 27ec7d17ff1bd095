//! The program as a process. The package `pds-exporter` tests its commands, beside the daemon.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

#[test]
fn an_unknown_command_is_a_usage_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_pdstool")).arg("no-such-command").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
