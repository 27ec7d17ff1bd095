//! The manifests: built by kustomize, validated against the API of three versions.

mod pair;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::Parser as _;
use pds_config::flags::Flags;
use serde_json::Value;

use crate::golden::assert_golden;

use super::{command, deploy, list, operator, output, string, succeed, text, yaml};

/// The API versions that manifests are validated against: the oldest that the chart is for, one between, and the newest.
const VERSIONS: &[&str] = &["1.28", "1.32", "1.37"];

/// The manifests of an overlay, or the base.
pub(crate) fn kustomize(folder: &str) -> String {
    let folder = deploy("kubernetes").join(folder);
    output(command("kubectl", ["kustomize".as_ref(), folder.as_os_str()]))
}

/// The manifests of an overlay in `folder`, beside a link `kubernetes` to ours: other tests read the tree of sources.
pub(crate) fn kustomize_in(folder: &Path, overlay: &str) -> String {
    std::os::unix::fs::symlink(deploy("kubernetes"), folder.join("kubernetes")).unwrap();
    fs::write(folder.join("kustomization.yaml"), overlay).unwrap();
    output(command("kubectl", ["kustomize".as_ref(), folder.as_os_str()]))
}

/// Whether the API of each version accepts the manifests, and the operator's and the gateway's those of theirs.
pub(crate) fn validate(manifests: &str) {
    // No model of it is published; the table of the chart's values holds it whole.
    let objects = yaml(manifests).into_iter().filter(|object| object["kind"] != "PodMonitoring");
    let (custom, mut objects): (Vec<Value>, Vec<Value>) = objects.partition(operator::has_model);
    if !custom.is_empty() {
        operator::validate(&custom);
    }
    assert!(!objects.is_empty());
    for object in custom.iter().chain(&objects) {
        assert_eq!(twice(object), None, "{object}");
    }
    objects.iter_mut().for_each(shorten);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.json");
    fs::write(&file, objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")).unwrap();
    let versions = VERSIONS.iter().flat_map(|version| ["-k", version]);
    // It succeeds even where it does not know a kind, so anything said is a fault.
    let said = succeed(command("kubernetes-validate", ["--strict", "--quiet"]).args(versions).arg(&file));
    assert!(said.is_empty(), "{said}");
}

/// Lists that the API keeps as maps, and the fields that are the key of an element.
const LIST_MAPS: &[(&str, &[&str])] = &[
    ("groups", &["name"]),
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("env", &["name"]),
    ("ports", &["containerPort", "port", "protocol"]),
];

/// A key that stands twice in a list of the object, which the API refuses and the validators do not.
pub(super) fn twice(value: &Value) -> Option<String> {
    let fields = value.as_object().into_iter().flatten();
    let within = fields.clone().map(|(_, field)| field).chain(list(value));
    fields
        .filter_map(|(name, field)| Some((name, field, LIST_MAPS.iter().find(|(list, _)| list == name)?.1)))
        .find_map(|(name, field, keys)| {
            let mut seen = std::collections::BTreeSet::new();
            let key = |element: &Value| keys.iter().map(|key| element[*key].to_string()).collect::<String>();
            list(field)
                .iter()
                .map(key)
                .find(|key| !seen.insert(key.clone()))
                .map(|key| format!("{name}: {key}"))
        })
        .or_else(|| within.into_iter().find_map(twice))
}

#[test]
fn a_key_that_stands_twice_is_found() {
    let groups =
        serde_json::json!({ "spec": { "groups": [{ "name": "a" }, { "name": "b" }, { "name": "a" }] } });
    assert_eq!(twice(&groups).as_deref(), Some("groups: \"a\""));
}

/// Cuts long texts, such as dashboards: to the API they are any text, and the validator reads each version anew, slowly.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.chars().take(256).collect(),
        Value::Array(elements) => elements.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// The object of this kind.
pub(crate) fn object(objects: &[Value], kind: &str) -> Value {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}")).clone()
}

/// The exporter's container of a Deployment or StatefulSet.
pub(super) fn container(workload: &Value) -> &Value {
    let containers = list(&workload["spec"]["template"]["spec"]["containers"]);
    containers.iter().find(|container| container["name"] == "pds-exporter").unwrap()
}

/// The flags that a container gives the exporter, its environment filled in.
pub(super) fn flags(container: &Value) -> Flags {
    let arguments = list(&container["args"]).iter().map(|argument| {
        let argument = argument.as_str().unwrap().replace("$(PDS_SHARD_INDEX)", "0");
        let environment = list(&container["env"]).iter();
        let mut filled = environment.filter_map(|variable| {
            Some((format!("$({})", string(variable, "/name")), variable["value"].as_str()?))
        });
        filled
            .find(|(name, _)| argument.contains(name))
            .map_or(argument.clone(), |(name, value)| argument.replace(&name, value))
    });
    Flags::try_parse_from(["pds-exporter".to_owned()].into_iter().chain(arguments)).unwrap()
}

#[test]
#[should_panic(expected = "replicaz")]
fn a_key_that_kubernetes_does_not_know_is_refused() {
    validate(&kustomize("base").replace("replicas:", "replicaz:"));
}

#[test]
fn the_base_is_valid() {
    let manifests = kustomize("base");
    validate(&manifests);
    let deployment = object(&yaml(&manifests), "Deployment");
    assert_eq!(flags(container(&deployment)).config_file, Path::new("/etc/pds-exporter/pds-exporter.toml"));
}

#[test]
fn the_shards_know_their_number_from_one_place() {
    // An overlay has the last word.
    for (change, shards) in [("", 3), ("replicas: [{ name: pds-exporter, count: 7 }]", 7)] {
        let overlay = format!("resources: [kubernetes/overlays/sharded]\n{change}\n");
        let manifests = kustomize_in(tempfile::tempdir().unwrap().path(), &overlay);
        validate(&manifests);
        let set = with_shard_count(object(&yaml(&manifests), "StatefulSet"));
        assert_eq!(
            (flags(container(&set)).shard_count.get(), &set["spec"]["replicas"]),
            (shards, &shards.into())
        );
    }
}

/// The shards with their number as the value of its variable, which reads it from an annotation of the pod.
pub(super) fn with_shard_count(mut set: Value) -> Value {
    let pod = &mut set["spec"]["template"];
    let annotations = pod["metadata"].as_object_mut().unwrap().remove("annotations").unwrap();
    let variables = pod["spec"]["containers"][0]["env"].as_array_mut().unwrap();
    let count = variables.iter_mut().find(|variable| variable["name"] == "PDS_SHARD_COUNT").unwrap();
    let from = string(count, "/valueFrom/fieldRef/fieldPath");
    assert_eq!(from, "metadata.annotations['pds-exporter/shards']");
    *count = serde_json::json!({ "name": "PDS_SHARD_COUNT", "value": annotations["pds-exporter/shards"] });
    set
}

#[test]
fn the_sidecar_runs_like_the_deployment() {
    let manifests = kustomize("overlays/sidecar");
    validate(&manifests);
    let objects = yaml(&manifests);
    let (beside, alone) = (object(&objects, "Deployment"), object(&yaml(&kustomize("base")), "Deployment"));
    let (beside, alone) = (container(&beside), container(&alone));
    for same in ["image", "args", "resources", "imagePullPolicy"] {
        assert_eq!(beside[same], alone[same], "{same}");
    }
    let paths = |container: &Value| -> Vec<String> {
        list(&container["volumeMounts"]).iter().map(|mount| string(mount, "/mountPath").to_owned()).collect()
    };
    assert_eq!(paths(beside), paths(alone));
    assert_eq!(
        text("kubernetes/components/sidecar/pds-exporter.toml"),
        text("kubernetes/base/pds-exporter.toml")
    );
}

#[test]
fn the_operator_overlay_is_valid_and_finds_the_pods() {
    let manifests = kustomize("overlays/operator");
    validate(&manifests);
    let objects = yaml(&manifests);
    let labels = &object(&objects, "Deployment")["spec"]["template"]["metadata"]["labels"];
    let service = object(&objects, "Service");
    let monitors = [
        (object(&objects, "PodMonitor"), "podMetricsEndpoints", labels),
        (
            yaml(&text("kubernetes/overlays/operator/servicemonitor.yaml")).remove(0),
            "endpoints",
            &service["metadata"]["labels"],
        ),
    ];
    for (monitor, endpoints, labels) in monitors {
        operator::validate(std::slice::from_ref(&monitor));
        assert_eq!(&monitor["spec"]["selector"]["matchLabels"], labels);
        assert_eq!(labels[string(&monitor, "/spec/jobLabel")], "pds-exporter", "the release");
        assert_eq!(monitor["spec"][endpoints][0]["port"], service["spec"]["ports"][0]["name"]);
    }
}

#[test]
fn prometheus_rule_holds_the_rule_files() {
    let mut rule = concat!(
        "# The rule files of deploy/prometheus/rules in one object; edit those, and a test with UPDATE_GOLDEN=1 writes this.\n",
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: pds-exporter\n",
        "spec:\n  groups:\n"
    )
    .to_owned();
    for file in ["objectives", "recording", "slo", "alerts", "shards"] {
        let file = text(&format!("prometheus/rules/{file}.yml"));
        let (_, groups) = file.split_once("groups:\n").unwrap();
        for line in groups.lines() {
            rule.push_str(if line.is_empty() { "" } else { "  " });
            rule.push_str(line);
            rule.push('\n');
        }
    }
    assert_golden(&deploy("kubernetes/overlays/operator/prometheusrule.yaml"), &rule);
}

#[test]
fn the_shipped_configuration_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    // The mount path of the Secret.
    let token = folder.path().join("token");
    fs::write(&token, "token").unwrap();
    let config = text("kubernetes/base/pds-exporter.toml");
    assert!(
        config.contains("\"/run/secrets/pds/token\""),
        "the path at which the manifests mount the Secret"
    );
    let config = config.replace("/run/secrets/pds/token", token.to_str().unwrap());
    let file = folder.path().join("pds-exporter.toml");
    fs::write(&file, config).unwrap();
    let loaded = pds_config::load(&file, []).unwrap();
    assert_eq!(loaded.config.projects.len(), 1);
}

#[test]
fn every_scrape_configuration_keeps_the_labels_of_apps_and_projects() {
    let files = "prometheus/agent.yml prometheus/collector.yml prometheus/kubernetes.yml prometheus/prometheus.yml compose/prometheus.yml \
        kubernetes/overlays/sidecar/prometheus.yml kubernetes/overlays/operator/podmonitor.yaml \
        kubernetes/overlays/operator/servicemonitor.yaml";
    for file in files.split_whitespace() {
        let keeps = ["honor_labels: true", "honorLabels: true"].iter().any(|key| text(file).contains(key));
        assert!(keeps, "{file}");
    }
}

/// A pod as `kubernetes_sd` finds it: its name, its ordinal in a StatefulSet, its phase.
fn pod(name: &str, index: Option<&str>, phase: &str) -> Value {
    let mut labels = serde_json::json!({
        "__meta_kubernetes_pod_label_app_kubernetes_io_name": "pds-exporter",
        "__meta_kubernetes_pod_label_app_kubernetes_io_instance": "pds",
        "__meta_kubernetes_pod_container_port_name": "http",
        "__meta_kubernetes_pod_phase": phase,
        "__meta_kubernetes_namespace": "monitoring",
        // As the operator sets it before these.
        "pod": name,
    });
    if let Some(index) = index {
        labels["__meta_kubernetes_pod_label_apps_kubernetes_io_pod_index"] = index.into();
    }
    serde_json::json!({ "targets": [format!("{name}:10090")], "labels": labels })
}

#[test]
fn a_place_that_a_process_fills_has_one_instance_whatever_its_pod_is_called() {
    let snake = |text: String| {
        let words =
            text.chars().map(|c| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.into() });
        words.collect::<String>()
    };
    let plain = yaml(&text("prometheus/kubernetes.yml")).remove(0);
    let plain = plain["scrape_configs"][0]["relabel_configs"].clone();
    let mut ways = vec![("kubernetes.yml", plain)];
    for (name, endpoints) in [("podmonitor", "podMetricsEndpoints"), ("servicemonitor", "endpoints")] {
        let monitor = yaml(&text(&format!("kubernetes/overlays/operator/{name}.yaml"))).remove(0);
        let relabelings = list(&monitor["spec"][endpoints][0]["relabelings"]).iter().map(|relabeling| {
            let fields = relabeling.as_object().unwrap().iter();
            fields.map(|(key, value)| (snake(key.clone()), value.clone())).collect::<serde_json::Map<_, _>>()
        });
        ways.push((name, relabelings.collect::<Vec<_>>().into()));
    }
    for (way, relabelings) in ways {
        let pods = [
            pod("pds-7b9c-x", None, "Running"),
            pod("pds-66d5-y", None, "Running"),
            pod("pds-0", Some("0"), "Running"),
            pod("pds-11", Some("11"), "Running"),
            pod("pds-7b9c-evicted", None, "Failed"),
        ];
        let job =
            serde_json::json!({ "job_name": "j", "static_configs": pods, "relabel_configs": relabelings });
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), serde_json::json!({ "scrape_configs": [job] }).to_string()).unwrap();
        let mut promtool = command("promtool", ["check", "service-discovery", "--timeout=1s"]);
        promtool.arg(file.path()).arg("j");
        let found: Value = serde_json::from_str(&output(promtool)).unwrap();
        let labels = list(&found).iter().map(|target| &target["labels"]).filter(|labels| labels.is_object());
        let labels: Vec<&Value> = labels.filter(|labels| labels.get("instance").is_some()).collect();
        let mut instances: Vec<&str> = labels.iter().map(|labels| string(labels, "/instance")).collect();
        instances.sort_unstable();
        let expected: &[&str] = match way {
            "kubernetes.yml" => &["pds", "pds", "pds-0", "pds-11"],
            // The operator itself drops pods that have finished.
            _ => &["pds", "pds", "pds", "pds-0", "pds-11"],
        };
        assert_eq!(instances, expected, "{way}");
        assert!(
            labels.iter().all(|labels| match way {
                "kubernetes.yml" => labels["job"] == "pds",
                _ => labels.get("pod").is_none(),
            }),
            "{way}: {labels:?}"
        );
    }
}
