//! Plots of an app's last window: the distribution of response times, and run execution times.

use std::ops::Range;

use maud::{Markup, html};

use pds_core::units::percent;
use pds_interface::Point;

use crate::status::detail::Detail;

use super::super::format::{seconds, value};
use super::super::plots::{self, Line, Plot, Unit};

/// All plots of the window.
pub(super) fn plots_of_window(detail: &Detail) -> Markup {
    html! { div .plots { (distribution(detail)) (runs(detail)) } }
}

/// A plot with its title, legend and table; the text `instead` replaces an empty plot. The script finds the row of the
/// table under the pointer by `data-x`.
fn figure(title: &str, plot: &Plot, instead: &str, legend: &[(&str, &str)], table: Markup) -> Markup {
    if plot.svg.0.is_empty() {
        return html! { p .none { strong { (title) } ": " (instead) } };
    }
    html! {
        figure {
            figcaption { h3 { (title) }
                ul .legend aria-label="Legend" { @for (class, name) in legend { li class=(class) { (name) } } }
            }
            div .chart { (plot.svg) }
            p .readout aria-live="polite" hidden {}
            details { summary { "As a table" } div .scroll tabindex="0" role="region" aria-label={ (title) " as a table" } { (table) } }
        }
    }
}

/// Values over time.
pub(super) struct OverTime<'a> {
    pub(super) title: &'a str,
    /// The samples of the plot.
    pub(super) label: &'a str,
    pub(super) times: Range<f64>,
    /// The name of the values, and their unit.
    pub(super) values: (&'a str, Unit),
    pub(super) lines: &'a [Line<'a>],
    /// When builds became ready.
    pub(super) deploys: &'a [f64],
    /// The text shown if there is nothing to draw.
    pub(super) instead: &'a str,
    /// The columns of the table beside the time, and its rows.
    pub(super) head: &'a [&'a str],
    pub(super) rows: Vec<(f64, Vec<Markup>)>,
}

impl OverTime<'_> {
    pub(super) fn figure(&self) -> Markup {
        let Self { title, label, times, values, lines, deploys, instead, head, rows } = self;
        let plot = plots::over_time(lines, deploys, times, *values, label);
        let mut legend: Vec<_> = lines.iter().map(|line| (line.class, line.name)).collect();
        if deploys.iter().any(|time| times.contains(time)) {
            legend.push(("deploy", "new build"));
        }
        let table = html! {
            table { caption .hidden { (label) }
                thead { tr { th scope="col" { "time" } @for name in *head { th scope="col" .number { (name) } } } }
                tbody { @for (time, cells) in rows {
                    tr data-x=[plot.x(*time)] { th scope="row" { (plots::moment(*time, times)) } @for cell in cells { td .number { (cell) } } }
                } }
            }
        };
        figure(title, &plot, instead, &legend, table)
    }
}

/// The reason for a missing distribution. It is "no requests" only if the service reported none.
fn no_distribution(detail: &Detail) -> String {
    let window = &detail.app.window;
    match detail.app.requests_per_minute {
        Some(0.0) => format!("No requests in the last {window}."),
        Some(_) if detail.leaves_out_shares => {
            "poll.within_ratio = false leaves the distribution out.".to_owned()
        }
        Some(_) => format!("The service sent no valid distribution for the last {window}."),
        None => nothing_known(detail),
    }
}

/// The reason for missing run execution times.
fn no_runs(detail: &Detail) -> String {
    match (&detail.runs, detail.window_runs) {
        (Some(_), Some(0.0)) => format!("No runs in the last {}.", detail.app.window),
        (Some(_), _) => "The service sent fewer than two datapoints with values.".to_owned(),
        (None, Some(_)) => "The last reply was refused, or not kept.".to_owned(),
        (None, None) => nothing_known(detail),
    }
}

fn nothing_known(detail: &Detail) -> String {
    format!("Nothing is known about the last {}.", detail.app.window)
}

fn distribution(detail: &Detail) -> Markup {
    let times = &detail.app.response_time;
    let marks = [("p50", times.p50), ("p90", times.p90), ("p95", times.p95), ("p99", times.p99)];
    let marks: Vec<(&str, f64)> = marks.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    let labels: Vec<String> = marks.iter().map(|(name, at)| format!("{name} {}", seconds(*at))).collect();
    let label = format!("Share of requests by response time; {}", labels.join(", "));
    let marks: Vec<f64> = marks.into_iter().map(|(_, at)| at).collect();
    let plot = plots::distribution(&detail.distribution, &marks, &label);
    let legend = [("line", "share of requests"), ("mark", "p50, p90, p95 and p99")];
    let table = html! {
        table { caption .hidden { "Share of requests by response time" }
            thead { tr { th scope="col" { "within" } th scope="col" .number { "share" } } }
            tbody { @for (threshold, share) in &detail.distribution {
                tr data-x=[plot.x(*threshold)] { th scope="row" { (seconds(*threshold)) } td .number { (percent(*share)) } }
            } }
        }
    };
    figure("Response times", &plot, &no_distribution(detail), &legend, table)
}

fn runs(detail: &Detail) -> Markup {
    let points = detail.runs.as_deref().unwrap_or_default();
    let line = |name, place: usize| Line {
        class: name,
        name,
        points: points.iter().map(|point| (point.time, point.values[place])).collect(),
    };
    let cells = |point: &Point| point.values.map(|at| value(at, seconds)).to_vec();
    OverTime {
        title: "Run execution times",
        label: &format!("Run execution time percentiles over the last {}", detail.app.window),
        times: points.first().map_or(0.0, |point| point.time)..points.last().map_or(0.0, |point| point.time),
        values: ("run execution time", Unit::Seconds),
        lines: &[line("p50", 0), line("p90", 1), line("p99", 2)],
        deploys: &[],
        instead: &no_runs(detail),
        head: &["p50", "p90", "p99"],
        rows: points.iter().map(|point| (point.time, cells(point))).collect(),
    }
    .figure()
}
