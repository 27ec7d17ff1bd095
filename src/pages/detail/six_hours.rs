//! The last hours of an app: percentiles, request rate and failed polls over time.

use std::ops::Range;

use maud::{Markup, html};

use crate::status::detail::Detail;
use crate::store::SlotSummary;

use super::super::format::{number, seconds, value};
use super::super::layout::Frame;
use super::super::links::parameter;
use super::super::plots::{Line, Point, Unit};
use super::figures::OverTime;

/// The maximum number of columns in a plot.
const MAX_COLUMNS: f64 = 90.0;

/// Without a chosen range, plots go back at least this many seconds.
const MIN_REACH: f64 = 120.0;

/// A range of plots: its word in a query, and seconds.
type Reach = (&'static str, f64);

/// The ranges that are offered.
const REACHES: [Reach; 3] = [("30m", 1_800.0), ("2h", 7_200.0), ("6h", 21_600.0)];

/// The range that a query selects. `None` means the smallest range that covers all data. Errors quote an unknown range,
/// shortened.
pub(super) fn reach(query: &str) -> Result<Option<Reach>, String> {
    let Some(asked) = parameter(query, "range").filter(|asked| !asked.is_empty()) else { return Ok(None) };
    let known = REACHES.into_iter().find(|(word, _)| *word == asked);
    known.map(Some).ok_or_else(|| format!("range={}", asked.chars().take(20).collect::<String>()))
}

/// Several slots drawn as one, and the Unix time of its middle.
type Column = (f64, SlotSummary);

/// The columns within `times`, without those that have no poll.
fn columns(detail: &Detail, times: &Range<f64>) -> Vec<Column> {
    let slot = detail.six_hours.first().map_or(1.0, |slot| f64::from(slot.seconds));
    let width = ((times.end - times.start) / MAX_COLUMNS / slot).ceil().max(1.0) * slot;
    let mut columns: Vec<Column> = Vec::new();
    for slot in detail.six_hours.iter().filter(|slot| slot.polls > 0) {
        let time = (((slot.start as f64 / width).floor() + 0.5) * width).min(times.end);
        if time < times.start {
            continue;
        }
        match columns.last_mut().filter(|(last, _)| *last >= time) {
            Some((_, column)) => column.add(slot),
            None => columns.push((time, *slot)),
        }
    }
    columns
}

/// A line through the columns, interrupted if polls are missing for longer than `gap` seconds.
fn points(columns: &[Column], gap: f64, of: impl Fn(&SlotSummary) -> Option<f64>) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (time, column) in columns {
        if points.last().is_some_and(|(last, _)| time - last > gap) {
            points.push((*time, None));
        }
        points.push((*time, of(column)));
    }
    points
}

/// The plots of the last hours, with a choice of ranges.
pub(super) fn six_hours(frame: Frame<'_>, detail: &Detail, asked: Option<Reach>) -> Markup {
    let now = frame.now.as_duration().as_secs_f64();
    let known = detail.six_hours.first().map_or(0.0, |slot| now - slot.start as f64);
    let all = REACHES.iter().find(|(_, seconds)| known <= *seconds).or(REACHES.last());
    let (word, reach) = asked.or(all.copied()).unwrap_or_default();
    // Shortly after the start, half an hour would be mostly empty.
    let reach = if asked.is_none() { known.clamp(MIN_REACH, reach) } else { reach };
    let slot = detail.six_hours.first().map_or(1.0, |slot| f64::from(slot.seconds));
    let times = now - reach..now;
    let gap = 2.5 * detail.interval.max(slot).max(reach / MAX_COLUMNS);
    let page = frame.links.app(&detail.app.project, &detail.app.id);
    html! {
        div .bar {
            h2 #hours { "The last hours" }
            nav .range aria-label="Range of the plots" { @for (name, _) in REACHES {
                a href={ (page) "?range=" (name) "#hours" } aria-current=[(name == word).then_some("true")] { (name) }
            } }
            p .sub { "Memory holds six hours in steps of " (seconds(slot)) ", with the highest value of each." }
        }
        div .plots { @for figure in figures(detail, &times, gap) { (figure) } }
    }
}

/// Percentiles, request rate and failed polls within `times`; more than `gap` without a poll interrupts the lines.
fn figures(detail: &Detail, times: &Range<f64>, gap: f64) -> [Markup; 3] {
    let columns = columns(detail, times);
    let deploys: Vec<f64> =
        detail.builds.iter().map(|build| build.start.as_duration().as_secs_f64()).collect();
    let line = |class, name, of: &dyn Fn(&SlotSummary) -> Option<f64>| Line {
        class,
        name,
        points: points(&columns, gap, of),
    };
    let rows = |cells: &dyn Fn(&SlotSummary) -> Vec<Markup>| {
        columns.iter().map(|(time, column)| (*time, cells(column))).collect()
    };
    let figure = |title, label, values, lines: &[Line<'_>], head: &[&str], rows| {
        let (times, deploys, instead) = (times.clone(), &deploys[..], "Not enough data to plot yet.");
        OverTime { title, label, times, values, lines, deploys, instead, head, rows }.figure()
    };
    let window = &detail.app.window;
    [
        figure(
            "Response time percentiles",
            &format!("Response time percentiles, each over the last {window}"),
            ("response time", Unit::Seconds),
            &[
                line("p50", "p50", &|column| column.point.p50),
                line("p90", "p95", &|column| column.point.p95),
                line("p99", "p99", &|column| column.point.p99),
            ],
            &["p50", "p95", "p99"],
            rows(&|SlotSummary { point, .. }| {
                [point.p50, point.p95, point.p99].map(|at| value(at, seconds)).to_vec()
            }),
        ),
        figure(
            "Request rate",
            &format!("Requests per minute over the last {window}"),
            ("requests / min", Unit::Number),
            &[line("line", "requests per minute", &|column| column.point.requests_per_minute)],
            &["requests / min"],
            rows(&|column| vec![value(column.point.requests_per_minute, number)]),
        ),
        figure(
            "Failed polls",
            "Failed polls of response times",
            ("failed polls", Unit::Whole),
            &[line("p99", "failed polls of response times", &|column| Some(f64::from(column.failures)))],
            &["failed", "polls"],
            rows(&|column| vec![html! { (column.failures) }, html! { (column.polls) }]),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store;

    #[test]
    fn a_range_is_one_of_those_offered() {
        for (query, asked) in
            [("range=2h", Some("2h")), ("x&range=6h", Some("6h")), ("range=", None), ("", None)]
        {
            assert_eq!(reach(query).map(|known| known.map(|(word, _)| word)), Ok(asked), "{query}");
        }
        assert_eq!(reach("range=9h"), Err("range=9h".to_owned()));
    }

    #[test]
    fn time_without_polls_interrupts_a_line_and_a_missing_value_too() {
        let column = |time, p95| {
            let point = store::Point { p95, ..store::Point::default() };
            (time, SlotSummary { start: 0, seconds: 60, point, polls: 1, failures: 0 })
        };
        let columns =
            [column(0.0, Some(1.0)), column(60.0, None), column(120.0, Some(2.0)), column(600.0, Some(3.0))];
        assert_eq!(
            points(&columns, 150.0, |column| column.point.p95),
            [(0.0, Some(1.0)), (60.0, None), (120.0, Some(2.0)), (600.0, None), (600.0, Some(3.0))]
        );
    }
}
