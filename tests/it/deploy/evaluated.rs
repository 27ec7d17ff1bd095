//! The rules of the rendered chart and overlay, evaluated by promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::alerts::{RELEASE, alerts};
use super::kubernetes::{kustomize, object};
use super::rendered::{release, rules_of};
use super::{command, list, string, succeed, text, yaml};

/// Asserts that these rules make of these series, with a sample every 15 seconds, what the cases expect.
fn assert_evaluated(rules: &[String], series: &[(impl AsRef<str>, impl AsRef<str>)], cases: Value) {
    assert_passes(rules, "15s", series, json!({ "promql_expr_test": cases }));
}

/// Asserts that these rules pass a test of this kind over these series, with a sample each `interval`.
pub(super) fn assert_passes(
    rules: &[String],
    interval: &str,
    series: &[(impl AsRef<str>, impl AsRef<str>)],
    mut test: Value,
) {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..rules.len()).map(|number| format!("{number}.yml")).collect();
    for (name, rules) in names.iter().zip(rules) {
        std::fs::write(folder.path().join(name), rules).unwrap();
    }
    let line = |series: &str, values: &str| json!({ "series": series, "values": values });
    let series = series.iter().map(|(series, values)| line(series.as_ref(), values.as_ref()));
    (test["interval"], test["input_series"]) = (interval.into(), series.collect());
    let tests = json!({ "rule_files": names, "evaluation_interval": "30s", "tests": [test] });
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
    let ups = [up("down", "pds"), up("absent", "node"), up("other", "pds"), up("down", "node")];
    let series: Vec<_> = ups.into_iter().zip(["0x200", "0x200", "1x200", "0x200"]).collect();
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

#[test]
fn a_release_scraped_by_another_job_is_known_by_that_job() {
    let sets = ["--set", "prometheusRule.enabled=true,prometheusRule.job=annotated"];
    let rules = object(&release("pds", "a", &sets), "PrometheusRule")["spec"].to_string();
    let series = [
        ("up{namespace=\"a\", job=\"annotated\", instance=\"pds\"}", "1x80 0x80"),
        ("pds_exporter_build_info{namespace=\"a\", job=\"annotated\", instance=\"pds\"}", "1x80"),
        // Not an exporter.
        ("up{namespace=\"a\", job=\"annotated\", instance=\"web\"}", "0x160"),
    ];
    let firing =
        "count by (alertname, instance) (ALERTS{alertstate=\"firing\", alertname=~\"PdsExporter.+\"})";
    let down = json!({ "labels": "{alertname=\"PdsExporterDown\", instance=\"pds\"}", "value": 1 });
    let cases = json!([
        { "expr": firing, "eval_time": "20m7s", "exp_samples": [] },
        { "expr": firing, "eval_time": "40m7s", "exp_samples": [down] },
    ]);
    assert_evaluated(&[rules], &series, cases);
}

#[test]
fn rules_for_all_releases_leave_the_figures_of_a_release_with_rules_of_its_own_alone() {
    let sets = ["--set", "prometheusRule.enabled=true,prometheusRule.objectives.costCeiling=5"];
    let objectives = |objects: &[Value]| {
        let rule = object(objects, "PrometheusRule");
        let group = list(&rule["spec"]["groups"]).iter().find(|group| group["name"] == "pds-objectives");
        list(&group.unwrap()["rules"]).to_vec()
    };
    // promtool evaluates groups of the same name in any order, and the rules of a group in theirs.
    let own = objectives(&release("pds", "own", &sets));
    let rules = [own, objectives(&yaml(&kustomize("overlays/operator")))].concat();
    let rules = json!({ "groups": [{ "name": "objectives", "rules": rules }] }).to_string();
    let build = |name: &str| format!("pds_exporter_build_info{{namespace=\"{name}\", job=\"pds\"}}");
    let series = ["own", "other"].map(|namespace| (build(namespace), "1x80"));
    let case = |function: &str| {
        let figure = format!("{function}_over_time(pds:cost_ceiling:dollars_per_hour[10m])");
        let expected = ["own", "other"].map(|namespace| {
            json!({ "labels": format!("{{namespace=\"{namespace}\"}}"), "value": i32::from(namespace == "own") })
        });
        json!({ "expr": format!("sum by (namespace) ({figure} == bool 5)"), "eval_time": "15m", "exp_samples": expected })
    };
    assert_evaluated(&[rules], &series, json!([case("min"), case("max")]));
}

#[test]
fn a_release_that_is_gone_for_more_than_a_day_is_one_alert_with_its_cluster() {
    let labels = "cluster=\"c\", namespace=\"gone\", job=\"pds\"";
    // It is back after 28 hours.
    let of = |name: &str| (format!("{name}{{{labels}, instance=\"pds\"}}"), "1x40 _x6680 1x400");
    let series = ["up", "pds_exporter_build_info"].map(of);
    let firing = "count by (cluster) (ALERTS{alertname=\"PdsExporterAbsent\", alertstate=\"firing\"})";
    let expected = json!([{ "labels": "{cluster=\"c\"}", "value": 1 }]);
    let mut cases: Vec<Value> = ["1h", "24h5m", "24h20m", "25h", "27h55m"]
        .map(|time| json!({ "expr": firing, "eval_time": time, "exp_samples": expected }))
        .into();
    cases.push(json!({ "expr": firing, "eval_time": "28h20m", "exp_samples": [] }));
    // The other rules would take minutes.
    let rules: Value = serde_json::from_str(&rules_of("pds", "gone")).unwrap();
    let mut rules = list(&rules["groups"]).iter().flat_map(|group| list(&group["rules"]));
    let absent = rules.find(|rule| rule["alert"] == "PdsExporterAbsent").unwrap();
    let absent = json!({ "groups": [{ "name": "absent", "rules": [absent] }] }).to_string();
    assert_evaluated(&[absent], &series, cases.into());
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

/// An alert inhibits alerts of its release, and outlasts them: otherwise a consequence is told when its cause is over.
/// Alerts on objectives are no consequences.
#[test]
fn alerts_inhibit_only_what_they_outlast() {
    let alerts = alerts();
    let files =
        ["alerts", "shards"].map(|file| yaml(&text(&format!("prometheus/rules/{file}.yml"))).remove(0));
    let groups = files.iter().flat_map(|file| list(&file["groups"]));
    let rules = groups.flat_map(|group| list(&group["rules"]));
    let kept = rules.filter_map(|rule| {
        let minutes = rule["keep_firing_for"].as_str()?.strip_suffix('m')?;
        Some((string(rule, "/alert"), minutes.parse::<u32>().unwrap()))
    });
    let kept = kept.collect::<BTreeMap<_, _>>();
    for inhibition in list(&yaml(&text("prometheus/alertmanager.yml"))[0]["inhibit_rules"]) {
        let equal = inhibition["equal"].to_string().replace('"', "").replace(',', ", ");
        assert!(equal.starts_with(&format!("[{RELEASE}")), "{inhibition}");
        let minutes = |matcher: &str| {
            let words = string(inhibition, matcher).split(|c: char| !c.is_ascii_alphanumeric());
            let names = words.filter(|word| word.starts_with("Pds"));
            let names = names.inspect(|name| assert!(alerts.contains(*name), "{inhibition}"));
            names.map(|name| kept.get(name).copied().unwrap_or_default()).collect::<BTreeSet<_>>()
        };
        let (causes, consequences) = (minutes("/source_matchers/0"), minutes("/target_matchers/0"));
        let (cause, consequence) = (*causes.first().unwrap(), *consequences.last().unwrap());
        let is_objective = string(inhibition, "/source_matchers/0").contains("PdsSlo");
        assert!(is_objective || consequence == 0 || cause > consequence, "{inhibition}");
    }
}

#[test]
fn alerts_inhibit_only_what_they_explain() {
    let routing = yaml(&text("prometheus/alertmanager.yml")).remove(0);
    let matches = |matchers: &Value, alert: &Value| {
        list(matchers).iter().all(|matcher| {
            let (label, values) = matcher.as_str().unwrap().split_once('=').unwrap();
            let mut values = values.trim_start_matches('~').trim_matches('"').split('|');
            values.any(|value| alert[label] == value)
        })
    };
    let ranges = json!({ "alertname": "PdsRangesIgnored", "instance": "e", "token": "default" });
    let failing = |resource: &str| json!({ "alertname": "PdsTargetFailing", "instance": "e", "token": "default", "resource": resource });
    let [down, absent] = ["PdsExporterDown", "PdsExporterAbsent"].map(|name| json!({ "alertname": name }));
    let missing = || json!({ "alertname": "PdsShardMissing" });
    for (cause, consequence, expected) in [
        (&ranges, failing("response_time"), true),
        (&ranges, failing("run_execution_time"), true),
        (&ranges, failing("app"), false),
        (&absent, missing(), true),
        (&down, missing(), false),
    ] {
        let inhibits = list(&routing["inhibit_rules"]).iter().any(|inhibition| {
            let mut equal = list(&inhibition["equal"]).iter().map(|label| label.as_str().unwrap());
            matches(&inhibition["source_matchers"], cause)
                && matches(&inhibition["target_matchers"], &consequence)
                && equal.all(|label| cause[label] == consequence[label])
        });
        assert_eq!(inhibits, expected, "{cause} {consequence}");
    }
}
