//! Completion in the shell, with project and app ids from the configuration.
//!
//! The script of `pdstool completions` runs `pdstool` on every Tab, with `VARIABLE` set to the name of the shell and
//! the command line behind `--`. The ids come from the configuration that the command itself would load. A
//! configuration that cannot be loaded silently offers no ids: an error message would garble the line being typed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;

use pds_config::Config;
use pds_config::flags::DEFAULT_CONFIG;
use pds_core::printable::plain;

use super::Cli;
use super::console::Console;
use super::service::{self, Environment};

/// The environment variable that requests completions; its value is the name of the shell.
const VARIABLE: &str = "PDSTOOL_COMPLETE";

/// The name by which the scripts call the tool.
const PROGRAM: &str = "pdstool";

/// End of a script that zsh loads on demand: the first Tab runs the whole script, which must complete it.
const ZSH_FIRST_TAB: &str = r#"if [ "$funcstack[1]" = "_pdstool" ]; then
    _clap_dynamic_completer_pdstool "$@"
fi"#;

/// Writes the script with which the shell requests completions from the tool.
///
/// # Errors
/// If it cannot be written.
pub fn script(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let shells = Shells::builtins();
    if let Some(completer) = shells.completer(&shell.to_string()) {
        completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, out)?;
    }
    if shell == Shell::Zsh { writeln!(out, "\n{ZSH_FIRST_TAB}") } else { Ok(()) }
}

/// Prints the completions that a shell requests. Returns whether one did.
pub fn answer(console: &mut Console, environment: &Environment, arguments: &[OsString]) -> bool {
    let Some((_, shell)) = environment.iter().find(|(name, _)| name == VARIABLE) else { return false };
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(shell) else { return false };
    let line: Vec<OsString> =
        arguments.iter().skip_while(|argument| *argument != "--").skip(1).cloned().collect();
    if !line.is_empty() {
        let words = line.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let ids = Arc::new(Ids { words, environment: environment.clone() });
        let mut command = with_ids(Cli::command(), &ids);
        // Without candidates nothing is printed, and a shell that has exited needs no reply.
        let _ = shell
            .write_complete(&mut command, line, Some(Path::new(".")), &mut console.out)
            .and_then(|()| console.out.flush());
    }
    true
}

/// `command` and all below it, with candidates for arguments that are ids.
fn with_ids(command: Command, ids: &Arc<Ids>) -> Command {
    let offer = |candidates: fn(&Ids) -> Vec<CompletionCandidate>| {
        let ids = Arc::clone(ids);
        ArgValueCandidates::new(move || candidates(&ids))
    };
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "project" => arg.add(offer(Ids::projects)),
        "app" | "apps" | "app_id" => arg.add(offer(Ids::apps)),
        "filter" => arg.add(offer(Ids::all)),
        _ => arg,
    });
    command.mut_subcommands(|command| with_ids(command, ids))
}

/// The ids of the configuration that the command line uses.
#[derive(Debug)]
struct Ids {
    words: Vec<String>,
    environment: Environment,
}

impl Ids {
    fn config(&self) -> Option<Config> {
        if self.value_of("--base-url").is_some() {
            return None;
        }
        let file = self.value_of("--config.file").unwrap_or(DEFAULT_CONFIG);
        service::load(Path::new(file), &self.environment).ok()
    }

    fn projects(&self) -> Vec<CompletionCandidate> {
        let config = self.config();
        let projects = config.iter().flat_map(|config| &config.projects);
        projects.filter_map(|project| candidate(&project.id, "project")).collect()
    }

    /// The apps, or only those of a project that the line names.
    fn apps(&self) -> Vec<CompletionCandidate> {
        let config = self.config();
        let named = self.value_of("--project").filter(|id| !id.is_empty());
        let projects = config.iter().flat_map(|config| &config.projects);
        projects
            .filter(|project| named.is_none_or(|named| *project.id == *named))
            .flat_map(|project| {
                let note = format!("app of {}", project.id);
                project.apps.iter().filter_map(move |app| candidate(&app.id, &note))
            })
            .collect()
    }

    fn all(&self) -> Vec<CompletionCandidate> {
        self.projects().into_iter().chain(self.apps()).collect()
    }

    /// The value of a flag: `--flag value` or `--flag=value`, which bash splits at the `=`.
    fn value_of(&self, flag: &str) -> Option<&str> {
        let mut words = self.words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word.strip_prefix(flag) {
                Some("") => return words.find(|word| *word != "="),
                Some(rest) if rest.starts_with('=') => return rest.get(1..),
                _ => {}
            }
        }
        None
    }
}

/// An id as a candidate, unless it would steer the terminal.
fn candidate(id: &str, help: &str) -> Option<CompletionCandidate> {
    (plain(id) == id).then(|| CompletionCandidate::new(id).help(Some(help.to_owned().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_however_the_shell_splits_them() {
        let value = |line: &str| {
            let ids = Ids { words: line.split(' ').map(str::to_owned).collect(), environment: Vec::new() };
            ids.value_of("--config.file").map(str::to_owned)
        };
        for line in ["pdstool apps --config.file a.toml", "--config.file=a.toml x", "--config.file = a.toml"]
        {
            assert_eq!(value(line).as_deref(), Some("a.toml"), "{line}");
        }
        for line in ["pdstool apps", "pdstool apps --config.files a.toml", "pdstool --config.file"] {
            assert_eq!(value(line), None, "{line}");
        }
    }
}
