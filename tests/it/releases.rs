//! The parts of a release: workflows, the published crate, packages, and the facts of the build.

mod bare_machine;
mod dry_run;
mod installed;
mod package;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::deploy::{command, deploy, host, list, output, succeed, yaml};
use crate::tools::tool;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A script of `.ci`.
fn script(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(project().join(".ci").join(name));
    command.args(arguments);
    command
}

fn workflows() -> Vec<PathBuf> {
    let entries = fs::read_dir(project().join(".github/workflows")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 3, "{paths:?}");
    paths
}

#[test]
fn actionlint_and_shellcheck_find_no_fault() {
    // actionlint gives the commands of steps to shellcheck.
    tool("shellcheck");
    assert_eq!(succeed(command("actionlint", ["-no-color"]).args(workflows())), "");
    let scripts = ["grep", "--files-with-matches", "^#!/usr/bin/env bash"];
    let scripts = output(command("git", scripts).current_dir(project()));
    let mut shellcheck = command("shellcheck", ["--external-sources", ".ci/facts"]);
    assert_eq!(succeed(shellcheck.args(scripts.lines()).current_dir(project())), "");
}

#[test]
fn the_workflows_follow_their_schema_and_zizmor_finds_nothing() {
    for (schema, files) in [
        ("vendor.github-workflows", workflows()),
        ("vendor.dependabot", vec![project().join(".github/dependabot.yml")]),
    ] {
        succeed(command("check-jsonschema", ["--builtin-schema", schema]).args(files));
    }
    let mut zizmor = command("zizmor", ["--offline", "--no-progress", "--quiet", "--persona=auditor"]);
    succeed(zizmor.arg(project().join(".github")));
}

/// The parsed workflows.
fn parsed() -> Vec<Value> {
    workflows().into_iter().map(|path| yaml(&fs::read_to_string(path).unwrap()).remove(0)).collect()
}

#[test]
fn only_the_job_that_publishes_may_write_and_it_runs_nothing_of_the_repository() {
    for workflow in parsed() {
        assert_eq!(workflow["permissions"], serde_json::json!({}), "a job names its own");
        assert_eq!(workflow["defaults"]["run"]["shell"], "bash", "this one sets pipefail");
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            if name != "publish" {
                assert_eq!(job["permissions"], serde_json::json!({ "contents": "read" }), "{name}");
                assert!(!job.to_string().contains("github.token"), "{name}");
                continue;
            }
            assert_eq!(job["environment"], "release", "somebody has to agree");
            let text = job.to_string();
            for foreign in ["actions/checkout", ".ci/", "tests/", "cargo ", "pip ", "npm "] {
                assert!(!text.contains(foreign), "{foreign}");
            }
            let tokens = list(&job["steps"]).iter().filter(|step| step.to_string().contains("github.token"));
            let holders: Vec<&str> = tokens.map(|step| step["name"].as_str().unwrap()).collect();
            assert_eq!(holders, ["Image and chart, without a tag", "Release"]);
            assert!(!job["env"].to_string().contains("token"), "a token belongs to its step");
        }
    }
}

#[test]
fn every_package_that_tests_install_is_pinned_by_its_hash() {
    let read = |name: &str| fs::read_to_string(project().join("tests/packages").join(name)).unwrap();
    let lock = read("pypi.lock");
    let entries: Vec<&str> =
        lock.split("\n").filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(lock.matches(" \\\n    --hash=sha256:").count(), lock.matches("--hash=sha256:").count());
    assert!(entries.len() > 100 && entries.iter().all(|entry| entry.ends_with('\\')), "{entries:?}");
    let wanted = [read("pypi.txt"), read("cargo.txt")].concat();
    let wanted =
        wanted.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(' ').next_back());
    for package in wanted {
        let package = package.replace('_', "-");
        assert!(
            entries.iter().any(|entry| entry.starts_with(&format!("{package} "))),
            "{package} is not locked"
        );
    }
    let lock: Value = serde_json::from_str(&read("package-lock.json")).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    assert!(packages.len() > 20, "{}", packages.len());
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        assert!(package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-")), "{path}");
    }
}

/// All commands of all steps, a line each.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for workflow in parsed() {
        for job in workflow["jobs"].as_object().unwrap().values() {
            for run in list(&job["steps"]).iter().filter_map(|step| step["run"].as_str()) {
                commands.extend(run.lines().map(str::to_owned));
            }
        }
    }
    commands
}

#[test]
fn a_release_is_refused_unless_tag_version_and_address_agree() {
    let commands = commands();
    let check = |part: &str, variables: &[(&str, &str)]| {
        let command = commands.iter().find(|command| command.contains(part)).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(project()).envs(variables.iter().copied());
        shell.status().unwrap().success()
    };
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    assert!(check("\"version", &[("VERSION", &version)]));
    assert!(!check("\"version", &[("VERSION", "v9.9.9")]));
    let repository = env!("CARGO_PKG_REPOSITORY");
    let (server, name) = repository.split_at("https://github.com".len());
    let environment = |name| [("GITHUB_SERVER_URL", server), ("GITHUB_REPOSITORY", name)];
    assert!(check("\"repository", &environment(name.trim_start_matches('/'))));
    assert!(!check("\"repository", &environment("somebody/else")));
    // The chart names the image that the workflow publishes.
    let owner = name.split('/').nth(1).unwrap();
    assert!(check("\"  repository", &[("GITHUB_REPOSITORY_OWNER", owner)]));
    assert!(!check("\"  repository", &[("GITHUB_REPOSITORY_OWNER", "somebody")]));
}

#[test]
fn each_target_is_fuzzed_every_night() {
    let commands = commands();
    let list = commands.iter().find(|command| command.contains("targets=$(sed")).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{list}\necho \"[$targets]\"")]).current_dir(project());
    let targets: Vec<String> = serde_json::from_str(&output(shell)).unwrap();
    let files = fs::read_dir(project().join("fuzz/fuzz_targets")).unwrap();
    let files = files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    assert_eq!(targets.into_iter().collect::<BTreeSet<_>>(), files.collect());
}

#[test]
fn every_action_and_base_image_is_pinned_by_digest() {
    let mut pinned = 0;
    let others = ["Dockerfile", "compose.yaml", "kubernetes/overlays/sidecar/prometheus.yaml"].map(deploy);
    for path in workflows().into_iter().chain(others) {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().map(|line| line.trim_start_matches([' ', '-'])) {
            let (digest, length) = match line.split_once(' ') {
                Some(("uses:", action)) => (action.split_once('@').unwrap().1, 40),
                Some(("FROM", "scratch")) => continue,
                Some(("FROM" | "image:", image)) => (image.split_once("@sha256:").expect(line).1, 64),
                _ => continue,
            };
            let digest = digest.split(' ').next().unwrap();
            assert!(digest.len() == length && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{line}");
            pinned += 1;
        }
    }
    assert!(pinned > 15, "{pinned}");
}

#[test]
fn the_published_crate_holds_only_the_files_its_users_need() {
    let packaged =
        output(command("cargo", ["package", "--list", "-p", "pds-exporter", "--allow-dirty", "--offline"]));
    let (sources, others): (BTreeSet<&str>, BTreeSet<&str>) =
        packaged.lines().filter(|path| !path.starts_with("docs/")).partition(|path| path.starts_with("src/"));
    // Cargo adds the commit, if there is one.
    let others = others.into_iter().filter(|path| *path != ".cargo_vcs_info.json").collect::<Vec<_>>();
    let expected = "CHANGELOG.md Cargo.lock Cargo.toml Cargo.toml.orig LICENSE README.md config.example.toml";
    assert_eq!(others.join(" "), expected);
    let kinds: BTreeSet<&str> =
        sources.iter().filter_map(|path| path.rsplit_once('.')).map(|(_, e)| e).collect();
    for kind in kinds {
        assert!(["rs", "c", "css", "js", "svg", "ico", "png", "html", "json"].contains(&kind), "{kind}");
    }
    assert!(packaged.contains("docs/configure.md"));
}

#[test]
fn the_notes_of_a_release_are_its_section_of_the_changelog() {
    let notes = output(script("notes", &[env!("CARGO_PKG_VERSION")]));
    assert!(notes.contains("### Added") && !notes.contains("## ["), "{notes}");
    let refused = script("notes", &["9.9.9"]).output().unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
}

#[test]
fn the_bill_of_materials_names_what_is_linked_with_its_licence_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let target = host();
    succeed(script("sbom", &[&target, folder.path().to_str().unwrap()]));
    let read = |kind: &str| {
        let name = format!("pds-exporter-{}-{target}.{kind}.json", env!("CARGO_PKG_VERSION"));
        // A reader of both formats accepts it.
        let mut syft = command("syft", ["convert", "--quiet"]);
        succeed(syft.arg(folder.path().join(&name)).args(["--output", "syft-json"]));
        serde_json::from_str::<Value>(&fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
    };
    let (cyclonedx, spdx) = (read("cdx"), read("spdx"));
    let components = list(&cyclonedx["components"]);
    assert_eq!(components.len() + 1, list(&spdx["packages"]).len(), "the programs themselves");
    let name = |component: &Value| {
        format!("{}-{}", component["name"].as_str().unwrap(), component["version"].as_str().unwrap())
    };
    let listed: BTreeSet<String> = components.iter().map(name).collect();
    for component in components {
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
    }
    // Panics name the files of the crates that are in the programs.
    for program in [PathBuf::from(env!("CARGO_BIN_EXE_pds-exporter")), crate::process::pdstool().into()] {
        let bytes = fs::read(program).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let sources = text.split("/registry/src/").skip(1).filter_map(|rest| rest.split('/').nth(1));
        let ends = |c: char| !(c.is_ascii_alphanumeric() || "-_.+".contains(c));
        let names = sources.filter_map(|rest| rest.split(ends).next());
        let linked: BTreeSet<&str> = names.filter(|name| name.len() < 60 && name.contains('-')).collect();
        assert!(linked.len() > 30, "{linked:?}");
        for name in linked {
            assert!(listed.contains(name), "{name} is linked, but not listed");
        }
    }
    let names: BTreeSet<&str> =
        components.iter().filter_map(|component| component["name"].as_str()).collect();
    assert!(names.contains("std") && names.contains("glibc"), "what is linked statically beside the crates");
    for build_only in ["cc", "syn", "serde_derive", "proptest", "tempfile"] {
        assert!(!names.contains(build_only), "{build_only} is not in the programs");
    }
}

#[cfg(feature = "jemalloc")]
#[test]
fn the_allocator_has_its_settings_whoever_builds_it() {
    let mut exporter = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    let said = succeed(exporter.arg("--version").env("_RJEM_MALLOC_CONF", "confirm_conf:true"));
    for setting in ["narenas:1", "dirty_decay_ms:10", "muzzy_decay_ms:0"] {
        assert!(said.contains(&format!("Set conf value: {setting}\n")), "{said}");
    }
}

#[test]
fn a_build_of_the_tests_states_no_revision() {
    for program in [env!("CARGO_BIN_EXE_pds-exporter"), &crate::process::pdstool()] {
        let version = output(Command::new(program).arg("--version"));
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        assert_eq!(version, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn the_first_build_of_the_daemon_lacks_the_tools_crates_and_the_allocator() {
    let tree = |arguments: &[&str]| {
        let always = ["tree", "--offline", "--locked", "--prefix=none", "--edges=normal", "--format={lib}"];
        let tree = output(command("cargo", always.iter().chain(arguments)));
        tree.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (daemon, all) = (tree(&["-p", "pds-exporter"]), tree(&["--workspace", "--all-features"]));
    for name in ["indicatif", "clap_mangen", "clap_complete", "tikv_jemallocator"] {
        assert!(all.contains(name) && !daemon.contains(name), "{name}");
    }
}

#[test]
fn the_published_program_has_the_measured_allocator() {
    assert!(std::fs::read_to_string("benches/run").unwrap().contains(" .ci/dist "));
    for file in [".ci/dist", "deploy/Dockerfile"] {
        let text = std::fs::read_to_string(file).unwrap();
        let builds: Vec<&str> = text.lines().filter(|line| line.contains("cargo build")).collect();
        assert!(!builds.is_empty(), "{file}");
        for build in builds {
            assert!(
                build.contains("--features jemalloc") || build.contains("--all-features"),
                "{file}: {build}"
            );
        }
    }
}
