//! The rendered chart and overlay, whole and for two releases in two namespaces, as Prometheus loads them; and the
//! texts of all alerts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::helm::{chart, examples};
use super::kubernetes::{kustomize, object, twice};
use super::{command, deploy, list, output, rules, string, succeed, text, yaml};
use crate::golden::assert_golden;
use crate::process::until;
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server};

/// The objects of a release of the chart.
pub(super) fn release(name: &str, namespace: &str, arguments: &[&str]) -> Vec<Value> {
    yaml(&output(chart("helm", name, namespace).args(arguments)))
}

/// The rules of a release of the chart, as a file of rules.
pub(crate) fn rules_of(name: &str, namespace: &str) -> String {
    let objects = release(name, namespace, &["--set", "prometheusRule.enabled=true"]);
    object(&objects, "PrometheusRule")["spec"].to_string()
}

/// The shipped routing, with a receiver for each of these namespaces.
pub(crate) fn routing_of(namespaces: &[&str]) -> String {
    let mut routing = text("prometheus/alertmanager.yml");
    for name in namespaces {
        let route = format!("  routes:\n    - matchers: [namespace=\"{name}\"]\n      receiver: {name}\n");
        let receiver = format!("receivers:\n  - name: {name}\n");
        routing = routing.replace("  routes:\n", &route).replace("receivers:\n", &receiver);
    }
    routing
}

/// The names of all series that the expression reads, each with its labels.
fn selectors(expression: &str) -> Vec<&str> {
    let names = expression.match_indices("pds").map(|(place, _)| &expression[place..]);
    let names = names.filter(|rest| rest.starts_with("pds_") || rest.starts_with("pds:"));
    let mut selectors = Vec::new();
    let mut end = usize::MAX;
    for rest in names {
        // Not a part of the name before.
        if end.wrapping_sub(rest.len()) == 0 || rest.len() < end {
            let name =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
            let labels = if rest[name..].starts_with('{') { rest[name..].find('}').unwrap() + 1 } else { 0 };
            selectors.push(&rest[..name + labels]);
            end = rest.len() - name;
        }
    }
    selectors
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_releases_in_two_namespaces_load_with_all_their_rules() {
    let (mut files, mut found): (Vec<(String, Value)>, usize) = (Vec::new(), 0);
    for (name, namespace) in [("pds", "team-a"), ("pds", "team-b"), ("other", "team-b")] {
        for example in examples() {
            let values = deploy(&format!("helm/pds-exporter/ci/{example}-values.yaml"));
            let values = ["--set", "prometheusRule.enabled=true", "--values", values.to_str().unwrap()];
            let objects = release(name, namespace, &values);
            for object in &objects {
                assert_eq!(twice(object), None, "{example}: {object}");
            }
            let rule = object(&objects, "PrometheusRule");
            let of_release = match example.as_str() {
                "sidecar" => format!("{{namespace=~\"|{namespace}\", job=\"prometheus-sidecar\""),
                "persistent" => {
                    format!("{{namespace=~\"|{namespace}\", job=\"kubernetes-service-endpoints\"")
                }
                _ => format!("{{namespace=\"{}\", job=\"{name}\"", string(&rule, "/metadata/namespace")),
            };
            for rule in list(&rule["spec"]["groups"]).iter().flat_map(|group| list(&group["rules"])) {
                for selector in selectors(string(rule, "/expr")) {
                    assert!(selector.contains(&of_release), "{example}: {selector} in {rule}");
                    found += 1;
                }
            }
            files.push((format!("rules/{name}-{namespace}-{example}.yml"), rule["spec"].clone()));
        }
    }
    assert!(found > 1000, "{found}");
    let overlay = object(&yaml(&kustomize("overlays/operator")), "PrometheusRule");
    for namespace in ["team-a", "team-b"] {
        files.push((format!("rules/overlay-{namespace}.yml"), overlay["spec"].clone()));
    }
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<(String, String)> =
        files.iter().map(|(name, spec)| (name.clone(), spec.to_string())).collect();
    for (name, text) in &texts {
        let file = folder.path().join(Path::new(name).file_name().unwrap());
        std::fs::write(&file, text).unwrap();
        succeed(command("promtool", ["check", "rules"]).arg(&file));
    }
    let mut given = vec![("prometheus.yml", "rule_files: [rules/*.yml]\n")];
    given.extend(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    for program in [PROMETHEUS_2, PROMETHEUS_3] {
        let prometheus = Server::prometheus(program, &given, "--log.level=warn").await;
        let answer = prometheus.get("/api/v1/rules", &[]).await;
        let loaded: BTreeSet<&str> =
            list(&answer["data"]["groups"]).iter().map(|group| string(group, "/file")).collect();
        assert_eq!(loaded.len(), files.len(), "{program}");
    }
}

/// The data that Prometheus has of a release; also its namespace here.
const STAGES: [&str; 3] = ["nothing", "first start", "data"];

/// Labels of every alert, of a release that is named after what Prometheus knows of it.
fn labels(rule: &Value, namespace: &str) -> Value {
    let mut labels = json!({
        "cluster": "c", "namespace": namespace, "job": "pds", "instance": "pds-0", "token": "p-1", "resource": "run_execution_time",
        "field": "cpu", "label": "app", "of": rule["alert"], "status": "build_failure", "team": "search", "project": "p-1", "app": "p-1-a",
    });
    // That of an exporter or release is about no app.
    if string(rule, "/annotations/dashboard_url").contains("/d/pds-exporter/") {
        let fields = labels.as_object_mut().unwrap();
        fields.retain(|name, _| !["project", "app", "team"].contains(&name.as_str()));
    }
    labels
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_of_every_alert_reads_well_with_data_without_and_at_first_start() {
    const APP: &str = "job=\"pds\", project=\"p-1\", app=\"p-1-a\"";
    let mut recorded = Vec::new();
    let mut series = |name: &str, labels: &str, value: &str| {
        let pairs = format!("cluster=\"c\", {labels}");
        let labels: serde_json::Map<String, Value> = pairs
            .split(", ")
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').into()))
            .collect();
        recorded.push(json!({ "record": name, "expr": format!("vector({value})"), "labels": labels }));
    };
    for namespace in ["first start", "data"] {
        let release = format!("namespace=\"{namespace}\", job=\"pds\"");
        series("pds:response_time_p95_objective:seconds", &release, "2.5");
        series("pds:cost_ceiling:dollars_per_hour", &release, "100");
        series("pds_exporter_shards", &release, "3");
        series(
            "pds_app_objective_ratio",
            &format!("namespace=\"{namespace}\", {APP}, threshold=\"1.0\""),
            "0.995",
        );
    }
    let data = format!("namespace=\"data\", {APP}");
    series("pds_app:slo_budget_left:ratio", &data, "0.25");
    series("pds_app:slo_requests:increase1h", &format!("{data}, le=\"+Inf\""), "100");
    series("pds_app_response_time_within_ratio", &format!("{data}, threshold=\"1.0\""), "0.8");
    let mut alerts = Vec::new();
    let all = rules();
    for rule in all.iter().filter(|rule| rule["alert"].is_string()) {
        for namespace in STAGES {
            // A text speaks of the labels that the expression gives.
            let labels = labels(rule, namespace);
            recorded.push(json!({ "record": "firing", "expr": "vector(0.25)", "labels": labels }));
            let expr = format!("firing{{of={}, namespace=\"{namespace}\"}}", rule["alert"]);
            // The hours of the budget are seconds here.
            let annotations = rule["annotations"].to_string().replace("[1h])[30d:1h]", "[5s])[30s:1s]");
            let annotations: Value = serde_json::from_str(&annotations).unwrap();
            alerts.push(json!({ "alert": rule["alert"], "expr": expr, "annotations": annotations }));
        }
    }
    let groups = json!({ "groups": [
        { "name": "recorded", "interval": "500ms", "rules": recorded },
        { "name": "alerts", "interval": "1s", "rules": alerts },
    ] });
    let groups = groups.to_string();
    let files = [("prometheus.yml", "rule_files: [all.yml]\n"), ("all.yml", groups.as_str())];
    let prometheus = Server::prometheus(PROMETHEUS_2, &files, "--log.level=error").await;
    let mut text = String::new();
    until("every text is that of data", async || {
        let answer = prometheus.get("/api/v1/alerts", &[]).await;
        let mut alerts = list(&answer["data"]["alerts"]).to_vec();
        alerts.sort_by_key(|alert| {
            let place = STAGES.iter().position(|of| alert["labels"]["namespace"] == *of);
            (string(alert, "/labels/alertname").to_owned(), place)
        });
        text.clear();
        let mut before = (String::new(), BTreeSet::new());
        for alert in &alerts {
            let name = string(alert, "/labels/alertname");
            if before.0 != name {
                writeln!(text, "\n{name}: {}", string(alert, "/annotations/summary")).unwrap();
                before = (name.to_owned(), BTreeSet::new());
            }
            let about = string(alert, "/labels/namespace");
            for part in ["description", "action"] {
                let said = string(alert, &format!("/annotations/{part}"));
                if before.1.insert(said.replace(about, "")) {
                    writeln!(text, "  {about}: {said}").unwrap();
                }
            }
        }
        let all = all.iter().filter(|rule| rule["alert"].is_string()).count();
        let whole = ["coarser than the objective", " d is left"].map(|part| text.matches(part).count());
        alerts.len() == all * STAGES.len() && whole == [4, 4]
    })
    .await;
    // The days are those that this Prometheus runs.
    let mut parts = text.split("the error budget of ");
    let first = parts.next().unwrap().to_owned();
    let text = parts.fold(first, |text, part| {
        let (_, rest) = part.split_once(" d is left").unwrap();
        format!("{text}the error budget of N d is left{rest}")
    });
    for (wrong, why) in
        [("<", "an error"), ("NaN", "no number"), ("  of ", "a gap"), (" .", "a gap"), (": .", "a gap")]
    {
        let found = text.lines().find(|line| line.trim_start().contains(wrong));
        assert_eq!(found, None, "{why}");
    }
    assert_golden(Path::new("tests/it/deploy/texts.txt"), &text);
}
