//! The resources that the deployments grant: the measured cost of the exporter, and that of hostile replies beyond.

use std::path::Path;

use pds_client::MAX_UNREAD;
use pds_config::Config;
use pds_core::memory::{Holder, MemoryBudget};

use serde_json::Value;

use super::helm::template;
use super::kubernetes::{container, kustomize, object};
use super::{list, string, text, yaml};
use crate::docs::taken_by;

pub(crate) const MIB: u64 = 1024 * 1024;

/// The maximum memory of replies in flight beyond that of the exporter at rest, as docs/troubleshooting.md states and
/// `real_memory` measures it.
pub(crate) fn hostile(config: &Config) -> u64 {
    let in_flight = 8 * MIB + config.api.max_response_bytes.max(8 * MIB);
    in_flight * 9 / 2 + u64::from(MAX_UNREAD.max(config.api.max_concurrent_requests.get() * 16 * 1024))
}

/// The cost of all attacks at once with memory limited to `limit`: replies take 4.5 times what they hold, and are unread
/// beyond.
fn all_at_once(limit: u64) -> u64 {
    let budget = MemoryBudget::within(Some(limit));
    budget.bytes() + budget.share(Holder::SmallReplies).bytes() * 7 + u64::from(MAX_UNREAD)
}

fn load(config: &str) -> Config {
    // The token is nobody's here.
    let config = config.replace("token_file = \"/run/secrets/pds/token\"", "token = \"none\"");
    pds_config::load_text(Path::new("pds-exporter.toml"), &config).unwrap().config
}

/// A configuration that leaves everything at its default.
pub(crate) fn defaults() -> Config {
    load("[api]\nbase_url = \"https://api.example.com\"\n\n[[projects]]\nid = \"p\"\ntoken = \"none\"\n")
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
    for (name, objects) in rendered.chain(charts.map(|mode| (mode, template(&[mode, "shards=1"])))) {
        let data = |key: &str| objects.iter().find_map(|object| object["data"][key].as_str());
        let config = load(data("pds-exporter.toml").unwrap());
        let workload = |kind: &str| objects.iter().find(|object| object["kind"] == kind).cloned();
        // The chart's sidecar is a patch inside a ConfigMap.
        let patch = || data("patch.yaml").map(|patch| yaml(patch).remove(0));
        let workload = workload("Deployment").or_else(|| workload("StatefulSet")).or_else(patch).unwrap();
        let memory = |of: &str| bytes(string(&container(&workload)["resources"][of], "/memory"));
        // All of them are sized for ten thousand apps.
        let most = measured(10_000).1 + hostile(&config);
        assert!(measured(10_000).1 + all_at_once(memory("limits")) <= memory("limits"), "{name}");
        assert!(most <= memory("limits"), "{name}: {} MiB of {} MiB", most / MIB, memory("limits") / MIB);
    }
}

/// Measured: CPU in percent of a core, and the peak of memory and the state file in bytes.
fn measured(apps: u32) -> (f64, u64, u64) {
    let [_, cpu, memory, file, _] = taken_by(apps).map(|figure| figure.parse::<f64>().unwrap());
    (cpu, (memory * 1e6) as u64, (file * 1e6) as u64)
}

#[test]
fn resources_follow_from_the_number_of_apps_and_cover_the_measured_ones() {
    for (total, shards) in [(10, 1), (100, 1), (1_000, 1), (10_000, 1), (100_000, 1), (100_000, 10)] {
        let (apps, shards) = (format!("apps={total}"), format!("shards={shards}"));
        let objects = template(&["mode=sharded", &apps, &shards]);
        let set = object(&objects, "StatefulSet");
        let resources = &container(&set)["resources"];
        let memory_of = |what: &str| bytes(string(&resources[what], "/memory"));
        let core = |what: &str| {
            let cpu = string(&resources[what], "/cpu").strip_suffix('m').unwrap();
            cpu.parse::<f64>().unwrap() / 10.0
        };
        let each = total / shards.trim_start_matches("shards=").parse::<u32>().unwrap();
        let (cpu, memory, file) = measured(each);
        let (requested, limit) = (memory_of("requests"), memory_of("limits"));
        assert!((memory..=2 * memory).contains(&requested), "{each} apps: {memory} of {requested} bytes");
        let config = load(string(&object(&objects, "ConfigMap")["data"], "/pds-exporter.toml"));
        let most = memory + hostile(&config);
        assert!(memory + all_at_once(limit) <= limit, "{each} apps");
        assert!((most..=2 * most).contains(&limit), "{each} apps: {most} of {limit}");
        assert!(cpu <= core("requests") && 2.0 * cpu <= core("limits"), "{each} apps: {cpu} %");
        // The disk, and the limit of the pod's own storage.
        assert!(2 * file <= 1024 * MIB, "{each} apps: {file} bytes");
        assert_eq!(set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "1Gi");
    }
    let own = ["resources.limits.cpu=2", "resources.requests.memory=1Gi"];
    let deployment = object(&template(&own), "Deployment");
    let resources = &container(&deployment)["resources"];
    assert_eq!((&resources["limits"]["cpu"], &resources["requests"]["memory"]), (&2.into(), &"1Gi".into()));
    assert_eq!(resources["limits"]["memory"], "192Mi", "the rest follows from the apps");
    let none = object(&template(&["apps=0"]), "Deployment");
    assert_eq!(container(&none)["resources"], serde_json::json!({}));
    let volumes = |workload: &Value| list(&workload["spec"]["template"]["spec"]["volumes"]).to_vec();
    assert_eq!(volumes(&none)[2]["emptyDir"]["sizeLimit"], "1Gi");
}

#[test]
fn the_page_states_the_resources_of_the_manifests() {
    let deployment = object(&yaml(&kustomize("base")), "Deployment");
    let resource = |pointer: &str| string(&container(&deployment)["resources"], pointer).to_owned();
    let said = format!(
        "they request {} CPU and {} memory, and limit them to {} and {}",
        resource("/requests/cpu"),
        resource("/requests/memory"),
        resource("/limits/cpu"),
        resource("/limits/memory")
    );
    let page = text("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&said), "deploy/README.md does not say: {said}");
    assert!(page.contains(&format!("take at most {} MiB", hostile(&defaults()) / MIB)));
    let scale = std::fs::read_to_string("docs/scale.md").unwrap();
    assert!(scale.contains(&format!("plus {} MiB for the replies", hostile(&defaults()) / MIB)));
}

#[test]
fn counters_that_come_back_from_prometheus_need_no_file() {
    let url = "state.prometheus.url=http://prometheus:9090";
    for workload in [
        object(&template(&[url]), "Deployment"),
        object(&template(&[url, "mode=sharded", "state.shardDisks=false"]), "StatefulSet"),
        object(&yaml(&kustomize("overlays/operator")), "Deployment"),
    ] {
        let text = workload.to_string();
        assert!(!text.contains("STATE__PATH") && !text.contains("/var/lib/pds-exporter"), "{text}");
        assert!(!text.contains("emptyDir") && !text.contains("volumeClaimTemplates"), "{text}");
    }
    // Without that Prometheus there is a file, if only as long as the pod.
    let pod = object(&template(&[]), "Deployment").to_string();
    assert!(pod.contains("STATE__PATH") && pod.contains("emptyDir"), "{pod}");
}

#[test]
fn hostile_replies_do_not_get_the_service_killed() {
    let unit = text("systemd/pds-exporter.service");
    let most = unit.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.strip_suffix('M')).unwrap();
    // The unit brings no configuration, so the defaults count.
    assert!(unit.contains("# Ten thousand apps take less than 128 MiB"));
    assert!(measured(10_000).1 < 128 * MIB);
    assert!(hostile(&defaults()) + 128 * MIB <= most.parse::<u64>().unwrap() * MIB, "{most} MiB");
}
