//! The output formats of commands that print data.

use clap::{Args, ValueEnum};

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
    #[must_use]
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
