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

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use url::Url;

use super::console::Console;
use super::error::Result;
use super::exporter::{Exporter, ExporterError, address, local_exporter};
use super::options::OutputArg;
use super::report::{Finding, Report};
use super::service::{self, Environment, ServiceArgs, flags_of_exporter};
use pds_config::Config;
use pds_config::flags::DEFAULT_LISTEN_ADDRESS;

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
    /// Address of the running daemon [default: the daemon on this machine].
    #[arg(long, value_name = "URL", value_parser = address, env = "PDSTOOL_EXPORTER", hide_env_values = true)]
    exporter: Option<Url>,

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
/// If a check finds a problem.
pub async fn run(console: &mut Console, environment: &Environment, args: &DoctorArgs) -> Result<()> {
    let mut report = Report::default();
    let progress = console.shown(ProgressBar::new_spinner());
    let step = |text: &'static str| {
        progress.set_message(text);
        progress.tick();
    };
    let (found, service) = settings::load(environment, &args.service);
    report.add("configuration", found);
    step("looking at the daemon");
    let mut listens = args.listen_addresses.clone();
    let ours = service.as_ref().map(|service| &service.config);
    let daemon = daemon(args, &mut listens, ours).await?;
    if let Some(service) = &service {
        let config = &service.config;
        step("connecting to the service");
        let (found, reached) = network::check(&config.api).await;
        report.add("network", found);
        report.add("tokens", settings::tokens(service));
        step("making each call");
        let answers = if reached { calls::check(&mut report, service).await } else { Vec::new() };
        report.add("limits", settings::limits(config, &answers));
        step("looking at the state file");
        let state = args.state_path.as_ref().or(config.state.path.as_ref());
        let may_hold = daemon.as_ref().is_none_or(|daemon| daemon.may_hold_state);
        report.add("state file", [daemon::state_file(state.map(PathBuf::as_path), may_hold).await]);
        if let Some(prometheus) = &config.state.prometheus {
            report.add("restore source", [daemon::restore_source(prometheus).await]);
        }
    }
    report.add("web configuration", args.web_config.iter().map(|path| daemon::web_config(path)));
    if let Some(daemon) = daemon {
        let (known, new): (Vec<_>, Vec<_>) =
            daemon.found.into_iter().partition(|finding| report.explains(finding));
        let same = (!known.is_empty()).then(|| Finding::note(format!("{} reports the same", daemon.name)));
        report.add("daemon", new.into_iter().chain(same));
    }
    report.add("listening address", listens.iter().map(|address| daemon::listening(address)));
    progress.finish_and_clear();
    report.print_verdict_first(console, args.output.format)?;
    report.result()
}

/// The daemon of `args`, if it has an address; `listens` are left with the addresses that are free without it.
async fn daemon(
    args: &DoctorArgs,
    listens: &mut Vec<String>,
    ours: Option<&Config>,
) -> Result<Option<daemon::Daemon>> {
    let Some(exporter) = args.exporter.clone().or_else(|| local_exporter(listens).ok()) else {
        return Ok(None);
    };
    let exporter = Exporter::new(&exporter, None, None)?;
    // Another program answers if no daemon is known to run.
    let flags = flags_of_exporter().filter(|_| listens.is_empty());
    let known = flags.is_some();
    let means_none = |error: &ExporterError| args.exporter.is_none() && (error.is_connect() || !known);
    let flags = flags.filter(|_| args.exporter.is_none());
    let demo = flags.as_ref().is_some_and(|flags| flags.demo);
    let base_url = ours.map(|config| &config.api.base_url);
    let mut daemon = daemon::daemon(&exporter, means_none, base_url, demo).await;
    let file = service::file(&args.service.config_file);
    let own = ours.and_then(|config| config.state.path.as_ref());
    let is_own = |given: &PathBuf| own.is_some_and(|own| given == own || service::is_same_file(given, own));
    daemon.may_hold_state &= flags.is_none_or(|flags| {
        service::is_same_file(&flags.config_file, &file) && args.state_path.as_ref().is_none_or(is_own)
    });
    if daemon.runs {
        listens.clear();
    } else if listens.is_empty() {
        listens.push(DEFAULT_LISTEN_ADDRESS.to_owned());
    }
    Ok(Some(daemon))
}
