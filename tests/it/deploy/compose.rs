//! The compose file and the Dockerfile, as far as they can be judged without running them.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use pds_exporter::app::flags::Flags;

use super::{command, deploy, files, list, string, succeed, text, yaml};

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
fn the_prometheus_of_compose_finds_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    for rules in files("prometheus/rules", "yml") {
        fs::copy(&rules, folder.path().join("rules").join(rules.file_name().unwrap())).unwrap();
    }
    let config = folder.path().join("prometheus.yml");
    fs::copy(deploy("compose/prometheus.yml"), &config).unwrap();
    let said = succeed(command("promtool", ["check", "config", config.to_str().unwrap()]));
    assert!(said.contains("3 rule files found"), "{said}");
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

#[test]
fn the_build_context_holds_all_that_cargo_needs() {
    let ignored = text("Dockerfile.dockerignore");
    let mut lines = ignored.lines();
    assert_eq!(lines.next(), Some("*"), "nothing by default");
    let folder = tempfile::tempdir().unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in lines.map(|line| line.strip_prefix('!').unwrap()) {
        if project.join(name).exists() {
            let copy = ["-r".into(), project.join(name), folder.path().join(name)];
            succeed(command("cp", copy));
        }
    }
    let cargo = ["metadata", "--offline", "--locked", "--format-version=1", "--manifest-path"];
    let mut metadata = command("cargo", cargo);
    metadata.arg(folder.path().join("Cargo.toml"));
    let packages: serde_json::Value = serde_json::from_str(&super::output(metadata)).unwrap();
    assert!(list(&packages["packages"]).iter().any(|package| package["name"] == "pds-exporter"));
}
