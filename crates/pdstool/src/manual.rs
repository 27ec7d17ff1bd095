//! Prints the metric families, the service's interface, scripts for shell completion, and man pages. All are generated
//! from the definitions that the programs use.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use pds_config::flags::Flags;
use pds_exposition::family::markdown;
use pds_interface::openapi;
use pds_telemetry::catalogue::catalogue;

use super::Cli;
use super::completion;
use super::console::Console;
use super::error::{Result, ToolError};

/// `pdstool metrics`: prints the catalogue as Markdown.
///
/// # Errors
/// If it cannot be written.
pub fn metrics(console: &mut Console) -> Result<()> {
    Ok(console.out.write_all(markdown(&catalogue()).as_bytes())?)
}

/// `pdstool openapi`: prints the interface as an OpenAPI 3.1 document.
///
/// # Errors
/// If it cannot be written.
pub fn openapi(console: &mut Console) -> Result<()> {
    Ok(console.print(&format!("{:#}", openapi::document()))?)
}

/// `pdstool completions`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The completions of pdstool offer the project and app ids of the configuration. They run pdstool, which must be \
on the PATH.

Examples:
  pdstool completions bash > /etc/bash_completion.d/pdstool
  pdstool completions zsh --of pds-exporter > /usr/share/zsh/site-functions/_pds-exporter"
)]
pub struct Completions {
    /// Shell to complete for.
    shell: Shell,
    /// Program to complete.
    #[arg(long, value_name = "PROGRAM", value_parser = ["pdstool", "pds-exporter"], default_value = "pdstool")]
    of: String,
}

/// `pdstool man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  pdstool man /usr/share/man/man1")]
pub struct Man {
    /// Folder to write to; created if missing.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Completions {
    /// Prints the script.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn run(&self, console: &mut Console) -> Result<()> {
        if self.of == "pdstool" {
            return Ok(completion::script(self.shell, &mut console.out)?);
        }
        // The writer must not fail.
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Flags::command(), &self.of, &mut text);
        Ok(console.out.write_all(&text)?)
    }
}

impl Man {
    /// Writes one page for each program and command.
    ///
    /// # Errors
    /// If the folder or a page cannot be written.
    pub fn run(&self, console: &mut Console) -> Result<()> {
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder))
            .and_then(|()| clap_mangen::generate_to(Flags::command(), &self.folder));
        written.map_err(ToolError::file("cannot write", &self.folder))?;
        console.say(&format!("wrote the man pages to {}", self.folder.display()));
        Ok(())
    }
}
