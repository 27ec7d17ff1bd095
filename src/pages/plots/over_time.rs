//! Lines over time.

use std::ops::Range;

use jiff::Timestamp;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;

use super::super::format;
use super::{Drawn, GRID, INK, Line, MARGIN, PLOT, Plot, Scale, runs, svg, text};

/// Distances between times on an axis, in seconds: round ones only.
const STEPS: [u32; 12] = [5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600];
/// The most labels on the time axis, without seconds and with them.
const TIMES: [f64; 2] = [5.0, 3.0];

/// The kind of values in a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Unit {
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

/// A plot of lines over time.
pub(in super::super) struct OverTime<'a> {
    pub(in super::super) lines: &'a [Line],
    /// Marked moments.
    pub(in super::super) marks: &'a [f64],
    /// The times of the axis.
    pub(in super::super) times: Range<f64>,
    /// What the values are.
    pub(in super::super) what: &'a str,
    pub(in super::super) unit: Unit,
    pub(in super::super) label: &'a str,
}

impl OverTime<'_> {
    /// The plot; empty without a range of time or any value.
    pub(in super::super) fn draw(&self) -> Plot {
        let OverTime { lines, marks, times, what, unit, label } = self;
        if times.start >= times.end
            || lines.iter().all(|line| line.points.len() < 2 || line.points.iter().all(|(_, y)| y.is_none()))
        {
            return Plot::default();
        }
        let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y);
        let (scale, name) = unit.of_axis(values.clone().fold(0.0_f64, f64::max));
        let top = unit.top(values.fold(0.0_f64, f64::max) / scale);
        let mut area = Range::default();
        let drawn = svg("plot", PLOT, label, |root| {
            let mut chart = ChartBuilder::on(root)
                .margin(MARGIN)
                .margin_right(24)
                .x_label_area_size(48)
                .y_label_area_size(78)
                .build_cartesian_2d(TimeAxis(times.clone()), 0.0..top)?;
            area = chart.plotting_area().get_pixel_range().0;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .bold_line_style(GRID)
                .light_line_style(TRANSPARENT)
                .axis_style(GRID)
                .label_style(text())
                .axis_desc_style(text())
                .x_desc("time (UTC)")
                .y_desc(*what)
                .x_labels(5)
                .y_labels(5)
                .x_label_formatter(&|x| clock(*x, step(times)))
                .y_label_formatter(&|y| format!("{}{name}", format::number(*y)))
                .draw()?;
            for x in marks.iter().filter(|x| times.contains(x)) {
                chart.draw_series([PathElement::new([(*x, 0.0), (*x, top)], INK.stroke_width(1))])?;
            }
            for line in *lines {
                draw_line(&mut chart, line, times, scale)?;
            }
            Ok(())
        });
        Plot { svg: drawn, scale: Some(Scale { pixels: area, values: times.clone(), logarithmic: false }) }
    }
}

type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<TimeAxis, plotters::coord::types::RangedCoordf64>>;

fn draw_line(chart: &mut Chart<'_, '_>, line: &Line, times: &Range<f64>, scale: f64) -> Drawn {
    let inside = |(x, _): &&(f64, Option<f64>)| (times.start..=times.end).contains(x);
    let points: Vec<(f64, Option<f64>)> =
        line.points.iter().filter(inside).map(|(x, y)| (*x, y.map(|y| y / scale))).collect();
    for run in runs(&points) {
        chart.draw_series(LineSeries::new(run.iter().copied(), line.colour.stroke_width(2)))?;
        if let [only] = run[..] {
            chart.draw_series([Circle::new(only, 3, line.colour.filled())])?;
        }
    }
    Ok(())
}

/// A time axis with round times.
struct TimeAxis(Range<f64>);

impl Ranged for TimeAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "a pixel")]
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.0.start) / (self.0.end - self.0.start);
        (f64::from(limit.0) + share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let step = step(&self.0);
        let first = (self.0.start / step).ceil();
        let points = std::iter::successors(Some(first), |n| Some(n + 1.0)).map(|n| n * step);
        points.take_while(|time| *time <= self.0.end).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

/// The distance between the times written on an axis.
fn step(times: &Range<f64>) -> f64 {
    let span = times.end - times.start;
    let fits = STEPS
        .iter()
        .map(|step| f64::from(*step))
        .find(|step| span / step <= TIMES[usize::from(*step < 60.0)]);
    fits.unwrap_or_else(|| (span / TIMES[0] / 86_400.0).ceil() * 86_400.0)
}

/// A time on an axis, with seconds only if they differ.
#[expect(clippy::cast_possible_truncation, reason = "a time of a plot, to the second")]
fn clock(x: f64, step: f64) -> String {
    let written = Timestamp::from_second(x as i64).map(format::clock).unwrap_or_default();
    if step < 60.0 { written } else { written.get(..5).unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::LINE;
    use super::*;

    fn drawn(values: &[f64], unit: Unit, times: Range<f64>) -> String {
        let step = (times.end - times.start) / 20.0;
        let points =
            values.iter().zip(1..).map(|(y, n)| (times.start + step * f64::from(n), Some(*y))).collect();
        let lines = [Line { colour: LINE, points }];
        let plot = OverTime { lines: &lines, marks: &[], times, what: "", unit, label: "" }.draw();
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
        assert_eq!((clock(61.0, 15.0), clock(61.0, 60.0)), ("00:01:01".to_owned(), "00:01".to_owned()));
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
        let none = [Line { colour: LINE, points: vec![(1.0, None), (2.0, None)] }];
        let empty =
            OverTime { lines: &none, marks: &[], times: 0.0..3.0, what: "", unit: Unit::Seconds, label: "" };
        assert_eq!(empty.draw().svg.into_string(), "", "without values there is no axis");
        let zeros = axis(&[0.0, 0.0], Unit::Number);
        assert!(!zeros.contains("e-9") && zeros.contains(">0<"), "{zeros}");
        let whole = axis(&[0.0, 1.0], Unit::Whole);
        assert!(whole.contains(">1<") && !whole.contains("0.5<"), "{whole}");
    }

    #[test]
    fn a_mark_stays_inside() {
        let points = vec![(0.0, Some(1.0)), (100.0, Some(2.0))];
        let lines = [Line { colour: LINE, points }];
        let marks = [50.0, 500.0];
        let plot = OverTime {
            lines: &lines,
            marks: &marks,
            times: 0.0..100.0,
            what: "",
            unit: Unit::Number,
            label: "",
        };
        let plot = plot.draw();
        let text = plot.svg.clone().into_string();
        assert_eq!(text.matches("#16202C\" stroke-width").count(), 1, "{text}");
        let (left, middle) = (plot.x(0.0).unwrap(), plot.x(50.0).unwrap());
        assert!(left.parse::<f64>().unwrap() < middle.parse::<f64>().unwrap());
        assert_eq!(plot.x(101.0), None);
    }
}
