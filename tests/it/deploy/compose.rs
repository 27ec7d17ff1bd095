//! The compose file and the Dockerfile, as far as they can be judged without running them.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use pds_config::flags::Flags;

use super::{command, deploy, host, list, output, string, succeed, text, yaml};

#[test]
fn every_file_that_compose_mounts_is_there() {
    let compose = yaml(&text("compose.yaml")).remove(0);
    let mut mounts = 0;
    for service in compose["services"].as_object().unwrap().values() {
        for volume in list(&service["volumes"]).iter().filter_map(|volume| volume.as_str()) {
            let source = volume.split(':').next().unwrap();
            if source.starts_with('.') {
                assert!(deploy(source).exists(), "{volume}");
                mounts += 1;
            } else {
                assert!(compose["volumes"].get(source).is_some(), "{volume}");
            }
        }
    }
    assert_eq!(mounts, 4);
    let exporter = &compose["services"]["exporter"];
    assert!(deploy(string(exporter, "/build/context")).join(string(exporter, "/build/dockerfile")).is_file());
    let arguments = list(&exporter["command"]).iter().map(|argument| argument.as_str().unwrap());
    assert!(Flags::try_parse_from(["pds-exporter"].into_iter().chain(arguments)).unwrap().demo);
}

#[test]
fn grafana_is_given_the_data_source_and_the_folder_it_is_mounted() {
    let source = yaml(&text("grafana/provisioning/datasources/prometheus.yaml")).remove(0);
    let compose = yaml(&text("compose.yaml")).remove(0);
    let url = string(&source, "/datasources/0/url").trim_start_matches("http://");
    let (host, _) = url.split_once(':').unwrap();
    assert!(compose["services"].get(host).is_some(), "{url} is none of the services");
    let provider = yaml(&text("grafana/provisioning/dashboards/pds.yaml")).remove(0);
    let folder = string(&provider, "/providers/0/options/path");
    let mounts = list(&compose["services"]["grafana"]["volumes"]);
    assert!(mounts.iter().any(|mount| mount == &format!("./grafana/dashboards:{folder}:ro")), "{mounts:?}");
}

#[test]
fn hadolint_finds_no_fault_with_the_dockerfile() {
    succeed(command("hadolint", [deploy("Dockerfile")]));
}

/// The files and folders of the project that the Dockerfile copies, by name.
fn build_context() -> Vec<&'static str> {
    let mut lines = include_str!("../../../deploy/Dockerfile.dockerignore").lines();
    assert_eq!(lines.next(), Some("*"), "nothing by default");
    lines.filter(|line| !line.starts_with('#')).map(|line| line.strip_prefix('!').unwrap()).collect()
}

#[test]
fn the_build_context_holds_all_that_cargo_needs() {
    let folder = tempfile::tempdir().unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in build_context() {
        if project.join(name).exists() {
            let copy = ["-r".into(), project.join(name), folder.path().join(name)];
            succeed(command("cp", copy));
        }
    }
    // Unlike `cargo metadata`, this refuses a manifest as a build does when a file of a target is missing. For this
    // host only: a fresh machine has never downloaded the packages of other platforms.
    let host = host();
    let fetch = || {
        let mut fetch = command("cargo", ["fetch", "--offline", "--locked", "--target", &host]);
        fetch.arg("--manifest-path").arg(folder.path().join("Cargo.toml"));
        fetch
    };
    succeed(fetch());
    fs::remove_dir_all(folder.path().join("benches")).unwrap();
    let said = String::from_utf8(fetch().output().unwrap().stderr).unwrap();
    assert!(said.contains("benches/Cargo.toml"), "a missing file goes unnoticed: {said}");
}

#[test]
fn the_build_context_holds_all_that_the_sources_include() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for source in output(command("find", ["src", "crates", "-name", "*.rs"])).lines() {
        let text = fs::read_to_string(project.join(source)).unwrap();
        let includes =
            ["include_str!(\"", "include_bytes!(\""].into_iter().flat_map(|call| text.split(call).skip(1));
        for rest in includes {
            let path = project.join(source).with_file_name(rest.split('"').next().unwrap());
            let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path.strip_prefix(project).unwrap().components().next().unwrap();
            let is_copied = build_context().iter().any(|copied| name.as_os_str() == *copied);
            assert!(is_copied, "{source} includes {}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen}");
}
