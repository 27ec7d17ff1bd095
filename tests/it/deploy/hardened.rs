//! Objects on Kubernetes are hardened: examined by checkov.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::helm::{example, examples, manifests, template};
use super::kubernetes::kustomize;
use super::{command, succeed, yaml};

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

/// Panics unless checkov finds in the objects just what is accepted. Objects of others would speak for them, so each manifest
/// has a run of its own.
fn assert_hardened(objects: &[Value], accepted: &[&[Accepted]]) {
    // Checkov passes over folders whose name begins with a dot, and is content.
    let folder = tempfile::Builder::new().prefix("manifests").tempdir().unwrap();
    let is_hook = |object: &Value| object.pointer("/metadata/annotations/helm.sh~1hook").is_some();
    // A release's own objects are examined without its hooks, which may lack more.
    let all_hooks = objects.iter().all(is_hook);
    let examined = objects.iter().filter(|object| all_hooks || !is_hook(object));
    for (index, object) in examined.enumerate() {
        fs::write(folder.path().join(format!("{index}.json")), object.to_string()).unwrap();
    }
    let flags = ["--framework=kubernetes", "--compact", "--quiet", "--skip-download", "--soft-fail"];
    let said = succeed(command("checkov", flags).arg("--directory").arg(folder.path()));
    let found: BTreeSet<&str> =
        said.lines().filter_map(|line| line.strip_prefix("Check: ")?.split(':').next()).collect();
    let accepted: BTreeSet<&str> = accepted.iter().copied().flatten().map(|(check, _)| *check).collect();
    assert_eq!(found, accepted, "{objects:?}\n{said}");
}

#[test]
fn the_manifests_are_hardened() {
    for folder in ["base", "overlays/sharded", "overlays/operator"] {
        assert_hardened(&yaml(&kustomize(folder)), &[TAG]);
    }
}

#[test]
fn the_chart_is_hardened() {
    for values in [
        &["mode=deployment"][..],
        &["mode=sharded"],
        &["webConfig.existingSecret=web", "webConfig.tls=true", "podMonitor.enabled=true"],
        &["podMonitor.enabled=true", "prometheusRule.enabled=true", "dashboards.enabled=true"],
    ] {
        assert_hardened(&template("pds-exporter", values), &[TAG]);
    }
    let mut hooks = template("pds-exporter", &["mode=deployment"]);
    hooks.retain(|object| object.pointer("/metadata/annotations/helm.sh~1hook").is_some());
    assert_hardened(&hooks, &[TAG, TEST]);
}

#[test]
fn the_examples_are_hardened() {
    for name in examples() {
        let accepted: &[&[Accepted]] = match &*name {
            "openshift" => &[TAG, &[("CKV_K8S_40", "OpenShift assigns the user, who is a high one")]],
            "persistent" => &[],
            "restore" => &[TAG, &[("CKV_K8S_35", "the headers for Prometheus are a key, and no file")]],
            // Its patch is examined with the workload.
            "sidecar" => continue,
            _ => &[TAG],
        };
        assert_hardened(&example(&name), accepted);
    }
}

#[test]
fn sidecars_are_hardened_in_the_pod_of_another() {
    assert_hardened(&yaml(&kustomize("overlays/sidecar")), &[TAG, BESIDE]);
    assert_hardened(&[manifests::patched()], &[TAG, BESIDE]);
}
