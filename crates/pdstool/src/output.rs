//! The output formats of commands that print data, and files that commands write.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::error::{Result, ToolError};
use pds_core::plain_file;

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people: as wide as the terminal.
    #[default]
    Table,
    /// For people: all columns, nothing cut.
    Wide,
    /// For programs: JSON. Replies of the service and of an exporter are printed as received.
    Json,
    /// For programs: comma-separated values with all columns, numbers unrounded.
    Csv,
}

impl OutputFormat {
    /// Whether people read it.
    pub fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// The option `--output`.
#[derive(Clone, Copy, Debug, Args)]
pub struct OutputArg {
    /// Output format.
    #[arg(id = "output", short, long = "output", value_name = "FORMAT", default_value = "table")]
    pub format: OutputFormat,
}

/// Writes a file that may hold a token: only its owner can read it.
///
/// # Errors
/// If it cannot be written, also because it is there already and `over` is not set.
pub fn write_private(path: &Path, text: &str, over: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).create_new(!over).mode(0o600);
    let written = plain_file::open_own(path, &options).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(ToolError::file("cannot write", path))
}
