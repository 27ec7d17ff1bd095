//! `tests/packages/install`, and so `tests/run`, on machines that lack something: a sentence says what to do.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;

use tempfile::TempDir;

use super::project;

/// The parts of a machine that the script uses.
const USED: &[&str] = &["awk", "bash", "cat", "cmp", "dirname", "grep", "mkdir", "python3", "sed"];

/// A clone, and a folder of programs: what is [`USED`], and these.
fn machine(programs: &[&str]) -> TempDir {
    let machine = tempfile::tempdir().unwrap();
    let (lists, bin) = (machine.path().join("tests/packages"), machine.path().join("bin"));
    fs::create_dir_all(&lists).unwrap();
    fs::create_dir_all(&bin).unwrap();
    for entry in fs::read_dir(project().join("tests/packages")).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(entry.path(), lists.join(entry.file_name())).unwrap();
    }
    for program in USED {
        symlink(format!("/usr/bin/{program}"), bin.join(program)).unwrap();
    }
    // Nothing is asked of them but whether they are there; dpkg-query has installed nothing.
    for program in programs {
        let path = bin.join(program);
        fs::write(&path, "#!/bin/sh\nexit 1\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    // Anybody may write.
    fs::set_permissions(machine.path(), fs::Permissions::from_mode(0o777)).unwrap();
    machine
}

/// The message on that machine, where nothing can be installed.
fn told(machine: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::new("/usr/bin/bash");
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command = Command::new("/usr/bin/setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/bash"]);
    }
    command.arg(machine.path().join("tests/packages/install")).args(arguments);
    command.env_clear().env("PATH", machine.path().join("bin"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn a_missing_compiler_is_reported_in_one_sentence() {
    assert_eq!(
        told(&machine(&["cargo"]), &[]),
        "tests/packages/install: a C compiler (cc) is missing; on Debian: apt-get install gcc libc6-dev, as root\n"
    );
}

#[test]
fn without_root_the_packages_to_install_are_printed() {
    let said = told(&machine(&["cargo", "cc", "dpkg-query", "npm"]), &["debian"]);
    let lines: Vec<&str> = said.lines().collect();
    let [missing, packages, as_root, quick] = &lines[..] else { panic!("{said}") };
    assert!(missing.ends_with("these are missing:") && quick.contains("tests/run quick needs"), "{said}");
    assert!(packages.contains(" apache2-utils buildah "), "{said}");
    assert!(as_root.contains("As root: apt-get install apache2-utils buildah "), "{said}");
}
