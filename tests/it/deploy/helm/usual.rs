//! The features of community charts, by the example that sets all of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{HELMS, example, template};
use crate::deploy::kubernetes::{container, object};
use crate::deploy::{command, deploy, list, output, string, yaml};

#[test]
fn labels_annotations_and_namespace_are_those_of_every_object() {
    let objects = example("community");
    assert!(objects.len() >= 10, "{}", objects.len());
    let own = |object: &&Value| string(object, "/metadata/name").starts_with("pds-exporter");
    for object in
        objects.iter().filter(own).filter(|object| object["metadata"]["name"] != "pds-exporter-notes")
    {
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["team"], "platform", "{object}");
        assert_eq!(metadata["annotations"]["example.com/owner"], "platform", "{object}");
        assert_eq!(metadata["namespace"], "observability", "{object}");
    }
    let deployment = object(&objects, "Deployment");
    assert_eq!(deployment["metadata"]["annotations"]["reloader.example.com/auto"], "true");
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"]["team"], "platform");
    assert_eq!(pod["metadata"]["annotations"]["example.com/owner"], "pods", "the nearer one wins");
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    assert!(selector.get("team").is_none(), "a selector cannot be changed: {selector}");
}

#[test]
fn each_alias_in_a_parent_chart_is_a_release_of_its_own() {
    let parent = tempfile::tempdir().unwrap();
    let mut dependencies = vec![json!({ "name": "pds-exporter", "version": "*" })];
    let mut values = json!({});
    for alias in ["search", "maps"] {
        dependencies.push(json!({ "name": "pds-exporter", "version": "*", "alias": alias }));
    }
    for name in ["pds-exporter", "search", "maps"] {
        values[name] = json!({ "scrapeConfig": { "enabled": true }, "prometheusRule": { "enabled": true } });
    }
    let chart =
        json!({ "apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": dependencies });
    std::fs::write(parent.path().join("Chart.yaml"), chart.to_string()).unwrap();
    std::fs::write(parent.path().join("values.yaml"), values.to_string()).unwrap();
    std::fs::create_dir(parent.path().join("charts")).unwrap();
    let own = parent.path().join("charts/pds-exporter");
    std::os::unix::fs::symlink(deploy("helm/pds-exporter"), own).unwrap();
    for helm in HELMS {
        let mut helm = command(helm, ["template", "rel", "--kube-version=1.32.0"]);
        helm.arg(parent.path());
        let objects = yaml(&output(helm));
        let of_kind = |kind: &str, place: &str| -> BTreeSet<String> {
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.map(|object| string(object, place).to_owned()).collect()
        };
        let releases = ["rel", "rel-maps", "rel-search"].map(str::to_owned);
        for (kind, place) in [
            ("Deployment", "/spec/template/metadata/labels/app.kubernetes.io~1instance"),
            ("ScrapeConfig", "/spec/jobName"),
        ] {
            assert_eq!(of_kind(kind, place), releases.clone().into(), "{kind}");
        }
        let jobs = releases.map(|release| format!("job=\"{release}\""));
        let rules = of_kind("PrometheusRule", "/spec/groups/0/rules/0/expr");
        for (rule, job) in rules.iter().zip(&jobs) {
            assert!(rule.contains(job), "{rule}");
        }
        assert_eq!(rules.len(), jobs.len());
    }
}

#[test]
fn a_global_registry_replaces_the_charts_own() {
    let objects = example("community");
    let deployment = object(&objects, "Deployment");
    let repository = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://github.com/").unwrap();
    let image = format!("registry.example.com/{repository}:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container(&deployment)["image"], image);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{ "name": "own" }, { "name": "global" }]));
    // Templates in further objects are filled in.
    let notes = objects.iter().find(|object| object["metadata"]["name"] == "pds-exporter-notes").unwrap();
    assert_eq!(notes["data"]["image"], image);
    assert!(objects.iter().any(|object| object["metadata"]["name"] == "as-text"));
    for (value, image) in [
        ("image.registry=", repository.to_owned()),
        ("global.imageRegistry=mirror:5000", format!("mirror:5000/{repository}")),
    ] {
        let deployment = object(&template(&[value]), "Deployment");
        let tag = env!("CARGO_PKG_VERSION");
        assert_eq!(container(&deployment)["image"], format!("{image}:{tag}"), "{value}");
    }
}

#[test]
fn the_pod_has_the_containers_names_and_probes_it_is_given() {
    let deployment = object(&example("community"), "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let names = |list_of: &str| -> Vec<String> {
        list(&pod[list_of]).iter().map(|container| string(container, "/name").to_owned()).collect()
    };
    assert_eq!(names("containers"), ["pds-exporter", "proxy"]);
    assert_eq!(names("initContainers"), ["wait"]);
    assert_eq!(pod["dnsPolicy"], "None");
    assert_eq!(pod["dnsConfig"]["nameservers"], json!(["10.0.0.10"]));
    assert_eq!(pod["hostAliases"][0]["hostnames"], json!(["api.example.com"]));
    let exporter = container(&deployment);
    let liveness = &exporter["livenessProbe"];
    assert_eq!((&liveness["periodSeconds"], &liveness["failureThreshold"]), (&json!(20), &json!(5)));
    assert_eq!(liveness["timeoutSeconds"], 3, "what is not set stays");
    assert_eq!(exporter["readinessProbe"]["initialDelaySeconds"], 2);
}

#[test]
fn the_pages_are_reached_through_an_ingress_or_a_gateway() {
    let objects = example("community");
    let service = object(&objects, "Service");
    assert_eq!(
        (&service["spec"]["type"], &service["metadata"]["labels"]["expose"]),
        (&json!("LoadBalancer"), &json!("internal"))
    );
    let ingress = object(&objects, "Ingress");
    assert_eq!(ingress["spec"]["ingressClassName"], "nginx");
    let path = &ingress["spec"]["rules"][0]["http"]["paths"][0];
    assert_eq!(path["path"], "/exporter", "the path of the external URL");
    assert_eq!(path["backend"]["service"]["name"], service["metadata"]["name"]);
    assert_eq!(path["backend"]["service"]["port"]["name"], service["spec"]["ports"][0]["name"]);
    assert_eq!(ingress["spec"]["tls"][0]["secretName"], "pds-tls");
    let route = object(&objects, "HTTPRoute");
    assert_eq!(route["spec"]["parentRefs"][0]["name"], "public");
    let rule = &route["spec"]["rules"][0];
    assert_eq!(rule["matches"][0]["path"]["value"], "/exporter");
    assert_eq!(rule["backendRefs"][0]["name"], service["metadata"]["name"]);
    assert_eq!(rule["backendRefs"][0]["port"], service["spec"]["ports"][0]["port"]);
}

#[test]
fn drains_disks_and_scrapes_are_as_the_platform_wants_them() {
    let objects = example("community");
    assert_eq!(object(&objects, "PodDisruptionBudget")["spec"]["maxUnavailable"], 0);
    for (value, expected) in [("=1", json!(1)), ("=50%", json!("50%"))] {
        let values = [&format!("podDisruptionBudget.minAvailable{value}")[..]];
        let budget = object(&template(&values), "PodDisruptionBudget");
        assert_eq!(budget["spec"]["minAvailable"], expected);
        assert!(budget["spec"].get("maxUnavailable").is_none(), "Kubernetes takes one of the two");
    }
    let claim = object(&objects, "PersistentVolumeClaim");
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["example.com/backup"], "true");
    assert_eq!(annotations["helm.sh/resource-policy"], "keep", "the counters outlive the release");
    assert_eq!(claim["spec"]["accessModes"], json!(["ReadWriteOncePod"]));
    let gone = template(&["state.persistent=true", "state.keep=false"]);
    assert!(object(&gone, "PersistentVolumeClaim")["metadata"].get("annotations").is_none());
    let set = |values: &[&str]| object(&template(values), "StatefulSet")["spec"].clone();
    let policy = "persistentVolumeClaimRetentionPolicy";
    assert!(set(&["mode=sharded"]).get(policy).is_none(), "Kubernetes keeps them");
    assert_eq!(set(&["mode=sharded", "state.keep=false"])[policy]["whenDeleted"], "Delete");
    assert_eq!(object(&objects, "PodMonitor")["spec"]["scrapeClass"], "istio");
}
