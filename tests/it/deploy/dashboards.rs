//! The dashboards: typed sources, the JSON made of them, and the expressions in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::evaluated::assert_passes;
use super::operator::{beside_packages, typescript};
use super::{command, deploy, files, list, rules, string, succeed, unknown_series};
use crate::golden::assert_golden;

/// Names that Grafana itself fills in.
const BUILT_IN: &[&str] = &["__rate_interval", "__interval", "__data", "__value"];

/// The dashboards by file.
pub(crate) fn dashboards() -> Vec<(PathBuf, Value)> {
    let read = |path: PathBuf| {
        let dashboard = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (path, dashboard)
    };
    files("grafana/dashboards", "json").into_iter().map(read).collect()
}

/// The expressions of a dashboard, each with the title of its panel.
pub(crate) fn expressions(dashboard: &Value) -> Vec<(&str, &str)> {
    let panels = list(&dashboard["panels"]).iter();
    panels
        .flat_map(|panel| {
            list(&panel["targets"]).iter().map(|target| (string(panel, "/title"), string(target, "/expr")))
        })
        .collect()
}

/// The expression with Grafana's variables filled in: this interval, project and app, and everything for the others.
pub(crate) fn filled(expression: &str, interval: &str, project: &str, app: &str) -> String {
    let given = [("$__rate_interval", interval), ("$project", project), ("$app", app)];
    let all = ["$cluster", "$namespace", "$job", "$team", "$instance"].map(|variable| (variable, ".*"));
    let variables = given.into_iter().chain(all);
    variables.fold(expression.to_owned(), |text, (variable, value)| text.replace(variable, value))
}

#[test]
fn the_dashboards_are_built_from_their_typed_sources() {
    let folder = beside_packages();
    succeed(command("cp", ["-r".as_ref(), deploy("grafana/.").as_os_str(), folder.path().as_os_str()]));
    succeed(command("tsc", ["--project"]).arg(folder.path()));
    let (built, kept) = (folder.path().join("built"), deploy("grafana/dashboards"));
    std::fs::create_dir(&built).unwrap();
    succeed(command("node", [folder.path().join("build/build.js"), built.clone()]));
    for file in std::fs::read_dir(&built).unwrap().map(|entry| entry.unwrap().path()) {
        assert_golden(&kept.join(file.file_name().unwrap()), &std::fs::read_to_string(&file).unwrap());
    }
    assert_eq!(std::fs::read_dir(&built).unwrap().count(), files("grafana/dashboards", "json").len());
}

/// Types of a dashboard as JSON has it, and of what the data source Prometheus adds to an annotation.
const CHECKED: &str = r#"
type Plain<T> = T extends string ? `${T}` : T extends number ? number : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type OfPrometheus = { expr: string; step: string; titleFormat: string; textFormat: string };
type Checked = Omit<Plain<Dashboard>, "annotations">
  & { annotations: { list: (Plain<AnnotationQuery> & OfPrometheus)[] } };
"#;

/// The complaints of the schema of Grafana `version` about the dashboards; empty if there are none.
fn refusal(version: u32, dashboards: &[Value]) -> String {
    let mut program =
        format!("import type {{ AnnotationQuery, Dashboard }} from \"grafana-schema-{version}\";{CHECKED}");
    for (number, dashboard) in dashboards.iter().enumerate() {
        // Only a literal that is given its type at once is refused for a key that the type does not have.
        writeln!(program, "export const dashboard{number}: Checked = {dashboard};").unwrap();
    }
    let (_folder, mut tsc) = typescript(&program);
    String::from_utf8(tsc.output().unwrap().stdout).unwrap()
}

#[test]
fn the_schemas_of_grafana_10_to_13_accept_the_dashboards() {
    let dashboards: Vec<Value> = dashboards().into_iter().map(|(_, dashboard)| dashboard).collect();
    for version in [10, 11, 12, 13] {
        assert_eq!(refusal(version, &dashboards), "", "Grafana {version}");
    }
}

#[test]
fn a_field_that_grafana_does_not_know_is_refused() {
    let (_, dashboard) = dashboards().remove(0);
    let mut misspelt = dashboard.clone();
    misspelt["graphToolTip"] = 1.into();
    let said = refusal(13, &[misspelt]);
    assert!(said.contains("'\"graphToolTip\"' does not exist in type 'Checked'"), "{said}");
    let mut wrong = dashboard;
    wrong["panels"][1]["fieldConfig"]["defaults"]["thresholds"]["mode"] = "absolut".into();
    assert!(refusal(13, &[wrong]).contains("absolut"));
}

#[test]
fn the_fleet_is_listed_worst_first_with_links_into_each_exporter() {
    let (_, exporter) = dashboards().into_iter().find(|(path, _)| path.ends_with("exporter.json")).unwrap();
    let panels = list(&exporter["panels"]);
    let fleet = panels.iter().find(|panel| panel["title"] == "Exporters and shards").unwrap();
    let (columns, text) = (&fleet["transformations"][1]["options"]["indexByName"], fleet.to_string());
    for (place, label) in ["cluster", "namespace", "job", "instance"].into_iter().enumerate() {
        assert_eq!(columns[label], place);
        assert!(text.contains(&format!("var-{label}=${{__")), "{label}: {text}");
    }
    let by = [("Answers", false), ("Targets failing", true)];
    let by = by.map(|(name, desc)| json!({ "displayName": name, "desc": desc }));
    assert_eq!(fleet["options"]["sortBy"], json!(by));
    let apps = panels.iter().find(|panel| panel["title"] == "Which exporter has which app").unwrap();
    assert_eq!(apps["options"]["sortBy"], json!([{ "displayName": "Polls", "desc": false }]));
}

/// A pair polls the app `a`; the service answers no poll of `b`. With 98 more, `a` of either job fills a hundred rows.
#[test]
fn the_overview_counts_a_pair_once_and_shows_what_cannot_be_polled() {
    const SERIES: &[(&str, &str, &str)] = &[
        ("pds_up", ", resource=\"app\"", "1x40"),
        ("pds_app_info", "", "1x40"),
        ("pds_app_window_requests", ", window=\"5m\"", "300x40"),
        ("pds_app_error", "", "1x40"),
        ("pds_app_requests_total", "", "0+30x40"),
        ("pds_app_requests_accounted_seconds_total", "", "0+15x40"),
        ("pds_app_min_replicas", "", "1x40"),
        ("pds_app_max_replicas", "", "2x40"),
        ("pds_app_replica_cost_dollars_per_second", "", "0.01x40"),
        ("pds_app_response_time_seconds", ", percentile=\"p95\"", "0.5x40"),
    ];
    let mut series = vec![(
        "pds_up{job=\"one\", project=\"q\", app=\"b\", resource=\"response_time\"}".to_owned(),
        "0x40",
    )];
    let busy = |app: u32| {
        format!("pds_app_window_requests{{job=\"one\", project=\"p\", app=\"busy-{app}\", window=\"5m\"}}")
    };
    series.extend((0..98).map(|app| (busy(app), "200x40")));
    for (job, budget) in [("one", "0.9x40"), ("other", "0.4x40")] {
        let of_a =
            |name: &str, more: &str| format!("{name}{{job=\"{job}\", project=\"p\", app=\"a\"{more}}}");
        series.extend(SERIES.iter().map(|(name, more, values)| (of_a(name, more), *values)));
        series.push((of_a("pds_app:slo_budget_left:ratio", ""), budget));
        // Endpoints of a ServiceMonitor also have the label of their Service.
        let of_service = format!("service=\"{job}\", project=\"p\", resource=\"domains\"");
        series.push((format!("pds_up{{job=\"{job}\", {of_service}}}"), "0x40"));
    }
    let dashboards = dashboards();
    let dashboard = |file: &str| &dashboards.iter().find(|(path, _)| path.ends_with(file)).unwrap().1;
    let offered = |file: &str, label: &str| {
        let mut variables = list(&dashboard(file)["templating"]["list"]).iter();
        let variable = variables.find(|variable| variable["name"] == label).unwrap();
        let query = string(variable, "/query/query").strip_prefix("label_values(").unwrap();
        let series = query.strip_suffix(&format!(", {label})")).unwrap();
        format!("group by ({label}) ({series})").replace("=\"$project\"", "=~\"$project\"")
    };
    let variables = [("overview.json", "project"), ("app.json", "project"), ("app.json", "app")];
    let [all, with_apps, apps] = variables.map(|(file, label)| offered(file, label));
    let overview = dashboard("overview.json");
    let panels = expressions(overview);
    let panel =
        |title: &str, place: usize| panels.iter().filter(|(panel, _)| *panel == title).nth(place).unwrap().1;
    let projects = json!([["{project=\"p\"}", 1], ["{project=\"q\"}", 1]]);
    let rows = json!([
        ["{job=\"one\", project=\"p\", app=\"a\"}", 1],
        ["{job=\"other\", project=\"p\", app=\"a\"}", 1],
        ["{job=\"one\", project=\"q\", app=\"b\"}", 0],
    ]);
    let cases = [
        (&*all, projects.clone()),
        (&*with_apps, projects),
        (&*apps, json!([["{app=\"a\"}", 1], ["{app=\"b\"}", 1]])),
        (panel("The 100 busiest apps, failing ones first", 5), rows),
        (panel("Apps", 0), json!([["{}", 2]])),
        (panel("Apps in error", 0), json!([["{}", 1]])),
        (panel("Targets failing", 0), json!([["{}", 2]])),
        (panel("Requests", 0), json!([["{}", 2]])),
        (panel("Cost now", 0), json!([["{}", 36]])),
        (panel("Cost now", 1), json!([["{}", 72]])),
        (panel("Requests by project", 0), json!([["{project=\"p\"}", 2]])),
        (panel("Slowest apps", 0), json!([["{project=\"p\", app=\"a\"}", 0.5]])),
        (panel("Error budget left", 0), json!([["{project=\"p\", app=\"a\"}", 0.4]])),
    ];
    let cases = cases.map(|(expression, expected)| {
        let samples = list(&expected).iter().map(|one| json!({ "labels": one[0], "value": one[1] }));
        let samples: Vec<Value> = samples.collect();
        json!({ "expr": filled(expression, "5m", ".*", ""), "eval_time": "10m", "exp_samples": samples })
    });
    assert_passes(&["groups: []".to_owned()], "15s", &series, json!({ "promql_expr_test": cases }));
}

#[test]
fn links_set_variables_that_their_dashboard_has() {
    let dashboards: Vec<Value> = dashboards().into_iter().map(|(_, dashboard)| dashboard).collect();
    let mut links = 0;
    for text in dashboards.iter().chain(&rules()).map(Value::to_string) {
        for link in text.split("/d/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let uid = link.split('/').next().unwrap();
            let board =
                dashboards.iter().find(|board| board["uid"] == uid).unwrap_or_else(|| panic!("{link}"));
            let variables = list(&board["templating"]["list"]);
            for name in link.split("var-").skip(1).map(|rest| rest.split('=').next().unwrap()) {
                assert!(variables.iter().any(|variable| variable["name"] == name), "{link}: {name}");
                links += 1;
            }
        }
    }
    assert!(links > 100, "{links}");
}

#[test]
fn new_builds_are_marked() {
    for (path, dashboard) in dashboards() {
        let markers = list(&dashboard["annotations"]["list"]);
        let expected = usize::from(!path.ends_with("exporter.json"));
        assert_eq!(markers.len(), expected, "{}", path.display());
        for marker in markers {
            assert_eq!(unknown_series(string(marker, "/expr")), BTreeSet::new());
        }
    }
}

#[test]
fn every_expression_parses_and_reads_series_that_exist() {
    let mut rules = "groups:\n  - name: dashboards\n    rules:\n".to_owned();
    for (path, dashboard) in dashboards() {
        let markers = list(&dashboard["annotations"]["list"]).iter();
        let markers = markers.map(|marker| (string(marker, "/name"), string(marker, "/expr")));
        for (number, (panel, expression)) in expressions(&dashboard).into_iter().chain(markers).enumerate() {
            assert_eq!(unknown_series(expression), BTreeSet::new(), "{}: {panel}", path.display());
            let expression = Value::from(expression.replace("$__rate_interval", "5m"));
            writeln!(rules, "      - record: series{number}\n        expr: {expression}").unwrap();
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules).unwrap();
    succeed(command("promtool", ["check", "rules", "--lint=none"]).arg(file.path()));
}

#[test]
fn every_variable_is_defined_and_every_panel_has_its_place() {
    let mut uids = BTreeSet::new();
    for (path, dashboard) in dashboards() {
        let name = path.display();
        assert!(uids.insert(string(&dashboard, "/uid").to_owned()), "{name}: its uid is taken");
        let variables: BTreeSet<&str> =
            list(&dashboard["templating"]["list"]).iter().map(|variable| string(variable, "/name")).collect();
        assert!(variables.contains("datasource"), "{name}");
        let text = dashboard.to_string();
        for used in text.split('$').skip(1) {
            let used = used.trim_start_matches('{');
            let end = used.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(used.len());
            let known = variables.contains(&used[..end]) || BUILT_IN.contains(&&used[..end]);
            assert!(
                known || end == 0 || used.starts_with("__all"),
                "{name}: ${} is not defined",
                &used[..end]
            );
        }
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in list(&dashboard["panels"]) {
            assert!(ids.insert(panel["id"].as_u64()), "{name}: an id twice: {panel}");
            let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
            assert!(at("x") + at("w") <= 24, "{name}: wider than the page: {panel}");
            for cell in
                (at("y")..at("y") + at("h")).flat_map(|y| (at("x")..at("x") + at("w")).map(move |x| (x, y)))
            {
                assert!(cells.insert(cell), "{name}: two panels in one place: {panel}");
            }
            if panel["type"] != "row" {
                assert!(
                    !string(panel, "/description").is_empty(),
                    "{name}: {panel} does not say what is seen"
                );
            }
        }
    }
}
