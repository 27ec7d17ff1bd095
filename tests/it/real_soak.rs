//! A short run of `tests/soak`, the longer ones of which are made by hand.

use std::process::Command;

use crate::deploy::succeed;

#[test]
fn faults_at_random_leave_memory_flat_and_counters_exact() {
    let mut soak = Command::new("tests/soak");
    soak.arg("2m").env("PDS_EXPORTER", env!("CARGO_BIN_EXE_pds-exporter"));
    println!("{}", succeed(soak.env("PDSTOOL", crate::process::pdstool())));
}
