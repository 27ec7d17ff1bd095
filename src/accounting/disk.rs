//! Storage backends of the database: the locked state file, or a copy of it in memory.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

/// A state file that this process has locked. The lock lasts until the last clone is gone, even if the database in
/// it is opened and closed meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Disk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: File,
    /// Its length as set by the database.
    length: AtomicU64,
    /// Whether an fsync has failed. The kernel may have dropped the data, so the file cannot be relied on.
    unsynced: AtomicBool,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The open file.
    Same,
    /// The open file, shortened by something else.
    Truncated,
    /// Nothing.
    Nothing,
    /// Another file.
    Other,
}

impl Disk {
    /// Locks `file`. `None` if another process holds the lock.
    pub(super) fn lock(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => {
                let length = AtomicU64::new(file.metadata()?.len());
                Ok(Some(Self(Arc::new(Inner { file, length, unsynced: AtomicBool::new(false) }))))
            }
        }
    }

    /// All bytes of the file.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.0.file.metadata()?.len()).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.0.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Whether a sync has failed.
    pub(super) fn is_unsynced(&self) -> bool {
        self.0.unsynced.load(Ordering::Acquire)
    }

    /// What `path` leads to now.
    pub(super) fn found_at(&self, path: &Path) -> io::Result<Found> {
        let ours = self.0.file.metadata()?;
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(error),
            Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => Ok(Found::Other),
            Ok(there) if there.len() < self.0.length.load(Ordering::Acquire) => Ok(Found::Truncated),
            Ok(_) => Ok(Found::Same),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.file.set_len(len)?;
        self.0.length.store(len, Ordering::Release);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.file.sync_data().inspect_err(|_| self.0.unsynced.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.file.write_all_at(data, offset)
    }
}

/// A database file's contents in memory.
#[derive(Debug)]
pub(super) struct Copy(Mutex<Vec<u8>>);

impl Copy {
    /// A copy of a file with these contents.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(Mutex::new(bytes))
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn span(offset: u64, length: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    start..start.saturating_add(length)
}

impl StorageBackend for Copy {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes();
        out.copy_from_slice(bytes.get(span(offset, out.len())).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // A damaged header may ask for any size.
        const MAX: u64 = 1 << 32;
        if len > MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.bytes().resize(span(len, 0).start, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes();
        bytes.get_mut(span(offset, data.len())).ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        Ok(())
    }
}
