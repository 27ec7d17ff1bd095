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
    by_name: HashMap<(usize, String), usize>,
    /// In the order of their first sample.
    series: Vec<Series>,
}

#[derive(Debug)]
struct Series {
    family: usize,
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
    pub fn put(&mut self, family: usize, name: &str, line: &[u8]) -> io::Result<()> {
        let known = self.by_name.get(&(family, name.to_owned())).copied();
        let index = known.unwrap_or_else(|| {
            self.series.push(Series { family, lines: Vec::new(), spilled: None });
            self.by_name.insert((family, name.to_owned()), self.series.len() - 1);
            self.series.len() - 1
        });
        let Some(series) = self.series.get_mut(index) else { return Ok(()) };
        series.lines.extend_from_slice(line);
        if series.lines.len() >= SPILL {
            let path = self.folder.join(format!("series-{index}"));
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(&series.lines)?;
            series.lines.clear();
            series.spilled = Some(path);
        }
        Ok(())
    }

    /// How many series there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether it holds no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Appends each series, whole, to the file of its family.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn append_to(self, family_file: impl Fn(usize) -> PathBuf) -> io::Result<()> {
        for series in self.series {
            let mut file = OpenOptions::new().create(true).append(true).open(family_file(series.family))?;
            if let Some(path) = series.spilled {
                io::copy(&mut File::open(&path)?, &mut file)?;
                fs::remove_file(path)?;
            }
            file.write_all(&series.lines)?;
        }
        Ok(())
    }
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
                gathered.put(0, name, format!("{name} of some length {step}\n").as_bytes()).unwrap();
            }
        }
        gathered.put(1, "", b"short\n").unwrap();
        assert_eq!(gathered.len(), 3);
        gathered.append_to(|family| folder.path().join(format!("family-{family}"))).unwrap();
        let text = fs::read_to_string(folder.path().join("family-0")).unwrap();
        let expected: String = ["a", "b"]
            .iter()
            .flat_map(|name| (0..2000).map(move |step| format!("{name} of some length {step}\n")))
            .collect();
        assert_eq!(text, expected);
        assert_eq!(fs::read_to_string(folder.path().join("family-1")).unwrap(), "short\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "what was spilled is gone");
    }
}
