//! The body of `main`, from the command line to the exit code.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::pages::{PagesConfig, StatusPages};
use crate::status;
use pds_config::{Config, LoadError, Origin};
use pds_core::clock::Clock;
use pds_core::error_chain::with_sources;
use pds_core::memory::MemoryBudget;
use pds_core::units::{number, plural};
use pds_telemetry::Telemetry;

use super::daemon::{Daemon, DaemonError, PollThread, resumed};
use super::demo;
use super::log_queue::write_last_line;
use super::logging::{self, RunningLog};
use super::serve::{ConfigSource, Served};
use pds_config::flags::{CommandLine, DEFAULT_LISTEN_ADDRESS, Flags};
use pds_config::running::running_exporter;

/// Exit code: the daemon failed.
const FAILED: u8 = 1;
/// Exit code: the command line is invalid.
const BAD_USAGE: u8 = 2;
/// Exit code: the configuration is invalid (`EX_CONFIG` of sysexits.h).
const BAD_CONFIGURATION: u8 = 78;

/// Why the daemon did not start, or stopped.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Configuration(#[from] LoadError),
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error(transparent)]
    Web(#[from] pds_web::Error),
    #[error("the exporter's own metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    #[error("{0}")]
    System(&'static str, #[source] std::io::Error),
}

impl Error {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) => BAD_CONFIGURATION,
            Self::Daemon(DaemonError::Client(_)) => BAD_CONFIGURATION,
            Self::Web(pds_web::Error::WebConfig { .. }) => BAD_CONFIGURATION,
            // The value alone; the system may accept another one later.
            Self::Web(pds_web::Error::Flag { source: None, .. }) => BAD_USAGE,
            _ => FAILED,
        }
    }
}

/// Runs the daemon with this command line (the program's name first) and environment until it is stopped.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // The program's name, and --health or --config.check.
    let has_one_flag = arguments.len() == 2;
    let line = match CommandLine::parse(arguments) {
        Ok(line) => line,
        Err(error) => {
            // If this cannot be written, nobody can read it.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED));
        }
    };
    let environment = pds_config::environment(environment);
    let (health, config_check) = (line.flags.health, line.flags.config_check);
    // Without flags or a file of its own, a check is of the exporter that runs on this machine.
    let is_of_running = has_one_flag && (health || config_check && !line.flags.config_file.exists());
    let program = is_of_running.then(|| std::fs::read_link("/proc/self/exe").ok()).flatten();
    let running = program.and_then(|program| running_exporter(&program, None));
    // A demo has no file to check.
    let running = running.filter(|running| health || !running.flags.demo);
    let flags = running.as_ref().map_or(&line.flags, |running| &running.flags);
    let variables = running.iter().flat_map(|running| &running.environment).flatten().cloned();
    // The last of a name counts.
    let environment = variables.chain(environment).collect();
    let source = ConfigSource::new(flags, environment);
    let result = if health {
        web_config(flags).check_health().map_err(Error::from)
    } else if config_check {
        check(&line, flags, &source)
    } else {
        start(flags, source)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let is_missing = matches!(error, Error::Configuration(LoadError::Missing { .. }));
            let hint = if is_missing { "; --demo needs none" } else { "" };
            write_last_line(format!("pds-exporter: {}{hint}", with_sources(&error)));
            ExitCode::from(error.exit_code())
        }
    }
}

/// `--config.check`: prints what the configuration costs, the flags, and warnings. The configuration is that of `flags`.
fn check(line: &CommandLine, flags: &Flags, source: &ConfigSource) -> Result<(), Error> {
    let loaded = source.load()?;
    let config = &loaded.config;
    checked_web_config(flags)?;
    if let Some(path) = &flags.web_config_file {
        pds_web::webconfig::check(path)
            .map_err(|source| pds_web::Error::WebConfig { path: path.clone(), source })?;
    }
    let demand = config.requests_per_minute();
    let apps: usize = config.projects.iter().map(|project| project.apps.len()).sum();
    let mut out = std::io::stdout().lock();
    let mut say = |line: String| drop(writeln!(out, "{line}"));
    say(format!(
        "the configuration is valid: {}, {}, {} requests per minute ({} per second) to the service",
        plural(config.projects.len(), "project", "projects"),
        plural(apps, "app", "apps"),
        number(demand.total),
        number(demand.total / 60.0)
    ));
    if flags.config_file != line.flags.config_file {
        say(format!("of the running exporter: --config.file={}", flags.config_file.display()));
    }
    config.memory_of_rechecks().into_iter().for_each(&mut say);
    let given = line.explained.iter().filter(|flag| flag.origin == Origin::Flag);
    for flag in given.filter(|flag| flag.key != "--config.check") {
        say(format!("flag: {}={}", flag.key, flag.value));
    }
    config.check_warnings().for_each(|warning| say(format!("warning: {warning}")));
    Ok(())
}

/// Starts logging and a runtime, and runs.
fn start(flags: &Flags, source: ConfigSource) -> Result<(), Error> {
    let memory = MemoryBudget::of_process();
    let telemetry = Telemetry::within(memory.clone(), !flags.web_disable_exporter_metrics)?;
    let log = logging::start(flags.log_level, flags.log_format, telemetry.log_lines_dropped())
        .map_err(|error| Error::System("the log cannot be started", error))?;
    logging::report_panics(telemetry.clone());
    // Without descriptors, the runtime panics.
    pds_web::raise_descriptor_limit()?;
    // This thread serves requests. Polls, rendering, bcrypt and the state file have their own threads.
    let runtime =
        super::daemon::runtime().map_err(|error| Error::System("the runtime cannot be started", error))?;
    let result = runtime.block_on(run(flags, source, log.clone(), (memory, telemetry)));
    // A page that is still being rendered must not delay the exit.
    runtime.shutdown_background();
    log.flush();
    result
}

async fn run(
    flags: &Flags,
    source: ConfigSource,
    log: RunningLog,
    (memory, telemetry): (MemoryBudget, Telemetry),
) -> Result<(), Error> {
    // A signal to stop ends the reading of the configuration; others, and all later ones, are handled after the start.
    let mut signals = Signals::new().map_err(|error| Error::System("cannot wait for signals", error))?;
    telemetry.shard(flags.shard_index, flags.shard_count.get());
    let clock = Clock::system();
    let (loaded, source) = if flags.demo {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(|error| Error::System("the demo's simulated service cannot be started", error))?;
        (source.override_keys(demo::start(listener, clock.clone())?), None)
    } else {
        let loading = tokio::task::spawn_blocking(move || (source.read(), source));
        let ((checksum, loaded), source) = tokio::select! {
            loaded = async { resumed(loading.await).await } => loaded,
            () = stop_signal(&mut signals.terminate, &mut signals.interrupt) => return Ok(()),
        };
        (loaded?, Some((source, checksum)))
    };
    log.set_level(loaded.config.log.level);
    let server = pds_web::Config { memory, ..checked_web_config(flags)? }.bind(telemetry.clone())?;
    tokio::spawn(telemetry.clone().watch_stalls());
    let polls = PollThread::start()
        .map_err(|error| Error::System("the thread for polls cannot be started", error))?;
    let polls = Arc::new(polls);
    let mut daemon = polls.run(Daemon::build(loaded.config, clock, telemetry)).await?;
    let opening = daemon.opening.take();
    let handle = daemon.handle.clone();
    say_start(flags, &handle.plan().await.config, &server);
    let status = status::Source::new(handle.context.clone(), handle.plan().await, loaded.explained);
    let (prefix, metrics, replies) = (&link_prefix(flags), &flags.web_telemetry_path, flags.web_show_replies);
    let shown = PagesConfig { prefix, metrics, replies };
    let pages = StatusPages::new(status.clone(), pds_telemetry::catalogue::catalogue(), shown).routes();
    tokio::spawn(status.clone().watch());
    let served = Served::new(handle, status, source, Some(log));

    let (stop, stopped) = watch::channel(false);
    let handled = signals.handle(served.clone());
    tokio::spawn(async move {
        handled.await;
        pds_web::systemd::stopping();
        stop.send_replace(true);
    });
    let until_stopped = |mut stopped: watch::Receiver<bool>| async move {
        // The sender is dropped only with the runtime.
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let (followed, interval) = (served.clone(), flags.config_auto_reload_interval);
    tokio::spawn(async move { followed.follow_files(interval).await });
    let thread = Arc::clone(&polls);
    tokio::spawn(pds_web::systemd::watchdog(move || {
        let thread = Arc::clone(&thread);
        async move { thread.run(async {}).await }
    }));
    pds_web::systemd::ready();
    let counting = served.clone();
    let serving = async {
        tokio::join!(
            polls.run(daemon.run(until_stopped(stopped.clone()))),
            server.serve(Arc::new(served), pages, until_stopped(stopped)),
        )
    };
    tokio::select! {
        _ = serving => tracing::info!("stopped"),
        Err(error) = counting.count_after(opening) => return Err(DaemonError::from(error).into()),
    }
    Ok(())
}

/// The signal of a write beyond the size that the system allows a file (`RLIMIT_FSIZE`), on Linux.
const SIGXFSZ: i32 = 25;

/// The signals of the daemon. Until they are handled, they wait.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    /// A signal with a handler does not end the process: the write fails with EFBIG, as on a full disk.
    _beyond_file_size: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _beyond_file_size: signal(SignalKind::from_raw(SIGXFSZ))?,
        })
    }

    /// Completes on a signal to stop or a request to quit. Reloads the configuration on SIGHUP.
    async fn handle(mut self, served: Served) {
        loop {
            tokio::select! {
                () = stop_signal(&mut self.terminate, &mut self.interrupt) => return,
                () = served.quit_requested() => return tracing::info!("stopping: /-/quit was requested"),
                // The reload logs its outcome and sets the metric. It is a separate task, so that a slow disk does not
                // delay a stop.
                _ = self.hangup.recv() => {
                    let served = served.clone();
                    tokio::spawn(async move { drop(served.reload().await) });
                }
            }
        }
    }
}

/// Completes on a signal to stop.
async fn stop_signal(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => tracing::info!("received SIGTERM; stopping"),
        _ = interrupt.recv() => tracing::info!("received SIGINT; stopping"),
    }
}

/// The path under which browsers reach the pages: the path of the external URL, else the route prefix.
fn link_prefix(flags: &Flags) -> String {
    let external = flags.web_external_url.as_ref().map(|url| url.path().to_owned());
    external.or_else(|| flags.web_route_prefix.clone()).unwrap_or_default()
}

fn checked_web_config(flags: &Flags) -> Result<pds_web::Config, pds_web::Error> {
    let config = web_config(flags);
    config.check_flags()?;
    config.check_pages(StatusPages::paths())?;
    Ok(config)
}

fn web_config(flags: &Flags) -> pds_web::Config {
    let default = if flags.demo { demo::LISTEN_ADDRESS } else { DEFAULT_LISTEN_ADDRESS };
    let addresses = &flags.web_listen_address;
    pds_web::Config {
        name: env!("CARGO_PKG_NAME").to_owned(),
        listen_addresses: if addresses.is_empty() { vec![default.to_owned()] } else { addresses.clone() },
        systemd_socket: flags.web_systemd_socket,
        route_prefix: flags.route_prefix().to_owned(),
        external_url: flags.web_external_url.clone(),
        allowed_hosts: flags.web_allowed_hosts.clone(),
        telemetry_path: flags.web_telemetry_path.clone(),
        config_file: flags.web_config_file.clone(),
        max_requests: flags.web_max_requests,
        enable_lifecycle: flags.web_enable_lifecycle,
        probes_without_auth: flags.web_probes_without_auth,
        ..pds_web::Config::default()
    }
}

fn say_start(flags: &Flags, config: &Config, server: &pds_web::Server) {
    for address in server.addresses() {
        tracing::info!(address, "listening");
    }
    let apps: usize = config.projects.iter().map(|project| project.apps.len()).sum();
    tracing::info!(
        version = pds_config::VERSION,
        service = %config.api.base_url,
        projects = config.projects.len(),
        apps,
        shard_index = flags.shard_index,
        shard_count = flags.shard_count.get(),
        state = config.state.path.as_ref().map_or("memory".to_owned(), |path| path.display().to_string()),
        "started"
    );
}
