//! The last six hours in one row per object: outages, catch-up, restarts, reloads and new builds.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::status::incidents::REACH;
use pds_diagnosis::{Incident, IncidentKind};

use super::format::plural;
use super::layout::Frame;

/// The most tokens that have rows.
const MAX_TOKENS: usize = 5;
/// The most incidents in words; the rows show all.
const MAX_LISTED: usize = 6;

/// An object and what happened to it.
#[derive(Clone, Copy)]
struct Row<'a> {
    name: &'a str,
    incidents: &'a [Incident],
}

/// The rows of the service, and of each token with incidents of its own.
pub(super) fn overview(frame: Frame<'_>) -> Markup {
    let tokens = &frame.status.exporter.tokens;
    let (troubled, others): (Vec<_>, Vec<_>) = tokens.iter().partition(|token| !token.incidents.is_empty());
    let drawn = troubled.iter().take(MAX_TOKENS);
    let rows = drawn.map(|token| Row { name: &token.name, incidents: &token.incidents });
    let undrawn = troubled.len().saturating_sub(MAX_TOKENS);
    let more = (undrawn > 0).then(|| {
        let tokens = plural(undrawn, "more token", "more tokens");
        format!("{tokens} had outages of their own; an app's page shows the outages of its token.")
    });
    let others = (!troubled.is_empty() && !others.is_empty())
        .then(|| format!("{} had none.", plural(others.len(), "other token", "other tokens")));
    timeline(frame, rows.collect(), more.into_iter().chain(others).collect())
}

/// The rows of the service, of the token if it has incidents of its own, and of the app.
pub(super) fn app(frame: Frame<'_>, token: &str, incidents: &[Incident]) -> Markup {
    let tokens = frame.status.exporter.tokens.iter();
    let troubled = tokens.filter(|known| known.name == token && !known.incidents.is_empty());
    let rows = troubled.map(|token| Row { name: &token.name, incidents: &token.incidents });
    timeline(frame, rows.chain([Row { name: "App", incidents }]).collect(), Vec::new())
}

/// The row of the service, then the `others`.
fn timeline(frame: Frame<'_>, others: Vec<Row<'_>>, notes: Vec<String>) -> Markup {
    let service = Row { name: "Service", incidents: &frame.status.service.incidents };
    let rows: Vec<Row<'_>> = [service].into_iter().chain(others).collect();
    let all = rows.iter().flat_map(|row| row.incidents.iter().map(move |it| (row.name, it)));
    let mut listed: Vec<(&str, &Incident)> = all.collect();
    listed.sort_by_key(|(_, incident)| std::cmp::Reverse(incident.start));
    let minutes = minutes(frame);
    if listed.iter().all(|(_, incident)| incident.kind == IncidentKind::Restart) {
        let started = minute(frame.status.exporter.started, 0);
        let since = if listed.is_empty() { minute(frame.now, minutes) } else { started };
        let others = if rows.len() > 1 { " or the app" } else { "" };
        return html! { p .timeline.sub { "No outage of the service" (others) " since " @if !listed.is_empty() { "the start at " } (since) " UTC." } };
    }
    // Closer labels would show the same time of day.
    let steps = if minutes < 60 { 2 } else { 6 };
    html! {
        section .timeline aria-label="The last six hours" {
            @for row in &rows { (drawn(frame, *row)) }
            p .hours aria-hidden="true" { @for step in (0..=steps).rev() { span { (minute(frame.now, minutes * step / steps)) } } }
            ul .told aria-label="Incidents, times in UTC" {
                @for (name, incident) in listed.iter().take(MAX_LISTED) {
                    li class=(class(incident.kind)) {
                        (when(incident, frame.now)) " " strong { (incident.kind.as_str()) }
                        @if *name != service.name && incident.kind != IncidentKind::Build { ", " bdi { (name) } }
                        @if let Some(detail) = &incident.detail { ": " bdi { (detail) } }
                    }
                }
                @if let Some(more @ 1..) = listed.len().checked_sub(MAX_LISTED) { li { (more) " more" } }
            }
            @for note in notes { p .sub { (note) } }
        }
    }
}

fn drawn(frame: Frame<'_>, Row { name, incidents }: Row<'_>) -> Markup {
    let (now, minutes) = (frame.now.as_second().div_euclid(60), minutes(frame));
    // Minutes from the left end.
    let x = |at: Timestamp| (at.as_second().div_euclid(60) - now + minutes).clamp(0, minutes);
    let least = (minutes / 120).max(1);
    let text = |it: &Incident| text(it, frame.now);
    let said: Vec<String> = incidents.iter().map(text).collect();
    let said = if said.is_empty() { "nothing happened".to_owned() } else { said.join("; ") };
    let rect = |start: i64, end: i64, class: &str, title: &str| {
        let width = (end - start).max(least);
        html! {
            rect class=(class) x=(start.min(minutes - width)) width=(width) height="10" {
                @if !title.is_empty() { title { (title) } }
            }
        }
    };
    html! {
        div .line-of {
            span .name title=(name) { (name) }
            svg viewBox={ "0 0 " (minutes) " 10" } preserveAspectRatio="none" role="img" aria-label={ (name) ": " (said) } {
                // Before the start, nothing is known.
                (rect(x(frame.status.exporter.started), minutes, "known", ""))
                @for it in incidents { (rect(x(it.start), it.end.map_or(minutes, x), class(it.kind), &text(it))) }
            }
        }
    }
}

fn class(kind: IncidentKind) -> &'static str {
    match kind {
        IncidentKind::Outage => "problem",
        IncidentKind::CatchUp | IncidentKind::ReloadRefused => "warning",
        IncidentKind::Restart | IncidentKind::Reload | IncidentKind::Build => "moment",
    }
}

/// An incident in words.
fn text(incident: &Incident, now: Timestamp) -> String {
    let detail = incident.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{} {}{detail}", when(incident, now), incident.kind.as_str())
}

/// The times of day, with the date of a start before those that the row shows.
fn when(Incident { start, end, .. }: &Incident, now: Timestamp) -> String {
    let is_recent = *start >= now - REACH;
    let start = if is_recent { minute(*start, 0) } else { start.strftime("%F %H:%M").to_string() };
    match end.map(|end| minute(end, 0)) {
        None => format!("since {start}"),
        Some(end) if end == start => start,
        Some(end) => format!("{start}–{end}"),
    }
}

/// The minutes that a row shows: since the start, six hours at most.
fn minutes(frame: Frame<'_>) -> i64 {
    let known = (frame.now.as_second() - frame.status.exporter.started.as_second()) / 60;
    known.clamp(1, REACH.as_secs() / 60)
}

/// The time of day a number of minutes before `at`.
fn minute(at: Timestamp, minutes: i64) -> String {
    at.saturating_sub(SignedDuration::from_mins(minutes)).unwrap_or(at).strftime("%H:%M").to_string()
}
