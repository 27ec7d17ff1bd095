//! What is drawn of an app: distribution, request rate, run execution times.

use maud::{Markup, html};

use crate::status::detail::{Detail, RunPoint};

use super::super::format::{self, number, seconds};
use super::super::layout::value;
use super::super::plots::{self, LINE, Line, P50, P90, P99};

/// All figures.
pub(super) fn figures(detail: &Detail) -> Markup {
    html! { div .plots { (distribution(detail)) (requests(detail)) (runs(detail)) } }
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
