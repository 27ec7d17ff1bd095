//! Two exporters out of one base.

use super::*;

/// The base and the overlays.
const OVERLAYS: [&str; 4] = ["base", "overlays/sharded", "overlays/operator", "overlays/sidecar"];

/// An overlay of another that changes a field: the prefix of names, or the namespace.
fn overlaid(overlay: &str, change: &str) -> Vec<Value> {
    let text = format!("resources: [kubernetes/{overlay}]\n{change}\n");
    yaml(&kustomize_in(tempfile::tempdir().unwrap().path(), &text))
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
        let values = values.iter().flat_map(|value| ["--set", value]).collect::<Vec<_>>();
        crate::deploy::rendered::release(release, "pds", &values)
    };
    let (monitors, sharded) =
        (&["podMonitor.enabled=true"], &["mode=sharded", "serviceMonitor.enabled=true"]);
    let prefixes = ["namePrefix: a-", "namePrefix: b-"];
    let overlays = OVERLAYS.map(|overlay| (overlay, prefixes.map(|prefix| overlaid(overlay, prefix))));
    let charts = [
        ("chart", ["a", "b"].map(|release| chart(release, monitors))),
        ("chart on Google Cloud", ["a", "b"].map(|release| chart(release, &["podMonitoring.enabled=true"]))),
        ("sharded chart", ["a", "b"].map(|release| chart(release, sharded))),
    ];
    for (way, pair) in overlays.into_iter().chain(charts) {
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
        assert!(selectors(one).len() >= if way == "overlays/sidecar" { 1 } else { 4 }, "{way}");
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
        for volume in list(&workload["spec"]["template"]["spec"]["volumes"]) {
            let config = volume.pointer("/configMap/name").and_then(Value::as_str);
            assert!(
                config.is_none_or(|name| names(one).contains(&format!("ConfigMap {name}"))),
                "{way}: {volume}"
            );
        }
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

#[test]
fn a_pair_in_two_namespaces_differs_in_the_namespace_alone() {
    for overlay in OVERLAYS {
        let [one, other] = ["team-a", "team-b"].map(|name| overlaid(overlay, &format!("namespace: {name}")));
        assert!(one.iter().all(|object| object["metadata"]["namespace"] == "team-a"), "{overlay}");
        assert_eq!(Value::from(one).to_string().replace("team-a", "team-b"), Value::from(other).to_string());
    }
}
