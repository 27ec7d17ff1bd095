//! Reading files that others write: configuration, tokens, certificates, keys.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Bound for files without a tighter one: no configuration is larger.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Permission to read for users that are neither the owner nor in the group.
const OTHERS_READ: u32 = 0o004;

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
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    if file.take(max_bytes + 1).read_to_end(&mut bytes)? as u64 > max_bytes {
        return Err(io::Error::other(format!("larger than {max_bytes} bytes")));
    }
    Ok(PlainFile { bytes, readable_by_others: metadata.mode() & OTHERS_READ != 0 })
}

/// As [`read`], for a file that holds text.
///
/// # Errors
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let file = read(path, max_bytes)?;
    String::from_utf8(file.bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

#[cfg(test)]
mod tests {
    use std::fs;
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
    fn what_is_not_a_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            let error = read(path, 100).unwrap_err().to_string();
            assert_eq!(error, "not a regular file", "{}", path.display());
        }
    }
}
