//! Collects samples as lines by series: they arrive step by step.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Result, ToolError};
use pds_core::plain_file;
use pds_exposition::samples::Layouts;
use pds_exposition::{Family, Kind, Sink, encode};

/// Prefix of the files that hold the text of a series; a number follows.
pub const SPILLED: &str = "series-";

/// Size at which the text of a series moves to a file.
const SPILL: usize = 32 * 1024;

/// The samples of one stream as lines by series, each in the order of insertion. Memory is bounded by the number of
/// series, not of samples.
#[derive(Debug)]
pub struct Lines {
    folder: PathBuf,
    /// The labels of all series.
    target: String,
    by_name: HashMap<(&'static str, String), usize>,
    /// In the order of their first sample.
    pub series: Vec<Series>,
    /// The number of samples.
    pub samples: u64,
}

/// A series; the buckets of a histogram are one.
#[derive(Debug)]
pub struct Series {
    family: &'static str,
    lines: Vec<u8>,
    spilled: Option<PathBuf>,
}

impl Lines {
    /// Empty series of the target with these labels; `folder` takes text that does not fit into memory.
    pub fn new(folder: &Path, target: String) -> Self {
        let (by_name, series) = (HashMap::new(), Vec::new());
        Self { folder: folder.to_owned(), target, by_name, series, samples: 0 }
    }

    /// Adds the samples in a sink of these families.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn put_all(&mut self, families: &[Family], sink: Sink, second: i64) -> Result<()> {
        let samples = sink.finish(&Layouts::default());
        for (index, family) in families.iter().enumerate() {
            for (labels, value) in samples.of(index) {
                self.put(family, labels, value, second)?;
            }
        }
        Ok(())
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn put(&mut self, family: &Family, labels: &str, value: f64, second: i64) -> Result<()> {
        let mut line = Vec::new();
        encode::sample(&mut line, family, &self.target, labels, value);
        // Replaces the line end.
        line.pop();
        line.extend_from_slice(format!(" {second}\n").as_bytes());
        // The buckets of one point in time stand together.
        let series = if family.kind == Kind::Histogram { "" } else { labels };
        self.samples += 1;
        self.add(family.name, series, &line).map_err(ToolError::file("cannot write", &self.folder))
    }

    /// Adds a line to the series `name` of a family.
    fn add(&mut self, family: &'static str, name: &str, line: &[u8]) -> io::Result<()> {
        let index = *self.by_name.entry((family, name.to_owned())).or_insert_with(|| {
            self.series.push(Series { family, lines: Vec::new(), spilled: None });
            self.series.len() - 1
        });
        let Some(series) = self.series.get_mut(index) else { return Ok(()) };
        series.lines.extend_from_slice(line);
        if series.lines.len() >= SPILL {
            // An interrupted run may have left a file of that name.
            let path = self.folder.join(format!("{SPILLED}{index}"));
            let mut file = match series.spilled {
                Some(_) => plain_file::append(&path)?,
                None => plain_file::create(&path)?,
            };
            file.write_all(&series.lines)?;
            series.lines.clear();
            series.spilled = Some(path);
        }
        Ok(())
    }

    /// Appends each series to the file of its family in the folder.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn append_to_families(self) -> Result<()> {
        for series in self.series {
            series
                .append_to(&self.folder.join(series.family))
                .map_err(ToolError::file("cannot write", &self.folder))?;
        }
        Ok(())
    }
}

impl Series {
    fn append_to(&self, path: &Path) -> io::Result<()> {
        let mut file = plain_file::append(path)?;
        if let Some(path) = &self.spilled {
            io::copy(&mut plain_file::open(path)?, &mut file)?;
            fs::remove_file(path)?;
        }
        file.write_all(&self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_come_out_whole_whatever_their_length() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = Lines::new(folder.path(), String::new());
        for step in 0..2000 {
            for name in ["a", "b"] {
                lines.add("pds_a", name, format!("{name} of some length {step}\n").as_bytes()).unwrap();
            }
        }
        lines.add("pds_b", "", b"short\n").unwrap();
        assert_eq!(lines.series.len(), 3);
        lines.append_to_families().unwrap();
        let text = fs::read_to_string(folder.path().join("pds_a")).unwrap();
        let expected: String = ["a", "b"]
            .iter()
            .flat_map(|name| (0..2000).map(move |step| format!("{name} of some length {step}\n")))
            .collect();
        assert_eq!(text, expected);
        assert_eq!(fs::read_to_string(folder.path().join("pds_b")).unwrap(), "short\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "what was spilled is gone");
    }
    #[test]
    fn the_leftovers_of_an_interrupted_run_are_not_extended() {
        let folder = tempfile::tempdir().unwrap();
        let long = vec![b'x'; SPILL];
        Lines::new(folder.path(), String::new()).add("pds_a", "", &long).unwrap();
        let mut again = Lines::new(folder.path(), String::new());
        again.add("pds_a", "", &long).unwrap();
        again.append_to_families().unwrap();
        assert_eq!(fs::read(folder.path().join("pds_a")).unwrap().len(), SPILL);
    }
}
