//! `pdstool state convert`: a state file of version 0.1 or 0.2 becomes one of this version.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use pds_ledger::{StateError, state};

use super::database;

/// What became of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Converted {
    /// It is of this version.
    NotNeeded,
    /// There is none.
    Missing,
    /// It holds so many ledgers, and the former file is kept there.
    Kept(usize, PathBuf),
}

/// Converts the state file at `path`. If there is none, the database of the same name in whose place it comes.
///
/// # Errors
/// If the former file cannot be read or is in use, or the new one cannot be written. The former one stays then.
pub(super) async fn convert(path: &Path) -> Result<Converted, StateError> {
    let candidates = [path.to_owned(), state::database_of(path)];
    let Some(from) = candidates.into_iter().find(|path| path.try_exists().unwrap_or(true)) else {
        return Ok(Converted::Missing);
    };
    let mut file = File::open(&from).map_err(StateError::io(&from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(StateError::io(&from))?;
    if !bytes.starts_with(b"redb") {
        return Ok(Converted::NotNeeded);
    }
    // Version 0.2 locks the file itself.
    if file.try_lock().is_err() {
        return Err(StateError::InUse(from));
    }
    let read = tokio::task::spawn_blocking(move || database::read(bytes)).await;
    let contents = read
        .unwrap_or_else(|_| Err("it is not what the database writes".into()))
        .map_err(|what| StateError::io(&from)(io::Error::new(ErrorKind::InvalidData, what.to_string())))?;

    let kept = state::beside(&from, &format!(".format-{}", contents.format));
    let count = contents.ledgers.len();
    keep(&from, &kept).map_err(StateError::io(&kept))?;
    state::write(path, contents.ledgers).await?;
    if from != path {
        std::fs::remove_file(&from).map_err(StateError::io(&from))?;
    }
    // Whoever may convert may be another user than the daemon's.
    let former = file.metadata().map_err(StateError::io(&from))?;
    for path in [path, &state::beside(path, ".lock")] {
        let _ = chown(path, Some(former.uid()), Some(former.gid()));
        let _ = std::fs::set_permissions(path, former.permissions());
    }
    Ok(Converted::Kept(count, kept))
}

/// Gives the file at `from` the name `kept`, too, or makes a copy where files have one name only.
fn keep(from: &Path, kept: &Path) -> io::Result<()> {
    match std::fs::remove_file(kept) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if std::fs::hard_link(from, kept).is_err() {
        std::fs::copy(from, kept)?;
        File::open(kept)?.sync_all()?;
    }
    Ok(())
}
