//! Rules, their cases, their runbooks, and the configurations of Prometheus and Alertmanager around them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pds_diagnosis::Scope;
use pds_diagnosis::cause::{ALL, Cause};

use super::dashboards::{dashboards, expressions};
use super::{command, deploy, files, list, rules, string, succeed, text, unknown_series, yaml};
use crate::golden::assert_current;

/// The targets of links in the rule files.
const RUNBOOKS: &str = "https://github.com/example/pds-exporter/blob/main/deploy/prometheus/runbooks";
/// The identity of a release, as written in rules.
pub(super) const RELEASE: &str = "cluster, namespace, job";

pub(super) fn alerts() -> BTreeSet<String> {
    rules().iter().filter_map(|rule| rule["alert"].as_str().map(str::to_owned)).collect()
}

#[test]
fn prometheus_and_alertmanager_accept_the_configurations() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(deploy("prometheus/rules"), folder.path().join("rules")).unwrap();
    let path = |file: &str| {
        let path = folder.path().join(file.replace('/', "-"));
        let config = text(file);
        // Debian's promtool is built without Kubernetes.
        let discovery = "kubernetes_sd_configs:\n      - role: pod\n        namespaces:\n          names: [pds-exporter]\n";
        let config = config.replace(discovery, "static_configs: []\n");
        std::fs::write(&path, config).unwrap();
        path.display().to_string()
    };
    for name in ["prometheus/prometheus.yml", "prometheus/kubernetes.yml", "compose/prometheus.yml"] {
        let said = succeed(command("promtool", ["check", "config", &path(name)]));
        assert!(said.contains("5 rule files found"), "{said}");
    }
    succeed(command("promtool", ["check", "config", "--agent", &path("prometheus/agent.yml")]));
    let routing = deploy("prometheus/alertmanager.yml");
    succeed(command("amtool", ["check-config".as_ref(), routing.as_os_str()]));
}

#[test]
fn each_rule_passes_its_cases() {
    std::thread::scope(|scope| {
        for file in files("prometheus/rules-tests", "yml") {
            scope.spawn(move || succeed(command("promtool", ["test", "rules"]).arg(file)));
        }
    });
}

#[test]
fn every_query_of_the_page_of_queries_has_a_case() {
    let cases = yaml(&text("prometheus/rules-tests/queries.yml")).remove(0);
    let cases = list(&cases["tests"][0]["promql_expr_test"]).iter();
    let queries = crate::docs::queries().into_iter().filter(|(page, _)| page.ends_with("query.md"));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cases: Vec<String> = cases.map(|case| words(string(case, "/expr"))).collect();
    assert_eq!(queries.map(|(_, query)| words(&query)).collect::<Vec<_>>(), cases);
}

#[test]
fn the_commands_in_the_rules_set_other_labels_of_releases_and_owners() {
    let folder = tempfile::tempdir().unwrap();
    succeed(command("cp", ["-r".as_ref(), deploy("prometheus/.").as_os_str(), folder.path().as_os_str()]));
    let recording = text("prometheus/rules/recording.yml");
    let comments = recording.lines().filter_map(|line| line.trim_start().strip_prefix("#   "));
    let script = comments.fold(String::new(), |script, line| script + line + "\n");
    assert_eq!(script.matches("sed -i").count(), 2, "{script}");
    succeed(command("sh", ["-euc", &script]).current_dir(&folder));
    let changed = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let names =
        ["alertmanager.yml", "rules/alerts.yml", "rules/recording.yml", "rules/shards.yml", "rules/slo.yml"];
    for name in names {
        let text = changed(name);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let left: Vec<&str> = lines.filter(|line| line.contains("cluster")).collect();
        assert!(left.is_empty(), "{name}: {left:#?}");
        assert!(text.contains("region, job"), "{name}");
        assert!(name == "alertmanager.yml" || text.contains("team, tier"), "{name}");
    }
    succeed(command("sh", ["-c", &format!("promtool check rules {}/rules/*.yml", folder.path().display())]));
}

#[test]
fn every_alert_has_a_case_in_which_it_fires_and_then_does_not() {
    let mut fires = BTreeSet::new();
    for file in files("prometheus/rules-tests", "yml") {
        let document = yaml(&std::fs::read_to_string(file).unwrap()).remove(0);
        for test in list(&document["tests"]) {
            let expected = list(&test["promql_expr_test"]).iter().map(|case| case["exp_samples"].to_string());
            let expected: Vec<String> = expected.collect();
            let named = |alert: &String| {
                let told =
                    expected.iter().filter(|samples| samples.contains(&format!("\\\"{alert}\\\""))).count();
                told > 0 && told < expected.len()
            };
            fires.extend(alerts().into_iter().filter(named));
        }
    }
    // That this one fires is its purpose, and that it does so is one of the cases.
    fires.insert("PdsWatchdog".to_owned());
    assert_eq!(alerts().difference(&fires).collect::<Vec<_>>(), [""; 0], "no test expects its alertname");
}

#[test]
fn the_page_names_every_recorded_series_of_an_app() {
    let (rules, page) = (rules(), text("README.md"));
    let recorded: Vec<&str> = rules.iter().filter_map(|rule| rule["record"].as_str()).collect();
    // Three are figures of a release, three of an exporter or shard, and one is of apps that are gone. Two have two series an app.
    assert_eq!(recorded.len() - 3 - 3 - 1 + 2, 18, "series an app, as the README of the folder says");
    let named = |name: &&str| {
        let window = name.strip_prefix("pds_app:slo_errors:ratio_rate").unwrap_or(name);
        page.contains(&format!("`{name}`")) || page.contains(&format!("`{window}`"))
    };
    assert_eq!(recorded.iter().copied().filter(named).count(), 16, "named there");
}

/// The words before each `(` in `expression` that are `by` or `on`, with what is in the parentheses.
fn label_lists(expression: &str) -> impl Iterator<Item = (&str, &str)> {
    ["by (", "on (", "without (", "ignoring ("].into_iter().flat_map(move |word| {
        expression.split(word).skip(1).map(move |rest| (word, rest.split(')').next().unwrap_or_default()))
    })
}

#[test]
fn every_aggregation_and_join_keeps_the_release() {
    let mut lacking = Vec::new();
    for rule in rules().iter().filter(|rule| rule["alert"] != "PdsWatchdog") {
        let name = rule["alert"].as_str().or(rule["record"].as_str()).unwrap();
        let expression = string(rule, "/expr");
        if expression.contains("job=") {
            lacking.push(format!("{name} knows one job only"));
        }
        for (word, labels) in label_lists(expression) {
            if !labels.starts_with(RELEASE) {
                lacking.push(format!("{name}: {word}{labels})"));
            }
        }
        let aggregations = ["sum", "min", "max", "avg", "group", "count", "topk", "bottomk", "quantile"];
        let whole = aggregations.iter().filter(|operator| {
            expression.match_indices(*operator).any(|(place, _)| {
                let before = expression[..place].chars().next_back();
                let is_word = before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
                is_word && expression[place + operator.len()..].starts_with('(')
            })
        });
        lacking.extend(whole.map(|operator| format!("{name}: {operator}(")));
        // A query in a text is about the release of the alert.
        for query in rule["annotations"].to_string().split("printf `").skip(1) {
            let query = query.split('`').next().unwrap();
            let selectors = query.matches("%s").count();
            let of_release = "cluster=\\\"%s\\\", namespace=\\\"%s\\\", job=\\\"%s\\\"";
            if !query.contains(of_release) && !query.contains("%s[") && !query.contains("ratio%s") {
                lacking.push(format!("{name}: {query} ({selectors})"));
            }
        }
    }
    for (path, dashboard) in dashboards() {
        for (panel, expression) in expressions(&dashboard) {
            let selectors = expression.split('{').skip(1).map(|rest| rest.split('}').next().unwrap());
            for selector in selectors.filter(|selector| {
                !selector.contains("cluster=~\"$cluster\", namespace=~\"$namespace\", job=~\"$job\"")
            }) {
                lacking.push(format!("{}: {panel}: {selector}", path.display()));
            }
            // Without labels it is a total of what is chosen, in which a pair counts once.
            for (word, labels) in label_lists(expression).filter(|(_, labels)| !labels.is_empty()) {
                let is_whole = word == "without (" && ["job", "app", "job, instance"].contains(&labels);
                if !is_whole && !labels.contains(RELEASE) {
                    lacking.push(format!("{}: {panel}: {word}{labels})", path.display()));
                }
            }
        }
        for label in RELEASE.split(", ") {
            let variables = list(&dashboard["templating"]["list"]).iter();
            let found =
                variables.filter(|variable| variable["name"] == label && variable["allValue"] == ".*");
            assert_eq!(found.count(), 1, "{}: {label}", path.display());
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

#[test]
fn a_third_of_the_series_is_read_by_no_rule_and_no_dashboard() {
    const FAMILY: &str = "pds_app_response_time_within_ratio";
    let page = text("../tests/it/whole/demo.txt");
    let of_apps: Vec<&str> = page.lines().filter(|line| line.contains("app=\"")).collect();
    let unread = of_apps.iter().filter(|line| line.starts_with(FAMILY)).count();
    let share = unread as f64 / of_apps.len() as f64;
    assert!((0.30..0.37).contains(&share), "{share}");
    for rule in rules() {
        assert!(!string(&rule, "/expr").contains(FAMILY), "{rule}");
    }
    for file in files("grafana/dashboards", "json") {
        assert!(!text(file.to_str().unwrap()).contains(FAMILY), "{}", file.display());
    }
    let said = text("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("`{FAMILY}`, a third of the scraped series")));
}

#[test]
fn every_alert_leads_to_its_runbook_and_every_runbook_to_series_and_commands_that_exist() {
    let mut runbooks = BTreeSet::new();
    let commands = std::fs::read_to_string("docs/flags.md").unwrap();
    for rule in rules().iter().filter(|rule| rule["alert"].is_string()) {
        let (alert, url) = (string(rule, "/alert"), string(rule, "/annotations/runbook_url"));
        assert_eq!(url, format!("{RUNBOOKS}/{alert}.md"));
        let board = string(rule, "/annotations/dashboard_url");
        let known = dashboards().into_iter().map(|(_, dashboard)| string(&dashboard, "/uid").to_owned());
        // A link with a condition leads to two dashboards.
        let known = known.filter(|uid| board.contains(&format!("/d/{uid}/{uid}")));
        assert_eq!(known.count(), 1 + board.matches("{{ else }}").count(), "{board}");
        assert!(
            ["critical", "warning", "info", "none"].contains(&string(rule, "/labels/severity")),
            "{alert}"
        );
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
        for quoted in [&*runbook, string(rule, "/annotations/action")].iter().flat_map(|text| text.split('`'))
        {
            let Some(words) = quoted.strip_prefix("pdstool ") else { continue };
            let words =
                words.split(' ').take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
            let command = words.fold("`pdstool".to_owned(), |command, word| format!("{command} {word}"));
            assert!(commands.contains(&command), "{alert}: there is no {command}`");
        }
        runbooks.insert(format!("{alert}.md"));
    }
    let names = files("prometheus/runbooks", "md").into_iter();
    let found = names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    assert_eq!(found.collect::<BTreeSet<_>>(), runbooks, "a runbook without its alert");
}

#[test]
fn a_runbook_has_the_remedies_of_the_causes_that_it_names() {
    let mut named = BTreeSet::new();
    for path in files("prometheus/runbooks", "md") {
        let page = std::fs::read_to_string(&path).unwrap();
        let mut begun = page.split("<!-- ").filter_map(|rest| Some(rest.split_once(": begin -->")?.0));
        let Some(codes) = begun.find(|codes| !codes.starts_with("run ")) else { continue };
        // A unit that has its token from LoadCredential is restarted.
        assert!(!page.contains("no restart"), "{}", path.display());
        let mut remedies = String::new();
        for code in codes.split(' ') {
            let cause = ALL.iter().find(|cause| cause.code == code);
            let cause = cause.unwrap_or_else(|| panic!("{}: no cause {code}", path.display()));
            let says = cause.says_of(&[]);
            let (first, rest) = says.split_at(1);
            let first = first.to_uppercase();
            writeln!(remedies, "- **{first}{rest}.** {}", cause.remedy_at(None)).unwrap();
            named.insert(cause.code);
        }
        assert_current(path.to_str().unwrap(), codes, &remedies);
        // Each can fail a single target; an address that only it lacks is a missing call.
        let of_target = ALL.iter().filter(|cause| [Scope::Service, Scope::Target].contains(&cause.scope));
        for class in of_target.flat_map(|cause| cause.classes) {
            let code = Cause::within(class, false, false, || false).code;
            let is_named = codes.split(' ').any(|named| named == code);
            assert!(is_named || !path.ends_with("PdsTargetFailing.md"), "{}: no {code}", path.display());
        }
    }
    let unnamed = ALL.iter().filter(|cause| {
        !cause.classes.is_empty() && cause.scope != Scope::Consequence && !named.contains(cause.code)
    });
    assert_eq!(unnamed.map(|cause| cause.code).collect::<Vec<_>>(), [""; 0], "causes of failing polls");
}

#[test]
fn commands_find_the_pods_of_a_release_in_any_namespace_and_under_any_name() {
    let is_by_label = |part: &&str| part.starts_with("kubectl get") && part.contains(" -l ");
    let mut commands = 0;
    for file in [files("prometheus/rules", "yml"), files("prometheus/runbooks", "md")].concat() {
        let text = std::fs::read_to_string(&file).unwrap();
        for command in text.split('`').filter(is_by_label) {
            let is_general = command.contains(" -A -l app.kubernetes.io/instance=");
            assert!(is_general, "{}: {command}", file.display());
            commands += 1;
        }
    }
    assert!(commands >= 5, "{commands}");
}

#[test]
fn alerts_about_apps_and_projects_carry_their_owner() {
    for rule in rules().iter().filter(|rule| rule["alert"].is_string()) {
        let of_app = !string(rule, "/annotations/dashboard_url").contains("/d/pds-exporter/");
        let owner = "on (cluster, namespace, job, project, app) group_left (team) pds:owner:info";
        let joined = string(rule, "/expr").trim_end().ends_with(owner);
        assert_eq!(of_app, joined, "{rule}");
    }
}

#[test]
fn rules_read_only_series_that_exist() {
    // The chart records it for a release with rules of its own.
    const OWN: &str = "pds:own_objectives:info";
    assert!(
        text("helm/pds-exporter/templates/prometheusrule.yaml").contains(&format!("\"record\" \"{OWN}\""))
    );
    for rule in rules() {
        let expression = string(&rule, "/expr").replace(OWN, "");
        assert_eq!(unknown_series(&expression), BTreeSet::new(), "{rule}");
    }
}

#[test]
fn every_gauge_of_success_has_its_alert_panel_and_runbook() {
    let families = pds_telemetry::catalogue::catalogue().into_iter().flat_map(|group| group.families);
    let gauges: Vec<&str> =
        families.map(|family| family.name).filter(|name| name.ends_with("_successful")).collect();
    assert!(gauges.len() >= 4, "{gauges:?}");
    let boards = dashboards();
    for gauge in gauges {
        let rules = rules();
        let alert = rules
            .iter()
            .find(|rule| rule["alert"].is_string() && string(rule, "/expr") == format!("{gauge} == 0"));
        let alert = alert.unwrap_or_else(|| panic!("no alert on {gauge}"));
        // That it leads to its runbook, and that both are right, is tested above.
        assert!(text(&format!("prometheus/runbooks/{}.md", string(alert, "/alert"))).len() > 200);
        let panels = boards.iter().flat_map(|(_, dashboard)| expressions(dashboard));
        assert!(panels.into_iter().any(|(_, expression)| expression.contains(gauge)), "no panel on {gauge}");
    }
}
