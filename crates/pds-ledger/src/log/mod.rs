//! A map from bytes to bytes that survives a crash: a log of changes in one file.
//!
//! Keys and values are opaque; the caller has all of them in memory. A [`Log::commit`] adds one group of entries at the
//! end of the file and syncs it. When the log has outgrown the snapshot at its start, a new file with a snapshot of
//! everything replaces it.
//!
//! - `format`: the bytes, and how they are read.
//! - `folder`: the file system, and the locks.

pub(super) mod folder;
pub(super) mod format;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use super::error::StateError;

use folder::{Directory, Folder, LeadsTo, Storage as _};
use format::{Each, Group, Lengths, START, VERSION, head, mark, replay};

/// A key, and its value or `None` to remove it.
pub(super) type Entry = (Vec<u8>, Option<Vec<u8>>);

/// A log of up to this length is never replaced because of its size.
const MIN_LIMIT: u64 = 1 << 20;
/// The entries of a snapshot are divided into groups of about this size, so that an error can state where the damage
/// is.
const SNAPSHOT_GROUP: u64 = 1 << 18;

/// The maximum length of a log with a snapshot of this length. Three bytes added to the log cost two in the next
/// snapshot.
fn limit(snapshot: u64) -> u64 {
    (snapshot / 2 * 5).max(MIN_LIMIT)
}

/// An open log.
#[derive(Debug)]
pub(super) struct Log<D: Directory = Folder> {
    path: PathBuf,
    directory: D,
    file: D::File,
    lengths: Lengths,
    /// The mark to write next.
    mark: usize,
    /// The length at which the file is replaced by a snapshot.
    limit: u64,
    /// Whether the file cannot be relied on and must be replaced by a snapshot.
    doubtful: bool,
}

impl<D: Directory> Log<D> {
    /// Opens the log in `directory` and hands all entries to `each`. Truncates bytes that were never synced. `path` is
    /// for errors.
    ///
    /// # Errors
    /// If the file is damaged, of another kind or version, or cannot be read or written. It is left unchanged.
    pub(super) fn open(path: PathBuf, directory: D, each: Each<'_>) -> Result<Self, StateError> {
        let file = match directory.open() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Err(StateError::InUse(path)),
            file => file.map_err(StateError::io(&path))?,
        };
        let length = file.length().map_err(StateError::io(&path))?;
        let lengths = replay(&path, file.reader(), length, each)?;
        if lengths.whole < length {
            tracing::info!(path = %path.display(), bytes = length - lengths.whole,
                "removed the end of the state file, which a crash had left incomplete");
            file.set_length(lengths.whole).map_err(StateError::io(&path))?;
        }
        // A killed process may not have synced it.
        file.sync().map_err(StateError::io(&path))?;
        let limit = limit(lengths.snapshot);
        let mut log = Self { path, directory, file, lengths, mark: 0, limit, doubtful: false };
        log.note_length();
        Ok(log)
    }

    /// Creates a log with these entries in `directory`, replacing an existing one.
    ///
    /// # Errors
    /// If it cannot be written. An existing log stays.
    pub(super) fn create(
        path: PathBuf,
        directory: D,
        entries: impl Iterator<Item = Entry>,
    ) -> Result<Self, StateError> {
        let created = replace(&directory, entries).and_then(|new| directory.sync().map(|()| new));
        let (file, lengths) = created.map_err(StateError::io(&path))?;
        Ok(Self { path, directory, file, lengths, mark: 0, limit: limit(lengths.snapshot), doubtful: false })
    }

    /// Writes the entries, and syncs them before it returns. If the file must be replaced, calls `all` for every
    /// earlier entry; neither is then in memory as a whole.
    ///
    /// # Errors
    /// If they could not be written; none of them counts as written.
    pub(super) fn commit<E, A>(
        &mut self,
        entries: impl Fn() -> E,
        all: impl FnOnce() -> A,
    ) -> Result<(), StateError>
    where
        E: IntoIterator<Item = Entry>,
        A: IntoIterator<Item = Entry>,
    {
        self.find()?;
        let room = self.limit.saturating_sub(self.lengths.whole);
        let (mut group, fits) = Group::within(room, entries());
        if group.is_empty() && !self.doubtful {
            return Ok(());
        }
        if self.doubtful || !fits {
            drop(group);
            let replaced = self.snapshot(all().into_iter().chain(entries()));
            match replaced.map_err(StateError::io(&self.path)) {
                Err(error) if !self.doubtful => {
                    // There may be room for these entries, but not for a snapshot.
                    tracing::warn!(
                        error = pds_core::error_chain::with_sources(&error),
                        "the state file cannot be rewritten, so it grows"
                    );
                    self.limit += self.limit / 4;
                }
                other => return other,
            }
            (group, _) = Group::within(u64::MAX, entries());
        }
        self.append(&mut group).map_err(StateError::io(&self.path))
    }

    /// Checks that the file is still the one at its path.
    fn find(&mut self) -> Result<(), StateError> {
        let found = self.directory.leads_to(&self.file, self.lengths.whole);
        match found.map_err(StateError::io(&self.path))? {
            LeadsTo::Same => {}
            LeadsTo::Other => return Err(StateError::Replaced(self.path.clone())),
            found => {
                if !self.doubtful {
                    tracing::warn!(path = %self.path.display(), truncated = found == LeadsTo::Shortened,
                        "the state file was removed or shortened while it was in use; writing it again in full");
                }
                self.doubtful = true;
            }
        }
        Ok(())
    }

    fn append(&mut self, group: &mut Group) -> io::Result<()> {
        let end = self.lengths.whole;
        if let Err(error) = self.file.write_at(group.at(end)?, end) {
            self.doubtful = self.file.set_length(end).is_err();
            return Err(error);
        }
        // After a failed sync, the kernel may have dropped the writes.
        self.doubtful = true;
        self.file.sync()?;
        self.doubtful = false;
        self.lengths.whole += group.len();
        self.note_length();
        Ok(())
    }

    /// Writes the length of the file into a mark. Nothing waits until this is on disk.
    fn note_length(&mut self) {
        let (place, bytes) = mark(self.mark, self.lengths);
        self.mark += 1;
        self.doubtful = self.file.write_at(&bytes, place).is_err();
    }

    /// Replaces the file by a new file with these entries; the last entry of a key counts.
    fn snapshot(&mut self, entries: impl Iterator<Item = Entry>) -> io::Result<()> {
        let (file, lengths) = replace(&self.directory, entries)?;
        (self.file, self.lengths, self.limit) = (file, lengths, limit(lengths.snapshot));
        // Until the directory is synced, a crash of the machine may bring the former file back.
        self.doubtful = true;
        self.directory.sync()?;
        self.doubtful = false;
        Ok(())
    }
}

/// Replaces the log by a new file with these entries. Does not sync the directory.
fn replace<D: Directory>(
    directory: &D,
    entries: impl Iterator<Item = Entry>,
) -> io::Result<(D::File, Lengths)> {
    let written = written(directory, entries).and_then(|new| directory.replace().map(|()| new));
    // If this fails too, the next start removes the file.
    written.inspect_err(|_| drop(directory.discard()))
}

/// Writes a new file with these entries, and syncs it.
fn written<D: Directory>(
    directory: &D,
    entries: impl Iterator<Item = Entry>,
) -> io::Result<(D::File, Lengths)> {
    let file = directory.create()?;
    file.set_length(START)?;
    file.write_at(&head(VERSION), 0)?;
    let (mut end, mut entries) = (START, entries.peekable());
    while entries.peek().is_some() {
        let (mut group, _) = Group::within(SNAPSHOT_GROUP, &mut entries);
        file.write_at(group.at(end)?, end)?;
        end += group.len();
    }
    let lengths = Lengths { snapshot: end, whole: end };
    for number in 0..2 {
        let (place, bytes) = mark(number, lengths);
        file.write_at(&bytes, place)?;
    }
    file.sync()?;
    Ok((file, lengths))
}
