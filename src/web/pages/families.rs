//! `/metrics-catalogue`: every family, with a live example.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::catalogue::markdown::Group;
use crate::catalogue::{Family, Kind};

/// The page of the families in `groups`; `examples` are sample lines by family name.
pub(super) fn families(groups: &[Group], examples: &HashMap<String, String>) -> Markup {
    let id = |index: usize| format!("group-{index}");
    html! {
        h1 { "Metrics" }
        nav aria-label="Groups of metrics" { ul .groups-list {
            @for (index, group) in groups.iter().enumerate() { li { a href={ "#" (id(index)) } { (group.title) } } }
        } }
        @for (index, group) in groups.iter().enumerate() {
            section .families aria-labelledby=(id(index)) {
                h2 id=(id(index)) { (group.title) }
                @for family in &group.families { (entry(family, examples.get(family.name))) }
            }
        }
    }
}

fn entry(family: &Family, example: Option<&String>) -> Markup {
    html! {
        article id=(family.name) {
            h3 { a href={ "#" (family.name) } { (family.name) } }
            p .kind {
                (kind(family.kind))
                @if let Some(unit) = family.unit() { ", in " (unit.replace('_', " ")) }
                @if !family.labels.is_empty() { "; by " @for label in family.labels { code { (label) } " " } }
            }
            p { (family.help) "." }
            @match example {
                Some(line) => pre tabindex="0" role="region" aria-label={ "Example of " (family.name) } { (line) }
                None => p .none { "No series at present." }
            }
        }
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
        Kind::Info => "info",
    }
}
