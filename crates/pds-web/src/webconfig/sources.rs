//! The files a configuration was read from, and whether they have changed since.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::WebConfigError;
use pds_core::plain_file::{self, PlainFile};

/// A file counts as changed once it has been left alone for this long. A write in place leaves half a file for a moment, and
/// half a web configuration may be a valid one that asks for less; and two writes within one tick of the file system's
/// clock look like one.
pub(super) const SETTLED: Duration = Duration::from_secs(1);

/// No configuration, certificate chain or bundle of CAs is larger.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The files read, in order, each as it was then.
#[derive(Debug, Default)]
pub(super) struct Sources(Vec<(PathBuf, Option<Stamp>)>);

/// What tells two versions of a file apart without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: SystemTime,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata: Metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: metadata.modified().ok()?,
        })
    }

    /// A time in the future is some clock's fault; the file counts as settled.
    fn settled(&self, now: SystemTime) -> bool {
        now.duration_since(self.modified).map_or(true, |age| age >= SETTLED)
    }
}

impl Sources {
    /// Reads a file and remembers it, also if it cannot be read.
    pub(super) fn read(&mut self, what: &'static str, path: &Path) -> Result<PlainFile, WebConfigError> {
        // The stamp first: a change in between is then seen as one.
        self.0.push((path.to_owned(), Stamp::of(path)));
        plain_file::read(path, MAX_FILE_BYTES).map_err(|source| WebConfigError::Read {
            what,
            path: path.to_owned(),
            source,
        })
    }

    /// Whether a file differs from the one that was read, and all are settled.
    pub(super) fn changed(&self, now: SystemTime) -> bool {
        let mut changed = false;
        for (path, known) in &self.0 {
            let stamp = Stamp::of(path);
            if stamp.is_some_and(|stamp| !stamp.settled(now)) {
                return false;
            }
            changed |= stamp != *known;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_changed_once_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.yml");
        let written = |text: &str, at: SystemTime| {
            fs::write(&path, text).unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        };
        let now = SystemTime::now();
        written("a", now - SETTLED * 3);
        let mut sources = Sources::default();
        assert_eq!(sources.read("the file", &path).unwrap().bytes, b"a");
        assert!(!sources.changed(now));
        written("b", now);
        assert!(!sources.changed(now) && sources.changed(now + SETTLED));
        written("c", now - SETTLED * 3);
        assert!(!sources.changed(now), "the same length and time: cannot be told from the first");
        written("longer", now - SETTLED * 3);
        assert!(sources.changed(now));
        fs::remove_file(&path).unwrap();
        assert!(sources.changed(now));
        assert!(Sources::default().read("the file", &path).is_err());
    }
}
