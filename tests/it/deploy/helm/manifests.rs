//! The chart and the plain manifests give the same objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::template;
use crate::deploy::kubernetes::{container, kustomize, object, with_shard_count};
use crate::deploy::{list, string, yaml};

#[test]
fn the_chart_and_the_manifests_give_the_same_objects() {
    for (overlay, values) in [
        ("base", vec![]),
        // Ten thousand apps each, as in the base.
        ("overlays/sharded", vec!["mode=sharded", "apps=30000"]),
        (
            "overlays/operator",
            vec![
                "podMonitor.enabled=true",
                "prometheusRule.enabled=true",
                "prometheusRule.thisReleaseOnly=false",
                "dashboards.enabled=true",
                "state.prometheus.url=http://prometheus-operated.monitoring.svc:9090",
            ],
        ),
    ] {
        let (chart, manifests) = (template(&values), yaml(&kustomize(overlay)));
        let (chart, manifests) = (by_name(chart), by_name(manifests));
        assert_eq!(chart.keys().collect::<Vec<_>>(), manifests.keys().collect::<Vec<_>>(), "{overlay}");
        for (name, object) in &chart {
            let of_manifests = manifests[name].clone();
            let is_set = object["kind"] == "StatefulSet";
            let of_manifests = if is_set { with_shard_count(of_manifests) } else { of_manifests };
            assert_eq!(pretty(object), pretty(&of_manifests), "{overlay}: {name}");
        }
    }
}

/// The patch of the chart, whose only other object is the configuration.
fn patch(values: &[&str]) -> Value {
    let objects = template(&[&["mode=sidecar"], values].concat());
    let kinds: Vec<&str> = objects.iter().map(|object| string(object, "/kind")).collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap"], "nothing but the configuration and the patch");
    let patch = objects.iter().find_map(|object| object["data"]["patch.yaml"].as_str()).unwrap();
    yaml(patch).remove(0)
}

/// The workload of the manifests with the chart's patch in place of theirs.
pub(in crate::deploy) fn patched() -> Value {
    let (mut workload, patch) = (object(&yaml(&kustomize("overlays/sidecar")), "Deployment"), patch(&[]));
    for list in ["containers", "volumes"] {
        workload["spec"]["template"]["spec"][list] = patch["spec"]["template"]["spec"][list].clone();
    }
    workload
}

#[test]
fn the_sidecar_patch_is_that_of_the_manifests() {
    let (patch, beside) = (patch(&[]), object(&yaml(&kustomize("overlays/sidecar")), "Deployment"));
    assert_eq!(pretty(container(&patch)), pretty(container(&beside)));
    let volumes = |workload: &Value| -> Vec<Value> {
        let volumes = list(&workload["spec"]["template"]["spec"]["volumes"]).iter();
        volumes.filter(|volume| string(volume, "/name").starts_with("pds-exporter-")).map(clean).collect()
    };
    assert_eq!(volumes(&patch), volumes(&beside));
}

#[test]
fn the_sidecar_brings_the_secrets_of_its_registry() {
    let secrets = |values: &[&str]| patch(values)["spec"]["template"]["spec"]["imagePullSecrets"].clone();
    let given = ["image.pullSecrets[0].name=own", "global.imagePullSecrets[0].name=global"];
    assert_eq!(secrets(&given), json!([{ "name": "own" }, { "name": "global" }]));
    assert_eq!(secrets(&[]), Value::Null);
}

#[test]
fn the_sidecar_has_the_group_of_its_container_or_else_of_the_pod() {
    for (values, group) in [
        (&["podSecurityContext.runAsGroup=1"][..], json!(1)),
        (&["podSecurityContext.runAsGroup=1", "securityContext.runAsGroup=2"], json!(2)),
        (&["podSecurityContext.runAsGroup=null"], Value::Null),
    ] {
        assert_eq!(container(&patch(values))["securityContext"]["runAsGroup"], group, "{values:?}");
    }
}

/// Objects by kind and name, without what only one of the two tools has: `helm test`, labels.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| format!("{} {}", string(object, "/kind"), string(object, "/metadata/name"));
    let is_kept = |object: &&Value| object.pointer("/metadata/annotations/helm.sh~1hook").is_none();
    objects.iter().filter(is_kept).map(clean).map(|object| (name(&object), object)).collect()
}

/// Without Helm's own labels, and empty maps.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let helms = ["helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"];
            let kept = fields.iter().filter(|(key, _)| !helms.contains(&key.as_str()));
            let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), clean(value))).collect();
            let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            let labels = ["annotations", "labels"];
            kept.into_iter()
                .filter(|(key, value)| !(labels.contains(&key.as_str()) && is_empty(value)))
                .collect()
        }
        Value::Array(elements) => elements.iter().map(clean).collect(),
        other => other.clone(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(&clean(value)).unwrap()
}
