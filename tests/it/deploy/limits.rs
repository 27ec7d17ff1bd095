//! Limits that rules, runbooks and dashboards state alike.

use super::dashboards::dashboards;
use super::{list, rules, string, text};

/// The panel `title` of the dashboard in `file`.
fn panel(file: &str, title: &str) -> serde_json::Value {
    let (_, dashboard) = dashboards().into_iter().find(|(path, _)| path.ends_with(file)).unwrap();
    list(&dashboard["panels"]).iter().find(|panel| panel["title"] == title).unwrap().clone()
}

#[test]
fn clocks_differ_from_the_same_threshold_on_everywhere() {
    let seconds = pds_core::clock::MAX_SKEW.as_secs();
    let rules = rules();
    let alert = rules.iter().find(|rule| rule["alert"] == "PdsClockSkew").unwrap();
    assert_eq!(string(alert, "/expr"), format!("abs(pds_api_clock_skew_seconds) > {seconds}"));
    assert!(text("prometheus/runbooks/PdsClockSkew.md").contains(&format!("by more than {seconds} seconds")));
    let said = format!("more than {seconds} s apart");
    assert!(pds_exporter::status::Status::SCHEMA.contains(&said), "what the status says of clocks_differ");
    let panel = panel("exporter.json", "Clock skew");
    let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].to_string();
    assert!(steps.contains(&format!("\"value\":{seconds}")), "{steps}");
}

/// An alert on a burn rate, the words of its longer window and of the days that a full budget lasts.
const BURNS: [(&str, &str, &str, (f64, &str)); 3] = [
    ("PdsSloBurnsFast", "1h", "hour", (2.0, "two")),
    ("PdsSloBurns", "6h", "six hours", (5.0, "five")),
    ("PdsSloBurnsSlowly", "1d", "day", (10.0, "ten")),
];

#[test]
fn burn_rates_have_the_same_limits_everywhere() {
    let (rules, panel) = (rules(), panel("app.json", "Burn rate"));
    for (alert, window, range, (days, word)) in BURNS {
        let rule = rules.iter().find(|rule| rule["alert"] == alert).unwrap();
        let expression = string(rule, "/expr");
        assert!(expression.contains(&format!("ratio_rate{window} > clamp_max(")), "{alert}");
        // Both windows have one limit: at most a multiple of the allowed share, at most the cap.
        let limits = expression.split("clamp_max(").skip(1).map(|rest| {
            let (multiple, rest) = rest.split_once(" * (1 - max by").unwrap();
            let (cap, _) = rest.split_once("[15m]))), ").unwrap().1.split_once(')').unwrap();
            (multiple, cap)
        });
        let limits: Vec<(&str, &str)> = limits.collect();
        assert_eq!((limits.len(), limits[0]), (2, limits[1]), "{alert}");
        let (multiple, cap) = limits[0];
        let [times, share] = [multiple, cap].map(|text| text.parse::<f64>().unwrap());
        let objective = (100.0 * (1.0 - share / times)).round() / 100.0;
        let said = format!(
            "In the last {range}, slow requests were more than {multiple} times as frequent as allowed: at that rate, a \
             full budget lasts {word} days. With an objective below {objective}, more than {} % of the requests were slow",
            100.0 * share
        );
        let runbook = text(&format!("prometheus/runbooks/{alert}.md"));
        assert!(runbook.contains(&said), "{alert}: {said}");
        assert_eq!((30.0 / times).round(), days, "{alert}");
        let described = string(&panel, "/description");
        for part in [format!("above {multiple} over"), format!("{} %", 100.0 * share)] {
            assert!(alert == "PdsSloBurnsSlowly" || described.contains(&part), "{part}: {described}");
        }
    }
}
