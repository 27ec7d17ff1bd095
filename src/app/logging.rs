//! Log lines on standard error, as logfmt or JSON, at a level that can be changed while running; panics among them.

use std::any::Any;
use std::panic::PanicHookInfo;

use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Registry, fmt};

use super::flags::{Level, LogFormat};
use super::log_writer::LogWriter;

/// The level of the running log. Cloning shares it.
#[derive(Clone, Debug)]
pub struct LogLevel {
    running: reload::Handle<LevelFilter, Registry>,
    /// As the command line has it.
    flag: Level,
}

impl LogLevel {
    /// Logs messages of the `configured` level and above from now on; without one, of that of the command line.
    pub fn follow(&self, configured: Option<Level>) {
        // Fails only where the log itself is gone.
        let _ = self.running.reload(filter(configured.unwrap_or(self.flag)));
    }
}

/// Starts logging to standard error for the whole process.
///
/// # Errors
/// If something else in the process logs already.
pub fn start(level: Level, format: LogFormat) -> Result<LogLevel, TryInitError> {
    let (filter, handle) = reload::Layer::new(filter(level));
    tracing_subscriber::registry().with(filter).with(lines(format, std::io::stderr)).try_init()?;
    Ok(LogLevel { running: handle, flag: level })
}

/// Has every panic of the process logged, in place of the line that Rust would write to standard error.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        // The database's way to say that a file is damaged.
        if crate::accounting::tables::is_examining() {
            return;
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(
            place,
            what = what(panic.payload()),
            "panicked: a bug of the exporter, please report it"
        );
    }));
}

/// A panic's message where it is a text of the program itself. One that was put together while running may hold
/// anything, a token too, and is left out; the place says which panic it was.
fn what(payload: &(dyn Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(a message that may hold secrets)")
}

/// A layer that writes lines of the given format.
fn lines<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let writer = LogWriter { inner: writer, format };
    match format {
        LogFormat::Logfmt => tracing_logfmt::builder().with_target(false).layer().with_writer(writer).boxed(),
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_target(false).with_writer(writer).boxed()
        }
    }
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
