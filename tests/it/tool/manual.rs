//! Help from one definition. The tests of packages read the man pages.

use std::fmt::Write as _;

use super::{golden, pdstool, stdout};
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
