//! The chart of docs/performance.md: what the exporter takes by the number of apps, beside a straight line.

use plotters::prelude::*;

/// The cost of an exporter of so many apps at one poll a minute, with counters and state.
pub(crate) struct Load {
    pub(crate) apps: f64,
    /// Percent of one core.
    pub(crate) cpu: f64,
    /// Megabytes.
    pub(crate) memory: f64,
}

/// Its place in the drawing.
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/growth.svg");
const INK: RGBColor = RGBColor(0x16, 0x20, 0x2C);
const GRID: RGBColor = RGBColor(0xD9, 0xDE, 0xE5);
const LINE: RGBColor = RGBColor(0x1D, 0x4E, 0xD8);

/// Draws processor time and memory over the number of apps, both axes logarithmic.
pub(crate) fn draw(loads: &[Load]) {
    let root = SVGBackend::new(CHART, (860, 320)).into_drawing_area();
    root.fill(&WHITE).unwrap();
    let (left, right) = root.split_horizontally(430);
    panel(&left, "processor, % of one core", loads, |of| of.cpu);
    panel(&right, "memory (RSS at peak), MB", loads, |of| of.memory);
    root.present().unwrap();
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    what: &str,
    loads: &[Load],
    at: impl Fn(&Load) -> f64,
) {
    let points: Vec<(f64, f64)> = loads.iter().map(|load| (load.apps, at(load))).collect();
    let least = points.iter().map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let range = (least / 2.0..most * 2.0).log_scale();
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .caption(what, ("sans-serif", 17).into_font().color(&INK))
        .build_cartesian_2d((5.0..20_000.0).log_scale(), range)
        .unwrap();
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(("sans-serif", 14).into_font().color(&INK))
        .x_desc("apps, each polled once a minute (logarithmic)")
        .y_label_formatter(&|y| format!("{y}"))
        .draw()
        .unwrap();
    // The straight line through 100 and 1,000 apps, continued.
    if let [_, (x1, y1), (x2, y2), ..] = points[..] {
        let line = |x: f64| (x, y1 + (y2 - y1) / (x2 - x1) * (x - x1));
        let steps = (0..=60).map(|step| line(10.0 * 10f64.powf(f64::from(step) / 20.0)));
        let visible = steps.filter(|(_, y)| *y > least / 2.0);
        chart.draw_series(DashedLineSeries::new(visible, 4, 5, INK.stroke_width(1))).unwrap();
    }
    chart.draw_series(points.iter().map(|point| Circle::new(*point, 5, LINE.filled()))).unwrap();
    let label = |(x, y): &(f64, f64)| {
        let text = if *y < 10.0 { format!("{y:.2}") } else { format!("{y:.0}") };
        Text::new(text, (*x, *y * 1.35), ("sans-serif", 14).into_font().color(&INK))
    };
    chart.draw_series(points.iter().map(label)).unwrap();
}
