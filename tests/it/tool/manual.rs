//! Help and man pages, all from one definition.

use std::fmt::Write as _;

use super::{golden, pdstool, stderr, stdout};
use crate::golden::assert_golden;

#[test]
fn help_shows_every_command_with_an_example() {
    let mut text = String::new();
    for words in [
        "",
        "check config",
        "check token",
        "backfill",
        "simulate",
        "call",
        "call app delete",
        "call metrics response-time",
        "call api-key create",
    ] {
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        let output = pdstool(&words).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        write!(text, "$ pdstool {} --help\n{}\n", words.join(" "), stdout(&output)).unwrap();
    }
    assert_golden(&golden("help.txt"), &text);
}

#[test]
fn there_is_a_man_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = pdstool(&["man", folder.path().to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for page in ["pdstool.1", "pds-exporter.1", "pdstool-backfill.1", "pdstool-call-app-delete.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
}
