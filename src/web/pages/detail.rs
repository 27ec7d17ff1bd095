//! `/apps/{project}/{app}`: one app in full.

use maud::{Markup, html};

use crate::status::detail::{Detail, RunPoint};
use crate::status::settings::{Group, Value};

use super::format::{self, ago, bytes, dollars, number, seconds, until};
use super::layout::{Frame, missing, sign, value, verdict, verdict_of};
use super::plots::{self, LINE, Line, P50, P90, P99};
use super::query::Query;

/// The page of an app.
pub(super) fn detail(frame: Frame<'_>, detail: &Detail) -> Markup {
    let app = &detail.app;
    let project = Query { project: app.project.to_string(), page: 1, ..Query::default() };
    html! {
        nav .path aria-label="Where you are" {
            a href=(frame.links.to("/")) { "Apps" } " / "
            a href=(frame.links.overview(&project.to_text())) { (app.project) }
        }
        div .title {
            h1 { (app.name.as_deref().unwrap_or(&app.id)) }
            (verdict(app.verdict))
            @if let Some(status) = &app.status { span .status { (status) } }
            @if app.name.is_some() { code .id { (app.id) } }
        }
        @if !app.problems.is_empty() {
            ul .problems aria-label="Problems" { @for problem in &app.problems { li { (problem.text) " " span .sub { (problem.action()) } } } }
        }
        (figures(detail))
        div .plots { (distribution(detail)) (requests(detail)) (runs(detail)) }
        (resources(frame, detail))
        (settings(frame, &detail.settings))
        (polls(frame, detail))
        (replies(frame, detail))
    }
}

/// The numbers that people come for.
fn figures(detail: &Detail) -> Markup {
    let app = &detail.app;
    let times = &app.response_time;
    let figure = |name: &str, says: Markup| html! { div { dt { (name) } dd { (says) } } };
    html! {
        dl .facts .figures aria-label={ "Over the last " (app.window) } {
            (figure("p50", value(times.p50, seconds)))
            (figure("p90", value(times.p90, seconds)))
            (figure("p95", value(times.p95, seconds)))
            (figure("p99", value(times.p99, seconds)))
            (figure(&format!("requests in {}", app.window), value(detail.window_requests, number)))
            (figure(&format!("runs in {}", app.window), value(detail.window_runs, number)))
            (figure("requests counted", value(detail.requests_total, number)))
            (figure("runs counted", value(detail.runs_total, number)))
        }
    }
}

fn figure(title: &str, drawn: &Markup, instead: &str, legend: &[(&str, &str)], table: Markup) -> Markup {
    html! {
        figure {
            figcaption { h2 { (title) }
                @if !legend.is_empty() {
                    ul .legend aria-label="Legend" { @for (class, name) in legend { li class=(class) { (name) } } }
                }
            }
            @if drawn.0.is_empty() { p .none { (instead) } }
            @else {
                (drawn)
                details { summary { "As a table" } div .scroll tabindex="0" role="region" aria-label={ (title) " as a table" } { (table) } }
            }
        }
    }
}

/// Why there is no distribution. "No request" is said only if the service stated it.
fn no_distribution(detail: &Detail) -> String {
    let window = &detail.app.window;
    match detail.app.requests_per_minute {
        Some(0.0) => format!("No request in the last {window}."),
        Some(_) => format!("The service sent no distribution for the last {window}."),
        None => format!("Nothing is known of the last {window}."),
    }
}

fn distribution(detail: &Detail) -> Markup {
    let times = &detail.app.response_time;
    let marks = [("p50", times.p50), ("p90", times.p90), ("p95", times.p95), ("p99", times.p99)];
    let marks: Vec<(&str, f64)> = marks.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    let said: Vec<String> = marks.iter().map(|(name, at)| format!("{name} {}", seconds(*at))).collect();
    let label = format!("Share of requests by response time; {}", said.join(", "));
    figure(
        "Response times",
        &plots::distribution(&detail.distribution, &marks, &label),
        &no_distribution(detail),
        &[("line", "share of requests"), ("mark", "percentiles")],
        html! {
            table { caption .hidden { "Share of requests by response time" }
                thead { tr { th scope="col" { "within" } th scope="col" .number { "share" } } }
                tbody { @for (threshold, share) in &detail.distribution {
                    tr { td { (seconds(*threshold)) } td .number { (number(share * 100.0)) " %" } }
                } }
            }
        },
    )
}

/// The rate at the last polls, which are an interval apart.
fn requests(detail: &Detail) -> Markup {
    let trend = &detail.app.trend;
    let end = detail.last_poll.map_or(0.0, |at| at.as_duration().as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "some thirty points")]
    let before = |index: usize| end - (trend.len() - 1 - index) as f64 * detail.interval;
    let points: Vec<(f64, Option<f64>)> =
        trend.iter().enumerate().map(|(index, point)| (before(index), point.requests_per_minute)).collect();
    let line = Line { name: "", colour: LINE, points };
    let label = format!("Requests a minute at the last {} polls", trend.len());
    let drawn = if trend.len() < 2 {
        html! {}
    } else {
        plots::over_time(&[line], "requests / min", &number, &label)
    };
    figure(
        "Request rate",
        &drawn,
        "It is drawn from the second poll on.",
        &[("line", "requests a minute, over the window before each poll")],
        html! {
            table { caption .hidden { "Requests a minute at the last polls, the newest last" }
                thead { tr { th scope="col" { "polls ago" } th scope="col" .number { "requests / min" } th scope="col" .number { "p95" } } }
                tbody { @for (index, point) in trend.iter().enumerate() {
                    tr { td { (trend.len() - 1 - index) } td .number { (value(point.requests_per_minute, number)) } td .number { (value(point.p95, seconds)) } }
                } }
            }
        },
    )
}

fn runs(detail: &Detail) -> Markup {
    let points = detail.runs.as_deref().unwrap_or_default();
    let line = |name, colour, of: fn(&RunPoint) -> Option<f64>| Line {
        name,
        colour,
        points: points.iter().map(|point| (point.time, of(point))).collect(),
    };
    let lines = [line("p50", P50, |p| p.p50), line("p90", P90, |p| p.p90), line("p99", P99, |p| p.p99)];
    let instead = match &detail.runs {
        None => "The service's reply was not kept; it is from the next poll on.",
        Some(_) => "The service sent fewer than two datapoints.",
    };
    let label = format!("Run execution time percentiles over the last {}", detail.app.window);
    #[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
    let time = |point: &RunPoint| {
        jiff::Timestamp::from_second(point.time as i64).map(format::clock).unwrap_or_default()
    };
    figure(
        "Run execution times",
        &plots::over_time(&lines, "run execution time", &seconds, &label),
        instead,
        &[("p50", "p50"), ("p90", "p90"), ("p99", "p99")],
        html! {
            table { caption .hidden { "Run execution time percentiles" }
                thead { tr { th scope="col" { "time" } @for name in ["p50", "p90", "p99"] { th scope="col" .number { (name) } } } }
                tbody { @for point in points {
                    tr { td { (time(point)) } @for at in [point.p50, point.p90, point.p99] { td .number { (value(at, seconds)) } } }
                } }
            }
        },
    )
}

fn resources(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section aria-labelledby="resources" {
            h2 #resources { "Resources" }
            div .scroll tabindex="0" role="region" aria-labelledby="resources" {
                table {
                    caption .hidden { "What is asked about the app" }
                    thead { tr { @for title in ["Resource", "State", "Last success", "Next poll", "Failing since", "Why"] { th scope="col" { (title) } } } }
                    tbody { @for resource in &detail.app.resources {
                        @let grade = verdict_of(resource.state);
                        @let next = detail.next_polls.iter().find(|(name, _)| *name == resource.resource).and_then(|(_, at)| *at);
                        tr {
                            th scope="row" { (format::resource(resource.resource)) }
                            td { span class={ "verdict " (grade.as_str()) } { span aria-hidden="true" { (sign(grade)) } " " (resource.state.as_str()) } }
                            td { @match resource.last_success { Some(at) => (ago(at, frame.now)), None => "never" } }
                            td { @match next { Some(at) => (until(at, frame.now)), None => (missing()) } }
                            @match &resource.failing {
                                Some(failing) => { td { (ago(failing.since, frame.now)) } td .message { span .class { (failing.class) } " " (failing.message) } }
                                None => { td { (missing()) } td { (missing()) } }
                            }
                        }
                    } }
                }
            }
        }
    }
}

fn settings(frame: Frame<'_>, groups: &[Group]) -> Markup {
    html! {
        section aria-labelledby="settings" {
            h2 #settings { "Settings" }
            @if groups.is_empty() { p .none { "The app's settings were not answered yet, or are stale." } }
            div .groups { @for group in groups {
                section { h3 { (group.title) }
                    dl { @for setting in &group.settings {
                        div title={ (setting.meaning) " (" (setting.family) ")" } {
                            dt { a href=(frame.links.family(setting.family)) { (setting.name) } }
                            dd { (written(&setting.value)) }
                            dd .meaning { (setting.meaning) }
                        }
                    } }
                }
            } }
        }
    }
}

fn written(value: &Value) -> Markup {
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

fn polls(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section aria-labelledby="polls" {
            h2 #polls { "Last polls" }
            div .scroll tabindex="0" role="region" aria-labelledby="polls" {
                table {
                    caption { "Failures are kept longer than successes." }
                    thead { tr { th scope="col" { "When" } th scope="col" { "Resource" } th scope="col" { "Outcome" } th scope="col" .number { "Took" } th scope="col" { "Why" } } }
                    tbody {
                        @for (resource, poll) in &detail.polls {
                            tr {
                                td { time datetime=(poll.at) { (format::clock(poll.at)) } " " span .sub { (ago(poll.at, frame.now)) } }
                                td { (format::resource(resource)) }
                                @match &poll.failure {
                                    None => { td { span .verdict.ok { span aria-hidden="true" { "✓" } " ok" } } td .number { (seconds(poll.took.as_secs_f64())) } td { (missing()) } }
                                    Some(failure) => {
                                        td { span .verdict.problem { span aria-hidden="true" { "✕" } " " (failure.class) } }
                                        td .number { (seconds(poll.took.as_secs_f64())) }
                                        td .message { (failure.message) }
                                    }
                                }
                            }
                        }
                        @if detail.polls.is_empty() { tr { td colspan="5" .none { "None yet." } } }
                    }
                }
            }
        }
    }
}

fn replies(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section aria-labelledby="replies" {
            h2 #replies { "Last replies" }
            p .sub { "As the service sent them; tokens are taken out. They are kept as far as there is room, and for apps that are looked at." }
            @for (resource, reply) in &detail.replies {
                @match reply {
                    Some(reply) => details .reply {
                        summary { (format::resource(resource)) " " span .sub { (reply.text.len()) " bytes, " (ago(reply.at, frame.now)) } }
                        button type="button" .copy hidden { "Copy" }
                        pre tabindex="0" role="region" aria-label={ "Reply: " (format::resource(resource)) } { (indented(&reply.text)) }
                    }
                    None => p .none { (format::resource(resource)) ": not kept; it is from the next poll on." }
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
