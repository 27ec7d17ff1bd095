//! The files of `deploy/`, each checked by the tool that reads it in production, and compared with the exporter: metric
//! names with the catalogue, arguments with the flags, configurations with the configuration's own check.

mod alerts;
pub(crate) mod commands;
mod compose;
pub(crate) mod dashboards;
mod evaluated;
mod hardened;
mod helm;
mod how_to;
pub(crate) mod kubernetes;
mod limits;
pub(crate) mod memory;
mod operator;
pub(crate) mod rendered;
mod restore;
pub(crate) mod steps;
mod systemd;

use std::borrow::BorrowMut;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tools::tool;

/// A file or folder of `deploy/`.
pub(crate) fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(path)
}

/// The text of a file of `deploy/`.
pub(crate) fn text(path: &str) -> String {
    let path = deploy(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder of `deploy/` that end in `.extension`, by name.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(deploy(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    assert!(!files.is_empty(), "no .{extension} in deploy/{folder}");
    files
}

/// The program with these arguments, as installed for the tests.
pub(crate) fn command<A: AsRef<std::ffi::OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = Command::new(tool(program));
    command.args(arguments);
    command
}

/// Both outputs of the command; panics with them if it fails.
pub(crate) fn succeed(mut command: impl BorrowMut<Command>) -> String {
    let command = command.borrow_mut();
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}");
    said
}

/// The standard output of the command; panics if it fails.
pub(crate) fn output(mut command: impl BorrowMut<Command>) -> String {
    let command = command.borrow_mut();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The platform this compiler builds for, e.g. `x86_64-unknown-linux-gnu`.
pub(crate) fn host() -> String {
    output(command("rustc", ["--print", "host-tuple"])).trim().to_owned()
}

/// All documents of a YAML text.
pub(crate) fn yaml(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// The elements of an array.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text at `pointer`; panics if there is none.
pub(crate) fn string<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

/// All rules of `deploy/prometheus/rules`, in the order of the files.
pub(crate) fn rules() -> Vec<Value> {
    let groups = files("prometheus/rules", "yml").into_iter().flat_map(|file| {
        let document = yaml(&std::fs::read_to_string(file).unwrap()).remove(0);
        list(&document["groups"]).to_vec()
    });
    groups.flat_map(|group| list(&group["rules"]).to_vec()).collect()
}

/// Names in `text` that look like series of ours but are neither on the exporter's page nor recorded by a rule.
pub(crate) fn unknown_series(text: &str) -> BTreeSet<String> {
    let families: Vec<_> =
        pds_telemetry::catalogue::catalogue().into_iter().flat_map(|group| group.families).collect();
    let rules = rules();
    let recorded: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["record"].as_str()).collect();
    let is_known = |name: &str| {
        recorded.contains(name)
            || families.iter().any(|family| {
                // Histograms of the registry have a sum and a count, those of the service have not.
                let rest = name.strip_prefix(family.name);
                rest.is_some_and(|rest| rest == family.sample_suffix() || rest.is_empty())
            })
    };
    let names = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    names
        .map(|name| name.trim_end_matches(':'))
        .filter(|name| name.starts_with("pds_") || name.starts_with("pds:"))
        .filter(|name| !is_known(name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn an_undeclared_series_is_found() {
    let text = "sum(rate(pds_app_requests_total[5m])) / pds_app_reqests_total + pds:owner:info";
    assert_eq!(unknown_series(text).into_iter().collect::<Vec<_>>(), ["pds_app_reqests_total"]);
}
