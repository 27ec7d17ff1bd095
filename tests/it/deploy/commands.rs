//! The commands of the runbooks, each as it is pasted on Kubernetes, with docker, and beside a systemd unit.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{files, output};
use crate::golden::assert_current;
use crate::process::{Alone, Exporter};
use crate::rig::{self, Configuration};

/// The ways to paste a command: what stands before it.
const WAYS: [(&str, &str); 3] = [
    ("Kubernetes; for a shard, exec its pod", "kubectl -n pds-exporter exec svc/pds-exporter -- /"),
    ("docker", "docker exec pds-exporter /"),
    ("systemd", "sudo "),
];

/// The commands that runbooks name in a comment: `<!-- run pdstool check token: begin -->`.
pub(crate) fn commands() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for path in files("prometheus/runbooks", "md") {
        let page = fs::read_to_string(&path).unwrap();
        for rest in page.split("<!-- run ").skip(1).filter(|rest| rest.contains(": begin -->")) {
            let (command, after) = rest.split_once(": ").unwrap();
            if after.starts_with("begin") {
                found.push((path.clone(), command.to_owned()));
            }
        }
    }
    assert!(found.len() >= 14, "{found:?}");
    found
}

#[test]
fn runbooks_show_each_command_for_every_way_to_run_the_exporter() {
    for path in files("prometheus/runbooks", "md") {
        let page = fs::read_to_string(&path).unwrap();
        let has_command = ["`pdstool ", "`pds-exporter --"].iter().any(|program| page.contains(program));
        assert!(!has_command || page.contains("<!-- run pd"), "{}: commands inline only", path.display());
    }
    for (path, command) in commands() {
        let lines = WAYS.map(|(way, prefix)| format!("{prefix}{command} # {way}\n"));
        let block = format!("```sh\n{}```\n", lines.concat());
        assert_current(path.to_str().unwrap(), &format!("run {command}"), &block);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_unit_each_command_finds_the_exporter_that_runs() {
    let (world, service) = rig::world(2, 2).await;
    let alone = Alone::new();
    let config = Configuration::new(&world, &service).write(&alone.path(""));
    let (mut daemon, mut demo) = (alone.daemon(), alone.daemon());
    demo.arg("--demo");
    let _demo = Exporter::of(demo);
    // As a unit has it: another folder, and a state file that only the flags name.
    daemon.current_dir("/").env_clear().arg(format!("--config.file={config}"));
    daemon.arg(format!("--state.path={}", alone.path("state.log").display()));
    let exporter = Exporter::of(daemon);
    exporter.wait_for("/-/ready").await;
    std::fs::write(alone.path("web-config.yml"), "{}").unwrap();
    let placeholders = [
        ("PROJECT-APP", world.projects()[1].1[0].to_string()),
        ("WEB-CONFIG", alone.path("web-config.yml").display().to_string()),
        ("/var/lib/pds-exporter/", alone.path("").display().to_string()),
    ];
    let mut failures = Vec::new();
    for (path, command) in commands() {
        let filled =
            placeholders.iter().fold(command.clone(), |text, (name, value)| text.replace(name, value));
        let mut words = filled.split(' ');
        let mut pasted = Command::new(alone.path(words.next().unwrap()));
        pasted.current_dir("/").env_clear().args(words);
        let output = tokio::task::spawn_blocking(move || pasted.output().unwrap()).await.unwrap();
        if !output.status.success() {
            failures.push(format!("{}: {command}: {output:?}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let said = output(alone.pdstool(&["check", "config"]).current_dir("/"));
    assert!(said.starts_with(&format!("{config} is valid\n")), "the file that is read is named: {said}");
}
