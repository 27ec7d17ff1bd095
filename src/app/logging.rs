//! The log on standard error, as logfmt or JSON, with a level that can change while running. Panics are logged too.

use std::any::Any;
use std::panic::PanicHookInfo;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Registry, fmt};

use super::log_writer::LineWriter;
use pds_config::{Level, flags::LogFormat};
use pds_telemetry::Telemetry;

/// The level of the running log. Cloning shares it.
#[derive(Clone, Debug)]
pub struct LogLevel {
    running: reload::Handle<LevelFilter, Registry>,
    /// The level of the command line.
    flag: Level,
}

impl LogLevel {
    /// Sets the level to `configured`, or to that of the command line if there is none.
    pub fn follow(&self, configured: Option<Level>) {
        // Fails only if the log itself is gone.
        let _ = self.running.reload(filter(configured.unwrap_or(self.flag)));
    }
}

/// Starts logging to standard error for the whole process.
///
/// # Errors
/// If the process already has a logger.
pub fn start(level: Level, format: LogFormat) -> Result<LogLevel, TryInitError> {
    let (filter, handle) = reload::Layer::new(filter(level));
    let writer = move || LineWriter { inner: std::io::stderr(), format };
    let logfmt = (format == LogFormat::Logfmt)
        .then(|| tracing_logfmt::builder().with_target(false).layer().with_writer(writer));
    let json = (format == LogFormat::Json)
        .then(|| fmt::layer().json().flatten_event(true).with_target(false).with_writer(writer));
    tracing_subscriber::registry().with(filter).with(logfmt).with(json).try_init()?;
    Ok(LogLevel { running: handle, flag: level })
}

/// Logs and counts every panic of the process, instead of the line that Rust writes to standard error.
pub fn report_panics(telemetry: Telemetry) {
    std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        telemetry.panicked();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(
            place,
            what = what(panic.payload()),
            "panicked: a bug of the exporter, please report it"
        );
    }));
}

/// The message of a panic if it is a constant of the program. A formatted message may contain anything, even a token,
/// and is left out; the location identifies the panic.
fn what(payload: &(dyn Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(a message that may hold secrets)")
}

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}
