//! `pdstool state`: the ledgers of a state file, the cursors in a Prometheus, and their differences.
//!
//! - `read`: reads ledgers from their sources.
//! - `view`: prints them.

pub(super) mod read;
mod view;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use pds_config::flags::DEFAULT_CONFIG;
use pds_core::units;
use pds_ledger::Key;

use super::console::Console;
use super::error::{Result, ToolError};
use super::options::OutputArg;
use super::service::{Environment, load};
use read::{file, prometheus, rows};

/// `pdstool state`.
#[derive(Clone, Debug, Subcommand)]
pub enum StateCommand {
    /// Print the ledgers of a state file, or the cursors in Prometheus.
    #[command(after_help = "Examples:
  pdstool state show
  pdstool state show --from prometheus --filter ranker -o wide
  pdstool state show --state.path /backup/state.log -o csv > ledgers.csv")]
    Show(ShowArgs),
    /// Print where the cursors of state file and Prometheus differ, and from which one counting would continue.
    #[command(after_help = "Examples:
  pdstool state diff
  pdstool state diff --state.path /backup/state.log -o json")]
    Diff(LedgerArgs),
}

/// Selection of ledgers.
#[derive(Clone, Debug, Args)]
pub struct LedgerArgs {
    /// The daemon's configuration file: state file, Prometheus and apps.
    #[arg(long = "config.file", value_name = "FILE", default_value = DEFAULT_CONFIG)]
    config_file: PathBuf,

    /// State file; overrides state.path. Read only, even while an exporter uses it.
    #[arg(long = "state.path", value_name = "FILE")]
    state_path: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArg,

    /// Only apps whose project or id contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// `pdstool state show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    ledgers: LedgerArgs,

    /// Source [default: the state file if there is one, otherwise Prometheus].
    #[arg(long, value_name = "ORIGIN")]
    from: Option<Origin>,
}

/// The source of ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// A state file.
    File,
    /// A Prometheus.
    Prometheus,
}

/// Runs the command.
///
/// # Errors
/// If the configuration, the state file or Prometheus cannot be read.
pub async fn run(console: &mut Console, environment: &Environment, command: &StateCommand) -> Result<()> {
    match command {
        StateCommand::Show(args) => show(console, environment, args).await,
        StateCommand::Diff(args) => diff(console, environment, args).await,
    }
}

async fn show(console: &mut Console, environment: &Environment, args: &ShowArgs) -> Result<()> {
    let LedgerArgs { config_file, state_path, output, .. } = &args.ledgers;
    let mut rows = match (args.from, state_path) {
        // A file alone needs no configuration.
        (None | Some(Origin::File), Some(path)) => rows(file(path).await?, Vec::new()),
        (from, _) => {
            let config = load(config_file, environment)?;
            match (from, &config.state.path) {
                (None | Some(Origin::File), Some(path)) => rows(file(path).await?, Vec::new()),
                (Some(Origin::File), None) => return Err(no_file()),
                (None, None) if config.state.prometheus.is_none() => {
                    let neither =
                        "no source: state.path and state.prometheus_url are empty; use --state.path";
                    return Err(ToolError::Usage(neither.to_owned()));
                }
                _ => rows(Vec::new(), prometheus(&config).await?),
            }
        }
    };
    rows.retain(|row| args.ledgers.wants(&row.key));
    Ok(view::print(console, output.format, view::LEDGERS, &rows, "No ledger matches.")?)
}

async fn diff(console: &mut Console, environment: &Environment, args: &LedgerArgs) -> Result<()> {
    let config = load(&args.config_file, environment)?;
    let path = args.state_path.as_ref().or(config.state.path.as_ref()).ok_or_else(no_file)?;
    let mut rows = rows(file(path).await?, prometheus(&config).await?);
    rows.retain(|row| args.wants(&row.key));
    let all = rows.len();
    rows.retain(|row| row.file.as_ref().map(|ledger| ledger.until) != row.prometheus);
    view::print(console, args.output.format, view::DIFFERENCES, &rows, "No difference.")?;
    if args.output.format.is_for_people() && all > rows.len() {
        let same = units::plural(all - rows.len(), "counter is", "counters are");
        console.print(&format!("{same} the same."))?;
    }
    Ok(())
}

fn no_file() -> ToolError {
    ToolError::Usage("no state file: state.path is empty; use --state.path".to_owned())
}

impl LedgerArgs {
    fn wants(&self, counter: &Key) -> bool {
        let text = self.filter.to_lowercase();
        let holds = |part: &str| part.to_lowercase().contains(&text);
        holds(&counter.owner.project) || holds(&counter.owner.app)
    }
}
