//! Why a state file cannot be used.

use std::path::PathBuf;

use super::record::FORMAT;

/// Why the state file cannot be used. The file is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process has it open.
    #[error("the state file {} is in use by another process; every daemon needs one of its own", .0.display())]
    InUse(PathBuf),
    /// Another file took its place while it was in use.
    #[error("the state file {} was replaced by another one while it was in use; restart to use the other one, or remove it", .0.display())]
    Replaced(PathBuf),
    /// Its file system has no locks.
    #[error("the state file {} cannot be locked, so a second daemon could use it; put it on a file system that has flock", path.display())]
    NoLocks {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its contents are not what was written.
    #[error("the state file {} is damaged ({what}); restore it, or move it away to count from zero", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It was written by another version.
    #[error("the state file {} is of format {found}, and this version reads formats 1 and {FORMAT}", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// It cannot be read or written.
    #[error("the state file {} cannot be used", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database refused.
    #[error("the state file {} cannot be used", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
}
