//! Log lines on standard error, as logfmt or JSON, at a level that can be changed while running.

use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Registry, fmt};

use super::flags::{Level, LogFormat};

/// The level of the running log. Cloning shares it.
#[derive(Clone, Debug)]
pub struct LogLevel(reload::Handle<LevelFilter, Registry>);

impl LogLevel {
    /// Logs messages of `level` and above from now on.
    pub fn set(&self, level: Level) {
        // Fails only where the log itself is gone.
        let _ = self.0.reload(filter(level));
    }
}

/// Starts logging to standard error for the whole process.
///
/// # Errors
/// Where something else in the process logs already.
pub fn start(level: Level, format: LogFormat) -> Result<LogLevel, TryInitError> {
    let (filter, handle) = reload::Layer::new(filter(level));
    tracing_subscriber::registry().with(filter).with(lines(format, std::io::stderr)).try_init()?;
    Ok(LogLevel(handle))
}

/// A layer that writes lines of the given format.
fn lines<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
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
