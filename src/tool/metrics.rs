//! `pdstool metrics`: every family that the exporter can show, as Markdown.

use crate::app;
use crate::catalogue::markdown;

use super::console::Console;
use super::error::ToolError;

/// Prints the catalogue.
///
/// # Errors
/// If it cannot be written.
pub fn run(console: &mut Console) -> Result<(), ToolError> {
    Ok(console.out.write_all(markdown::render(&app::catalogue()).as_bytes())?)
}
