//! Two exporters out of one base.

use super::*;

/// An overlay with `prefix` before the names of another.
fn prefixed(overlay: &str, prefix: &str) -> Vec<Value> {
    let folder = tempfile::tempdir_in(deploy("kubernetes/overlays")).unwrap();
    let text = format!("resources: [../../{overlay}]\nnamePrefix: {prefix}\n");
    fs::write(folder.path().join("kustomization.yaml"), text).unwrap();
    yaml(&output(command("kubectl", ["kustomize".as_ref(), folder.path().as_os_str()])))
}

fn workload(objects: &[Value]) -> &Value {
    objects.iter().find(|object| object.pointer("/spec/template").is_some()).unwrap()
}

/// The labels of its pods.
fn labels_of(objects: &[Value]) -> &Value {
    &workload(objects)["spec"]["template"]["metadata"]["labels"]
}

/// Every set of labels by which an object selects pods or Services.
fn selectors(objects: &[Value]) -> Vec<(&str, &Value)> {
    let places = ["/spec/selector/matchLabels", "/spec/podSelector/matchLabels", "/spec/selector"];
    let found = objects.iter().filter_map(|object| {
        let labels = places.iter().find_map(|place| object.pointer(place))?;
        Some((string(object, "/kind"), labels))
    });
    found.collect()
}

#[test]
fn a_pair_has_names_labels_and_selectors_of_its_own() {
    let chart = |release: &str, values: &[&str]| {
        let values = values.iter().flat_map(|value| ["--set", value]);
        let mut helm = command("helm", ["template", release, "--kube-version=1.32.0", "--namespace=pds"]);
        yaml(&output({
            helm.arg(deploy("helm/pds-exporter")).args(values);
            helm
        }))
    };
    let (monitors, sharded) =
        (&["podMonitor.enabled=true"], &["mode=sharded", "serviceMonitor.enabled=true"]);
    for (way, pair) in [
        ("base", ["a-", "b-"].map(|prefix| prefixed("base", prefix))),
        ("sharded", ["a-", "b-"].map(|prefix| prefixed("overlays/sharded", prefix))),
        ("operator", ["a-", "b-"].map(|prefix| prefixed("overlays/operator", prefix))),
        ("chart", ["a", "b"].map(|release| chart(release, monitors))),
        ("chart on Google Cloud", ["a", "b"].map(|release| chart(release, &["podMonitoring.enabled=true"]))),
        ("sharded chart", ["a", "b"].map(|release| chart(release, sharded))),
    ] {
        let names = |objects: &[Value]| -> BTreeSet<String> {
            let name = |object| format!("{} {}", string(object, "/kind"), string(object, "/metadata/name"));
            objects.iter().filter(|object| object["kind"] != "Namespace").map(name).collect()
        };
        let [one, other] = &pair;
        assert!(names(one).is_disjoint(&names(other)), "{way}: {:?}", names(one));
        let workload = workload(one);
        let labels = labels_of(one);
        let selects =
            |selector: &Value| selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value);
        assert!(selectors(one).len() >= 4, "{way}");
        for (kind, selector) in selectors(one) {
            assert!(selects(selector), "{way}: {kind} {selector} misses its pods");
        }
        for (kind, selector) in selectors(other) {
            assert!(!selects(selector), "{way}: {kind} {selector} selects the pods of the other");
        }
        // A reference to another object names its own.
        let headless = one.iter().find(|object| object["spec"]["clusterIP"] == "None");
        assert_eq!(
            workload["spec"].get("serviceName"),
            headless.map(|object| &object["metadata"]["name"]),
            "{way}"
        );
        // The job of its series, also as kubernetes.yml sets it.
        let job = |objects: &[Value]| {
            if let Some(google) = objects.iter().find(|object| object["kind"] == "PodMonitoring") {
                return google["metadata"]["name"].clone();
            }
            let monitor = objects.iter().find_map(|object| object.pointer("/spec/jobLabel")?.as_str());
            labels_of(objects)[monitor.unwrap_or("app.kubernetes.io/instance")].clone()
        };
        assert_ne!(job(one), job(other), "{way}");
        if way.contains("chart") {
            assert_eq!([job(one), job(other)], ["a", "b"], "{way}: the rules know the release");
        }
    }
}
