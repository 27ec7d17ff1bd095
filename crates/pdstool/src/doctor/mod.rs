//! `pdstool doctor`: everything between the configuration and the service, checked in the order in which it is needed.
//!
//! - [`settings`]: the configuration, the tokens, and the limits.
//! - [`network`]: the network path to the service.
//! - [`calls`]: each call's reply, and the service's clock.
//! - [`daemon`]: the state file, and a running daemon.

pub mod calls;
pub mod daemon;
pub mod network;
pub mod settings;

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use super::console::Console;
use super::error::Result;
use super::exporter::{Exporter, ExporterArgs, ExporterError, ExporterStatus, LOGIN, local_exporter};
use super::options::OutputArg;
use super::report::{Finding, Report};
use super::service::{self, Environment, ServiceArgs, flags_of_exporter};
use pds_config::Config;
use pds_config::flags::{DEFAULT_LISTEN_ADDRESS, Flags};
use pds_config::running::is_same_file;
use pds_core::error_chain::with_sources;

/// `pdstool doctor`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Sends only GET requests: each polled call once for each project and its first app, and the app \
call for the other apps, 200 at most, and no more than api.max_requests_per_second allows in 10 s.

Exit code: 0 if nothing is wrong, 1 if something is.

Examples:
  pdstool doctor --config.file /etc/pds-exporter/pds-exporter.toml
  pdstool doctor --base-url https://api.example.com --token-file token
  pdstool doctor -o json"
)]
pub struct DoctorArgs {
    #[command(flatten)]
    daemons: ExporterArgs,

    /// Address that the daemon listens on; repeatable [default: that of the running daemon, or :10090].
    #[arg(long = "web.listen-address", value_name = "ADDRESS")]
    listen_addresses: Vec<String>,

    /// State file of the daemon, if its flag overrides state.path.
    #[arg(long = "state.path", value_name = "FILE")]
    state_path: Option<PathBuf>,

    /// Web configuration file of the daemon.
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    service: ServiceArgs,
}

/// Runs all checks and prints the report.
///
/// # Errors
/// If a check finds a warning or a problem.
pub async fn run(console: &mut Console, environment: &Environment, args: &DoctorArgs) -> Result<()> {
    let mut report = Report::default();
    let progress = console.shown(ProgressBar::new_spinner());
    let step = |text: &'static str| {
        progress.set_message(text);
        progress.tick();
    };
    let file = service::file(&args.service.config_file);
    let (found, service) = settings::load(environment, &args.service, &file);
    report.add("configuration", found);
    step("looking at the daemon");
    let mut listens = args.listen_addresses.clone();
    let ours = service.as_ref().map(|service| &service.config);
    let is_local = args.daemons.exporters.is_empty();
    let flags = flags_of_exporter(Some(&file)).filter(|_| is_local && listens.is_empty());
    // No daemon listens on an invalid address.
    let is_address = !is_local || local_exporter(&listens, flags.as_ref()).is_ok();
    let exporters = if is_address { args.daemons.open(&listens, flags.as_ref()).await? } else { Vec::new() };
    let mut daemons = Vec::new();
    for exporter in exporters {
        daemons.push(daemon(args, exporter, &mut listens, ours, flags.as_ref(), &file).await);
    }
    if let Some(service) = &service {
        let config = &service.config;
        step("connecting to the service");
        let (found, reached) = network::check(&config.api).await;
        report.add("network", found);
        step("making each call");
        let mut calls = Report::default();
        let answers = if reached { calls::check(&mut calls, service).await } else { Vec::new() };
        // Replies show whether a token is accepted.
        report.add("tokens", settings::tokens(service));
        report.append(calls);
        report.add("limits", settings::limits(config, &answers));
        step("looking at the state file");
        let state = args.state_path.as_ref().or(config.state.path.as_ref());
        let may_hold = daemons.is_empty() || daemons.iter().any(|daemon| daemon.may_hold_state);
        report.add("state file", [daemon::state_file(state.map(PathBuf::as_path), may_hold).await]);
        if let Some(prometheus) = &config.state.prometheus {
            report.add("restore source", [daemon::restore_source(prometheus).await]);
        }
    }
    report.add("web configuration", args.web_config.iter().map(|path| daemon::web_config(path)));
    let found = of_daemons(&report, daemons);
    report.add("daemon", found);
    report.add("listening address", listens.iter().map(|address| daemon::listening(address)));
    progress.finish_and_clear();
    report.print_verdict_first(console, args.output.format)?;
    report.result()
}

/// A daemon that may run.
struct Daemon {
    /// Its address.
    name: String,
    found: Vec<Finding>,
    /// Whether it may hold our state file.
    may_hold_state: bool,
}

/// The findings of all daemons, each with its daemon's address if there are several. Causes that `report` explains are
/// not repeated.
fn of_daemons(report: &Report, daemons: Vec<Daemon>) -> Vec<Finding> {
    let are_several = daemons.len() > 1;
    let mut all = Vec::new();
    for Daemon { name, found, .. } in daemons {
        let (known, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|finding| report.explains(finding));
        all.extend(new.into_iter().map(|finding| match are_several && !finding.text.contains(&name) {
            true => Finding { text: format!("{name}: {}", finding.text), ..finding },
            false => finding,
        }));
        all.extend((!known.is_empty()).then(|| Finding::note(format!("{name} reports the same"))));
    }
    all
}

/// The daemon at `exporter`, with its verdict, or only with the other service that it polls instead of `ours`. Leaves in
/// `listens` the addresses that must be free because it does not run.
async fn daemon(
    args: &DoctorArgs,
    exporter: Exporter,
    listens: &mut Vec<String>,
    ours: Option<&Config>,
    flags: Option<&Flags>,
    file: &Path,
) -> Daemon {
    let name = exporter.name.clone();
    let is_given = !args.daemons.exporters.is_empty();
    let is_demo = flags.is_some_and(|flags| flags.demo);
    // Another program answers if no daemon is known to run.
    let means_none = |error: &ExporterError| !is_given && (error.is_connect() || flags.is_none());
    let (found, runs, is_ours) = match exporter.status().await {
        Ok((ExporterStatus { service, summary, .. }, _)) => {
            let polled = &service.base_url;
            let is_other = |ours: &Config| !polled.is_empty() && polled != ours.api.base_url.as_str();
            if ours.map_or(is_demo, is_other) {
                let kind = if is_demo { "is a demo and polls" } else { "polls" };
                let text = format!("{name} {kind} another service, {polled}");
                (vec![Finding::ok(text)], true, false)
            } else {
                (daemon::verdict(&name, &summary), true, true)
            }
        }
        Err(error) if flags.is_some() && error.is_locked() => {
            let text = format!(
                "{name} runs, but requires TLS or a password: use {LOGIN} ({})",
                with_sources(&error)
            );
            (vec![Finding::note(text)], true, true)
        }
        Err(error) if means_none(&error) => {
            let why = if error.is_connect() { String::new() } else { format!(": {}", with_sources(&error)) };
            let text = format!("no daemon at {name}{why}; use --exporter for another address");
            (vec![Finding::note(text)], false, false)
        }
        Err(error) => {
            let text = format!("no status from {name}: {}", with_sources(&error));
            let else_look =
                || "Check that --exporter is its address, and look at its log and certificate.".to_owned();
            let remedy = error.remedy().unwrap_or_else(else_look);
            (vec![Finding::problem(text, remedy)], true, !error.is_connect())
        }
    };
    if runs {
        listens.clear();
    } else if listens.is_empty() {
        listens.push(DEFAULT_LISTEN_ADDRESS.to_owned());
    }
    let own = ours.and_then(|config| config.state.path.as_ref());
    let is_own = |given: &PathBuf| own.is_some_and(|own| given == own || is_same_file(given, own));
    let shares_state = flags.is_none_or(|flags| {
        is_same_file(&flags.config_file, file) && args.state_path.as_ref().is_none_or(is_own)
    });
    Daemon { name, found, may_hold_state: is_ours && shares_state }
}
