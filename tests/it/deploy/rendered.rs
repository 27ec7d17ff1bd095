//! The rendered chart and overlay, whole and for two releases in two namespaces, as Prometheus loads them; and the
//! texts of all alerts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::helm::examples;
use super::kubernetes::{kustomize, object, twice};
use super::{command, deploy, list, output, rules, string, succeed, text, yaml};
use crate::golden::assert_golden;
use crate::process::until;
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server};

/// The objects of a release of the chart.
fn release(name: &str, namespace: &str, arguments: &[&str]) -> Vec<Value> {
    let mut helm = command("helm", ["template", name, "--kube-version=1.32.0", "--namespace", namespace]);
    helm.arg(deploy("helm/pds-exporter")).args(arguments);
    yaml(&output(helm))
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
    let mut files: Vec<(String, Value)> = Vec::new();
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
                _ => format!("{{namespace=\"{}\", job=\"{name}\"", string(&rule, "/metadata/namespace")),
            };
            for rule in list(&rule["spec"]["groups"]).iter().flat_map(|group| list(&group["rules"])) {
                for selector in selectors(string(rule, "/expr")) {
                    assert!(selector.contains(&of_release), "{example}: {selector} in {rule}");
                }
            }
            files.push((format!("rules/{name}-{namespace}-{example}.yml"), rule["spec"].clone()));
        }
    }
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
        succeed({
            let mut promtool = command("promtool", ["check", "rules"]);
            promtool.arg(&file);
            promtool
        });
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

/// Asserts that these rules make of these series what the cases expect.
fn assert_evaluated(rules: &[String], series: &[(&str, &str)], cases: Value) {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..rules.len()).map(|number| format!("{number}.yml")).collect();
    for (name, rules) in names.iter().zip(rules) {
        std::fs::write(folder.path().join(name), rules).unwrap();
    }
    let series = series.iter().map(|(series, values)| json!({ "series": series, "values": values }));
    let series: Vec<Value> = series.collect();
    let tests = [json!({ "interval": "15s", "input_series": series, "promql_expr_test": cases })];
    let tests = json!({ "rule_files": names, "evaluation_interval": "30s", "tests": tests });
    std::fs::write(folder.path().join("tests.yml"), tests.to_string()).unwrap();
    succeed(command("promtool", [Path::new("test"), Path::new("rules"), &folder.path().join("tests.yml")]));
}

#[test]
fn two_sidecars_with_one_job_in_two_namespaces_have_figures_of_their_own() {
    let rules = [("a", 10), ("b", 1000)].map(|(namespace, least)| {
        let least = format!("prometheusRule.objectives.leastRequests={least}");
        let sets = ["mode=sidecar", "prometheusRule.enabled=true", "prometheusRule.job=prometheus", &*least];
        let arguments: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        object(&release("pds", namespace, &arguments), "PrometheusRule")["spec"].to_string()
    });
    let series = [
        ("pds_exporter_build_info{namespace=\"a\", job=\"prometheus\"}", "1x40"),
        ("pds_exporter_build_info{namespace=\"b\", job=\"prometheus\"}", "1x40"),
    ];
    let expected = json!([
        { "labels": "{namespace=\"a\", job=\"prometheus\"}", "value": 10 },
        { "labels": "{namespace=\"b\", job=\"prometheus\"}", "value": 1000 },
    ]);
    // The name is left out, as by every operator.
    let case =
        json!({ "expr": "0 + pds:slo_least_requests:count", "eval_time": "5m", "exp_samples": expected });
    assert_evaluated(&rules, &series, json!([case]));
}

#[test]
fn the_rules_of_a_release_alert_on_an_exporter_that_never_answered_or_never_was_a_target() {
    let rules = ["down", "absent", "other"].map(|namespace| rules_of("pds", namespace));
    let up = |namespace: &str, job: &str| {
        format!("up{{namespace=\"{namespace}\", job=\"{job}\", instance=\"pds\"}}")
    };
    let series = [up("down", "pds"), up("absent", "node"), up("other", "pds"), up("down", "node")];
    let series = series.each_ref().map(String::as_str);
    let series = [(series[0], "0x200"), (series[1], "0x200"), (series[2], "1x200"), (series[3], "0x200")];
    let firing =
        "count by (alertname, namespace) (ALERTS{alertstate=\"firing\", alertname!=\"PdsWatchdog\"})";
    let alert = |alert: &str, namespace: &str| json!({ "labels": format!("{{alertname=\"{alert}\", namespace=\"{namespace}\"}}"), "value": 1 });
    let expected = [alert("PdsExporterDown", "down"), alert("PdsExporterAbsent", "absent")];
    let cases = json!([
        { "expr": firing, "eval_time": "2m7s", "exp_samples": [] },
        { "expr": firing, "eval_time": "30m7s", "exp_samples": expected },
    ]);
    assert_evaluated(&rules, &series, cases);
}

/// A Prometheus that restarts forgets alerts that fire, and has no sample of the minutes in between.
#[test]
fn alerts_that_count_minutes_fire_at_once_after_a_restart_of_four_minutes() {
    let mut rules: Vec<Value> = ["alerts", "shards"]
        .map(|name| yaml(&text(&format!("prometheus/rules/{name}.yml"))).remove(0))
        .into();
    let mut counting = BTreeSet::new();
    for group in rules.iter_mut().flat_map(|file| file["groups"].as_array_mut().unwrap()) {
        for rule in group["rules"].as_array_mut().unwrap() {
            rule.as_object_mut().unwrap().remove("keep_firing_for");
            if string(rule, "/expr").contains(":1m]") {
                counting.insert(string(rule, "/alert").to_owned());
            }
        }
    }
    let labels = ["namespace=\"0\"", "namespace=\"15\"", "namespace=\"30\"", "namespace=\"45\""];
    let outage = |well: &str, ill: &str| {
        let minutes = |count: usize| format!("{ill} ").repeat(count * 4 / ill.split(' ').count());
        format!("{well}x40 {}{}{}", minutes(10), "_ ".repeat(15), minutes(10))
    };
    let facts = [
        ("pds_exporter_build_info", "1x200".to_owned()),
        ("pds:owner:info", "1x200".to_owned()),
        ("up", outage("1", "0")),
        ("process_start_time_seconds", outage("900", "100 900")),
        ("pds_api_range_honoured", outage("1", "0")),
        ("pds:targets_up:ratio", outage("1", "0.2")),
        ("pds_app_error", outage("0", "1")),
    ];
    let series: Vec<(String, String)> = (0..labels.len())
        .flat_map(|phase| {
            facts.iter().map(move |(name, values)| {
                (format!("{name}{{{}}}", labels[phase]), format!("{}{values}", "_ ".repeat(phase)))
            })
        })
        .collect();
    let series: Vec<(&str, &str)> = series.iter().map(|(name, values)| (&**name, &**values)).collect();
    let expected = counting
        .iter()
        .map(|name| json!({ "labels": format!("{{alertname=\"{name}\"}}"), "value": labels.len() }));
    // Every half minute from the seventh minute on.
    let case = json!({
        "expr": "count by (alertname) (count_over_time(ALERTS{alertstate=\"firing\", alertname!=\"PdsWatchdog\"}[15m]) == 30)",
        "eval_time": "33m7s",
        "exp_samples": expected.collect::<Vec<_>>(),
    });
    let rules: Vec<String> = rules.iter().map(Value::to_string).collect();
    assert_evaluated(&rules, &series, json!([case]));
}

/// The data that Prometheus has of a release; also its namespace here.
const STAGES: [&str; 3] = ["nothing", "first start", "data"];

/// Labels of every alert, of a release that is named after what Prometheus knows of it.
fn labels(rule: &Value, namespace: &str) -> Value {
    let mut labels = json!({
        "cluster": "c", "namespace": namespace, "job": "pds", "instance": "pds-0", "token": "p-1", "resource": "app",
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
