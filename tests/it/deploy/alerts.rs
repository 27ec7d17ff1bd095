//! Rules, their cases, their runbooks, and the configurations of Prometheus and Alertmanager around them.

use std::collections::{BTreeMap, BTreeSet};

use super::dashboards::{dashboards, expressions};
use super::{
    command, deploy, files, for_prometheus_2, list, rules, string, succeed, text, unknown_series, yaml,
};

fn alerts() -> BTreeSet<String> {
    rules().iter().filter_map(|rule| rule["alert"].as_str().map(str::to_owned)).collect()
}

#[test]
fn prometheus_and_alertmanager_accept_the_configurations() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(deploy("prometheus/rules"), folder.path().join("rules")).unwrap();
    let path = |name: &str| {
        let path = folder.path().join(name);
        let config = text(&format!("prometheus/{name}"));
        assert!(config.contains("always_scrape_classic_histograms: true"), "{name}: the rules need buckets");
        std::fs::write(&path, for_prometheus_2(&config)).unwrap();
        path.display().to_string()
    };
    let said = succeed(command("promtool", ["check", "config", &path("prometheus.yml")]));
    assert!(said.contains("3 rule files found"), "{said}");
    succeed(command("promtool", ["check", "config", "--agent", &path("agent.yml")]));
    let routing = deploy("prometheus/alertmanager.yml");
    succeed(command("amtool", ["check-config".as_ref(), routing.as_os_str()]));
}

#[test]
fn each_rule_does_what_its_cases_say() {
    let mut promtool = command("promtool", ["test", "rules"]);
    promtool.args(files("prometheus/rules-tests", "yml"));
    succeed(promtool);
}

#[test]
fn every_alert_has_a_case_that_fires_and_one_that_does_not() {
    let mut fires: BTreeMap<String, [bool; 2]> = BTreeMap::new();
    for file in files("prometheus/rules-tests", "yml") {
        let document = yaml(&std::fs::read_to_string(file).unwrap()).remove(0);
        for case in list(&document["tests"]).iter().flat_map(|test| list(&test["alert_rule_test"])) {
            let seen = fires.entry(string(case, "/alertname").to_owned()).or_default();
            seen[usize::from(list(&case["exp_alerts"]).is_empty())] = true;
        }
    }
    let complete = fires.iter().filter(|(_, seen)| **seen == [true, true]).map(|(name, _)| name.clone());
    assert_eq!(complete.collect::<BTreeSet<_>>(), alerts());
}

#[test]
fn every_alert_leads_to_its_runbook_and_every_runbook_to_series_that_exist() {
    let mut runbooks = BTreeSet::new();
    for rule in rules().iter().filter(|rule| rule["alert"].is_string()) {
        let (alert, url) = (string(rule, "/alert"), string(rule, "/annotations/runbook_url"));
        assert_eq!(url, format!("deploy/prometheus/runbooks/{alert}.md"));
        assert!(["critical", "warning", "info"].contains(&string(rule, "/labels/severity")), "{alert}");
        let runbook = text(&format!("prometheus/runbooks/{alert}.md"));
        for part in
            [&format!("# {alert}\n"), "\n## What it means\n", "\n## How to check\n", "\n## What to do\n"]
        {
            assert!(runbook.contains(part), "{alert}: no {part:?}");
        }
        for link in runbook.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(deploy("prometheus/runbooks").join(link).is_file(), "{alert}: {link} leads nowhere");
        }
        assert_eq!(unknown_series(&runbook), BTreeSet::new(), "{alert}");
        runbooks.insert(format!("{alert}.md"));
    }
    let names = files("prometheus/runbooks", "md").into_iter();
    let found = names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    assert_eq!(found.collect::<BTreeSet<_>>(), runbooks, "a runbook without its alert");
}

#[test]
fn rules_read_only_series_that_exist() {
    for rule in rules() {
        assert_eq!(unknown_series(string(&rule, "/expr")), BTreeSet::new(), "{rule}");
    }
}

#[test]
fn clocks_differ_from_the_same_threshold_on_everywhere() {
    let seconds = pds_exporter::clock::MAX_SKEW.as_secs();
    let rules = rules();
    let alert = rules.iter().find(|rule| rule["alert"] == "PdsClockSkew").unwrap();
    assert_eq!(string(alert, "/expr"), format!("abs(pds_api_clock_skew_seconds) > {seconds}"));
    assert!(text("prometheus/runbooks/PdsClockSkew.md").contains(&format!("by more than {seconds} seconds")));
    let schema = serde_json::to_string(&pds_exporter::status::Status::schema()).unwrap();
    assert!(
        schema.contains(&format!("more than {seconds} s apart")),
        "what the status says of clocks_differ"
    );
    let (_, exporter) = dashboards().into_iter().find(|(path, _)| path.ends_with("exporter.json")).unwrap();
    let panel = list(&exporter["panels"]).iter().find(|panel| panel["title"] == "Clock skew").unwrap();
    let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].to_string();
    assert!(steps.contains(&format!("\"value\":{seconds}")), "{steps}");
}

#[test]
fn every_gauge_of_success_has_its_alert_panel_and_runbook() {
    let families = pds_exporter::app::catalogue().into_iter().flat_map(|group| group.families);
    let gauges: Vec<&str> =
        families.map(|family| family.name).filter(|name| name.ends_with("_successful")).collect();
    assert!(gauges.len() >= 4, "{gauges:?}");
    let shown = dashboards();
    for gauge in gauges {
        let rules = rules();
        let alert = rules
            .iter()
            .find(|rule| rule["alert"].is_string() && string(rule, "/expr") == format!("{gauge} == 0"));
        let alert = alert.unwrap_or_else(|| panic!("no alert on {gauge}"));
        // That it leads to its runbook, and that both are right, is tested above.
        assert!(text(string(alert, "/annotations/runbook_url").trim_start_matches("deploy/")).len() > 200);
        let panels = shown.iter().flat_map(|(_, dashboard)| expressions(dashboard));
        assert!(panels.into_iter().any(|(_, expression)| expression.contains(gauge)), "no panel on {gauge}");
    }
}

#[test]
fn the_inhibitions_name_alerts_that_exist() {
    let alerts = alerts();
    let words = text("prometheus/alertmanager.yml");
    let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.starts_with("Pds"));
    let unknown: Vec<_> = words.filter(|word| !alerts.contains(*word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
