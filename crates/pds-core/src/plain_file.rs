//! The one door to files: those that others write (configuration, tokens, certificates) and our own (state, journals).
//! A pipe or device in the place of a file is refused at once, and our own files are never reached through a link.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Bound for files without a tighter one: no configuration is larger.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Permission to read for users that are neither the owner nor in the group.
const OTHERS_READ: u32 = 0o004;

/// The mode of a file that only its owner can read.
pub const PRIVATE: u32 = 0o600;

/// Suffix of a new file's name, before a number.
pub const NEW: &str = ".new-";

/// The content of a file.
#[derive(Debug)]
pub struct PlainFile {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether every user of the machine may read it.
    pub readable_by_others: bool,
}

/// Reads a file of at most `max_bytes` on the current thread: it is small and local.
///
/// # Errors
/// If it cannot be opened or read, is larger, or is not a regular file. A pipe is refused without waiting for its
/// writer, even if it took the place of a file a moment ago.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<PlainFile> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    Ok(PlainFile { bytes: to_end(file, max_bytes)?, readable_by_others: metadata.mode() & OTHERS_READ != 0 })
}

fn to_end(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.take(max_bytes + 1).read_to_end(&mut bytes)? as u64 > max_bytes {
        return Err(io::Error::other(format!("larger than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// Opens a regular file for reading, without waiting.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    regular(File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

/// Opens a file of our own as `options` say, without waiting. A link of that name is not followed.
///
/// # Errors
/// Same as [`open`], and if `path` is a link.
pub fn open_own(path: &Path, options: &OpenOptions) -> io::Result<File> {
    match options.clone().custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path) {
        // A pipe that nobody reads.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Err(not_regular()),
        file => regular(file?),
    }
}

/// Creates a file of our own, or opens and empties the one that is there.
///
/// # Errors
/// Same as [`open_own`].
pub fn create(path: &Path) -> io::Result<File> {
    // Emptied only once it is known to be a regular file.
    let file = open_own(path, File::options().write(true).create(true).truncate(false))?;
    file.set_len(0)?;
    Ok(file)
}

/// Replaces the file at `path` by one that only its owner can read, whole or not at all. Until it is complete, it has a
/// [new name](new_path); a process that is killed meanwhile leaves it there.
///
/// # Errors
/// Same as [`open_own`], and if it cannot be written, synced or renamed; the file at `path` is as before.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = new_path(path);
    let mut file = open_own(&new, File::options().write(true).create_new(true).mode(PRIVATE))?;
    let mut write = || {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// `path` with `suffix` added to its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// A name beside `path` that nobody can guess or has occupied.
pub fn new_path(path: &Path) -> PathBuf {
    beside(path, &format!("{NEW}{}", RandomState::new().hash_one(())))
}

/// Creates a file of our own, or opens the one that is there, to append to it.
///
/// # Errors
/// Same as [`open_own`].
pub fn append(path: &Path) -> io::Result<File> {
    open_own(path, File::options().append(true).create(true))
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

/// Like [`read`], for a file that holds text. A pipe that a shell hands over, such as `<(...)`, is read to its end.
///
/// # Errors
/// Same as [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let is_piped =
        path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    let bytes = if is_piped { to_end(File::open(path)?, max_bytes)? } else { read(path, max_bytes)?.bytes };
    if is_piped && bytes.is_empty() {
        return Err(io::Error::other("it is empty; a pipe can be read only once"));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// A file counts as changed once it has been left alone for this long. A write in place leaves half a file for a moment,
/// which may be valid and mean something else; and two writes within one tick of the file system's clock look like one.
pub const SETTLED: Duration = Duration::from_secs(1);

/// The files that something was read from, each as it was then.
#[derive(Debug, Default)]
pub struct Sources(Vec<(PathBuf, Option<Stamp>)>);

/// Identity of a version of a file, without reading it: device, inode, length and time of the last change.
type Stamp = (u64, u64, u64, SystemTime);

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.len(), metadata.modified().ok()?))
}

impl Sources {
    /// Like [`read()`], and remembers the file, also if it cannot be read.
    ///
    /// # Errors
    /// Same as [`read()`].
    pub fn read(&mut self, path: &Path, max_bytes: u64) -> io::Result<PlainFile> {
        // The stamp first: a change in between is then seen as one.
        self.0.push((path.to_owned(), stamp(path)));
        read(path, max_bytes)
    }

    /// Whether a file differs from the one that was read, and all are settled.
    pub fn changed(&self, now: SystemTime) -> bool {
        let mut changed = false;
        for (path, known) in &self.0 {
            let stamp = stamp(path);
            // A time in the future is some clock's fault; the file counts as settled.
            let age = stamp.and_then(|(.., modified)| now.duration_since(modified).ok());
            if age.is_some_and(|age| age < SETTLED) {
                return false;
            }
            changed |= stamp != *known;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_read_with_what_others_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "secret").unwrap();
        for (mode, others) in [(0o600, false), (0o640, false), (0o644, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let file = read(&path, 6).unwrap();
            assert_eq!((&*file.bytes, file.readable_by_others), (&b"secret"[..], others), "{mode:o}");
        }
        assert!(read(&path, 5).unwrap_err().to_string().contains("larger than 5 bytes"));
    }

    #[test]
    fn anything_but_a_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            let error = read(path, 100).unwrap_err().to_string();
            assert_eq!(error, "not a regular file", "{}", path.display());
            assert!(create(path).is_err() && append(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_refused_if_that_is_too_far() {
        for (max_bytes, expected) in [(4, Ok("text")), (3, Err("larger than 3 bytes"))] {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(b"text").unwrap();
            drop(writer);
            let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
            let read = read_text(Path::new(&path), max_bytes).map_err(|error| error.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), expected);
        }
    }

    #[test]
    fn a_link_in_the_place_of_an_own_file_leaves_its_target_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(create(&link).is_err() && append(&link).is_err());
        assert_eq!(fs::read(&link).unwrap(), b"kept", "and it is read through the link");
        create(&target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
    }

    #[test]
    fn a_replacement_takes_the_name_of_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let others = ["file.new", "file.new-1"].map(|name| folder.path().join(name));
        others.iter().for_each(|other| fs::write(other, "kept").unwrap());
        let path = folder.path().join("file");
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(others.iter().all(|other| fs::read(other).is_ok_and(|bytes| bytes == b"kept")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left behind");
    }

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
        assert_eq!(sources.read(&path, 100).unwrap().bytes, b"a");
        assert!(!sources.changed(now));
        written("b", now);
        assert!(!sources.changed(now) && sources.changed(now + SETTLED));
        written("c", now - SETTLED * 3);
        assert!(!sources.changed(now), "the same length and time: cannot be told from the first");
        written("longer", now - SETTLED * 3);
        assert!(sources.changed(now));
        fs::remove_file(&path).unwrap();
        assert!(sources.changed(now));
        assert!(Sources::default().read(&path, 100).is_err());
    }
}
