//! `pdstool state`: the ledgers behind the counters, of a state file, of a Prometheus, or where the two differ.
//!
//! - `read`: from where ledgers come.
//! - `view`: what is printed of them.

mod read;
mod view;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::app::flags::DEFAULT_CONFIG;
use crate::clock::Clock;
use crate::units;

use super::console::Console;
use super::error::ToolError;
use super::form::{Form, FormArg};
use super::page::{self, Block, Table};
use super::service::Environment;

use read::{Held, Origins};

/// What to do with ledgers.
#[derive(Clone, Debug, Subcommand)]
pub enum StateCommand {
    /// Print the ledgers of a state file, or those that a Prometheus holds.
    #[command(after_help = "Examples:
  pdstool state show
  pdstool state show --from prometheus --filter ranker -o wide
  pdstool state show --state.path /backup/state.redb -o csv > ledgers.csv")]
    Show(ShowArgs),
    /// Print where a state file and a Prometheus differ, and which of them the exporter would go on from.
    #[command(after_help = "Examples:
  pdstool state diff
  pdstool state diff --state.path /backup/state.redb -o json")]
    Diff(DiffArgs),
}

/// Which ledgers.
#[derive(Clone, Debug, Args)]
pub struct LedgerArgs {
    /// The daemon's configuration file, which names state file, Prometheus and apps.
    #[arg(long = "config.file", value_name = "FILE", default_value = DEFAULT_CONFIG)]
    config_file: PathBuf,

    /// The state file; overrides state.path. It is only read, also while an exporter uses it.
    #[arg(long = "state.path", value_name = "FILE")]
    state_path: Option<PathBuf>,

    #[command(flatten)]
    form: FormArg,

    /// Only apps whose project or id contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// What `pdstool state show` shows.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    ledgers: LedgerArgs,

    /// From where [default: the state file if there is one, otherwise Prometheus].
    #[arg(long, value_name = "ORIGIN")]
    from: Option<Origin>,
}

/// What `pdstool state diff` compares.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    ledgers: LedgerArgs,
}

/// From where ledgers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// A state file.
    File,
    /// A Prometheus, from the last scrapes.
    Prometheus,
}

/// Does it.
///
/// # Errors
/// If the configuration, the state file or Prometheus cannot be read.
pub async fn run(
    console: &mut Console,
    environment: &Environment,
    command: &StateCommand,
) -> Result<(), ToolError> {
    match command {
        StateCommand::Show(args) => show(console, environment, args).await,
        StateCommand::Diff(args) => diff(console, environment, &args.ledgers).await,
    }
}

async fn show(console: &mut Console, environment: &Environment, args: &ShowArgs) -> Result<(), ToolError> {
    let ledgers = &args.ledgers;
    let file = args.from != Some(Origin::Prometheus);
    let held = match &ledgers.state_path {
        // A file alone needs no configuration.
        Some(path) if file => read::file(path).await?,
        _ => {
            let origins = Origins::load(&ledgers.config_file, None, environment)?;
            match (&origins.file, args.from) {
                (Some(path), None | Some(Origin::File)) => read::file(path).await?,
                (None, Some(Origin::File)) => return Err(no_file()),
                _ => origins.prometheus(Clock::system().unix_seconds()).await?,
            }
        }
    };
    let held: Vec<Held> = held.into_iter().filter(|held| ledgers.wants(held)).collect();
    match ledgers.form.output {
        Form::Json => Ok(page::print_json(console, &view::ledgers_json(&held))?),
        form => print(console, form, view::ledgers(&held, form != Form::Table)),
    }
}

async fn diff(console: &mut Console, environment: &Environment, args: &LedgerArgs) -> Result<(), ToolError> {
    let origins = Origins::load(&args.config_file, args.state_path.as_deref(), environment)?;
    let Some(path) = &origins.file else { return Err(no_file()) };
    let file = read::file(path).await?;
    let prometheus = origins.prometheus(Clock::system().unix_seconds()).await?;
    let mut pairs = read::pairs(file, prometheus);
    pairs.retain(|pair| pair.held().is_some_and(|held| args.wants(held)));
    let all = pairs.len();
    pairs.retain(|pair| !pair.is_same());
    match args.form.output {
        Form::Json => page::print_json(console, &view::pairs_json(&pairs))?,
        form => print(console, form, view::pairs(&pairs, form != Form::Table))?,
    }
    if matches!(args.form.output, Form::Table | Form::Wide) && all > pairs.len() {
        console.print(&format!(
            "{} the same.",
            units::counted(all - pairs.len(), "counter is", "counters are")
        ))?;
    }
    Ok(())
}

fn no_file() -> ToolError {
    ToolError::Usage("there is no state file: state.path is empty; say --state.path".to_owned())
}

fn print(console: &mut Console, form: Form, table: Table) -> Result<(), ToolError> {
    match form {
        Form::Csv => page::print_csv(console, &table)?,
        _ => page::print(console, &[Block::Table(table)])?,
    }
    Ok(())
}

impl LedgerArgs {
    fn wants(&self, held: &Held) -> bool {
        let text = self.filter.to_lowercase();
        let holds = |part: &str| part.to_lowercase().contains(&text);
        holds(&held.key.owner.project) || holds(&held.key.owner.app)
    }
}
