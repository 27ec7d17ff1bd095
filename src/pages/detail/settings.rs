//! The settings of an app, and their changes since yesterday.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::status::detail::Detail;
use crate::status::settings::{self, Setting, Value, name_of};
use crate::store::{Change, Fact};

use super::super::format::{self, ago, missing};
use super::super::layout::{Frame, table};

/// The settings as a table; each links to its meaning in the catalogue.
pub(super) fn settings(frame: Frame<'_>, detail: &Detail) -> Markup {
    let caption = html! { caption .hidden { "The app's settings" } };
    let groups = html! {
        @for group in &detail.settings {
            tbody role="rowgroup" {
                tr .group role="row" { th scope="rowgroup" role="rowheader" colspan="2" { (group.title) } }
                @for setting in &group.settings { (row(frame, setting)) }
            }
        }
    };
    html! {
        section {
            h2 #settings { "Settings" }
            @if detail.settings.is_empty() { p .none { "The app's settings have not been received yet, or are stale." } }
            @else { (table("settings cards", "Settings", caption, &["Setting", "Value"], groups)) }
        }
    }
}

fn row(frame: Frame<'_>, setting: &Setting) -> Markup {
    html! {
        tr role="row" {
            th scope="row" role="rowheader" { a href=(frame.links.family(setting.family)) title=(setting.meaning) { (setting.name) } }
            td .value role="cell" { (written(&setting.value)) }
        }
    }
}

/// The changes, and the time since which they are recorded.
pub(super) fn changes(frame: Frame<'_>, detail: &Detail) -> Markup {
    let yesterday = frame.now.saturating_sub(SignedDuration::from_hours(24)).unwrap_or(frame.now);
    let since: Timestamp =
        yesterday.max(frame.status.exporter.started).max(detail.changes_since.unwrap_or_default());
    let since = html! { time datetime=(since) { (format::absolute(since)) } };
    let rows = html! {
        tbody { @for change in &detail.changes {
            tr {
                td { (ago(change.at, frame.now)) }
                th scope="row" { (name_of(change.family, change.label)) }
                @for value in values(change) {
                    td .value { @match value { Some(value) => (written(&value)), None => (missing()) } }
                }
            }
        } }
    };
    let caption = html! { caption { "Since " (since) ", newest first." } };
    html! {
        section {
            h2 #changes { "Changes of settings" }
            @if detail.changes.is_empty() { p .none { "No changes since " (since) "." } }
            @else { (table("", "Changes of settings", caption, &["When", "Setting", "Before", "Now"], rows)) }
        }
    }
}

/// The values before and after a change; numbers in full if they would read the same.
fn values(change: &Change) -> [Option<Value>; 2] {
    let facts = [&change.before, &change.after].map(Option::as_ref);
    let values = facts.map(|fact| settings::value(change.family, fact?));
    let in_full = |fact: &Fact| match fact {
        Fact::Number(number) => Value::Text(number.to_string()),
        Fact::Text(text) => Value::Text(text.to_string()),
    };
    if values[0] == values[1] { facts.map(|fact| fact.map(in_full)) } else { values }
}

/// A value as people read it.
fn written(value: &Value) -> Markup {
    match value {
        Value::Text(text) => html! { (text) },
        Value::Time(time) => html! { time datetime=(time) { (format::absolute(*time)) } },
    }
}
