//! The programs that tests run beside the exporter: Prometheus, curl and others.

use std::path::{Path, PathBuf};

/// Folders below the project in which `tests/run` installs programs.
const FOLDERS: &[&str] = &["target/tools/bin", "target/tools/venv/bin", "target/tools/node_modules/.bin"];

/// The program `name`: as `tests/run` installed it, in its pinned version, or from the `PATH`. `python3` is the
/// one that has the packages of `tests/packages/pypi.txt`. A missing program fails the test: one that skips itself
/// shows nothing.
pub(crate) fn tool(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| {
        panic!("the program {name} is not installed: run tests/run as root, which installs what tests use")
    })
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = FOLDERS.iter().map(|folder| project.join(folder));
    installed
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

#[test]
#[should_panic(expected = "the program no-such-program is not installed: run tests/run")]
fn a_missing_program_fails_the_test_with_what_to_do() {
    tool("no-such-program");
}
