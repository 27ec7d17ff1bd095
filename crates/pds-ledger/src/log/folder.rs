//! The file system below a log: its files, its directory and its locks.

use std::fmt::Debug;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use pds_core::plain_file::{self, NEW, beside, new_path};

use crate::error::StateError;

/// An open file. Writes count once they are synced.
pub(crate) trait Storage: Debug {
    /// Its bytes from the start; called once.
    fn reader(&self) -> impl Read;
    fn length(&self) -> io::Result<u64>;
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn set_length(&self, length: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

/// A directory with a log, and sometimes a new log to replace it.
pub(crate) trait Directory: Debug {
    type File: Storage;
    /// Opens the log; `ResourceBusy` if another process has it.
    fn open(&self) -> io::Result<Self::File>;
    /// Creates an empty new file beside it.
    fn create(&self) -> io::Result<Self::File>;
    /// Replaces the log by the new file.
    fn replace(&self) -> io::Result<()>;
    /// Removes the new file.
    fn discard(&self) -> io::Result<()>;
    /// Makes the names of files durable.
    fn sync(&self) -> io::Result<()>;
    /// The file at the name of the log, compared with `file` of this `length`.
    fn leads_to(&self, file: &Self::File, length: u64) -> io::Result<LeadsTo>;
}

/// Target of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeadsTo {
    /// The open file.
    Same,
    /// The open file, shortened by something else.
    Shortened,
    /// Nothing.
    Nothing,
    /// Another file.
    Other,
}

impl Storage for File {
    fn reader(&self) -> impl Read {
        self
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Suffix of the lock's name.
const LOCK: &str = ".lock";

/// The directory of a state file. No other process opens the file while this exists.
#[derive(Debug)]
pub(crate) struct Folder {
    /// The file, not a link to it.
    path: PathBuf,
    /// The new file, under a name that nobody can guess or has occupied.
    new_path: PathBuf,
    /// Held, never read. A separate file, because the state file is replaced.
    _lock: File,
}

impl Folder {
    /// Locks the state file at `path`, whether it exists or not.
    ///
    /// # Errors
    /// If another process has it, or its directory cannot be used.
    pub(crate) fn lock(named: &Path) -> Result<Self, StateError> {
        let path = place(named)?;
        let options = File::options().write(true).create(true).truncate(false).clone();
        let unwritable = unwritable(named);
        let lock = plain_file::open_own(&beside(&path, LOCK), &options).map_err(&unwritable)?;
        if !try_lock(&lock).map_err(|source| StateError::NoLocks(named.to_owned(), source))? {
            return Err(StateError::InUse(named.to_owned()));
        }
        let folder = Self { new_path: new_path(&path), path, _lock: lock };
        folder.discard_earlier().map_err(&unwritable)?;
        // This process must be able to create a new file.
        folder.create().and_then(|_| folder.discard()).map_err(&unwritable)?;
        Ok(folder)
    }

    /// Whether another process has locked the state file at `path`. Creates and removes a new file, like
    /// [`lock`](Self::lock), but no lock file, which would belong to this user.
    ///
    /// # Errors
    /// Same as [`lock`](Self::lock).
    pub(crate) fn probe(named: &Path) -> Result<bool, StateError> {
        let (path, unwritable) = (place(named)?, unwritable(named));
        let new_path = new_path(&path);
        plain_file::open_own(&new_path, File::options().write(true).create_new(true)).map_err(&unwritable)?;
        // A daemon that starts removes it, too.
        let _ = std::fs::remove_file(new_path);
        match plain_file::open_own(&beside(&path, LOCK), File::options().write(true)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            lock => {
                let is_free = try_lock(&lock.map_err(&unwritable)?);
                Ok(!is_free.map_err(|source| StateError::NoLocks(named.to_owned(), source))?)
            }
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Removes new files that earlier processes left; their names end with a number.
    fn discard_earlier(&self) -> io::Result<()> {
        let beginning = beside(&self.path, NEW);
        let beginning = beginning.file_name().unwrap_or_default().as_bytes();
        for entry in std::fs::read_dir(self.directory())? {
            let entry = entry?;
            let (name, is_number) = (entry.file_name(), |rest: &[u8]| rest.iter().all(u8::is_ascii_digit));
            if name.as_bytes().strip_prefix(beginning).is_some_and(|rest| !rest.is_empty() && is_number(rest))
            {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Directory for Folder {
    type File = File;

    fn open(&self) -> io::Result<File> {
        let file = plain_file::open_own(&self.path, File::options().read(true).write(true))?;
        // The file may have another name, and so another lock.
        if try_lock(&file)? { Ok(file) } else { Err(ErrorKind::ResourceBusy.into()) }
    }

    fn create(&self) -> io::Result<File> {
        // A file that could not be renamed may be there.
        let _ = self.discard();
        let file =
            plain_file::open_own(&self.new_path, File::options().read(true).write(true).create_new(true))?;
        file.try_lock()?;
        Ok(file)
    }

    fn replace(&self) -> io::Result<()> {
        std::fs::rename(&self.new_path, &self.path)
    }

    fn discard(&self) -> io::Result<()> {
        std::fs::remove_file(&self.new_path)
    }

    fn sync(&self) -> io::Result<()> {
        match File::open(self.directory())?.sync_all() {
            // Some file systems cannot sync directories, and need not.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            other => other,
        }
    }

    fn leads_to(&self, file: &File, length: u64) -> io::Result<LeadsTo> {
        let ours = file.metadata()?;
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(LeadsTo::Nothing),
            Err(error) => Err(error),
            Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => Ok(LeadsTo::Other),
            Ok(there) if there.len() < length => Ok(LeadsTo::Shortened),
            Ok(_) => Ok(LeadsTo::Same),
        }
    }
}

/// Whether the lock of `file` was free.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Target of the state file's path `named`.
fn place(named: &Path) -> Result<PathBuf, StateError> {
    let path = followed(named).map_err(StateError::io(named))?;
    if is_mounted(&path) { Err(StateError::Mounted(named.to_owned())) } else { Ok(path) }
}

/// Converts an error about files beside that at `named`.
fn unwritable(named: &Path) -> impl Fn(io::Error) -> StateError {
    move |source| match source.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            StateError::Directory(named.to_owned(), source)
        }
        _ => StateError::io(named)(source),
    }
}

/// Target of `path`, even if the file does not exist yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::read_link(path) {
        Ok(target) => followed(&folder.join(target)),
        Err(_) => Ok(std::fs::canonicalize(folder)?.join(path.file_name().unwrap_or_default())),
    }
}

/// Whether the file at `path` is a mount of its own, as containers mount single files: it cannot be replaced.
fn is_mounted(path: &Path) -> bool {
    let Ok(mounts) = std::fs::read("/proc/self/mountinfo") else { return false };
    let places =
        mounts.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let escaped = path.as_os_str().as_bytes().iter().flat_map(|byte| match byte {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
        byte => vec![*byte],
    });
    let escaped: Vec<u8> = escaped.collect();
    places.into_iter().any(|place| place == escaped)
}
