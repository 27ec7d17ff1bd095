//! `/metrics-catalogue`: every family, with a live example and a query.

use std::collections::HashMap;

use maud::{Markup, html};

use pds_config::Web;
use pds_exposition::{Family, Group, Kind};
use pds_ledger::FAMILIES;

use super::format::{missing, plural};
use super::layout::{self, Frame};
use super::links::parameter;

/// The search text: families whose name, help or labels contain it, in any case.
pub(super) fn search(query: &str) -> String {
    parameter(query, "q").unwrap_or_default().trim().to_owned()
}

/// The page of the families in `groups`; `examples` are sample lines by family name.
pub(super) fn families(
    frame: Frame<'_>,
    groups: &[Group],
    examples: &HashMap<String, String>,
    search: &str,
    web: &Web,
) -> Markup {
    let found: Vec<(&Group, Vec<&Family>)> = groups
        .iter()
        .map(|group| (group, group.families.iter().filter(|family| holds(family, search)).collect()))
        .filter(|(_, families): &(_, Vec<_>)| !families.is_empty())
        .collect();
    let matching: usize = found.iter().map(|(_, families)| families.len()).sum();
    let all: usize = groups.iter().map(|group| group.families.len()).sum();
    html! {
        div .bar {
            h1 { "Metrics" }
            form .filter method="get" action=(frame.links.to("/metrics-catalogue")) role="search" aria-label="Metrics" {
                label { span { "Search" } input type="search" name="q" value=(search) placeholder="name, label or meaning"; }
                button type="submit" { "Show" }
            }
        }
        div .scroll.tall tabindex="0" role="region" aria-label="Metrics" {
            table .families.cards role="table" {
                caption { (plural(matching, "metric", "metrics")) @if matching < all { " of " (all) } }
                thead role="rowgroup" { tr role="row" { @for title in ["Metric", "What it is", "Current sample and query"] { th scope="col" role="columnheader" { (title) } } } }
                @for (group, families) in &found {
                    tbody role="rowgroup" {
                        tr .group role="row" { th scope="rowgroup" role="rowheader" colspan="3" { (group.title) } }
                        @for family in families { (entry(family, examples.get(family.name), web)) }
                    }
                }
                @if found.is_empty() { tbody role="rowgroup" { tr role="row" { td colspan="3" .none role="cell" {
                    "No metric matches. " a href=(frame.links.to("/metrics-catalogue")) { "All metrics" }
                } } } }
            }
        }
    }
}

fn holds(family: &Family, search: &str) -> bool {
    let search = search.to_lowercase();
    let texts = [family.name, family.help].into_iter().chain(family.labels.iter().copied());
    search.is_empty() || texts.into_iter().any(|text| text.to_lowercase().contains(&search))
}

fn entry(family: &Family, example: Option<&String>, web: &Web) -> Markup {
    let query = query(family);
    html! {
        tr id=(family.name) role="row" {
            th scope="row" role="rowheader" {
                a href={ "#" (family.name) } { code { (family.name) } }
                span .sub {
                    (family.kind.as_str())
                    @if let Some(unit) = family.unit() { ", in " (unit.replace('_', " ")) }
                    @if !family.labels.is_empty() { "; by " @for label in family.labels { code { (label) } " " } }
                }
            }
            td .meaning role="cell" { (family.help.trim_end_matches('.')) (family.separator()) (family.source) "." }
            td .example role="cell" {
                @match example {
                    Some(line) => code { (line) },
                    None => span .none { (missing()) " no series right now" },
                }
                @if query != family.name { p .query { (layout::query(web, &query, family.name)) } }
            }
        }
    }
}

/// The name of the counter of seconds beside the counter `name`, if it has one.
fn accounted_seconds(name: &str) -> Option<&'static str> {
    let seconds = format!("{}_accounted_seconds_total", name.strip_suffix("_total")?);
    FAMILIES.iter().map(|family| family.name).find(|known| *known == seconds)
}

/// A query to start from.
fn query(family: &Family) -> String {
    let name = family.name;
    let by = match name {
        _ if name.starts_with("pds_app_") => "project, app".to_owned(),
        _ if name.starts_with("pds_project_") => "project".to_owned(),
        _ => family.labels.iter().filter(|label| **label != "le").copied().collect::<Vec<_>>().join(", "),
    };
    if let Some(seconds) = accounted_seconds(name) {
        // Divided by counted time, because these counters grow once per accounting step.
        return format!("max by ({by}) (rate({name}[5m]) / (rate({seconds}[5m]) > 0))");
    }
    match family.kind {
        Kind::Histogram => {
            let by = if by.is_empty() { by } else { format!(", {by}") };
            format!("histogram_quantile(0.95, sum by (le{by}) (rate({name}_bucket[5m])))")
        }
        Kind::Counter if by.is_empty() => format!("rate({name}[5m])"),
        Kind::Counter => format!("sum by ({by}) (rate({name}[5m]))"),
        Kind::Gauge if name.ends_with("_timestamp_seconds") => format!("time() - {name}"),
        Kind::Gauge if name.ends_with("_successful") || name == pds_telemetry::catalogue::UP.name => {
            format!("{name} == 0")
        }
        Kind::Gauge if family.labels.contains(&"status") => format!("sum by (status) ({name})"),
        Kind::Gauge if name.starts_with("pds_app_") => format!("topk(10, {name})"),
        Kind::Gauge | Kind::Info => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_fits_the_kind_of_its_family() {
        let counter = Family {
            kind: Kind::Counter,
            ..Family::gauge("pds_api_requests_total", &["resource", "code"], "x")
        };
        assert_eq!(query(&counter), "sum by (resource, code) (rate(pds_api_requests_total[5m]))");
        let counted = Family { name: "pds_app_requests_total", ..counter };
        assert_eq!(
            query(&counted),
            "max by (project, app) (rate(pds_app_requests_total[5m]) \
             / (rate(pds_app_requests_accounted_seconds_total[5m]) > 0))"
        );
        let histogram = Family {
            kind: Kind::Histogram,
            ..Family::gauge("pds_app_request_duration_seconds", &["le"], "x")
        };
        assert_eq!(
            query(&histogram),
            "histogram_quantile(0.95, sum by (le, project, app) (rate(pds_app_request_duration_seconds_bucket[5m])))"
        );
        assert_eq!(
            query(&Family::gauge("pds_x_timestamp_seconds", &[], "x")),
            "time() - pds_x_timestamp_seconds"
        );
        assert_eq!(
            query(&Family::gauge(pds_telemetry::catalogue::UP.name, &["resource"], "x")),
            "pds_up == 0"
        );
    }

    #[test]
    fn a_search_finds_names_labels_and_meanings_in_any_case() {
        let family = Family::gauge("pds_app_cpu_cores", &["tier"], "CPU cores allocated");
        for (search, found) in [("", true), ("CPU", true), ("tier", true), ("ALLOC", true), ("memory", false)]
        {
            assert_eq!(holds(&family, search), found, "{search}");
        }
        assert_eq!((search("q=+a%20b+"), search("x=1")), ("a b".to_owned(), String::new()));
    }
}
