//! Plots of an app's last window: the distribution of response times, and run execution times.

use maud::{Markup, html};

use crate::status::detail::{Detail, RunPoint};

use super::super::format::{self, number, seconds};
use super::super::layout::value;
use super::super::plots::{self, Line, OverTime, P50, P90, P99, Plot, Unit};

/// All figures of the window.
pub(super) fn figures(detail: &Detail) -> Markup {
    html! { div .plots { (distribution(detail)) (runs(detail)) } }
}

/// A plot with its title, legend and table.
pub(super) struct Figure<'a> {
    pub(super) title: &'a str,
    pub(super) plot: &'a Plot,
    /// The text shown if there is nothing to draw.
    pub(super) instead: &'a str,
    pub(super) legend: &'a [(&'a str, &'a str)],
    /// The values; the script finds the row under the pointer by `data-x`.
    pub(super) table: Markup,
}

pub(super) fn figure(figure: &Figure<'_>) -> Markup {
    let Figure { title, plot, instead, legend, table } = figure;
    html! {
        figure {
            figcaption { h3 { (title) }
                @if !legend.is_empty() {
                    ul .legend aria-label="Legend" { @for (class, name) in *legend { li class=(class) { (name) } } }
                }
            }
            @if plot.svg.0.is_empty() { p .none { (instead) } }
            @else {
                div .chart { (plot.svg) }
                p .readout aria-live="polite" hidden {}
                details { summary { "As a table" } div .scroll tabindex="0" role="region" aria-label={ (title) " as a table" } { (table) } }
            }
        }
    }
}

/// The reason for a missing distribution. It is "no requests" only if the service said so.
fn no_distribution(detail: &Detail) -> String {
    let window = &detail.app.window;
    match detail.app.requests_per_minute {
        Some(0.0) => format!("No requests in the last {window}."),
        Some(_) => format!("The service sent no distribution for the last {window}."),
        None => format!("Nothing is known about the last {window}."),
    }
}

fn distribution(detail: &Detail) -> Markup {
    let times = &detail.app.response_time;
    let marks = [("p50", times.p50), ("p90", times.p90), ("p95", times.p95), ("p99", times.p99)];
    let marks: Vec<(&str, f64)> = marks.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    let said: Vec<String> = marks.iter().map(|(name, at)| format!("{name} {}", seconds(*at))).collect();
    let label = format!("Share of requests by response time; {}", said.join(", "));
    let marks: Vec<f64> = marks.into_iter().map(|(_, at)| at).collect();
    let plot = plots::distribution(&detail.distribution, &marks, &label);
    figure(&Figure {
        title: "Response times",
        plot: &plot,
        instead: &no_distribution(detail),
        legend: &[("line", "share of requests"), ("mark", "p50, p90, p95 and p99")],
        table: html! {
            table { caption .hidden { "Share of requests by response time" }
                thead { tr { th scope="col" { "within" } th scope="col" .number { "share" } } }
                tbody { @for (threshold, share) in &detail.distribution {
                    tr data-x=[plot.x(*threshold)] { th scope="row" { (seconds(*threshold)) } td .number { (number(share * 100.0)) " %" } }
                } }
            }
        },
    })
}

fn runs(detail: &Detail) -> Markup {
    let points = detail.runs.as_deref().unwrap_or_default();
    let line = |colour, of: fn(&RunPoint) -> Option<f64>| Line {
        colour,
        points: points.iter().map(|point| (point.time, of(point))).collect(),
    };
    let lines = [line(P50, |p| p.p50), line(P90, |p| p.p90), line(P99, |p| p.p99)];
    let instead = match &detail.runs {
        None => "The last reply was not kept; the next one will be.",
        Some(_) => "The service sent fewer than two datapoints.",
    };
    let label = format!("Run execution time percentiles over the last {}", detail.app.window);
    let times = points.first().map_or(0.0, |point| point.time)..points.last().map_or(0.0, |point| point.time);
    let plot = OverTime {
        lines: &lines,
        marks: &[],
        times,
        what: "run execution time",
        unit: Unit::Seconds,
        label: &label,
    };
    let plot = plot.draw();
    figure(&Figure {
        title: "Run execution times",
        plot: &plot,
        instead,
        legend: &[("p50", "p50"), ("p90", "p90"), ("p99", "p99")],
        table: html! {
            table { caption .hidden { "Run execution time percentiles" }
                thead { tr { th scope="col" { "time" } @for name in ["p50", "p90", "p99"] { th scope="col" .number { (name) } } } }
                tbody { @for point in points {
                    tr data-x=[plot.x(point.time)] { th scope="row" { (clock(point.time)) } @for at in [point.p50, point.p90, point.p99] { td .number { (value(at, seconds)) } } }
                } }
            }
        },
    })
}

/// A time of day.
#[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
pub(super) fn clock(time: f64) -> String {
    jiff::Timestamp::from_second(time as i64).map(format::clock).unwrap_or_default()
}
