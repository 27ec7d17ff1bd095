//! The Helm chart: linted and rendered by an old and a new Helm, validated like the manifests, and equal to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::kubernetes::{ACCEPTED, ACCEPTED_BESIDE, container, examine, flags, kustomize, object, validate};
use super::{command, deploy, list, output, string, succeed, text, yaml};

/// The oldest Helm that the chart is for, and a new one. Installed by name and pinned in `tests/packages`.
const HELMS: &[&str] = &["helm-3.6", "helm"];

/// The chart rendered by each Helm, which must agree.
pub(super) fn template(namespace: &str, values: &[&str]) -> Vec<Value> {
    let render = |helm: &str| {
        let mut helm =
            command(helm, ["template", "pds-exporter", "--kube-version=1.32.0", "--namespace", namespace]);
        helm.arg(deploy("helm/pds-exporter"));
        for value in values {
            helm.args(["--set", value]);
        }
        output(helm)
    };
    let rendered: Vec<String> = HELMS.iter().map(|helm| render(helm)).collect();
    let objects: Vec<Vec<Value>> = rendered.iter().map(|text| yaml(text)).collect();
    assert_eq!(objects[0], objects[1], "{HELMS:?} differ");
    validate(&rendered[0]);
    objects.into_iter().next().unwrap()
}

#[test]
fn helm_finds_no_fault_with_the_chart() {
    for helm in HELMS {
        let mut lint = command(helm, ["lint", "--strict"]);
        lint.arg(deploy("helm/pds-exporter"));
        succeed(lint);
    }
}

#[test]
fn the_chart_and_the_manifests_give_the_same_objects() {
    for (overlay, values) in [
        ("base", vec![]),
        ("overlays/sharded", vec!["mode=sharded"]),
        (
            "overlays/operator",
            vec!["podMonitor.enabled=true", "prometheusRule.enabled=true", "dashboards.enabled=true"],
        ),
    ] {
        let (chart, manifests) = (template("pds-exporter", &values), yaml(&kustomize(overlay)));
        let (chart, manifests) = (by_name(chart), by_name(manifests));
        assert_eq!(chart.keys().collect::<Vec<_>>(), manifests.keys().collect::<Vec<_>>(), "{overlay}");
        for (name, object) in &chart {
            assert_eq!(pretty(object), pretty(&manifests[name]), "{overlay}: {name}");
        }
    }
}

/// The objects as one text of many documents.
fn documents(objects: &[Value]) -> String {
    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn the_chart_is_hardened() {
    for values in [
        &["mode=deployment"][..],
        &["mode=sharded"],
        &["webConfig.existingSecret=web", "webConfig.tls=true", "podMonitor.enabled=true"],
        &["podMonitor.enabled=true", "prometheusRule.enabled=true", "dashboards.enabled=true"],
    ] {
        examine(&documents(&template("pds-exporter", values)), &[ACCEPTED]);
    }
}

#[test]
fn the_sidecar_patch_is_that_of_the_manifests() {
    let objects = template("monitoring", &["mode=sidecar"]);
    let kinds: Vec<&str> = objects.iter().map(|object| string(object, "/kind")).collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap"], "nothing but the configuration and the patch");
    let patch = objects.iter().find_map(|object| object["data"]["patch.yaml"].as_str()).unwrap();
    let patch = yaml(patch).remove(0);
    let beside = object(&yaml(&kustomize("overlays/sidecar")), "Deployment");
    assert_eq!(pretty(container(&patch)), pretty(container(&beside)));
    let volumes = |workload: &Value| -> Vec<Value> {
        let volumes = list(&workload["spec"]["template"]["spec"]["volumes"]).iter();
        volumes.filter(|volume| string(volume, "/name").starts_with("pds-exporter-")).map(clean).collect()
    };
    assert_eq!(volumes(&patch), volumes(&beside));
    let mut workload = beside;
    for list in ["containers", "volumes"] {
        workload["spec"]["template"]["spec"][list] = patch["spec"]["template"]["spec"][list].clone();
    }
    examine(&workload.to_string(), &[ACCEPTED, ACCEPTED_BESIDE]);
}

#[test]
fn with_tls_probes_and_scrapes_use_it() {
    let mut values = vec!["webConfig.existingSecret=web", "webConfig.tls=true", "podMonitor.enabled=true"];
    let objects = template("pds-exporter", &values);
    let deployment = object(&objects, "Deployment");
    let exporter = container(&deployment);
    let parsed = flags(exporter);
    assert_eq!(parsed.web_config_file.unwrap().to_str(), Some("/etc/pds-exporter-web/web-config.yml"));
    assert!(parsed.web_probes_without_auth);
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(exporter[probe]["httpGet"]["scheme"], "HTTPS", "{probe}");
    }
    let endpoint =
        |objects: &[Value]| object(objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0].clone();
    assert_eq!(endpoint(&objects)["scheme"], "https");

    // How to reach it is written as the operator wants it; `template` asks for that.
    values.extend([
        "podMonitor.labels.release=kube-prometheus-stack",
        "podMonitor.tlsConfig.serverName=pds-exporter",
        "podMonitor.tlsConfig.ca.secret.name=web",
        "podMonitor.tlsConfig.ca.secret.key=ca.crt",
        "podMonitor.basicAuth.username.name=web",
        "podMonitor.basicAuth.username.key=username",
        "podMonitor.basicAuth.password.name=web",
        "podMonitor.basicAuth.password.key=password",
    ]);
    let endpoint = endpoint(&template("pds-exporter", &values));
    assert_eq!(endpoint["tlsConfig"]["ca"]["secret"]["key"], "ca.crt");
    assert_eq!(endpoint["basicAuth"]["password"]["name"], "web");

    // The kubelet has no certificate to show, so it only connects.
    values.push("webConfig.clientCertificates=true");
    let deployment = object(&template("pds-exporter", &values), "Deployment");
    assert_eq!(container(&deployment)["livenessProbe"]["tcpSocket"], json!({ "port": "http" }));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    for (value, named) in [("mode=daemonset", "mode"), ("shards=0", "shards"), ("replicas=2", "replicas")] {
        for helm in HELMS {
            let mut render = command(helm, ["template", "x", "--set", value]);
            let failed = render.arg(deploy("helm/pds-exporter")).output().unwrap();
            let said = String::from_utf8_lossy(&failed.stderr);
            assert!(!failed.status.success() && said.contains(named), "{helm}: {value}: {said}");
        }
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let chart = yaml(&text("helm/pds-exporter/Chart.yaml")).remove(0);
    for key in ["/version", "/appVersion"] {
        assert_eq!(string(&chart, key), env!("CARGO_PKG_VERSION"), "{key}");
    }
    let tag = format!("newTag: {}", env!("CARGO_PKG_VERSION"));
    for kustomization in ["base", "components/sidecar"] {
        assert!(
            text(&format!("kubernetes/{kustomization}/kustomization.yaml")).contains(&tag),
            "{kustomization}"
        );
    }
}

/// Objects by kind and name, without what only one of the two tools adds.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| format!("{} {}", string(object, "/kind"), string(object, "/metadata/name"));
    objects.iter().map(clean).map(|object| (name(&object), object)).collect()
}

/// Without Helm's own labels and checksum, kustomize's hash in the name of a ConfigMap, and empty maps.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let helms = [
                "helm.sh/chart",
                "app.kubernetes.io/managed-by",
                "app.kubernetes.io/version",
                "checksum/config",
            ];
            let kept = fields.iter().filter(|(key, _)| !helms.contains(&key.as_str()));
            let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), clean(value))).collect();
            let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            let labels = ["annotations", "labels"];
            kept.into_iter()
                .filter(|(key, value)| !(labels.contains(&key.as_str()) && is_empty(value)))
                .collect()
        }
        Value::Array(elements) => elements.iter().map(clean).collect(),
        Value::String(text) => Value::from(match text.strip_prefix("pds-exporter-config-") {
            Some(hash) if hash.len() == 10 => "pds-exporter-config",
            _ => text.as_str(),
        }),
        other => other.clone(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(&clean(value)).unwrap()
}
