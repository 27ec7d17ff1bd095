//! What runs on Kubernetes is hardened: examined by checkov, together where the same is accepted, as each start of it takes
//! seconds.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::helm::{example, manifests, template};
use super::kubernetes::kustomize;
use super::{command, succeed, yaml};

/// What checkov finds and is meant so.
const ACCEPTED: &[(&str, &str)] = &[
    ("CKV_K8S_43", "an image is named by its tag: the digest is known only once it is built and pushed"),
    ("CKV_K8S_15", "a tag is never overwritten, so it need not be pulled at each start"),
];

/// The same for a sidecar, whose pod belongs to somebody else.
const ACCEPTED_BESIDE: &[(&str, &str)] = &[
    ("CKV_K8S_9", "the workload is ready without the exporter, so it has no readiness probe"),
    ("CKV2_K8S_6", "the workload's own policy decides about its pod"),
];

/// Panics unless checkov finds in manifests, each of which is a list of objects, just what is accepted.
fn assert_hardened(manifests: &[Vec<Value>], accepted: &[&[(&str, &str)]]) {
    // Checkov passes over folders whose name begins with a dot, and is content.
    let folder = tempfile::Builder::new().prefix("manifests").tempdir().unwrap();
    let mut checkov = command(
        "checkov",
        ["--framework=kubernetes", "--compact", "--quiet", "--skip-download", "--soft-fail"],
    );
    // A folder each, as what one of them has would speak for the others.
    for (index, objects) in manifests.iter().enumerate() {
        let folder = folder.path().join(index.to_string());
        fs::create_dir(&folder).unwrap();
        for (index, object) in objects.iter().enumerate() {
            fs::write(folder.join(format!("{index}.json")), object.to_string()).unwrap();
        }
        checkov.arg("--directory").arg(folder);
    }
    let said = succeed(checkov);
    let found: BTreeSet<&str> =
        said.lines().filter_map(|line| line.strip_prefix("Check: ")?.split(':').next()).collect();
    let accepted: BTreeSet<&str> = accepted.iter().copied().flatten().map(|(check, _)| *check).collect();
    assert_eq!(found, accepted, "{said}");
}

#[test]
fn manifests_and_chart_are_hardened() {
    let mut all =
        ["base", "overlays/sharded", "overlays/operator"].map(|folder| yaml(&kustomize(folder))).to_vec();
    all.extend(["monitoring", "sharded", "persistent", "restore", "files", "community"].map(example));
    let values = [
        &["mode=deployment"][..],
        &["webConfig.existingSecret=web", "webConfig.tls=true", "podMonitor.enabled=true"],
    ];
    all.extend(values.map(|values| template("pds-exporter", values)));
    assert_hardened(&all, &[ACCEPTED]);
}

#[test]
fn sidecars_are_hardened_in_the_pod_of_another() {
    let all = [yaml(&kustomize("overlays/sidecar")), vec![manifests::patched()]];
    assert_hardened(&all, &[ACCEPTED, ACCEPTED_BESIDE]);
}

#[test]
fn a_platform_that_assigns_the_user_is_as_hardened() {
    let user = ("CKV_K8S_40", "OpenShift assigns the user, who is a high one");
    assert_hardened(&[example("openshift")], &[ACCEPTED, &[user]]);
}
