//! The form of what is printed.

use clap::{Args, ValueEnum};

/// The form of what is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people: cut to the terminal's width.
    #[default]
    Table,
    /// For people with a wide terminal: every column, nothing cut.
    Wide,
    /// For programs; what an exporter or the service sends, as it comes.
    Json,
    /// Comma-separated values with every column; numbers raw, in base units.
    Csv,
}

/// The option that chooses it.
#[derive(Clone, Copy, Debug, Args)]
pub struct FormArg {
    /// The form.
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    pub output: Form,
}
