//! Curves and sparklines as SVG inside the page.
//!
//! The style sheet gives lines their colours and dashes, by their class. Each plot has a text label and a table with
//! the same values, from which the script reads the values under the pointer.

use std::ops::Range;

use jiff::Timestamp;
use maud::{Markup, html};

use super::format;

/// A point of a line; a missing value is a gap.
pub(super) type Point = (f64, Option<f64>);

/// The pixels of a plot between its axes. The whole plot is as wide as on a phone, so that text is never smaller than 12
/// pixels.
const ACROSS: Range<f64> = 90.0..376.0;
/// Likewise, from the bottom to the top.
const UP: Range<f64> = 180.0..12.0;

/// Distances between times on an axis, in seconds: round ones only.
const STEPS: [f64; 12] =
    [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0];
/// The most labels on the time axis, without seconds and with them.
const TIMES: [f64; 2] = [5.0, 3.0];
/// No time axis has as many.
const MAX_TICKS: u8 = 8;
/// Round numbers of seconds that are far enough apart for a logarithmic axis.
const ROUND: [f64; 13] =
    [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0, 360_000.0];

/// A line: its class, also in legends, its name there, and its points.
pub(super) struct Line<'a> {
    pub(super) class: &'a str,
    pub(super) name: &'a str,
    pub(super) points: Vec<Point>,
}

/// A drawn plot, empty if there is nothing to draw, and its horizontal axis.
#[derive(Default)]
pub(super) struct Plot {
    pub(super) svg: Markup,
    axis: Option<Axis>,
}

impl Plot {
    /// The position of `value` on the horizontal axis, in the plot's own pixels; `None` beyond it.
    pub(super) fn x(&self, value: f64) -> Option<i32> {
        self.axis.as_ref()?.x(value)
    }
}

/// The horizontal axis of a plot.
enum Axis {
    /// Unix times.
    Time(Range<f64>),
    /// Seconds that a request takes, on a logarithmic scale.
    Log(Range<f64>),
}

impl Axis {
    fn x(&self, value: f64) -> Option<i32> {
        let share = match self {
            Self::Time(times) => (value - times.start) / (times.end - times.start),
            Self::Log(seconds) => (value / seconds.start).ln() / (seconds.end / seconds.start).ln(),
        };
        (0.0..=1.0).contains(&share).then(|| pixel(share, &ACROSS))
    }

    /// Round values with their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        let inside = |x: &f64| self.x(*x).is_some();
        let round: Vec<f64> = match self {
            Self::Time(times) => {
                let step = step(times);
                let first = (times.start / step).ceil();
                let ticks = (0..MAX_TICKS).map(|n| (first + f64::from(n)) * step);
                return ticks.take_while(inside).map(|time| (time, tick(time, step))).collect();
            }
            Self::Log(_) => ROUND.into_iter().filter(inside).collect(),
        };
        let ticks = match round.len() {
            0 | 1 => ROUND.into_iter().flat_map(|x| [x, 2.0 * x, 5.0 * x]).filter(inside).collect(),
            2..=5 => round,
            _ => round.into_iter().step_by(2).collect::<Vec<f64>>(),
        };
        ticks.into_iter().map(|seconds| (seconds, format::seconds(seconds))).collect()
    }
}

/// The kind of values in a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds; the axis is in the unit that suits the largest.
    Seconds,
    /// Numbers.
    Number,
    /// Whole numbers.
    Whole,
}

impl Unit {
    /// The axis' unit in base units, and its name.
    fn of_axis(self, most: f64) -> (f64, &'static str) {
        match self {
            Self::Number | Self::Whole => (1.0, ""),
            Self::Seconds if most > 0.0 && most < 1e-3 => (1e-6, " µs"),
            Self::Seconds if most < 1.0 => (1e-3, " ms"),
            Self::Seconds if most < 120.0 => (1.0, " s"),
            Self::Seconds if most < 7200.0 => (60.0, " min"),
            Self::Seconds => (3600.0, " h"),
        }
    }

    /// The end of an axis that holds `most`; an axis of zeros ends at 1.
    fn top(self, most: f64) -> f64 {
        match self {
            Self::Whole => (most * 1.1).ceil().max(4.0),
            _ if most <= 0.0 => 1.0,
            _ => most * 1.1,
        }
    }
}

/// The last values as a line, with the newest marked at the right; empty for fewer than two values.
pub(super) fn sparkline(values: &[Option<f64>], label: &str) -> Markup {
    if values.iter().flatten().count() < 2 {
        return html! {};
    }
    let most = values.iter().flatten().fold(1e-9_f64, |most, value| most.max(*value));
    let end = (values.len() - 1) as f64;
    let place = |(x, y): (usize, &Option<f64>)| {
        y.map(|y| (pixel(x as f64 / end, &(5.0..195.0)), pixel(y / most, &(43.0..7.0))))
    };
    let points: Vec<_> = values.iter().enumerate().map(place).collect();
    html! {
        // Larger than displayed, because points are whole pixels.
        svg .sparkline viewBox="0 0 200 48" role="img" aria-label=(label) {
            (curve("line", &points))
            @if let Some(Some((x, y))) = points.last() { circle .line cx=(x) cy=(y) r="4" {} }
        }
    }
}

/// The share of requests (0..=1) by response time, percentiles marked.
pub(super) fn distribution(shares: &[(f64, f64)], percentiles: &[f64], label: &str) -> Plot {
    let Some(range) = log_range(shares, percentiles) else { return Plot::default() };
    let through = shares.iter().map(|(x, share)| (*x, Some(*share))).collect();
    let dots = shares.iter().flat_map(|(x, share)| [(*x, Some(*share)), (*x, None)]).collect();
    let lines = [through, dots].map(|points| Line { class: "line", name: "", points });
    let names = ["response time (logarithmic)", "requests done within"];
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    plot(label, Axis::Log(range), names, (1.0, 1.0, &share), ("p99", percentiles), &lines)
}

/// Lines over `times`, with `marks`; empty without a range of time or any value. `what` names the values.
pub(super) fn over_time(
    lines: &[Line<'_>],
    marks: &[f64],
    times: &Range<f64>,
    (what, unit): (&str, Unit),
    label: &str,
) -> Plot {
    if times.start >= times.end
        || lines.iter().all(|line| line.points.len() < 2 || line.points.iter().all(|(_, y)| y.is_none()))
    {
        return Plot::default();
    }
    let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y);
    let most = values.fold(0.0_f64, f64::max);
    let (scale, name) = unit.of_axis(most);
    let top = unit.top(most / scale);
    let value = |y: f64| format!("{}{name}", format::number(y));
    plot(
        label,
        Axis::Time(times.clone()),
        ["time (UTC)", what],
        (top, scale, &value),
        ("deploy", marks),
        lines,
    )
}

/// Draws a plot: its axes with their names and labels, the vertical one from 0 to `top` times `scale`, then upright marks and
/// lines.
fn plot(
    label: &str,
    axis: Axis,
    [across, up]: [&str; 2],
    (top, scale, value): (f64, f64, &dyn Fn(f64) -> String),
    (mark, marks): (&str, &[f64]),
    lines: &[Line<'_>],
) -> Plot {
    let y = |value: f64| pixel(value / scale / top, &UP);
    let step = round_step(top);
    let rows = (0..=4).map(|n| f64::from(n) * step).filter(|row| *row <= top);
    let upright = |class: &str, at: f64| {
        html! { @if let Some(x) = axis.x(at) { line class=(class) x1=(x) x2=(x) y1=(UP.start) y2=(UP.end) {} } }
    };
    let curve = |line: &Line<'_>| {
        let inside = line.points.iter().filter_map(|(at, value)| Some((axis.x(*at)?, value.map(y))));
        let points: Vec<_> = inside.map(|(x, y)| Some((x, y?))).collect();
        curve(line.class, &points)
    };
    let svg = html! {
        svg .plot viewBox="0 0 400 240" role="img" aria-label=(label) {
            @for row in rows {
                line .grid x1=(ACROSS.start) x2=(ACROSS.end) y1=(y(row * scale)) y2=(y(row * scale)) {}
                text x=(ACROSS.start - 10.0) y=(y(row * scale) + 5) text-anchor="end" { (value(row)) }
            }
            @for (at, text) in axis.ticks() {
                @if let Axis::Log(_) = axis { (upright("grid", at)) }
                text x=[axis.x(at)] y="200" text-anchor="middle" { (text) }
            }
            line .grid x1=(ACROSS.start) x2=(ACROSS.start) y1=(UP.start) y2=(UP.end) {}
            text x="233" y="226" text-anchor="middle" { (across) }
            text x="-96" y="26" text-anchor="middle" transform="rotate(-90)" { (up) }
            @for at in marks { (upright(mark, *at)) }
            @for line in lines { (curve(line)) }
        }
    };
    Plot { svg, axis: Some(axis) }
}

/// A line through these pixels without gaps; a point between gaps is a dot.
fn curve(class: &str, points: &[Option<(i32, i32)>]) -> Markup {
    html! {
        @for run in points.split(Option::is_none) {
            @match run {
                [] => {},
                [Some((x, y))] => circle class=(class) cx=(x) cy=(y) r="3" {},
                _ => polyline class=(class) points={ @for (x, y) in run.iter().flatten() { (x) "," (y) " " } } {},
            }
        }
    }
}

/// The pixel at `share` of the way.
#[expect(clippy::cast_possible_truncation, reason = "a pixel")]
fn pixel(share: f64, way: &Range<f64>) -> i32 {
    (way.start + share * (way.end - way.start)).round() as i32
}

/// The smallest of 1, 2, 5, 10, 20, ... that is more than a fifth of `top`.
fn round_step(top: f64) -> f64 {
    let power = 10_f64.powf((top / 5.0).log10().floor());
    [1.0, 2.0, 5.0].map(|step| step * power).into_iter().find(|step| top / step < 5.0).unwrap_or(10.0 * power)
}

/// The distance between the times written on an axis.
fn step(times: &Range<f64>) -> f64 {
    let span = times.end - times.start;
    let fits = STEPS.into_iter().find(|step| span / step <= TIMES[usize::from(*step < 60.0)]);
    fits.unwrap_or_else(|| (span / TIMES[0] / DAY).ceil() * DAY)
}

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// One of `times`: the time of day, with the date if they span more than a day.
pub(super) fn moment(time: f64, times: &Range<f64>) -> String {
    let write = if times.end - times.start > DAY { format::absolute } else { format::clock };
    timestamp(time).map(write).unwrap_or_default()
}

/// A time on an axis: a day, or a time of day, with seconds only if they differ.
fn tick(time: f64, step: f64) -> String {
    let written = match step {
        DAY.. => "%m-%d",
        60.0.. => "%H:%M",
        _ => "%H:%M:%S",
    };
    timestamp(time).map(|time| time.strftime(written).to_string()).unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
fn timestamp(time: f64) -> Option<Timestamp> {
    Timestamp::from_second(time as i64).ok()
}

/// From the last threshold without requests to the first that covers all of them, including all percentiles.
fn log_range(shares: &[(f64, f64)], percentiles: &[f64]) -> Option<Range<f64>> {
    let (first, last) = (shares.first()?.0, shares.last()?.0);
    let low = shares.iter().rev().find(|(_, share)| *share < 0.001).map_or(first, |(x, _)| *x);
    let high = shares.iter().find(|(_, share)| *share > 0.9995).map_or(last, |(x, _)| *x);
    let marks = percentiles.iter().copied().filter(|x| *x > 0.0);
    let range = marks.fold(low..high, |range, x| range.start.min(x * 0.8)..range.end.max(x * 1.25));
    (range.start > 0.0 && range.start < range.end).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_gap_and_not_zero() {
        let points = [Some((0, 1)), None, Some((2, 3)), Some((3, 4))];
        let drawn = curve("line", &points).into_string();
        assert!(drawn.contains("cx=\"0\" cy=\"1\"") && drawn.contains("points=\"2,3 3,4 \""), "{drawn}");
        let drawn = sparkline(&[Some(1.0), Some(2.0), None, Some(1.0), Some(3.0)], "p95").into_string();
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert!(drawn.len() < 700, "{} bytes", drawn.len());
    }

    #[test]
    fn a_plot_without_values_is_empty() {
        assert_eq!(sparkline(&[None, Some(1.0)], "").into_string(), "");
        let plot = distribution(&[], &[], "");
        assert_eq!((plot.svg.into_string().as_str(), plot.axis.is_none()), ("", true));
    }

    #[test]
    fn a_logarithmic_axis_has_round_times() {
        for (range, expected) in [
            (0.001..100.0, &["1 ms", "100 ms", "10 s"][..]),
            (0.04..4_000.0, &["100 ms", "10 s", "10 min"]),
            (0.5..4_000.0, &["1 s", "10 s", "1 min", "10 min", "1 h"]),
            (0.15..0.9, &["200 ms", "500 ms"]),
        ] {
            let plot = distribution(&[(range.start, 0.0), (range.end, 1.0)], &[], "").svg.into_string();
            let ticks: Vec<String> = Axis::Log(range).ticks().into_iter().map(|(_, text)| text).collect();
            assert_eq!(ticks, expected);
            assert!(ticks.iter().all(|tick| plot.contains(tick)), "{plot}");
        }
    }

    fn drawn(values: &[f64], unit: Unit, times: Range<f64>) -> String {
        let step = (times.end - times.start) / 20.0;
        let points =
            values.iter().zip(1..).map(|(y, n)| (times.start + step * f64::from(n), Some(*y))).collect();
        let lines = [Line { class: "line", name: "", points }];
        let plot = over_time(&lines, &[], &times, ("", unit), "");
        plot.svg.into_string()
    }

    #[test]
    fn times_on_an_axis_are_round_and_few() {
        for (span, first, second) in
            [(1_800.0, "10:10<", "10:20<"), (7_200.0, "10:30<", "11:00<"), (21_600.0, "12:00<", "14:00<")]
        {
            let start = 36_123.0;
            let plot = drawn(&[1.0, 2.0], Unit::Number, start..start + span);
            assert!(plot.contains(first) && plot.contains(second), "{span}: {plot}");
            let times = plot.matches(":00<").count() + plot.matches("0<").count();
            assert!(times < 20, "{times}");
        }
        assert_eq!(
            [15.0, 60.0, DAY].map(|step| tick(DAY + 61.0, step)),
            ["00:01:01", "00:01", "01-02"].map(str::to_owned)
        );
        assert_eq!(moment(61.0, &(0.0..DAY)), "00:01:01");
        assert_eq!(moment(61.0, &(0.0..7.0 * DAY)), "1970-01-01 00:01:01 UTC");
        // Numbers so large lie further apart than the ticks.
        assert!(Axis::Time(1e18..1e18 + 128.0).ticks().len() <= usize::from(MAX_TICKS));
    }

    #[test]
    fn values_have_the_unit_that_people_use_and_zeros_are_zero() {
        let axis = |values: &[f64], unit| drawn(values, unit, 0.0..600.0);
        assert!(axis(&[0.2, 0.9], Unit::Seconds).contains("200 ms<"));
        assert!(axis(&[30.0, 90.0], Unit::Seconds).contains("20 s<"));
        let minutes = axis(&[130.0, 600.0], Unit::Seconds);
        assert!(minutes.contains(" min<") && !minutes.contains(" s<"), "{minutes}");
        assert!(!axis(&[0.0, 0.0], Unit::Seconds).contains("µs"), "zero is no short time");
        assert_eq!(axis(&[f64::NAN], Unit::Seconds), "", "one value is no line");
        let none = [Line { class: "line", name: "", points: vec![(1.0, None), (2.0, None)] }];
        let empty = over_time(&none, &[], &(0.0..3.0), ("", Unit::Seconds), "");
        assert_eq!(empty.svg.into_string(), "", "without values there is no axis");
        let zeros = axis(&[0.0, 0.0], Unit::Number);
        assert!(!zeros.contains("e-9") && zeros.contains(">0<"), "{zeros}");
        let whole = axis(&[0.0, 1.0], Unit::Whole);
        assert!(whole.contains(">1<") && !whole.contains("0.5<"), "{whole}");
    }

    #[test]
    fn a_mark_stays_inside() {
        let points = vec![(0.0, Some(1.0)), (100.0, Some(2.0))];
        let lines = [Line { class: "line", name: "", points }];
        let plot = over_time(&lines, &[50.0, 500.0], &(0.0..100.0), ("", Unit::Number), "");
        let text = plot.svg.clone().into_string();
        assert_eq!(text.matches("class=\"deploy\"").count(), 1, "{text}");
        let (left, middle) = (plot.x(0.0).unwrap(), plot.x(50.0).unwrap());
        assert!(left < middle, "{left} and {middle}");
        assert_eq!(plot.x(101.0), None);
    }
}
