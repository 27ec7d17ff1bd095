//! Curves and sparklines, drawn by plotters as SVG inside the page.
//!
//! Their colours are those of the light theme; the style sheet replaces them in the dark theme, and gives lines
//! their dashes, by the value of the attribute. Each plot has a text label and a table with the same values, from
//! which the script reads the values under the pointer.

use std::ops::Range;

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::format;

/// The result of drawing; drawing into a string never fails.
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, RangedCoordf64>>;

const INK: RGBColor = RGBColor(0x16, 0x20, 0x2C);
const GRID: RGBColor = RGBColor(0xD9, 0xDE, 0xE5);

/// The colour of a line, and its class in legends.
#[derive(Clone, Copy)]
pub(super) struct Colour(RGBColor, pub(super) &'static str);

pub(super) const LINE: Colour = Colour(RGBColor(0x1D, 0x4E, 0xD8), "line");
pub(super) const P50: Colour = Colour(RGBColor(0x0F, 0x76, 0x6E), "p50");
pub(super) const P90: Colour = Colour(RGBColor(0xB4, 0x53, 0x09), "p90");
pub(super) const P99: Colour = Colour(RGBColor(0xBE, 0x12, 0x3C), "p99");

/// The width of a plot on a phone, so that text is never smaller than 12 pixels.
const PLOT: (u32, u32) = (400, 240);
/// Larger than displayed, because plotters draws on whole pixels.
const SPARKLINE: (u32, u32) = (200, 48);
const TEXT: u32 = 18;
/// The factor by which plotters divides text sizes.
#[cfg(test)]
const EM: f64 = 1.24;

/// Distances between times on an axis, in seconds: round ones only.
const STEPS: [f64; 12] =
    [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0];
/// The most labels on the time axis, without seconds and with them.
const TIMES: [f64; 2] = [5.0, 3.0];
/// Round numbers of seconds that are far enough apart for a logarithmic axis.
const ROUND: [f64; 13] =
    [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0, 360_000.0];

/// A line with its colour, its name in legends, and its points; a missing value is a gap.
pub(super) struct Line<'a> {
    pub(super) colour: Colour,
    pub(super) name: &'a str,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// A drawn plot, empty if there is nothing to draw, and its horizontal axis with its first and last pixel.
#[derive(Default)]
pub(super) struct Plot {
    pub(super) svg: Markup,
    axis: Option<(Axis, (i32, i32))>,
}

impl Plot {
    /// The position of `value` on the horizontal axis, in the plot's own pixels; `None` beyond it.
    pub(super) fn x(&self, value: f64) -> Option<i32> {
        let (axis, pixels) = self.axis.as_ref()?;
        (0.0..=1.0).contains(&axis.share(value)).then(|| axis.map(&value, *pixels))
    }
}

/// The horizontal axis of a plot.
#[derive(Clone)]
enum Axis {
    /// Unix times.
    Time(Range<f64>),
    /// Seconds that a request takes, on a logarithmic scale.
    Log(Range<f64>),
}

impl Axis {
    /// The position of `value`: 0 at the start of the axis, 1 at its end.
    fn share(&self, value: f64) -> f64 {
        match self {
            Self::Time(times) => (value - times.start) / (times.end - times.start),
            Self::Log(seconds) => (value / seconds.start).ln() / (seconds.end / seconds.start).ln(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "a pixel")]
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        (f64::from(limit.0) + self.share(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    /// Round values.
    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let range = self.range();
        let inside = |x: &f64| (range.start..=range.end).contains(x);
        if let Self::Time(times) = self {
            let step = step(times);
            let first = (times.start / step).ceil();
            let points = std::iter::successors(Some(first), |n| Some(n + 1.0)).map(|n| n * step);
            return points.take_while(inside).collect();
        }
        let round: Vec<f64> = ROUND.into_iter().filter(inside).collect();
        match round.len() {
            0 | 1 => ROUND.into_iter().flat_map(|x| [x, 2.0 * x, 5.0 * x]).filter(inside).collect(),
            2..=5 => round,
            _ => round.into_iter().step_by(2).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        let (Self::Time(range) | Self::Log(range)) = self;
        range.clone()
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
    let present = values.iter().flatten();
    let (most, count) = present.fold((0.0_f64, 0), |(most, count), value| (most.max(*value), count + 1));
    if count < 2 {
        return html! {};
    }
    let points: Vec<(f64, Option<f64>)> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
    svg("sparkline", SPARKLINE, label, |area| {
        let end = points.last().map_or(1.0, |(x, _)| *x);
        let mut chart =
            ChartBuilder::on(area).margin(5).build_cartesian_2d(0.0..end, 0.0..most.max(1e-9) * 1.05)?;
        for run in runs(&points) {
            chart.draw_series(LineSeries::new(run.iter().copied(), LINE.0.stroke_width(3)))?;
        }
        if let Some((x, Some(y))) = points.last() {
            chart.draw_series([Circle::new((*x, *y), 4, LINE.0.filled())])?;
        }
        Ok(())
    })
}

/// The share of requests (0..=1) by response time, percentiles marked.
pub(super) fn distribution(shares: &[(f64, f64)], percentiles: &[f64], label: &str) -> Plot {
    let Some(range) = log_range(shares, percentiles) else { return Plot::default() };
    let inside = shares.iter().copied().filter(|(x, _)| (range.start..=range.end).contains(x));
    let inside: Vec<(f64, f64)> = inside.collect();
    let names = ["response time (logarithmic)", "requests done within"];
    let share = |share: &f64| format!("{:.0} %", share * 100.0);
    plot(label, Axis::Log(range), names, 1.0, &share, |chart| {
        chart.draw_series(LineSeries::new(inside.iter().copied(), LINE.0.stroke_width(2)))?;
        chart.draw_series(inside.iter().map(|point| Circle::new(*point, 3, LINE.0.filled())))?;
        upright(chart, percentiles, 1.0, P99.0)
    })
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
    let value = |y: &f64| format!("{}{name}", format::number(*y));
    plot(label, Axis::Time(times.clone()), ["time (UTC)", what], top, &value, |chart| {
        let inside: Vec<f64> = marks.iter().copied().filter(|x| times.contains(x)).collect();
        upright(chart, &inside, top, INK)?;
        lines.iter().try_for_each(|line| draw_line(chart, line, times, scale))
    })
}

/// Draws a plot: its axes with their names, the vertical axis from 0 to `top`, and then `draw`.
fn plot(
    label: &str,
    axis: Axis,
    [x, y]: [&str; 2],
    top: f64,
    value: &dyn Fn(&f64) -> String,
    draw: impl FnOnce(&mut Chart<'_, '_>) -> Drawn,
) -> Plot {
    let mut pixels = (0, 0);
    let text = || ("sans-serif", TEXT).into_text_style(&(1, 1)).color(&INK);
    let svg = svg("plot", PLOT, label, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(78)
            .build_cartesian_2d(axis.clone(), 0.0..top)?;
        let (across, _) = chart.plotting_area().get_pixel_range();
        pixels = (across.start, across.end);
        let mut mesh = chart.configure_mesh();
        if let Axis::Time(_) = axis {
            mesh.disable_x_mesh();
        }
        mesh.bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .label_style(text())
            .axis_desc_style(text())
            .x_desc(x)
            .y_desc(y)
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&|x| match &axis {
                Axis::Time(times) => tick(*x, step(times)),
                Axis::Log(_) => format::seconds(*x),
            })
            .y_label_formatter(value)
            .draw()?;
        draw(&mut chart)
    });
    Plot { svg, axis: Some((axis, pixels)) }
}

/// Draws a vertical line at each of `places`.
fn upright(chart: &mut Chart<'_, '_>, places: &[f64], top: f64, colour: RGBColor) -> Drawn {
    places.iter().try_for_each(|x| {
        let line = PathElement::new([(*x, 0.0), (*x, top)], colour.stroke_width(1));
        chart.draw_series([line]).map(drop)
    })
}

fn draw_line(chart: &mut Chart<'_, '_>, line: &Line<'_>, times: &Range<f64>, scale: f64) -> Drawn {
    let inside = |(x, _): &&(f64, Option<f64>)| (times.start..=times.end).contains(x);
    let points: Vec<(f64, Option<f64>)> =
        line.points.iter().filter(inside).map(|(x, y)| (*x, y.map(|y| y / scale))).collect();
    for run in runs(&points) {
        chart.draw_series(LineSeries::new(run.iter().copied(), line.colour.0.stroke_width(2)))?;
        if let [only] = run[..] {
            chart.draw_series([Circle::new(only, 3, line.colour.0.filled())])?;
        }
    }
    Ok(())
}

/// The distance between the times written on an axis.
fn step(times: &Range<f64>) -> f64 {
    let span = times.end - times.start;
    let fits = STEPS.into_iter().find(|step| span / step <= TIMES[usize::from(*step < 60.0)]);
    fits.unwrap_or_else(|| (span / TIMES[0] / 86_400.0).ceil() * 86_400.0)
}

/// A time of day.
#[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
pub(super) fn clock(time: f64) -> String {
    Timestamp::from_second(time as i64).map(format::clock).unwrap_or_default()
}

/// A time on an axis, with seconds only if they differ.
fn tick(time: f64, step: f64) -> String {
    let written = clock(time);
    if step < 60.0 { written } else { written.get(..5).unwrap_or_default().to_owned() }
}

/// The points without gaps, run by run.
fn runs(points: &[(f64, Option<f64>)]) -> Vec<Vec<(f64, f64)>> {
    let runs = points.split(|(_, y)| y.is_none()).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect()).collect()
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

/// Draws an SVG, as an image with a label inside the page.
fn svg(class: &str, size: (u32, u32), label: &str, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Markup {
    let mut text = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area).and_then(|()| area.present())
    };
    let inside = text.split_once('>').and_then(|(_, rest)| rest.trim_end().strip_suffix("</svg>"));
    let (Ok(()), Some(inside)) = (drawn, inside) else { return html! {} };
    html! {
        svg class=(class) viewBox={ "0 0 " (size.0) " " (size.1) } role="img" aria-label=(label) {
            (PreEscaped(inside.replace('\n', "").replace(" opacity=\"1\"", "")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_gap_and_not_zero() {
        let points = [(0.0, Some(1.0)), (1.0, None), (2.0, Some(3.0)), (3.0, Some(4.0))];
        assert_eq!(runs(&points), [vec![(0.0, 1.0)], vec![(2.0, 3.0), (3.0, 4.0)]]);
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
            let ticks: Vec<String> =
                Axis::Log(range).key_points(4).into_iter().map(format::seconds).collect();
            assert_eq!(ticks, expected);
            assert!(ticks.iter().all(|tick| plot.contains(tick)), "{plot}");
        }
    }

    #[test]
    fn text_is_nowhere_smaller_than_12_pixels() {
        // A phone 400 pixels wide leaves 345 for a plot.
        assert!(f64::from(TEXT) / EM * 345.0 / f64::from(PLOT.0) >= 12.0);
    }

    #[test]
    fn the_style_sheet_has_every_colour_of_the_plots() {
        for RGBColor(r, g, b) in [INK, GRID, LINE.0, P50.0, P90.0, P99.0] {
            let colour = format!("=\"#{r:02X}{g:02X}{b:02X}\"]");
            assert!(crate::pages::links::STYLE.content.contains(&colour), "{colour}");
        }
    }

    fn drawn(values: &[f64], unit: Unit, times: Range<f64>) -> String {
        let step = (times.end - times.start) / 20.0;
        let points =
            values.iter().zip(1..).map(|(y, n)| (times.start + step * f64::from(n), Some(*y))).collect();
        let lines = [Line { colour: LINE, name: "", points }];
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
        assert_eq!((tick(61.0, 15.0), tick(61.0, 60.0)), ("00:01:01".to_owned(), "00:01".to_owned()));
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
        let none = [Line { colour: LINE, name: "", points: vec![(1.0, None), (2.0, None)] }];
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
        let lines = [Line { colour: LINE, name: "", points }];
        let plot = over_time(&lines, &[50.0, 500.0], &(0.0..100.0), ("", Unit::Number), "");
        let text = plot.svg.clone().into_string();
        assert_eq!(text.matches("#16202C\" stroke-width").count(), 1, "{text}");
        let (left, middle) = (plot.x(0.0).unwrap(), plot.x(50.0).unwrap());
        assert!(left < middle, "{left} and {middle}");
        assert_eq!(plot.x(101.0), None);
    }
}
