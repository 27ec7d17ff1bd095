//! `/apps/{project}/{app}`: one app in full.
//!
//! - `figures`: plots of the last window; `six_hours`: plots of the last hours.
//! - `polls`: the polled resources, the results of polls, and the last raw replies.
//! - `queries`: queries, and links to Prometheus and other programs.
//! - `settings`: the app's settings, and their recent changes.

mod figures;
mod polls;
mod queries;
mod settings;
mod six_hours;

use maud::{Markup, html};

use crate::status::detail::Detail;
use pds_config::Web;
use pds_diagnosis::{Problem, Verdict};

use super::format::{number, seconds, sign, value, verdict};
use super::layout::{Frame, ignored};
use super::query::Query;
use super::timeline;

/// The page of an app for `query`, with links to the programs that `web` names, and its last `replies` if set.
pub(super) fn detail(frame: Frame<'_>, detail: &Detail, web: &Web, query: &str, replies: bool) -> Markup {
    let app = &detail.app;
    let project = Query { project: app.project.to_string(), page: 1, ..Query::default() };
    let name = app.title();
    let reach = six_hours::reach(query);
    html! {
        nav .path aria-label="Where you are" {
            a href=(frame.links.to("/")) { "Apps" } " / "
            a .line href=(frame.links.overview(&project.to_text())) { (app.project) }
        }
        div .title {
            h1 title=(name) { (name) }
            (verdict(app.verdict))
            @if let Some(status) = &app.status { span .status { (status) } }
            @if app.name_is_old { span .sub { "last known name" } }
            @if app.name.is_some() { code .id.line { (app.id) } }
        }
        (cause(frame, detail))
        (queries::open_in(web, app))
        // Problems come before plots.
        @let evidence = html! { (polls::resources(frame, detail)) (polls::polls(frame, detail)) };
        @if app.verdict == Verdict::Problem { (evidence) }
        (timeline::app(frame, &detail.token, &app.incidents))
        h2 .apart #window { "The last " (app.window) }
        (key_numbers(detail))
        (figures::plots_of_window(detail))
        (ignored(reach.as_ref().err().as_slice()))
        (six_hours::six_hours(frame, detail, reach.ok().flatten()))
        @if app.verdict != Verdict::Problem { (evidence) }
        (queries::queries(web, app, &frame.links.metrics("")))
        (settings::settings(frame, detail))
        (settings::changes(frame, detail))
        @if replies { (polls::replies(frame, detail)) }
    }
}

/// The verdict: the most severe cause with its remedy, then the other causes.
fn cause(frame: Frame<'_>, detail: &Detail) -> Markup {
    let app = &detail.app;
    let trusted = !app.problems.iter().any(Problem::is_of_numbers);
    html! {
        section class={ "banner " (app.verdict.as_str()) } aria-label="Verdict" {
            span .sign aria-hidden="true" { (sign(app.verdict)) }
            div {
                @if trusted && !app.problems.is_empty() { p { "Its numbers can be trusted." } }
                @match app.problems.split_first() {
                    Some((first, others)) => {
                        p { strong { (first.text) } ". " (remedy(frame, first)) }
                        @if !others.is_empty() {
                            ul .reasons aria-label="Further problems" { @for problem in others {
                                li class=(problem.verdict().as_str()) { (problem.text) ". " (remedy(frame, problem)) }
                            } }
                        }
                    }
                    None => p { strong { "Its numbers can be trusted" } "." },
                }
            }
        }
    }
}

/// The remedy of a problem of an app, as on the overview.
fn remedy(frame: Frame<'_>, problem: &Problem) -> Markup {
    let mut reasons = frame.status.summary.reasons.iter();
    let remedy = match reasons.find(|reason| problem.is(&reason.code)) {
        Some(reason) => reason.remedy.clone(),
        None => problem.cause.map(|cause| cause.remedy_at(None)).unwrap_or_default(),
    };
    html! { span .action { (remedy) } }
}

/// The most important numbers.
fn key_numbers(detail: &Detail) -> Markup {
    let app = &detail.app;
    let times = &app.response_time;
    let figure = |name: &str, says: Markup| html! { div { dt { (name) } dd { (says) } } };
    html! {
        dl .facts .figures aria-labelledby="window" {
            @for (name, time) in [("p50", times.p50), ("p90", times.p90), ("p95", times.p95), ("p99", times.p99)] {
                (figure(name, value(time, seconds)))
            }
            (figure(&format!("requests in {}", app.window), value(detail.window_requests, number)))
            (figure(&format!("runs in {}", app.window), value(detail.window_runs, number)))
        }
        @if let Some(note) = &app.share_note { p .sub { (note) } }
    }
}
