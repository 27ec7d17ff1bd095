//! Objects on Kubernetes are hardened: examined by checkov.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::helm::{example, examples, manifests, template};
use super::kubernetes::kustomize;
use super::{command, output, yaml};

/// A check of checkov, and why it is meant so that it fails.
type Accepted = (&'static str, &'static str);

/// An image that is named by its tag.
const TAG: &[Accepted] = &[
    ("CKV_K8S_43", "the digest is known only once the image is built and pushed"),
    ("CKV_K8S_15", "a tag is never overwritten, so it need not be pulled at each start"),
];

/// A sidecar, whose pod belongs to somebody else.
const BESIDE: &[Accepted] = &[
    ("CKV_K8S_9", "the workload is ready without the exporter, so it has no readiness probe"),
    ("CKV2_K8S_6", "the workload's own policy decides about its pod"),
];

/// The pod of `helm test`, which ends by itself.
const TEST: &[Accepted] = &[
    ("CKV_K8S_8", "it lives for a moment"),
    ("CKV_K8S_9", "nobody waits for it"),
    ("CKV2_K8S_6", "nobody reaches it: it serves nothing"),
];

/// Objects, and the checks that they are known to fail.
type Manifest = (String, Vec<Value>, Vec<&'static [Accepted]>);

#[test]
fn manifests_and_charts_fail_only_the_checks_that_are_accepted() {
    // Checkov ignores folders whose name begins with a dot.
    let folder = tempfile::Builder::new().prefix("manifests").tempdir().unwrap();
    let manifests: Vec<Manifest> = overlays().chain(charts()).chain(chart_examples()).collect();
    // Objects of others would speak for them, so each manifest has a folder of its own.
    for (number, (_, objects, _)) in manifests.iter().enumerate() {
        let files = folder.path().join(number.to_string());
        fs::create_dir(&files).unwrap();
        for (index, object) in objects.iter().enumerate() {
            fs::write(files.join(format!("{index}.json")), object.to_string()).unwrap();
        }
    }
    let mut checkov = command("python3", ["tests/it/deploy/hardened.py"]);
    checkov.args((0..manifests.len()).map(|number| folder.path().join(number.to_string())));
    let failed = output(checkov);
    assert_eq!(failed.lines().count(), manifests.len(), "{failed}");
    for (failed, (name, objects, accepted)) in failed.lines().zip(manifests) {
        let failed: BTreeSet<&str> = failed.split_whitespace().collect();
        let accepted: BTreeSet<&str> = accepted.into_iter().flatten().map(|(check, _)| *check).collect();
        assert_eq!(failed, accepted, "{name}: {objects:?}");
    }
}

fn overlays() -> impl Iterator<Item = Manifest> {
    let plain = ["base", "overlays/sharded", "overlays/operator"].map(|folder| (folder, vec![TAG]));
    let overlays = plain.into_iter().chain([("overlays/sidecar", vec![TAG, BESIDE])]);
    overlays.map(|(folder, accepted)| (folder.to_owned(), yaml(&kustomize(folder)), accepted))
}

fn charts() -> impl Iterator<Item = Manifest> {
    let rendered = [
        &["mode=deployment"][..],
        &["mode=sharded"],
        &["webConfig.existingSecret=web", "webConfig.tls=true", "podMonitor.enabled=true"],
        &["podMonitor.enabled=true", "prometheusRule.enabled=true", "dashboards.enabled=true"],
    ];
    let charts = rendered.map(|values| {
        let mut objects = template(values);
        // Hooks are examined by themselves, as they may lack more.
        objects.retain(|object| !is_hook(object));
        (values.join(","), objects, vec![TAG])
    });
    let mut hooks = template(&["mode=deployment"]);
    hooks.retain(is_hook);
    let patched = ("sidecar".to_owned(), vec![manifests::patched()], vec![TAG, BESIDE]);
    charts.into_iter().chain([("hooks".to_owned(), hooks, vec![TAG, TEST]), patched])
}

fn chart_examples() -> impl Iterator<Item = Manifest> {
    // The patch of the sidecar is examined with the workload.
    examples().into_iter().filter(|name| name != "sidecar").map(|name| {
        let accepted: Vec<&[Accepted]> = match &*name {
            "openshift" => vec![TAG, &[("CKV_K8S_40", "OpenShift assigns the user, who is a high one")]],
            "persistent" => vec![],
            "restore" => vec![TAG, &[("CKV_K8S_35", "the headers for Prometheus are a key, and no file")]],
            _ => vec![TAG],
        };
        let mut objects = example(&name);
        objects.retain(|object| !is_hook(object));
        (name, objects, accepted)
    })
}

fn is_hook(object: &Value) -> bool {
    object.pointer("/metadata/annotations/helm.sh~1hook").is_some()
}
