//! How many instructions the hot parts take, counted by valgrind and compared with `benches/counts.txt`.
//!
//! `benches/count` runs it, and `benches/count --write` writes what is counted.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a bench that can't go on ends")]

#[path = "fixture/mod.rs"]
mod fixture;

// So that dependencies have the features that they have in both programs.
use pdstool as _;

use std::process::{Command, ExitCode};

use fixture::guard;
use fixture::hot::{APPS, PARTS, runtime};
use fixture::store::Filled;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [run, part, times] = &*arguments
        && run == "run"
    {
        let (_, run) = PARTS.iter().find(|(name, _)| name == part).unwrap();
        run(&runtime().block_on(Filled::new(APPS)), times.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    guard::run(concat!(env!("CARGO_MANIFEST_DIR"), "/counts.txt"), "instructions", count)
}

/// Instructions of one repetition: what more of them take more than twenty.
fn count(part: &str) -> u64 {
    let instructions = |times: u64| {
        let program = std::env::current_exe().unwrap();
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["run", part, &times.to_string()])
            .output()
            .unwrap_or_else(|error| panic!("valgrind can't be run: {error}; tests/run installs it"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let count =
            said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("valgrind counted nothing:\n{said}"))
    };
    let some = (instructions(40) - instructions(20)) / 20;
    // The part before differs from run to run by some ten thousand, as hash maps are seeded: a short part is repeated
    // until the difference vanishes.
    if some > 1_000_000 { some } else { (instructions(420) - instructions(20)) / 400 }
}
