//! Memory: what hostile replies can take at most stays within what the deployments grant.

use std::path::Path;

use pds_exporter::config::Config;

use super::helm::template;
use super::kubernetes::{container, kustomize};
use super::{string, text, yaml};

const MIB: u64 = 1024 * 1024;

/// What replies under way can take at most beyond what the exporter takes at rest, as docs/troubleshooting.md states it
/// and `real_memory` measures it.
fn hostile(config: &Config) -> u64 {
    let in_flight = 8 * MIB + config.api.max_response_bytes.max(8 * MIB);
    in_flight * 9 / 2
}

fn load(config: &str) -> Config {
    // The token is nobody's here.
    let config = config.replace("token_file = \"/run/secrets/pds/token\"", "token = \"none\"");
    pds_exporter::config::load_text(Path::new("pds-exporter.toml"), &config).unwrap().config
}

/// Bytes of a quantity as our manifests write them.
fn bytes(quantity: &str) -> u64 {
    let number = quantity.strip_suffix("Mi").unwrap_or_else(|| panic!("{quantity} is not in Mi"));
    number.parse::<u64>().unwrap() * MIB
}

#[test]
fn hostile_replies_do_not_get_a_pod_killed() {
    let kustomized = ["base", "overlays/sharded", "overlays/sidecar", "overlays/operator"];
    let charts = ["mode=deployment", "mode=sharded", "mode=sidecar"];
    let rendered = kustomized.map(|folder| (folder, yaml(&kustomize(folder)))).into_iter();
    for (name, objects) in rendered.chain(charts.map(|mode| (mode, template("pds-exporter", &[mode])))) {
        let data = |key: &str| objects.iter().find_map(|object| object["data"][key].as_str());
        let config = load(data("pds-exporter.toml").unwrap());
        let workload = |kind: &str| objects.iter().find(|object| object["kind"] == kind).cloned();
        // The chart's sidecar is a patch inside a ConfigMap.
        let patch = || data("patch.yaml").map(|patch| yaml(patch).remove(0));
        let workload = workload("Deployment").or_else(|| workload("StatefulSet")).or_else(patch).unwrap();
        let memory = |of: &str| bytes(string(&container(&workload)["resources"][of], "/memory"));
        // What is requested is what it takes at rest.
        let most = memory("requests") + hostile(&config);
        assert!(most <= memory("limits"), "{name}: {} MiB of {} MiB", most / MIB, memory("limits") / MIB);
    }
}

#[test]
fn hostile_replies_do_not_get_the_service_killed() {
    let unit = text("systemd/pds-exporter.service");
    let most = unit.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.strip_suffix('M')).unwrap();
    // The unit brings no configuration, so the defaults count.
    let defaults =
        load("[api]\nbase_url = \"https://api.example.com\"\n\n[[projects]]\nid = \"p\"\ntoken = \"none\"\n");
    // With as much again for the exporter at rest as a pod is granted in all.
    assert!(hostile(&defaults) + 128 * MIB <= most.parse::<u64>().unwrap() * MIB, "{most} MiB");
}
