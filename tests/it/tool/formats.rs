//! The output formats of commands that print what is theirs: `simulate`, `check`.

use clap::CommandFactory as _;
use serde_json::Value;

use super::simulated::Process;
use super::{ended, golden, pdstool};
use crate::golden::assert_golden;

/// The first lines of `pdstool simulate` in this format, up to the first for which `is_last` is true.
fn simulated(format: &str, is_last: impl Fn(&str) -> bool) -> String {
    Process::until(is_last, &["--projects", "2", "--apps", "3", "-o", format]).printed.clone()
}

#[test]
fn the_simulator_prints_its_projects_for_programs() {
    let json: Value = serde_json::from_str(&simulated("json", |line| line == "}")).unwrap();
    assert!(json["base_url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    let projects = json["projects"].as_array().unwrap();
    assert_eq!(projects.len(), 2);
    assert!(projects.iter().all(|project| project["token"].as_str().unwrap().contains('.')));
    assert_eq!(projects[0]["apps"].as_array().unwrap().len(), 2);
    let last = projects[1]["apps"][0].as_str().unwrap();
    let csv = simulated("csv", |line| line.ends_with(&format!(",{last}")));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("base_url,project,token,app", 4));
    assert!(lines[1].contains(&format!(",{},", projects[0]["id"].as_str().unwrap())), "{csv}");
}

#[test]
fn checks_of_files_have_every_format_at_any_width() {
    let folder = tempfile::tempdir().unwrap();
    let web = folder.path().join("web.yml");
    std::fs::write(&web, "http_server_config:\n  http2: false\n").unwrap();
    let mut text = String::new();
    for args in [["check", "config", "config.example.toml"], ["check", "web-config", web.to_str().unwrap()]] {
        for (columns, format) in
            [("80", "table"), ("200", "table"), ("80", "wide"), ("80", "csv"), ("80", "json")]
        {
            let output = pdstool(&args).args(["-o", format]).env("COLUMNS", columns).output().unwrap();
            let printed = ended(&output).replace(folder.path().to_str().unwrap(), "/etc/pds-exporter");
            text.push_str(&format!(
                "$ pdstool {} {} -o {format}  # {columns} columns\n{printed}\n",
                args[0], args[1]
            ));
        }
    }
    assert_golden(&golden("check-formats.txt"), &text);
}

/// Commands whose output is a file or has a format of its own.
pub(super) const OWN_FORMAT: [&str; 6] = ["backfill", "completions", "init", "man", "metrics", "openapi"];

#[test]
fn every_command_has_output_formats_or_a_format_of_its_own() {
    fn visit(path: &str, command: &clap::Command) {
        let commands: Vec<&clap::Command> = command.get_subcommands().collect();
        for below in commands.iter().filter(|below| below.get_name() != "help") {
            visit(&format!("{path} {}", below.get_name()), below);
        }
        if commands.is_empty() {
            let output = command.get_arguments().find(|arg| arg.get_long() == Some("output"));
            let words: Vec<_> = output.map(clap::Arg::get_possible_values).unwrap_or_default();
            let words: Vec<&str> = words.iter().map(clap::builder::PossibleValue::get_name).collect();
            let expected: &[&str] = match path.trim() {
                path if OWN_FORMAT.contains(&path) => &[],
                _ => &["table", "wide", "json", "csv"],
            };
            assert_eq!(words, expected, "{path}");
        }
    }
    let mut command = pdstool::Cli::command();
    // The options of all calls stand in each of them.
    command.build();
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        visit(below.get_name(), below);
    }
}
