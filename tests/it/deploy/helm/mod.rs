//! The Helm chart: linted and rendered by an old and a new Helm, validated like the manifests, and equal to them.

pub(super) mod manifests;
mod sources;
mod usual;
mod values;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::kubernetes::{container, flags, object, validate};
use super::{command, deploy, files, list, output, string, succeed, text, yaml};

/// The oldest Helm that the chart is for, and a new one. Installed by name and pinned in `tests/packages`.
const HELMS: [&str; 2] = ["helm-3.6", "helm"];

/// The chart rendered by each Helm, which must agree.
pub(super) fn template(values: &[&str]) -> Vec<Value> {
    let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    render(&arguments)
}

/// The same with an example of `ci/`.
pub(super) fn example(name: &str) -> Vec<Value> {
    render(&["--values", values(name).to_str().unwrap()])
}

fn values(example: &str) -> PathBuf {
    deploy(&format!("helm/pds-exporter/ci/{example}-values.yaml"))
}

/// The command that renders the chart as a release.
pub(super) fn chart(helm: &str, name: &str, namespace: &str) -> Command {
    let mut helm = command(helm, ["template", name, "--kube-version=1.32.0", "--namespace", namespace]);
    helm.arg(deploy("helm/pds-exporter"));
    helm
}

fn render(arguments: &[&str]) -> Vec<Value> {
    let rendered = HELMS.map(|helm| output(chart(helm, "pds-exporter", "pds-exporter").args(arguments)));
    let [objects, others] = rendered.each_ref().map(|text| yaml(text));
    assert_eq!(objects, others, "{HELMS:?} differ");
    validate(&rendered[0]);
    objects
}

/// The names of all examples.
pub(super) fn examples() -> Vec<String> {
    let files = files("helm/pds-exporter/ci", "yaml").into_iter();
    files.map(|file| file.file_name().unwrap().to_string_lossy().replace("-values.yaml", "")).collect()
}

#[test]
fn every_example_is_linted_and_valid() {
    let examples = examples();
    assert!(examples.len() >= 5, "{examples:?}");
    for helm in HELMS {
        succeed(command(helm, ["lint", "--strict"]).arg(deploy("helm/pds-exporter")));
    }
    for name in examples {
        for helm in HELMS {
            let files = [values(&name), deploy("helm/pds-exporter")];
            succeed(command(helm, ["lint", "--strict", "--values"]).args(files));
        }
        assert!(!example(&name).is_empty(), "{name}");
    }
}

#[test]
fn the_route_prefix_drives_probes_and_monitors() {
    let objects = example("monitoring");
    let deployment = object(&objects, "Deployment");
    let exporter = container(&deployment);
    let parsed = flags(exporter);
    assert_eq!(parsed.web_route_prefix.as_deref(), Some("/pds"));
    assert_eq!(parsed.web_telemetry_path, "/prometheus");
    assert_eq!(exporter["livenessProbe"]["httpGet"]["path"], "/pds/-/healthy");
    assert_eq!(exporter["readinessProbe"]["httpGet"]["path"], "/pds/-/ready");
    let endpoint = &object(&objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0];
    assert_eq!((&endpoint["path"], &endpoint["scheme"]), (&"/pds/prometheus".into(), &"https".into()));
    assert_eq!(endpoint["interval"], "1m30s");

    // As the exporter does: the path of the external URL is the prefix unless there is one.
    for (values, prefix) in [
        (&["web.externalUrl=https://example.com/pds/"][..], "/pds"),
        (&["web.externalUrl=https://example.com/pds/", "web.routePrefix=/"], ""),
        (&["web.externalUrl=https://example.com"], ""),
    ] {
        let deployment = object(&template(values), "Deployment");
        let path = &container(&deployment)["livenessProbe"]["httpGet"]["path"];
        assert_eq!(path, &format!("{prefix}/-/healthy"), "{values:?}");
    }
}

#[test]
fn a_deployment_becomes_shards_in_place() {
    let service = |objects: &[Value], name: &str| {
        let found = objects
            .iter()
            .find(|object| string(object, "/kind") == "Service" && string(object, "/metadata/name") == name);
        found.unwrap_or_else(|| panic!("no Service {name}")).clone()
    };
    let (before, after) = (template(&[]), template(&["mode=sharded"]));
    // clusterIP cannot be changed, so the Service stays and the StatefulSet has one of its own.
    assert_eq!(service(&before, "pds-exporter"), service(&after, "pds-exporter"));
    let set = object(&after, "StatefulSet");
    let headless = service(&after, string(&set, "/spec/serviceName"));
    assert_eq!(headless["spec"]["clusterIP"], "None");
    // The ServiceMonitor selects one of the two.
    let monitor = object(&template(&["serviceMonitor.enabled=true"]), "ServiceMonitor");
    let excluded = string(&monitor, "/spec/selector/matchExpressions/0/key");
    assert!(headless["metadata"]["labels"].get(excluded).is_some(), "{headless}");
    // The configuration alone decides how fast each shard may be.
    assert!(!set.to_string().contains("MAX_REQUESTS"), "{set}");
}

#[test]
fn the_platform_may_assign_the_ids() {
    let objects = example("openshift");
    let deployment = object(&objects, "Deployment").to_string();
    for id in ["runAsUser", "runAsGroup", "fsGroup\""] {
        assert!(!deployment.contains(id), "{id} in {deployment}");
    }
    assert!(deployment.contains("runAsNonRoot"));
    let bare = template(&["podSecurityContext=null", "securityContext=null"]);
    assert!(!object(&bare, "Deployment").to_string().contains("securityContext"));
}

#[test]
fn rules_can_be_left_out_and_objectives_set() {
    let rule = object(&example("monitoring"), "PrometheusRule");
    let groups = list(&rule["spec"]["groups"]).iter();
    let rules: Vec<&Value> = groups.flat_map(|group| list(&group["rules"])).collect();
    let all = crate::deploy::rules();
    assert_eq!(
        rules.len(),
        all.len() - 2 + 1,
        "two alerts are left out, and one record marks figures as its own"
    );
    let expression = |record: &str| {
        let found = rules.iter().find(|rule| rule["record"] == record);
        string(found.unwrap_or_else(|| panic!("no {record}")), "/expr").to_owned()
    };
    for (record, figure) in [
        ("pds:slo_least_requests:count", "1000"),
        ("pds:response_time_p95_objective:seconds", "1"),
        ("pds:cost_ceiling:dollars_per_hour", "12.5"),
    ] {
        let of_release =
            "(last_over_time(pds_exporter_build_info{namespace=\"pds-exporter\", job=\"pds-exporter\"}[1h]))";
        let expected = format!("{figure} * group by (region, cluster, namespace, job) {of_release}");
        assert_eq!(expression(record), expected);
    }
    for alert in rules.iter().filter(|rule| rule["alert"].is_string()) {
        let texts = alert["annotations"].to_string();
        assert_eq!(texts.matches("region=").count(), texts.matches("cluster=").count(), "{alert}");
        assert!(string(alert, "/annotations/runbook_url").starts_with("https://wiki.example.com/pds/Pds"));
        let board = string(alert, "/annotations/dashboard_url");
        let is_set = board.contains("https://grafana.example.com/d/pds-") && !board.contains("localhost");
        assert!(is_set, "{board}");
    }
    // Owners are joined by the labels given, in every alert and where they are recorded.
    let owners = "group by (region, cluster, namespace, job, project, app, team, tier) (pds_app_info";
    assert!(expression("pds:owner:info").contains(owners), "{}", expression("pds:owner:info"));
    let alerts = rules.iter().filter(|rule| rule["alert"].is_string());
    for joined in alerts.map(|rule| string(rule, "/expr")).filter(|text| text.contains("pds:owner:info")) {
        assert!(joined.contains("group_left (team, tier) pds:owner:info{"), "{joined}");
    }
    let dashboards = example("monitoring").into_iter().find(|object| object["data"]["app.json"].is_string());
    let dashboards = dashboards.unwrap()["data"].to_string();
    assert!(
        !dashboards.contains("by (cluster") && dashboards.contains("on (region, cluster, namespace, job")
    );
    // One of several Prometheus servers that divide the shards can't tell which are missing. An alert that is left out
    // for that may also be left out by name.
    let divided = ["enabled=true", "allShards=false", "disabled={PdsShardMissing}"];
    let divided = divided.map(|value| format!("prometheusRule.{value}"));
    let divided = object(&template(&divided.each_ref().map(String::as_str)), "PrometheusRule").to_string();
    assert!(divided.contains("PdsExporterDown") && !divided.contains("PdsShardMissing"));
}

#[test]
fn a_deployment_may_have_a_disk() {
    let objects = example("persistent");
    let claim = object(&objects, "PersistentVolumeClaim");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "500Mi");
    let deployment = object(&objects, "Deployment");
    let volumes = list(&deployment["spec"]["template"]["spec"]["volumes"]);
    let state = volumes.iter().find(|volume| volume["name"] == "state").unwrap();
    assert_eq!(state["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"]);
    assert!(volumes.iter().any(|volume| volume["name"] == "ca"), "{volumes:?}");
    let mounts = list(&container(&deployment)["volumeMounts"]);
    assert!(mounts.iter().any(|mount| mount["mountPath"] == "/etc/pds-ca"), "{mounts:?}");
}

#[test]
fn with_tls_probes_and_scrapes_use_it() {
    let mut values = vec!["webConfig.existingSecret=web", "webConfig.tls=true", "podMonitor.enabled=true"];
    let objects = template(&values);
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
        "podMonitor.additionalLabels.release=kube-prometheus-stack",
        "podMonitor.tlsConfig.serverName=pds-exporter",
        "podMonitor.tlsConfig.ca.secret.name=web",
        "podMonitor.tlsConfig.ca.secret.key=ca.crt",
        "podMonitor.basicAuth.username.name=web",
        "podMonitor.basicAuth.username.key=username",
        "podMonitor.basicAuth.password.name=web",
        "podMonitor.basicAuth.password.key=password",
    ]);
    let endpoint = endpoint(&template(&values));
    assert_eq!(endpoint["tlsConfig"]["ca"]["secret"]["key"], "ca.crt");
    assert_eq!(endpoint["basicAuth"]["password"]["name"], "web");

    // The kubelet has no certificate to show, so it only connects.
    values.push("webConfig.clientCertificates=true");
    let deployment = object(&template(&values), "Deployment");
    assert_eq!(container(&deployment)["livenessProbe"]["tcpSocket"], json!({ "port": "http" }));
}

#[test]
fn the_version_is_that_of_the_crate() {
    let chart = yaml(&text("helm/pds-exporter/Chart.yaml")).remove(0);
    for key in ["/version", "/appVersion"] {
        assert_eq!(string(&chart, key), env!("CARGO_PKG_VERSION"), "{key}");
    }
    assert!(
        text("helm/pds-exporter/CHANGELOG.md").contains(&format!("\n## {}\n", env!("CARGO_PKG_VERSION")))
    );
    let tag = format!("newTag: {}", env!("CARGO_PKG_VERSION"));
    for kustomization in ["base", "components/sidecar"] {
        assert!(
            text(&format!("kubernetes/{kustomization}/kustomization.yaml")).contains(&tag),
            "{kustomization}"
        );
    }
}
