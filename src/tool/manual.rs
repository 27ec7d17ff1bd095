//! Shell completions and man pages, made from the same definitions as the command line.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::app::flags::Flags;

use super::Cli;
use super::console::Console;
use super::error::ToolError;

/// `pdstool completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  pdstool completions bash > /etc/bash_completion.d/pdstool
  pdstool completions zsh --of pds-exporter > /usr/share/zsh/site-functions/_pds-exporter")]
pub struct Completions {
    /// The shell.
    shell: Shell,
    /// The program.
    #[arg(long, value_name = "PROGRAM", value_parser = ["pdstool", "pds-exporter"], default_value = "pdstool")]
    of: String,
}

/// `pdstool man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  pdstool man /usr/share/man/man1")]
pub struct Man {
    /// The folder; created if missing.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Completions {
    /// Prints them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn run(&self, console: &mut Console) -> Result<(), ToolError> {
        let mut command = if self.of == "pdstool" { Cli::command() } else { Flags::command() };
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, &self.of, &mut text);
        Ok(console.out.write_all(&text)?)
    }
}

impl Man {
    /// Writes one page for each program and command.
    ///
    /// # Errors
    /// If the folder or a page cannot be written.
    pub fn run(&self, console: &mut Console) -> Result<(), ToolError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ToolError::File { doing: "cannot write", path, source }
        };
        std::fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        for command in [Cli::command(), Flags::command()] {
            clap_mangen::generate_to(command, &self.folder).map_err(failed(&self.folder))?;
        }
        console.say(&format!("wrote the man pages to {}", self.folder.display()));
        Ok(())
    }
}
