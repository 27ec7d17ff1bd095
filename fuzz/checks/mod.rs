//! Properties that hold for any input. The fuzz targets call these with inputs they make up; the ordinary tests replay
//! the corpus through the same functions.
#![allow(dead_code, unused_imports, reason = "each target uses one of them")]

mod counters;
mod exposition;
mod files;
mod network;
mod requests;
mod text;

use std::path::Path;

use pds_interface::TimeRange;

pub(crate) use counters::{cursors, ledger, state_file};
pub(crate) use exposition::{exposition, labels, replies};
pub(crate) use files::{configuration, journal, web_configuration};
pub(crate) use network::{frames, retry_after};
pub(crate) use requests::{authorization, negotiation, query};
pub(crate) use text::{redaction, terminal};

/// The range that replies are read for.
const RANGE: TimeRange = TimeRange { start: 1_767_225_600, end: 1_767_225_900 };

/// Runs `check` on every file in `corpus`.
pub(crate) fn replay(corpus: &Path, check: impl Fn(&[u8])) -> usize {
    let files = std::fs::read_dir(corpus).expect("the corpus is there");
    files.map(|file| check(&std::fs::read(file.expect("listed").path()).expect("a readable file"))).count()
}
