//! The settings of an app.

use maud::{Markup, html};

use crate::status::settings::{Group, Setting, Value};

use super::super::format::{self, bytes, dollars, number, seconds};
use super::super::layout::{Frame, missing};

/// The settings as a table; each leads to its meaning in the catalogue.
pub(super) fn settings(frame: Frame<'_>, groups: &[Group]) -> Markup {
    html! {
        section {
            h2 #settings { "Settings" }
            @if groups.is_empty() { p .none { "The app's settings have not been received yet, or are stale." } }
            @else {
                div .scroll tabindex="0" role="region" aria-labelledby="settings" {
                    table .settings.cards role="table" {
                        caption .hidden { "The app's settings" }
                        thead role="rowgroup" { tr role="row" { @for title in ["Setting", "Value"] { th scope="col" role="columnheader" { (title) } } } }
                        @for group in groups {
                            tbody role="rowgroup" {
                                tr .group role="row" { th scope="rowgroup" role="rowheader" colspan="2" { (group.title) } }
                                @for setting in &group.settings { (row(frame, setting)) }
                            }
                        }
                    }
                }
            }
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

/// A value as people read it.
pub(super) fn written(value: &Value) -> Markup {
    match value {
        Value::Text(text) => html! { (text) },
        Value::Flag(on) => html! { @if *on { "yes" } @else { "no" } },
        #[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
        Value::Time(second) => match jiff::Timestamp::from_second(*second as i64) {
            Ok(time) => html! { time datetime=(time) { (format::absolute(time)) } },
            Err(_) => missing(),
        },
        Value::Number(value, "seconds") => html! { (seconds(*value)) },
        Value::Number(value, "bytes") => html! { (bytes(*value)) },
        Value::Number(value, "dollars_per_second") => html! { (dollars(value * 3600.0)) " / h" },
        Value::Number(value, _) => html! { (number(*value)) },
    }
}
