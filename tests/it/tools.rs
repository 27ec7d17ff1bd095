//! The programs that tests run beside the exporter: Prometheus, curl and others.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders below the project in which `tests/run` installs programs.
const FOLDERS: &[&str] = &["target/tools/bin", "target/tools/venv/bin", "target/tools/node_modules/.bin"];

/// Programs of every machine for development. The tests of the profile `quick` run no others.
const USUAL: &[&str] = &["bash", "curl", "find", "kill"];

/// The program `name`: as `tests/run` installed it, in its pinned version, or from the `PATH`. `python3` is the
/// one that has the packages of `tests/packages/pypi.txt`. A missing program fails the test: one that skips itself
/// shows nothing.
pub(crate) fn tool(name: &str) -> PathBuf {
    let is_quick = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "quick");
    assert!(
        !is_quick || USUAL.contains(&name),
        "the profile quick of .config/nextest.toml must leave out tests that run {name}"
    );
    find(name).unwrap_or_else(|| {
        panic!("the program {name} is not installed: run tests/run as root, which installs what tests use")
    })
}

/// Takes out of the environment of a build what the runner of tests tells in it of this package. A build script that reads
/// it, as ring's does, would run again, and all that depends on its crate would be compiled anew, by this build and by the
/// next.
pub(crate) fn without_this_package(build: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"].iter().any(|told| name.starts_with(told)) {
            build.env_remove(name);
        }
    }
    build
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
