//! `pdstool`, the operator's tool: all calls of the interface, checks, history, and views of a running exporter.
//!
//! A command takes the console and the environment as arguments and returns its error, which this module turns into a
//! sentence on standard error and an exit code.
//!
//! - [`call`]: all calls of the interface.
//! - [`init`]: a first configuration.
//! - [`check`]: configuration and tokens.
//! - [`doctor`]: checks of everything between configuration and service.
//! - [`report`]: findings of checks.
//! - [`backfill`]: history for Prometheus.
//! - [`reconcile`]: compares a day at the service with Prometheus.
//! - [`status`](mod@status): running exporters' verdicts; [`apps`](mod@apps): their apps.
//! - [`state`]: the ledgers of a state file or a Prometheus, or their differences.
//! - [`simulate`]: the service's simulator as a server.
//! - [`manual`]: the catalogue of families, the interface, completion scripts and man pages; [`completion`]: replies to
//!   the scripts.
//! - [`service`]: how commands reach the service; [`exporter`]: how they reach a running exporter; [`fleet`]: the
//!   statuses of several.
//! - [`console`], [`output`], [`table`]: output; [`options`]: shared options.
//! - [`error`]: why a command failed, and its exit code.

pub mod apps;
pub mod backfill;
pub mod call;
pub mod check;
pub mod completion;
pub mod console;
pub mod doctor;
pub mod error;
pub mod exporter;
pub mod fleet;
pub mod init;
pub mod manual;
pub mod options;
pub mod output;
pub mod reconcile;
pub mod report;
pub mod service;
pub mod simulate;
pub mod state;
pub mod status;
pub mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use pds_client::is_jwt;
use pds_core::error_chain::with_sources;
use pds_core::printable::plain_lines;
use pds_core::secret::REDACTED;

use console::{BAD, Console};
use error::{EXIT_CODES, Result, ToolError};
use service::Environment;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "pdstool",
    version = pds_config::VERSION,
    about = "The operator's tool of pds-exporter: diagnose, watch, check, call the service",
    after_help = EXIT_CODES,
    max_term_width = 110,
    arg_required_else_help = true
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make any call of the service.
    Call(call::CallArgs),
    /// Diagnose configuration, tokens, network, service and daemon, with remedies.
    Doctor(doctor::DoctorArgs),
    /// Write a first configuration, checked against the service.
    Init(init::InitArgs),
    /// Check a configuration, tokens, or the service's behaviour.
    #[command(subcommand)]
    Check(check::Check),
    /// Write history as an OpenMetrics file, for Prometheus to import.
    Backfill(backfill::BackfillArgs),
    /// Compare a day of each app at the service with what Prometheus counted.
    Reconcile(reconcile::ReconcileArgs),
    /// Print the verdict of a running exporter, with a remedy for each reason.
    Status(status::StatusArgs),
    /// Print the apps of a running exporter, problems first.
    Apps(apps::AppsArgs),
    /// Print the ledgers of the exact counters in a state file or Prometheus, or their differences.
    #[command(subcommand)]
    State(state::StateCommand),
    /// Print every metric family of the exporter.
    Metrics,
    /// Print the service's interface as an OpenAPI document.
    Openapi,
    /// Run a simulator of the service.
    Simulate(simulate::Simulate),
    /// Print the completion script for a shell.
    Completions(manual::Completions),
    /// Write man pages for all commands to a folder.
    Man(manual::Man),
}

/// Runs the tool: `arguments` with the program's name first, `environment` by name.
pub fn main(arguments: Vec<OsString>, environment: Environment, mut console: Console) -> ExitCode {
    if completion::answer(&mut console, &environment, &arguments) {
        return ExitCode::SUCCESS;
    }
    let has_user = arguments.iter().any(|argument| argument.to_string_lossy().contains('@'))
        || environment.iter().any(|(name, value)| name == exporter::VARIABLE && value.contains('@'));
    let tokens: Vec<String> =
        arguments.iter().flat_map(|argument| tokens(&argument.to_string_lossy())).collect();
    let parsed = without_empty(Cli::command(), &environment).try_get_matches_from(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain(&mut console, error, has_user, &tokens),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => {
            let _log = tracing::subscriber::set_default(log());
            let result = runtime.block_on(run(&mut console, &environment, cli.command));
            // A pending name lookup does not delay the exit.
            runtime.shutdown_background();
            result
        }
        Err(source) => Err(ToolError::system("cannot start")(source)),
    };
    match result.and_then(|()| Ok(console.out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let label = console.styled(BAD, "error:");
            console.say(&format!("{label} {}", plain_lines(&with_sources(&error))));
            error.code().into()
        }
    }
}

/// `command` and all below it, without the variables of arguments that are empty: an empty variable is unset.
fn without_empty(command: clap::Command, environment: &Environment) -> clap::Command {
    let is_empty = |arg: &clap::Arg| {
        let is_own = |name: &str| arg.get_env().is_some_and(|own| own == name);
        environment.iter().any(|(name, value)| value.is_empty() && is_own(name))
    };
    let command = command.mut_args(|arg| if is_empty(&arg) { arg.env(None) } else { arg });
    command.mut_subcommands(|command| without_empty(command, environment))
}

async fn run(console: &mut Console, environment: &Environment, command: Command) -> Result<()> {
    match command {
        Command::Call(args) => call::run(console, environment, args).await,
        Command::Doctor(args) => doctor::run(console, environment, &args).await,
        Command::Init(args) => init::run(console, environment, &args).await,
        Command::Check(check) => check::run(console, environment, &check).await,
        Command::Backfill(args) => backfill::run(console, environment, &args).await,
        Command::Reconcile(args) => reconcile::run(console, environment, &args).await,
        Command::Status(args) => status::status(console, &args).await,
        Command::Apps(args) => apps::apps(console, &args).await,
        Command::State(command) => state::run(console, environment, &command).await,
        Command::Metrics => manual::metrics(console),
        Command::Openapi => manual::openapi(console),
        Command::Simulate(args) => simulate::run(console, &args).await,
        Command::Completions(completions) => completions.run(console),
        Command::Man(man) => man.run(console),
    }
}

/// The tokens in an argument, also in `--flag=TOKEN`.
fn tokens(argument: &str) -> Vec<String> {
    let words = argument.split(|c: char| c == '=' || c.is_whitespace());
    words.filter(|word| is_jwt(word)).map(str::to_owned).collect()
}

/// Prints clap's message: help, version, or the error in the arguments. Shows none of the `tokens` in the arguments. If
/// some URL `has_user`, shows no part of an invalid or misplaced URL: any part may belong to the password.
fn explain(console: &mut Console, mut error: clap::Error, has_user: bool, tokens: &[String]) -> ExitCode {
    let is_url = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if arg.ends_with("<URL>"));
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        let is_value = kind == ContextKind::InvalidValue;
        let may_be_url = |arg: &str| match is_value {
            true => is_url || arg.contains('@') || arg.contains("://"),
            false => arg.contains(['@', ':']),
        };
        let may_be_url = matches!(error.get(kind), Some(ContextValue::String(arg)) if may_be_url(arg));
        if has_user && may_be_url {
            error.insert(kind, ContextValue::String(REDACTED.to_owned()));
        }
    }
    let text = error.render();
    let text = if console.color { text.ansi().to_string() } else { text.to_string() };
    let text = tokens.iter().fold(text, |text, token| text.replace(token, REDACTED));
    if error.use_stderr() {
        console.say(text.trim_end());
    } else {
        // A closed pipe is not an error here.
        let _ = console.print(text.trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Warnings on standard error, without those that the error message repeats.
fn log() -> impl tracing::Subscriber + Send + Sync {
    let filter = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("pds_client::credentials", LevelFilter::OFF)
        .with_target("pds_client::account", LevelFilter::OFF)
        // The doctor and `check config` report it.
        .with_target("pds_client::transport", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    tracing_subscriber::registry().with(filter).with(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
