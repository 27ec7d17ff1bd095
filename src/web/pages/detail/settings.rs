//! The settings of an app.

use maud::{Markup, html};

use crate::status::settings::{Group, Setting, Value};

use super::super::format::{self, bytes, dollars, number, seconds};
use super::super::layout::{Frame, missing};
use super::queries::Selector;

/// The settings as a table; what each means unfolds.
pub(super) fn settings(frame: Frame<'_>, groups: &[Group], selector: &Selector) -> Markup {
    html! {
        section {
            h2 #settings { "Settings" }
            @if groups.is_empty() { p .none { "The app's settings were not answered yet, or are stale." } }
            @else {
                div .scroll tabindex="0" role="region" aria-labelledby="settings" {
                    table .settings {
                        caption .hidden { "The app's settings" }
                        thead { tr { @for title in ["Setting", "Value", "What it is", "Metric"] { th scope="col" { (title) } } } }
                        @for group in groups {
                            tbody {
                                tr .group { th scope="rowgroup" colspan="4" { (group.title) } }
                                @for setting in &group.settings { (row(frame, setting, selector)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(frame: Frame<'_>, setting: &Setting, selector: &Selector) -> Markup {
    html! {
        tr {
            th scope="row" { (setting.name) }
            td .value { (written(&setting.value)) }
            td { details { summary aria-label={ "What " (setting.name) " is" } { "?" } p .meaning { (setting.meaning) "." } } }
            td .metric {
                a href=(frame.links.family(setting.family)) { code { (setting.family) } }
                " " (selector.copy(setting.family))
            }
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
