//! What the programs say of themselves: the metric families, the service's interface, scripts for shell completion, and
//! man pages. All of it is made from the definitions that the programs run by.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use pds_exporter::app::{self, flags::Flags};
use pds_exposition::{Family, family::markdown};
use pds_interface::openapi;

use super::Cli;
use super::completion;
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

impl MetricsArgs {
    /// Prints the catalogue.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn run(self, console: &mut Console) -> Result<(), ToolError> {
        let groups = app::catalogue();
        let Some(format) = self.output else {
            return Ok(console.out.write_all(markdown(&groups).as_bytes())?);
        };
        let row = |family: &Family| {
            let cells = [family.name, family.kind.as_str(), &family.labels.join(" "), family.help];
            cells.map(str::to_owned).to_vec()
        };
        let rows = groups.iter().flat_map(|group| &group.families).map(row).collect();
        let columns = page::columns(["FAMILY", "TYPE", "LABELS", "MEANING"].map(|name| (name, Align::Left)));
        Ok(page::print_as(console, format, &[Block::Table(Table { columns, rows, empty: "" })])?)
    }
}

/// `pdstool openapi`: prints the interface as an OpenAPI 3.1 document.
///
/// # Errors
/// If it cannot be written.
pub fn openapi(console: &mut Console) -> Result<(), ToolError> {
    Ok(console.print(&format!("{:#}", openapi::document()))?)
}

/// `pdstool completions`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The completions of pdstool offer the project and app ids of the configuration. They run pdstool, which has to be \
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
    pub fn run(&self, console: &mut Console) -> Result<(), ToolError> {
        let mut text = Vec::new();
        match completion::script(&self.shell.to_string()).filter(|_| self.of == "pdstool") {
            Some(script) => text = script?,
            None => clap_complete::generate(self.shell, &mut Flags::command(), &self.of, &mut text),
        }
        Ok(console.out.write_all(&text)?)
    }
}

impl Man {
    /// Writes one page for each program and command.
    ///
    /// # Errors
    /// If the folder or a page cannot be written.
    pub fn run(&self, console: &mut Console) -> Result<(), ToolError> {
        let failed = |source| ToolError::File { doing: "cannot write", path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        for command in [Cli::command(), Flags::command()] {
            clap_mangen::generate_to(command, &self.folder).map_err(failed)?;
        }
        console.say(&format!("wrote the man pages to {}", self.folder.display()));
        Ok(())
    }
}
