//! What changed in the settings of an app since yesterday.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::status::detail::Detail;

use super::super::format::{self, ago};
use super::super::layout::{Frame, missing};
use super::settings::written;

/// The changes, and since when they were looked for.
pub(super) fn changes(frame: Frame<'_>, detail: &Detail) -> Markup {
    let yesterday = frame.now.saturating_sub(SignedDuration::from_hours(24)).unwrap_or(frame.now);
    let since: Timestamp = yesterday.max(frame.status.exporter.started);
    html! {
        section {
            h2 #changes { "Changes of settings" }
            @if detail.changes.is_empty() {
                p .none { "No changes since " time datetime=(since) { (format::absolute(since)) } "." }
            } @else {
                div .scroll tabindex="0" role="region" aria-labelledby="changes" {
                    table {
                        caption { "Since " time datetime=(since) { (format::absolute(since)) } ", newest first." }
                        thead { tr { @for title in ["When", "Setting", "Before", "Now"] { th scope="col" { (title) } } } }
                        tbody { @for change in &detail.changes {
                            tr {
                                td { (ago(change.at, frame.now)) }
                                th scope="row" { (change.name) }
                                @for value in [&change.before, &change.after] {
                                    td .value { @match value { Some(value) => (written(value)), None => (missing()) } }
                                }
                            }
                        } }
                    }
                }
            }
        }
    }
}
