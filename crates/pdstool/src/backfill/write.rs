//! The journals as one OpenMetrics file: family by family, series by series, in the order of time.
//!
//! It has the series that the daemon would have shown: the gauges of its calls, every complete datapoint at its own
//! time, and the counters of its ledgers, from 0 at the start of the range.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{Result, ToolError};
use pds_core::plain_file;
use pds_exposition::Family;
use pds_exposition::encode::{self, Format};
use pds_interface::{Counted, Point, Resource, Subject, TimeRange, run_execution_time};
use pds_ledger::Ledger;

use super::journal::{self, Record};
use super::plan::{Stream, WHOLE, Work, families};
use super::series::Lines;

/// The written text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of samples.
    pub samples: u64,
    /// The number of their series; the buckets of a histogram count as one.
    pub series: u64,
    /// The most seconds without a usable count in one stream.
    pub max_unaccounted_seconds: u64,
    /// The number of streams with such seconds.
    pub streams_with_gaps: usize,
}

/// Writes the text from the journals to a file in their folder.
///
/// # Errors
/// If files cannot be read or written.
pub fn whole(work: &Work) -> Result<Written> {
    let families: Vec<Family> = families().collect();
    let mut written = Written::default();
    for family in &families {
        // Left by an interrupted run.
        let _ = fs::remove_file(work.folder.join(family.name));
    }
    for stream in work.plan.streams() {
        gather(work, &stream, &mut written)?;
    }
    let whole = work.folder.join(WHOLE);
    assemble(&whole, &families, &work.folder).map_err(ToolError::file("cannot write", &whole))?;
    Ok(written)
}

/// Moves the text to `path`, and removes the journals.
///
/// # Errors
/// If there is a file at `path`, or files cannot be moved or removed.
pub fn publish(work: &Work, path: &Path) -> Result<()> {
    let whole = work.folder.join(WHOLE);
    // Takes the name first, because a rename replaces a file that has appeared meanwhile.
    let named = File::create_new(path).and_then(|_| {
        // An empty file would stop the next run.
        fs::rename(&whole, path).inspect_err(|_| drop(fs::remove_file(path)))
    });
    named.map_err(ToolError::file("cannot write", path))?;
    work.remove()
}

/// Adds the gauges and counters of one journal to the files of the families.
fn gather(work: &Work, stream: &Stream<'_>, written: &mut Written) -> Result<()> {
    let (plan, journal, resource) = (&work.plan, work.journal(stream), stream.resource);
    let families = resource.polled().families();
    let subject = Subject { project: stream.project, app: stream.app, labels: &[], window: None };
    let counters = |ledger: &Ledger| pds_ledger::series(resource, ledger, false);
    let labels = plan.labels.iter().map(|(name, value)| (&**name, &**value));
    let target = encode::labels([("project", stream.project), ("app", stream.app)].into_iter().chain(labels));
    let mut lines = Lines::new(&work.folder, target);
    let mut ledger = Ledger::open(plan.start);
    let longest = plan.lengths().into_iter().max().unwrap_or(plan.step);
    let mut spacing = Spacing { times: Vec::new(), smallest: f64::INFINITY };
    journal::read(&journal, |record| {
        // Every bucket begins at 0 with the range: a series that appeared later would hide its first increase.
        if let Some(learnt) = ledger.learn(record.tally.shares.iter().map(|(threshold, _)| *threshold)) {
            ledger = learnt;
        }
        spacing.add(record.points.iter().map(|(point, _)| point.time), record.end - longest);
        Ok(())
    })?;
    let width = spacing.smallest;
    lines.put_all(pds_ledger::FAMILIES, counters(&ledger), plan.start)?;
    let mut newest = (plan.start as f64).next_down();
    journal::read(&journal, |record| {
        for point in complete(&record, width) {
            // Ranges overlap.
            if point.time > newest {
                newest = point.time;
                #[expect(clippy::cast_possible_truncation, reason = "Unix seconds")]
                let second = point.time as i64;
                lines.put_all(&families, run_execution_time::show(point, subject), second)?;
            }
        }
        for (family, labels, value) in &record.gauges {
            if let Some(family) = families.get(*family) {
                lines.put(family, labels, *value, record.end)?;
            }
        }
        ledger = counted(&ledger, &record, plan.step, resource);
        lines.put_all(pds_ledger::FAMILIES, counters(&ledger), record.end)
    })?;
    written.samples += lines.samples;
    written.series += lines.series.len() as u64;
    written.max_unaccounted_seconds = written.max_unaccounted_seconds.max(ledger.unaccounted);
    written.streams_with_gaps += usize::from(ledger.unaccounted > 0);
    lines.append_to_families()
}

/// The distances between datapoints.
struct Spacing {
    /// The last times, in order: a later datapoint may lie between them.
    times: Vec<f64>,
    /// The width of the buckets; infinite if the times do not show it.
    smallest: f64,
}

impl Spacing {
    /// Adds times. No later addition is before the second `settled`.
    fn add(&mut self, times: impl Iterator<Item = f64>, settled: i64) {
        self.times.extend(times);
        self.times.sort_by(f64::total_cmp);
        self.times.dedup();
        let distances = self.times.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
        self.smallest = distances.fold(self.smallest, f64::min);
        let before = self.times.partition_point(|time| *time < settled as f64);
        self.times.drain(..before.saturating_sub(1));
    }
}

/// The datapoints with a value whose buckets end within their requested range, sorted by time.
fn complete(record: &Record, width: f64) -> Vec<Point> {
    let whole = record.points.iter().filter(|(point, end)| point.time + width <= *end as f64);
    let mut points: Vec<Point> = whole.map(|(point, _)| *point).filter(Point::has_value).collect();
    points.sort_by(|one, other| one.time.total_cmp(&other.time));
    points
}

/// The ledger with a step added. A step that cannot be added is given up, because another request would not change it.
pub fn counted(ledger: &Ledger, record: &Record, step: i64, resource: Resource) -> Ledger {
    let range = TimeRange { start: record.end.saturating_sub(step), end: record.end };
    let distributed = resource.polled().counted == Some(Counted::Requests);
    let added = ledger.add(range, &record.tally, distributed, i64::MAX);
    added.unwrap_or_else(|_| {
        ledger.give_up(record.end, i64::MAX).map_or_else(|| ledger.clone(), |(next, _)| next)
    })
}

/// Concatenates the heads and families.
fn assemble(path: &Path, families: &[Family], folder: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(plain_file::create(path)?);
    for family in families {
        let Ok(mut lines) = plain_file::open(&folder.join(family.name)) else { continue };
        let mut head = Vec::new();
        encode::head(&mut head, Format::OpenMetrics, family);
        out.write_all(&head)?;
        io::copy(&mut lines, &mut out)?;
    }
    out.write_all(Format::OpenMetrics.trailer().as_bytes())?;
    out.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_distance_takes_no_more_memory_for_a_longer_range() {
        let mut spacing = Spacing { times: Vec::new(), smallest: f64::INFINITY };
        for end in (120..600_000).step_by(60) {
            // Ranges of two minutes. A single range has another datapoint, in a minute that it shares.
            let other = (end == 6000).then_some(5900);
            let times = [end - 120, end - 60].into_iter().chain(other);
            spacing.add(times.map(f64::from), i64::from(end) - 120);
        }
        assert_eq!(spacing.smallest, 20.0);
        assert!(spacing.times.len() < 5, "{:?}", spacing.times);
    }
}
