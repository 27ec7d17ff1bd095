//! `pdstool metrics`: every family that the exporter can show.

use clap::Args;

use pds_exporter::app;
use pds_exposition::markdown;

use super::console::Console;
use super::error::ToolError;
use super::output::OutputFormat;
use super::page::{self, Align, Block, Table};

/// `pdstool metrics`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  pdstool metrics -o table
  pdstool metrics > metrics.md")]
pub struct MetricsArgs {
    /// Output format [default: Markdown].
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// Prints the catalogue.
///
/// # Errors
/// If it cannot be written.
pub fn run(console: &mut Console, args: MetricsArgs) -> Result<(), ToolError> {
    let groups = app::catalogue();
    let Some(format) = args.output else {
        return Ok(console.out.write_all(markdown::render(&groups).as_bytes())?);
    };
    let families = groups.iter().flat_map(|group| &group.families);
    let row = |family: &pds_exposition::Family| {
        let cells = [family.name, family.kind.as_str(), &family.labels.join(" "), family.help];
        cells.map(str::to_owned).to_vec()
    };
    let columns = page::columns(["FAMILY", "TYPE", "LABELS", "MEANING"].map(|name| (name, Align::Left)));
    let table = Table { columns, rows: families.map(row).collect(), empty: "" };
    Ok(page::print_as(console, format, &[Block::Table(table)])?)
}
