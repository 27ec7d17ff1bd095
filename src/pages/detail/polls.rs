//! The polls of an app: targets, outcomes and replies.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::status::detail::Detail;
use crate::store::{Event, What};
use pds_diagnosis::Verdict;

use super::super::banner::no_longer_there;
use super::super::format::{self, ago, graded, missing, plural, seconds, until, verdict_of};
use super::super::layout::{Frame, table};

/// The state of each resource.
pub(super) fn resources(frame: Frame<'_>, detail: &Detail) -> Markup {
    let caption = html! { caption .hidden { "Resources of the app" } };
    let titles = ["Resource", "State", "Last success", "Next poll", "Failing since", "Why"];
    let rows = html! {
        tbody { @for (resource, next) in detail.app.resources.iter().zip(&detail.next_polls) {
            tr {
                th scope="row" { (format::resource(&resource.resource)) }
                td { (graded(verdict_of(resource.state), resource.state.as_str())) }
                td { @match resource.last_success { Some(at) => (ago(at, frame.now)), None => "never" } }
                td { @match next { Some(at) => (until(*at, frame.now)), None => (missing()) } }
                @match &resource.failing {
                    Some(failing) => { td { (ago(failing.since, frame.now)) } td .message { span .class { (format::class(&failing.class)) } " " (failing.message) } }
                    None => { td { (missing()) } td { (missing()) } }
                }
            }
        } }
    };
    html! {
        section {
            h2 #resources { "Resources" }
            (table("", "Resources", caption, &titles, rows))
            @for (total, one, many) in [(detail.requests_total, "request", "requests"), (detail.runs_total, "run", "runs")] {
                @if let Some(total) = total { p .sub { (plural(total, one, many)) " counted so far." } }
            }
            @for resource in &detail.app.resources {
                @if let Some(given_up) = &resource.given_up {
                    p { (format::resource(&resource.resource)) " of " (format::absolute(given_up.start)) " to " (format::absolute(given_up.end))
                        " was not counted, because the service refused it: " span .message { (given_up.reason) } }
                }
                @if resource.pending_seconds > 0 {
                    p { (format::resource(&resource.resource)) ": " (seconds(resource.pending_seconds as f64))
                        " that were not counted are requested again." }
                }
                @if let Some(disputed) = resource.disputed {
                    @let one = if resource.resource == "response_time" { "request" } else { "run" };
                    p { (no_longer_there(disputed, one, "", detail.created)) }
                }
            }
        }
    }
}

/// The last polls; those with the same outcome share a row.
pub(super) fn polls(frame: Frame<'_>, detail: &Detail) -> Markup {
    let caption = html! {
        caption { "Polls of one resource with the same outcome share a row. Failures are kept longer than successes." }
    };
    let rows = html! {
        tbody {
            @for (resource, event) in &detail.polls { (row(frame, resource, event)) }
            @if detail.polls.is_empty() { tr { td colspan="5" .none { "None yet." } } }
        }
    };
    let titles = ["When", "Resource", "Outcome", "Took", "Why"];
    html! {
        section { h2 #polls { "Last polls" } (table("polls", "Last polls", caption, &titles, rows)) }
    }
}

fn row(frame: Frame<'_>, resource: &str, event: &Event) -> Markup {
    let (grade, outcome, why) = match event.failure() {
        Some(failure) => (Verdict::Problem, format::class(failure.class), Some(&failure.message)),
        None if event.what == What::Behind => (Verdict::Ok, "ok, counters behind".into(), None),
        None => (Verdict::Ok, "ok".into(), None),
    };
    let [from, until] = event.times();
    html! {
        tr {
            td {
                time datetime=(until) { (since(until, frame.now)) } " " span .sub { (ago(until, frame.now)) }
                @if event.polls > 1 {
                    " " span .sub { "and " (format::count(u64::from(event.polls - 1))) " more since " time datetime=(from) { (since(from, frame.now)) } }
                }
            }
            td { (format::resource(resource)) }
            td { (graded(grade, &outcome)) }
            td .number { (took(event.took().map(seconds))) }
            @match why { Some(why) => td .message { (why) }, None => td { (missing()) } }
        }
    }
}

/// The time of day, and the date before it unless it is that of `until`.
fn since(from: Timestamp, until: Timestamp) -> String {
    let day = |at: Timestamp| at.strftime("%F").to_string();
    if day(from) == day(until) { format::clock(from) } else { format::absolute(from) }
}

/// The shortest and the longest poll, written once if they are equal.
fn took([from, to]: [String; 2]) -> String {
    if from == to { to } else { format!("{from} – {to}") }
}

/// The last raw replies, for `--web.show-replies`.
pub(super) fn replies(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section aria-labelledby="replies" {
            h2 #replies { "Last replies" }
            p .sub { "As the service sent them, without tokens. They are kept while memory allows, and for apps whose pages are open." }
            @for (resource, reply) in &detail.replies {
                @match reply {
                    Some(reply) => details .reply {
                        summary { (format::resource(resource)) " " span .sub { (format::bytes(reply.text.len() as f64)) ", " (ago(reply.at, frame.now)) } }
                        button type="button" .copy hidden { "Copy" }
                        pre tabindex="0" role="region" aria-label={ "Reply: " (format::resource(resource)) } { (indented(&reply.text)) }
                    }
                    None => p .none { (format::resource(resource)) ": not kept; the next reply will be." }
                }
            }
        }
    }
}

/// Indented JSON; any other text unchanged.
fn indented(text: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}
