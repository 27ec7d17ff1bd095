//! The replies so far: one file per stream, one line per step, in the order of time.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ToolError;
use pds_interface::{Tally, TimeRange};

/// The content of the replies of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The end of the step, Unix seconds.
    pub end: i64,
    /// The tally: total, share within each threshold, and the range that the service states.
    pub total: Option<u64>,
    /// (threshold in seconds, share)
    pub shares: Vec<(f64, f64)>,
    /// Start and end, if the service states them.
    pub answered: Option<(i64, i64)>,
    /// The gauges: (index of the call's family, labels beyond the target's own, value).
    pub gauges: Vec<(usize, String, f64)>,
    /// The datapoints of a call with a series that begin in their range: Unix seconds, values, and the range's end.
    #[serde(default)]
    pub points: Vec<(f64, [Option<f64>; 3], i64)>,
}

impl Record {
    /// The tally of a reply.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let range = self.answered.map(|(start, end)| TimeRange { start, end });
        Tally { total: self.total, shares: self.shares.clone(), range }
    }
}

/// The journal of one stream.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// The journal in the file at `path`, which may not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The end of its last step.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    pub fn until(&self) -> Result<Option<i64>, ToolError> {
        let mut last = None;
        self.read(|record| {
            last = Some(record.end);
            Ok(())
        })?;
        Ok(last)
    }

    /// Calls `each` with every record, in the order of time. A line that a crash cut short is ignored.
    ///
    /// # Errors
    /// If it exists and cannot be read, or the first error of `each`.
    pub fn read(&self, mut each: impl FnMut(Record) -> Result<(), ToolError>) -> Result<(), ToolError> {
        self.whole_lines(|_, line| each(line)).map(|_| ())
    }

    /// Reads the complete lines; returns where they end.
    fn whole_lines(
        &self,
        mut each: impl FnMut(u64, Record) -> Result<(), ToolError>,
    ) -> Result<u64, ToolError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(failed("cannot read", &self.path)(error)),
        };
        let mut lines = BufReader::new(file);
        let (mut line, mut end) = (Vec::new(), 0);
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line).map_err(failed("cannot read", &self.path))?;
            match serde_json::from_slice(&line) {
                Ok(record) if line.ends_with(b"\n") => {
                    end += read as u64;
                    each(end, record)?;
                }
                _ => return Ok(end),
            }
        }
    }

    /// Opens it for further records, after the last whole one.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn append(&self) -> Result<Appender, ToolError> {
        let end = self.whole_lines(|_, _| Ok(()))?;
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path);
        let mut file = opened.map_err(failed("cannot write", &self.path))?;
        let placed = file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0)));
        placed.map_err(failed("cannot write", &self.path))?;
        Ok(Appender { file, path: self.path.clone() })
    }
}

/// A journal open for further records.
#[derive(Debug)]
pub struct Appender {
    file: File,
    path: PathBuf,
}

impl Appender {
    /// Appends a record. The kernel has it then, so it survives the end of this process.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, record: &Record) -> Result<(), ToolError> {
        let mut line = serde_json::to_vec(record).unwrap_or_default();
        line.push(b'\n');
        self.file.write_all(&line).map_err(failed("cannot write", &self.path))
    }
}

/// The error of doing something with a file.
pub(super) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ToolError {
    let path = path.to_owned();
    move |source| ToolError::File { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(end: i64) -> Record {
        Record {
            end,
            total: Some(3),
            shares: vec![(0.1, 0.5), (1.0, 0.123_456_789_012_345_68)],
            answered: Some((end - 60, end)),
            gauges: vec![(0, "window=\"5m\"".to_owned(), 0.1 + 0.2)],
            points: vec![(60.0, [Some(0.1), None, Some(2.0)], 120)],
        }
    }

    #[test]
    fn a_journal_continues_after_its_last_complete_line() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path().join("0.jsonl"));
        assert_eq!(journal.until().unwrap(), None);
        let mut appender = journal.append().unwrap();
        appender.add(&record(60)).unwrap();
        appender.add(&record(120)).unwrap();
        appender.file.write_all(b"{\"end\":180,\"total\"").unwrap();
        assert_eq!(journal.until().unwrap(), Some(120));
        journal.append().unwrap().add(&record(180)).unwrap();
        let mut all = Vec::new();
        journal
            .read(|record| {
                all.push(record);
                Ok(())
            })
            .unwrap();
        assert_eq!(all, [record(60), record(120), record(180)]);
    }
}
