//! The log on standard error, as logfmt or JSON, with a level that can change while running. Panics are logged too.

use std::any::Any;
use std::borrow::Cow;
use std::io::{self, Write};
use std::panic::PanicHookInfo;

use jiff::Timestamp;
use prometheus::IntCounter;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt};

use super::log_queue::LogQueue;
use pds_config::{Level, flags::LogFormat};
use pds_core::printable::plain;
use pds_telemetry::Telemetry;

/// The running log. Cloning shares it.
#[derive(Clone, Debug)]
pub struct RunningLog {
    queue: LogQueue,
    running: reload::Handle<LevelFilter, Registry>,
    /// The level of the command line.
    flag: Level,
}

impl RunningLog {
    /// Sets the level to `configured`, or without it to the level of the command line.
    pub fn set_level(&self, configured: Option<Level>) {
        // Fails only if the log itself is gone.
        let _ = self.running.reload(filter(configured.unwrap_or(self.flag)));
    }

    /// Waits until the queued lines are written, for a second at most.
    pub fn flush(&self) {
        self.queue.flush();
    }
}

/// Starts logging to standard error for the whole process. Lines that nobody reads are counted in `dropped`.
///
/// # Errors
/// If there is no thread for it, or the process already has a logger.
pub fn start(level: Level, format: LogFormat, dropped: IntCounter) -> io::Result<RunningLog> {
    let queue = LogQueue::start(io::stderr(), dropped, move |lost| dropped_line(format, lost))?;
    let (filter, running) = reload::Layer::new(filter(level));
    let inner = queue.clone();
    let writer = move || LineWriter { inner: inner.clone(), format };
    let logfmt = (format == LogFormat::Logfmt)
        .then(|| tracing_logfmt::builder().with_target(false).layer().with_writer(writer.clone()));
    let json = (format == LogFormat::Json)
        .then(|| fmt::layer().json().flatten_event(true).with_target(false).with_writer(writer));
    let registry = tracing_subscriber::registry().with(filter).with(no_frames()).with(logfmt).with(json);
    registry.try_init().map_err(io::Error::other)?;
    Ok(RunningLog { queue, running, flag: level })
}

/// The filter of all logs at any level: frames of HTTP/2 may hold a token that the service echoes.
pub fn no_frames() -> Targets {
    Targets::new().with_default(LevelFilter::TRACE).with_target("h2", LevelFilter::INFO)
}

/// The line that reports how many lines were dropped.
fn dropped_line(format: LogFormat, lost: u64) -> String {
    const MESSAGE: &str = "log lines were dropped because nobody read the log";
    let now = Timestamp::now();
    match format {
        LogFormat::Logfmt => format!("ts={now} level=warn message=\"{MESSAGE}\" lines={lost}\n"),
        LogFormat::Json => {
            format!(
                "{{\"timestamp\":\"{now}\",\"level\":\"WARN\",\"message\":\"{MESSAGE}\",\"lines\":{lost}}}\n"
            )
        }
    }
}

/// Logs and counts every panic of the process, instead of the line that Rust writes to standard error.
pub fn report_panics(telemetry: Telemetry) {
    std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        telemetry.panicked();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(
            place,
            what = what(panic.payload()),
            "panicked: a bug in the exporter; please report it"
        );
    }));
}

/// The message of a panic if it is a constant of the program. A formatted message may contain anything, even a token,
/// and is omitted; the location identifies the panic.
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

/// Writes one line at a time, without control characters and in a form that every logfmt parser reads.
#[derive(Debug)]
struct LineWriter<W> {
    inner: W,
    format: LogFormat,
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
        let text = match self.format {
            LogFormat::Logfmt => json_escapes(text),
            LogFormat::Json => Cow::Borrowed(text),
        };
        self.inner.write_all(format!("{}{end}", plain(&text)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Replaces the escapes of Rust (`\u{1b}`, `\0`, `\'`) in quoted values by those of JSON (`\u001b`), which logfmt
/// uses.
fn json_escapes(line: &str) -> Cow<'_, str> {
    if !line.contains('\\') {
        return Cow::Borrowed(line);
    }
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.strip_prefix("u{").and_then(|of| of.split_once('}'));
        let char = code.and_then(|(code, _)| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        if let (Some(char), Some((_, after))) = (char, code) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
            rest = after;
        } else if let Some(after) = after.strip_prefix('0') {
            out.push_str("\\u0000");
            rest = after;
        } else if after.starts_with('\'') {
            rest = after;
        } else {
            // The next character is escaped, even if it is a backslash.
            let mut escaped = after.chars();
            out.push('\\');
            out.extend(escaped.next());
            rest = escaped.as_str();
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str, format: LogFormat) -> String {
        let mut writer = LineWriter { inner: Vec::new(), format };
        writer.write_all(line.as_bytes()).unwrap();
        String::from_utf8(writer.inner).unwrap()
    }

    #[test]
    fn escapes_of_logfmt_are_those_of_json() {
        for (line, expected) in [
            ("a=1 b=\"x y\"\n", "a=1 b=\"x y\"\n"),
            (r#"a="\u{1b}[2J \0 \n it\'s \"q\"""#, r#"a="\u001b[2J \u0000 \n it's \"q\"""#),
            (r#"a="\\u{1b} \\0 \u{e0001}""#, r#"a="\\u{1b} \\0 \udb40\udc01""#),
            ("a=\u{9b}\u{202e}\u{7f}", "a=\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(written(line, LogFormat::Logfmt), expected);
        }
    }

    #[test]
    fn json_keeps_its_escapes_and_has_nothing_that_steers() {
        let line = "{\"a\":\"\\u001b \\\\u{1b} \u{85}\u{2066}\"}\n";
        assert_eq!(written(line, LogFormat::Json), "{\"a\":\"\\u001b \\\\u{1b} \u{fffd}\u{fffd}\"}\n");
    }
}
