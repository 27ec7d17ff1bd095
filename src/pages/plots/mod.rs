//! Curves and sparklines, drawn by plotters as SVG inside the page.
//!
//! Their colours are those of the light theme; the style sheet replaces them in the dark theme, and gives lines
//! their dashes, by the value of the attribute. Each plot has a text label and a table with the same values, from
//! which the script reads the values under the pointer.
//!
//! - `over_time`: lines over time.

mod over_time;

use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;

use super::format;

pub(super) use over_time::{OverTime, Unit};

/// The error of drawing; drawing into a text never fails.
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) const INK: RGBColor = RGBColor(0x16, 0x20, 0x2C);
pub(super) const GRID: RGBColor = RGBColor(0xD9, 0xDE, 0xE5);
pub(super) const LINE: RGBColor = RGBColor(0x1D, 0x4E, 0xD8);
pub(super) const P50: RGBColor = RGBColor(0x0F, 0x76, 0x6E);
pub(super) const P90: RGBColor = RGBColor(0xB4, 0x53, 0x09);
pub(super) const P99: RGBColor = RGBColor(0xBE, 0x12, 0x3C);

/// As wide as a figure on a phone, so that text is never smaller than 12 pixels.
const PLOT: (u32, u32) = (400, 240);
/// Larger than shown: plotters draws on whole pixels.
const SPARKLINE: (u32, u32) = (200, 48);
const MARGIN: u32 = 12;
const TEXT: u32 = 18;
/// The factor by which plotters divides text sizes.
#[cfg(test)]
const EM: f64 = 1.24;

/// A line with its colour and points; a missing value is a gap.
pub(super) struct Line {
    pub(super) colour: RGBColor,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// A drawn plot, empty if there is nothing to draw, and the positions of its values.
#[derive(Default)]
pub(super) struct Plot {
    pub(super) svg: Markup,
    scale: Option<Scale>,
}

/// The horizontal axis of a plot.
struct Scale {
    pixels: Range<i32>,
    values: Range<f64>,
    logarithmic: bool,
}

impl Plot {
    /// The position of `value` on the horizontal axis, in the plot's own pixels; `None` beyond it.
    pub(super) fn x(&self, value: f64) -> Option<String> {
        let Scale { pixels, values, logarithmic } = self.scale.as_ref()?;
        let at = |value: f64| if *logarithmic { value.ln() } else { value };
        let share = (at(value) - at(values.start)) / (at(values.end) - at(values.start));
        let width = f64::from(pixels.end - pixels.start);
        (0.0..=1.0).contains(&share).then(|| format!("{:.0}", f64::from(pixels.start) + share * width))
    }
}

/// The last values as a line, with the newest marked at the right; empty for fewer than two values.
pub(super) fn sparkline(values: &[Option<f64>], label: &str) -> Markup {
    let present = values.iter().flatten();
    let (most, count) = present.fold((0.0_f64, 0), |(most, count), value| (most.max(*value), count + 1));
    if count < 2 {
        return html! {};
    }
    #[expect(clippy::cast_precision_loss, reason = "some thirty values")]
    let points: Vec<(f64, Option<f64>)> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
    svg("sparkline", SPARKLINE, label, |area| {
        let end = points.last().map_or(1.0, |(x, _)| *x);
        let mut chart =
            ChartBuilder::on(area).margin(5).build_cartesian_2d(0.0..end, 0.0..most.max(1e-9) * 1.05)?;
        for run in runs(&points) {
            chart.draw_series(LineSeries::new(run.iter().copied(), LINE.stroke_width(3)))?;
        }
        if let Some((x, Some(y))) = points.last() {
            chart.draw_series([Circle::new((*x, *y), 4, LINE.filled())])?;
        }
        Ok(())
    })
}

/// The latency distribution: share of requests (0..=1) by threshold on a logarithmic axis, percentiles marked.
pub(super) fn distribution(shares: &[(f64, f64)], percentiles: &[f64], label: &str) -> Plot {
    let Some(range) = log_range(shares, percentiles) else { return Plot::default() };
    let mut pixels = Range::default();
    let drawn = svg("plot", PLOT, label, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(78)
            .build_cartesian_2d(LogAxis(range.clone()), 0.0..1.0)?;
        pixels = chart.plotting_area().get_pixel_range().0;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .label_style(text())
            .axis_desc_style(text())
            .x_desc("response time (logarithmic)")
            .y_desc("requests done within")
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&|x| format::seconds(*x))
            .y_label_formatter(&|y| format!("{:.0} %", y * 100.0))
            .draw()?;
        let inside = shares.iter().copied().filter(|(x, _)| range.contains(x) || *x == range.end);
        let inside: Vec<(f64, f64)> = inside.collect();
        chart.draw_series(LineSeries::new(inside.iter().copied(), LINE.stroke_width(2)))?;
        chart.draw_series(inside.iter().map(|point| Circle::new(*point, 3, LINE.filled())))?;
        for x in percentiles {
            chart.draw_series([PathElement::new([(*x, 0.0), (*x, 1.0)], P99.stroke_width(1))])?;
        }
        Ok(())
    });
    Plot { svg: drawn, scale: Some(Scale { pixels, values: range, logarithmic: true }) }
}

fn text() -> TextStyle<'static> {
    ("sans-serif", TEXT).into_text_style(&(1, 1)).color(&INK)
}

/// A logarithmic axis of seconds with round values.
struct LogAxis(Range<f64>);

/// Round numbers of seconds that are far enough apart for a logarithmic axis.
const ROUND: [f64; 13] =
    [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0, 360_000.0];

impl Ranged for LogAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "a pixel")]
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value / self.0.start).ln() / (self.0.end / self.0.start).ln();
        (f64::from(limit.0) + share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let inside = |x: &f64| (self.0.start..=self.0.end).contains(x);
        let round: Vec<f64> = ROUND.into_iter().filter(inside).collect();
        match round.len() {
            0 | 1 => ROUND.into_iter().flat_map(|x| [x, 2.0 * x, 5.0 * x]).filter(inside).collect(),
            2..=5 => round,
            _ => round.into_iter().step_by(2).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
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
    let inside = text
        .find('>')
        .and_then(|at| text.get(at + 1..))
        .and_then(|rest| rest.trim_end().strip_suffix("</svg>"));
    match (drawn, inside) {
        (Ok(()), Some(inside)) => html! {
            svg class=(class) viewBox={ "0 0 " (size.0) " " (size.1) } role="img" aria-label=(label) {
                (PreEscaped(inside.replace('\n', "").replace(" opacity=\"1\"", "")))
            }
        },
        _ => html! {},
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
    fn a_plot_without_values_is_none() {
        assert_eq!(sparkline(&[None, Some(1.0)], "").into_string(), "");
        let plot = distribution(&[], &[], "");
        assert_eq!((plot.svg.into_string().as_str(), plot.scale.is_none()), ("", true));
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
            let ticks: Vec<String> = LogAxis(range).key_points(4).into_iter().map(format::seconds).collect();
            assert_eq!(ticks, expected);
            assert!(ticks.iter().all(|tick| plot.contains(tick)), "{plot}");
        }
    }

    #[test]
    fn text_is_nowhere_smaller_than_12_pixels() {
        // A phone of 400 pixels leaves a figure 345.
        assert!(f64::from(TEXT) / EM * 345.0 / f64::from(PLOT.0) >= 12.0);
    }

    #[test]
    fn the_style_sheet_has_every_colour_of_the_plots() {
        for RGBColor(r, g, b) in [INK, GRID, LINE, P50, P90, P99] {
            let colour = format!("=\"#{r:02X}{g:02X}{b:02X}\"]");
            assert!(super::super::assets::STYLE.content.contains(&colour), "{colour}");
        }
    }
}
