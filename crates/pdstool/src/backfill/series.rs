//! Collects samples by series: they arrive step by step.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The text of a series moves to a file of its own at this size.
const SPILL: usize = 32 * 1024;

/// The lines of the series of one stream, each in the order they were put. Memory is bounded by the number of
/// series, not of samples.
#[derive(Debug)]
pub struct Gathered {
    folder: PathBuf,
    by_name: HashMap<(&'static str, String), usize>,
    /// In the order of their first sample.
    series: Vec<Series>,
}

#[derive(Debug)]
struct Series {
    family: &'static str,
    lines: Vec<u8>,
    spilled: Option<PathBuf>,
}

impl Gathered {
    /// Empty; what does not fit into memory goes to `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), by_name: HashMap::new(), series: Vec::new() }
    }

    /// Adds a line to the series `name` of a family.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn put(&mut self, family: &'static str, name: &str, line: &[u8]) -> io::Result<()> {
        let index = *self.by_name.entry((family, name.to_owned())).or_insert_with(|| {
            self.series.push(Series { family, lines: Vec::new(), spilled: None });
            self.series.len() - 1
        });
        let Some(series) = self.series.get_mut(index) else { return Ok(()) };
        series.lines.extend_from_slice(line);
        if series.lines.len() >= SPILL {
            // An interrupted run may have left a file of that name.
            let path = self.folder.join(format!("series-{index}"));
            let mut file = if series.spilled.is_some() { appending(&path)? } else { File::create(&path)? };
            file.write_all(&series.lines)?;
            series.lines.clear();
            series.spilled = Some(path);
        }
        Ok(())
    }

    /// How many series there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.series.len()
    }

    /// Appends each series, whole, to the file in the folder that has its family's name.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn append_to_families(self) -> io::Result<()> {
        for series in self.series {
            let mut file = appending(&self.folder.join(series.family))?;
            if let Some(path) = series.spilled {
                io::copy(&mut File::open(&path)?, &mut file)?;
                fs::remove_file(path)?;
            }
            file.write_all(&series.lines)?;
        }
        Ok(())
    }
}

fn appending(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_come_out_whole_whatever_their_length() {
        let folder = tempfile::tempdir().unwrap();
        let mut gathered = Gathered::new(folder.path());
        for step in 0..2000 {
            for name in ["a", "b"] {
                gathered.put("pds_a", name, format!("{name} of some length {step}\n").as_bytes()).unwrap();
            }
        }
        gathered.put("pds_b", "", b"short\n").unwrap();
        assert_eq!(gathered.count(), 3);
        gathered.append_to_families().unwrap();
        let text = fs::read_to_string(folder.path().join("pds_a")).unwrap();
        let expected: String = ["a", "b"]
            .iter()
            .flat_map(|name| (0..2000).map(move |step| format!("{name} of some length {step}\n")))
            .collect();
        assert_eq!(text, expected);
        assert_eq!(fs::read_to_string(folder.path().join("pds_b")).unwrap(), "short\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "what was spilled is gone");
    }
}
