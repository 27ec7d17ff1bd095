//! The files of a package beside the programs: man pages and completions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::deploy::{command, output, succeed};

/// A page for every command, which man can read, and completions as the installed program prints them.
pub(super) fn man_pages_and_completions_are_those_of_the_programs(root: &Path) {
    let made = tempfile::tempdir().unwrap();
    succeed(Command::new(root.join("usr/bin/pdstool")).arg("man").arg(made.path()));
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect::<BTreeSet<String>>()
    };
    let pages = root.join("usr/share/man/man1");
    let expected: BTreeSet<String> = names(made.path()).into_iter().map(|name| name + ".gz").collect();
    assert_eq!(names(&pages), expected);
    assert!(expected.contains("pdstool-call-app-delete.1.gz") && expected.contains("pds-exporter.1.gz"));
    for page in ["pdstool.1.gz", "pds-exporter.1.gz", "pdstool-check-service.1.gz"] {
        let mut read = command("man", ["--warnings", "--local-file"]);
        read.arg(pages.join(page)).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
        assert!(output(read).contains("SYNOPSIS"), "{page}");
    }
    let share = root.join("usr/share");
    for (shell, file) in [
        ("bash", "bash-completion/completions/pdstool"),
        ("zsh", "zsh/vendor-completions/_pdstool"),
        ("fish", "fish/vendor_completions.d/pdstool.fish"),
    ] {
        let printed = output(Command::new(root.join("usr/bin/pdstool")).args(["completions", shell]));
        assert_eq!(fs::read_to_string(share.join(file)).unwrap(), printed, "{file}");
    }
}
