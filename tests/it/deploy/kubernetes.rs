//! The manifests: built by kustomize, validated against the API of three versions, examined by checkov.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use pds_exporter::app::flags::Flags;
use serde_json::Value;

use crate::golden::assert_golden;

use super::{command, deploy, list, operator, output, string, succeed, text, yaml};

/// The API versions that manifests are validated against: the oldest that the chart is for, one between, and the newest.
const VERSIONS: &[&str] = &["1.28", "1.32", "1.37"];

/// What checkov finds and is meant so.
pub(super) const ACCEPTED: &[(&str, &str)] = &[
    ("CKV_K8S_43", "an image is named by its tag: the digest is known only once it is built and pushed"),
    ("CKV_K8S_15", "a tag is never overwritten, so it need not be pulled at each start"),
];

/// The same for the sidecar, whose pod belongs to somebody else.
pub(super) const ACCEPTED_BESIDE: &[(&str, &str)] = &[
    ("CKV_K8S_9", "the workload is ready without the exporter, so it has no readiness probe"),
    ("CKV2_K8S_6", "the workload's own policy decides about its pod"),
];

/// The manifests of an overlay, or the base.
pub(crate) fn kustomize(folder: &str) -> String {
    let folder = deploy("kubernetes").join(folder);
    output(command("kubectl", ["kustomize".as_ref(), folder.as_os_str()]))
}

/// Whether the API of each version accepts the manifests, and the Prometheus Operator those that are its own.
pub(super) fn validate(manifests: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.json");
    let of_operator = |object: &Value| string(object, "/apiVersion").starts_with(operator::GROUP);
    let (monitoring, objects): (Vec<Value>, Vec<Value>) = yaml(manifests).into_iter().partition(of_operator);
    if !monitoring.is_empty() {
        operator::validate(&monitoring);
    }
    let lines = objects.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(!lines.is_empty());
    fs::write(&file, lines.join("\n---\n")).unwrap();
    for version in VERSIONS {
        let mut validate = command("kubernetes-validate", ["--strict", "--quiet", "-k", version]);
        validate.arg(&file);
        succeed(validate);
    }
}

/// Whether checkov finds nothing but what is accepted.
pub(super) fn examine(manifests: &str, accepted: &[&[(&str, &str)]]) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("manifests.yaml"), manifests).unwrap();
    let accepted: Vec<&str> = accepted.iter().copied().flatten().map(|(check, _)| *check).collect();
    let mut checkov =
        command("checkov", ["--framework=kubernetes", "--compact", "--quiet", "--skip-download"]);
    checkov.args(["--skip-check", &accepted.join(",")]).arg("--directory").arg(folder.path());
    let said = succeed(checkov);
    assert!(!said.contains("Failed checks: ") || said.contains("Failed checks: 0"), "{said}");
}

/// The object of this kind.
pub(super) fn object(objects: &[Value], kind: &str) -> Value {
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
fn the_base_is_valid_and_hardened() {
    let manifests = kustomize("base");
    validate(&manifests);
    examine(&manifests, &[ACCEPTED]);
    let deployment = object(&yaml(&manifests), "Deployment");
    assert_eq!(flags(container(&deployment)).config_file, Path::new("/etc/pds-exporter/pds-exporter.toml"));
}

#[test]
fn the_shards_know_their_number_from_one_place() {
    let manifests = kustomize("overlays/sharded");
    validate(&manifests);
    examine(&manifests, &[ACCEPTED]);
    let set = object(&yaml(&manifests), "StatefulSet");
    assert_eq!(Value::from(flags(container(&set)).shard_count.get()), set["spec"]["replicas"]);

    // Another number in that one place changes both.
    let folder = tempfile::tempdir_in(deploy("kubernetes/overlays")).unwrap();
    let overlay = "resources: [../sharded]\nreplicas: [{ name: pds-exporter, count: 7 }]\n";
    fs::write(folder.path().join("kustomization.yaml"), overlay).unwrap();
    let built = output(command("kubectl", ["kustomize".as_ref(), folder.path().as_os_str()]));
    let set = object(&yaml(&built), "StatefulSet");
    assert_eq!(set["spec"]["replicas"], 7);
}

#[test]
fn the_sidecar_runs_like_the_deployment() {
    let manifests = kustomize("overlays/sidecar");
    validate(&manifests);
    examine(&manifests, &[ACCEPTED, ACCEPTED_BESIDE]);
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
    examine(&manifests, &[ACCEPTED]);
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
        assert_eq!(
            labels[string(&monitor, "/spec/jobLabel")],
            "pds-exporter",
            "the job that the alerts know"
        );
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
    for file in ["objectives", "recording", "alerts"] {
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
    // Where the Secret is mounted.
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
    let loaded = pds_exporter::config::load(&file, []).unwrap();
    assert_eq!(loaded.config.projects.len(), 1);
}
