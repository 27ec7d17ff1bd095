//! `pdstool openapi`: the service's interface as an OpenAPI 3.1 document.

use pds_interface::openapi;

use super::console::Console;
use super::error::ToolError;

/// Prints the document.
///
/// # Errors
/// If it cannot be written.
pub fn run(console: &mut Console) -> Result<(), ToolError> {
    Ok(console.print(&format!("{:#}", openapi::document()))?)
}
