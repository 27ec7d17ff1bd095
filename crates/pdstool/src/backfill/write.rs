//! The journals as one OpenMetrics file: family by family, series by series, in the order of time.
//!
//! The series are those that the daemon would have shown: the gauges as its calls read them, every complete datapoint
//! at its own time, and the counters as its ledgers add them up, from 0 at the start of the range.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::ToolError;
use pds_exposition::encode::{self, Format};
use pds_exposition::samples::Layouts;
use pds_exposition::{Family, Kind};
use pds_interface::{Counted, Point, Resource, Subject, TimeRange};
use pds_ledger::Ledger;

use super::journal::Record;
use super::journal::failed;
use super::plan::{Stream, Work, metrics_calls};
use super::series::Gathered;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many samples.
    pub samples: u64,
    /// Of how many series; the buckets of a histogram are one.
    pub series: u64,
    /// Seconds without a usable count.
    pub unaccounted: u64,
}

/// Writes the file from the journals.
///
/// # Errors
/// If files cannot be read or written.
pub fn file(work: &Work) -> Result<Written, ToolError> {
    let families = families();
    let mut written = Written::default();
    let family_file = |index: usize| work.folder.join(format!("family-{index}"));
    for index in 0..families.len() {
        // Left by an interrupted run.
        let _ = fs::remove_file(family_file(index));
    }
    let mut first_family = 0;
    for stream in work.plan.streams() {
        // The counters' families stand behind those of all calls.
        let counters = families.len() - pds_ledger::FAMILIES.len();
        first_family = if stream.index % metrics_calls().len() == 0 { 0 } else { first_family };
        let places = Places { gauges: first_family, counters };
        first_family += stream.resource.polled().families().len();
        let gathered = gather(work, &stream, &families, places, &mut written)?;
        written.series += gathered.len() as u64;
        gathered.append_to(family_file).map_err(failed("cannot write", &work.folder))?;
    }
    let whole = work.folder.join("openmetrics");
    assemble(&whole, &families, family_file).map_err(failed("cannot write", &whole))?;
    fs::rename(&whole, &work.file).map_err(failed("cannot write", &work.file))?;
    Ok(written)
}

/// All families, in the order of the daemon's page.
fn families() -> Vec<Family> {
    let calls = metrics_calls();
    calls
        .iter()
        .flat_map(|resource| resource.polled().families())
        .chain(pds_ledger::FAMILIES.iter().copied())
        .collect()
}

/// Where a stream's families stand among all.
#[derive(Clone, Copy, Debug)]
struct Places {
    gauges: usize,
    counters: usize,
}

/// Reads one journal, gauges and counters, into lines by series.
fn gather(
    work: &Work,
    stream: &Stream<'_>,
    families: &[Family],
    places: Places,
    written: &mut Written,
) -> Result<Gathered, ToolError> {
    let journal = work.journal(stream);
    let resource = stream.resource;
    let mut lines = Lines::new(work, stream, families);
    let mut ledger = Ledger::open(work.plan.start);
    let mut times = Vec::new();
    journal.read(|record| {
        // Every bucket begins at 0 with the range: a series that appeared later would hide its first increase.
        if let Some(learnt) = ledger.learn(&record.tally()) {
            ledger = learnt;
        }
        times.extend(record.points.iter().map(|(time, ..)| *time));
        Ok(())
    })?;
    let width = smallest_distance(times);
    #[expect(clippy::cast_precision_loss, reason = "Unix seconds are far below 2^53")]
    let begin = work.plan.start as f64;
    lines.ledger(places.counters, resource, &ledger, work.plan.start)?;
    let mut shown = f64::NEG_INFINITY;
    journal.read(|record| {
        for point in complete(&record, width).filter(|point| point.time >= begin) {
            // Ranges overlap.
            if point.time > shown {
                shown = point.time;
                lines.point(places.gauges, stream, point)?;
            }
        }
        for (family, labels, value) in &record.gauges {
            lines.put(places.gauges + family, labels, *value, record.end)?;
        }
        ledger = counted(&ledger, &record, work.plan.step, resource);
        lines.ledger(places.counters, resource, &ledger, record.end)
    })?;
    written.samples += lines.count;
    written.unaccounted += ledger.unaccounted;
    Ok(lines.gathered)
}

/// The width of the buckets behind datapoints at `times`; endless where they do not tell.
fn smallest_distance(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.dedup();
    times.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?)).fold(f64::INFINITY, f64::min)
}

/// The datapoints with a value whose buckets end within the range they were asked for in, by rising time.
fn complete(record: &Record, width: f64) -> impl Iterator<Item = Point> + use<> {
    let mut points = record.points.clone();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    #[expect(clippy::cast_precision_loss, reason = "Unix seconds are far below 2^53")]
    let whole = points.into_iter().filter(move |(time, _, end)| time + width <= *end as f64);
    whole.map(|(time, values, _)| Point { time, values }).filter(Point::has_value)
}

/// The ledger with a step added. A step that cannot be added is given up: another request would not change it.
fn counted(ledger: &Ledger, record: &Record, step: i64, resource: Resource) -> Ledger {
    let range = TimeRange { start: record.end - step, end: record.end };
    let distributed = resource.polled().counted == Some(Counted::Requests);
    let added = ledger.add(range, &record.tally(), distributed, i64::MAX);
    added.unwrap_or_else(|_| ledger.give_up(record.end).map_or_else(|| ledger.clone(), |(next, _)| next))
}

/// Lines of one target.
struct Lines<'a> {
    folder: &'a Path,
    families: &'a [Family],
    target: String,
    layouts: Layouts,
    gathered: Gathered,
    line: Vec<u8>,
    count: u64,
}

impl<'a> Lines<'a> {
    fn new(work: &'a Work, stream: &Stream<'_>, families: &'a [Family]) -> Self {
        let mut target = String::new();
        encode::label(&mut target, "project", stream.project);
        encode::label(&mut target, "app", stream.app);
        for (name, value) in &work.plan.labels {
            encode::label(&mut target, name, value);
        }
        Self {
            folder: &work.folder,
            families,
            target,
            layouts: Layouts::default(),
            gathered: Gathered::new(&work.folder),
            line: Vec::new(),
            count: 0,
        }
    }

    fn ledger(
        &mut self,
        first: usize,
        resource: Resource,
        ledger: &Ledger,
        second: i64,
    ) -> Result<(), ToolError> {
        let samples = pds_ledger::series(resource, ledger, false).finish(&self.layouts);
        for index in 0..pds_ledger::FAMILIES.len() {
            for (labels, value) in samples.of(index) {
                self.put(first + index, labels, value, second)?;
            }
        }
        Ok(())
    }

    /// A datapoint of a series, at its own time.
    fn point(&mut self, first: usize, stream: &Stream<'_>, point: Point) -> Result<(), ToolError> {
        let subject = Subject { project: stream.project, app: stream.app, labels: &[], window: None };
        let polled = stream.resource.polled();
        let Some(sink) = polled.show_point(Some(point), subject) else { return Ok(()) };
        let samples = sink.finish(&self.layouts);
        #[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
        let second = point.time as i64;
        for index in 0..polled.families().len() {
            for (labels, value) in samples.of(index) {
                self.put(first + index, labels, value, second)?;
            }
        }
        Ok(())
    }

    /// Adds a sample.
    fn put(&mut self, index: usize, labels: &str, value: f64, second: i64) -> Result<(), ToolError> {
        let Some(family) = self.families.get(index) else { return Ok(()) };
        self.line.clear();
        encode::sample(&mut self.line, family, &self.target, labels, value);
        // In place of the line end.
        self.line.pop();
        self.line.extend_from_slice(format!(" {second}\n").as_bytes());
        // The buckets of one point in time stand together.
        let series = if family.kind == Kind::Histogram { "" } else { labels };
        self.count += 1;
        self.gathered.put(index, series, &self.line).map_err(failed("cannot write", self.folder))
    }
}

/// Concatenates the heads and families.
fn assemble(path: &Path, families: &[Family], family_file: impl Fn(usize) -> PathBuf) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for (index, family) in families.iter().enumerate() {
        let Ok(mut lines) = File::open(family_file(index)) else { continue };
        let mut head = Vec::new();
        encode::head(&mut head, Format::OpenMetrics, family);
        out.write_all(&head)?;
        io::copy(&mut lines, &mut out)?;
    }
    out.write_all(Format::OpenMetrics.trailer().as_bytes())?;
    out.into_inner()?.sync_all()
}
