//! The replies so far: one file per stream, one line per step, in the order of time.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, ToolError};
use pds_core::plain_file;
use pds_interface::{Point, Tally};

/// The content of the replies of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The end of the step, Unix seconds.
    pub end: i64,
    /// The tally of its reply.
    pub tally: Tally,
    /// The gauges: (index of the call's family, labels beyond the target's own, value).
    pub gauges: Vec<(usize, String, f64)>,
    /// For a call with a series, the datapoints that begin in their range, each with the range's end.
    pub points: Vec<(Point, i64)>,
    /// If the reply states no range: whether the service was found to honour ranges by then.
    pub is_honoured: Option<bool>,
}

/// Calls `each` with every record, in the order of time, and returns the end of the last whole line. Ignores a line
/// that a crash cut short.
///
/// # Errors
/// If it exists and cannot be read, or the first error of `each`.
pub fn read(path: &Path, mut each: impl FnMut(Record) -> Result<()>) -> Result<u64> {
    let file = match plain_file::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        file => file.map_err(ToolError::file("cannot read", path))?,
    };
    let mut lines = BufReader::new(file);
    let (mut line, mut end) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(ToolError::file("cannot read", path))?;
        match serde_json::from_slice(&line) {
            Ok(record) if line.ends_with(b"\n") => {
                end += read as u64;
                each(record)?;
            }
            _ => return Ok(end),
        }
    }
}

/// Opens the journal for further records, after the last whole record, and returns that record, with what all of them
/// know about ranges.
///
/// # Errors
/// If it cannot be opened.
pub fn open(path: &Path) -> Result<(File, Option<Record>)> {
    let mut last: Option<Record> = None;
    let end = read(path, |record| {
        let known = last.as_ref().and_then(|last| last.is_honoured);
        last = Some(Record { is_honoured: record.is_honoured.max(known), ..record });
        Ok(())
    })?;
    let opened = plain_file::append(path);
    let cut = opened.and_then(|file| file.set_len(end).map(|()| file));
    Ok((cut.map_err(ToolError::file("cannot write", path))?, last))
}

/// Appends a record to the open journal at `path`. The record survives the end of this process.
///
/// # Errors
/// If it cannot be written.
pub fn append(journal: &mut File, path: &Path, record: &Record) -> Result<()> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    journal.write_all(&line).map_err(ToolError::file("cannot write", path))
}

#[cfg(test)]
mod tests {
    use pds_interface::TimeRange;

    use super::*;

    fn record(end: i64) -> Record {
        Record {
            end,
            tally: Tally {
                total: Some(3),
                fraction: 0.25,
                shares: vec![(0.1, 0.5), (1.0, 0.123_456_789_012_345_68)],
                has_hidden_shares: true,
                range: Some(TimeRange { start: end - 60, end }),
            },
            gauges: vec![(0, "window=\"5m\"".to_owned(), 0.1 + 0.2)],
            points: vec![(Point { time: 60.0, values: [Some(0.1), None, Some(2.0)] }, 120)],
            is_honoured: Some(false),
        }
    }

    #[test]
    fn a_journal_continues_after_its_last_complete_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jsonl");
        let (mut journal, last) = open(&path).unwrap();
        assert_eq!(last, None);
        append(&mut journal, &path, &record(60)).unwrap();
        append(&mut journal, &path, &record(120)).unwrap();
        journal.write_all(b"{\"end\":180,\"total\"").unwrap();
        let (mut journal, last) = open(&path).unwrap();
        assert_eq!(last, Some(record(120)));
        append(&mut journal, &path, &record(180)).unwrap();
        let mut all = Vec::new();
        read(&path, |record| {
            all.push(record);
            Ok(())
        })
        .unwrap();
        assert_eq!(all, [record(60), record(120), record(180)]);
    }
}
