//! Why a state file cannot be used, and why a reply is not added.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pds_interface::TimeRange;

/// Why the state file cannot be used. The file is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process has it open.
    #[error("the state file {} is in use by another process; each daemon needs its own", .0.display())]
    InUse(PathBuf),
    /// Another file replaced it while it was in use.
    #[error("the state file {} was replaced by another file while it was in use; restart to use that file, or remove it", .0.display())]
    Replaced(PathBuf),
    /// Its file system has no locks.
    #[error("the state file {} cannot be locked, so a second daemon could use it; put it on a file system that supports flock", .0.display())]
    NoLocks(PathBuf, #[source] io::Error),
    /// It is a mount point.
    #[error("the state file {} is itself a mount point, so it cannot be replaced; mount its directory instead", .0.display())]
    Mounted(PathBuf),
    /// No file can be created beside it.
    #[error("the directory of the state file {} is not writable, but the lock and new versions of the file belong there; make it writable for the daemon's user", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// Its contents are damaged: the position of the damaged part, and the problem.
    #[error("the state file {path} is damaged at byte {1} ({2}); restore it, or move it away to count from zero", path = .0.display())]
    Damaged(PathBuf, u64, &'static str),
    /// Another version wrote it, in this format.
    #[error("the state file {path} has format {1}, which this version does not support", path = .0.display())]
    OtherFormat(PathBuf, u64),
    /// It cannot be read or written.
    #[error("the state file {} cannot be used", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

impl StateError {
    /// Converts an error about the file at `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::NotFound
                if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.exists()) =>
            {
                Self::Io(path.to_owned(), io::Error::new(source.kind(), "its directory does not exist"))
            }
            _ => Self::Io(path.to_owned(), source),
        }
    }
}

/// A ledger could not be written and counts as not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state file could not be written")]
pub struct NotCommitted;

/// Why a reply is not added. The cursor stays, and the range is requested again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The range does not begin at the cursor.
    #[error("the range from {asked} does not begin where the last range ended, at {until}")]
    NotNext {
        /// Start of the range.
        asked: i64,
        /// The cursor.
        until: i64,
    },
    /// The reply has no total.
    #[error("the reply has no total")]
    NoTotal,
    /// The reply has a total, but no valid distribution of response times.
    #[error("the reply counts {0} requests but has no valid distribution of their response times")]
    NoDistribution(u64),
    /// The counter would exceed its limit.
    #[error("the reply counts {0}, more than the counter can hold")]
    TooMany(u64),
    /// The reply covers another range than requested.
    #[error("the reply covers {answered}, not {asked}{}", remedy(*.asked, *.answered))]
    OtherRange {
        /// The requested range.
        asked: TimeRange,
        /// The range in the reply.
        answered: TimeRange,
    },
    /// The range that begins there was older than `accounting.max_catch_up` when its reply arrived.
    #[error("the range from {0} was older than accounting.max_catch_up when its reply arrived")]
    TooOld(i64),
}

/// Remedy for a reply about `answered` instead of `asked`, if known.
fn remedy(asked: TimeRange, answered: TimeRange) -> String {
    match answered.rounding_of(asked) {
        Some(width) => {
            let width = humantime::format_duration(Duration::from_secs(width.unsigned_abs()));
            format!(": the service rounds ranges to {width}; set accounting.step to a multiple of that")
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_about_a_rounded_range_names_the_step_to_set() {
        let range = |start, end| TimeRange { start, end };
        let refused = |answered| Refusal::OtherRange { asked: range(60, 360), answered }.to_string();
        let remedy = ": the service rounds ranges to 5m; set accounting.step to a multiple of that";
        assert!(refused(range(0, 600)).ends_with(remedy));
        assert!(refused(range(0, 0)).ends_with(" UTC"), "{}", refused(range(0, 0)));
    }
}
