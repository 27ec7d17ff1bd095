//! A short run of `tests/soak`, the longer ones of which are made by hand.

use std::process::Command;

#[test]
fn faults_at_random_leave_memory_flat_and_counters_exact() {
    let output = Command::new("tests/soak")
        .arg("2m")
        .env("PDS_EXPORTER", env!("CARGO_BIN_EXE_pds-exporter"))
        .env("PDSTOOL", crate::process::pdstool())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{told}");
    println!("{told}");
}
