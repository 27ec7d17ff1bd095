//! `pdstool top`: a live view of the apps in the terminal.
//!
//! - [`view`]: which rows are shown, and in which order; what keys do.
//! - [`draw`]: the screen.

pub mod draw;
pub mod view;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::console::Console;
use super::error::{Result, ToolError};
use super::exporter::{Exporter, ExporterArgs};
use pds_core::error_chain::with_sources;
use view::{Next, View};

/// `pdstool top`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Keys:
  q quit   ? help   Enter details of an app   s S sort by the next, the previous column   r reverse
  / filter, Enter or Esc ends it   o copy the address of the app's page   c copy its PromQL
  up down page-up page-down home end: move

Examples:
  pdstool top
  pdstool top --exporter http://pds-exporter.internal:10090")]
pub struct TopArgs {
    #[command(flatten)]
    exporter: ExporterArgs,

    /// Gone; refused with what to use instead.
    #[arg(long, hide = true, num_args = 0.., allow_hyphen_values = true)]
    direct: Option<Vec<OsString>>,

    /// Refresh interval.
    #[arg(long, value_name = "DURATION", value_parser = interval, default_value = "2s")]
    interval: Duration,

    /// Only apps of which a name, status, problem or other word contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let is_slow = interval >= Duration::from_millis(100);
    is_slow.then_some(interval).ok_or_else(|| "must be at least 100ms".to_owned())
}

/// Watches until `q`, or a signal to end.
///
/// # Errors
/// If standard output is not a terminal.
pub async fn run(console: &mut Console, args: &TopArgs) -> Result<()> {
    if args.direct.is_some() {
        let text = "--direct is gone; start pds-exporter with the same configuration, then run pdstool top";
        return Err(ToolError::Usage(text.to_owned()));
    }
    if !console.out_is_terminal || !console.can_ask {
        return Err(ToolError::Usage("top needs a terminal; use pdstool apps instead".to_owned()));
    }
    let exporter = args.exporter.open()?;
    let view = View::new(exporter.name.clone(), args.filter.clone(), console.color);
    let _silence = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::new());
    watch(Screen::open()?, exporter, args.interval, view).await
}

async fn watch(mut screen: Screen, exporter: Exporter, interval: Duration, mut view: View) -> Result<()> {
    let mut keys = keys();
    let (asked, mut answers) = mpsc::channel(1);
    // In a task of its own, so that a slow exporter does not block keys.
    let asking = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let answer = exporter.status().await.map(|(status, _)| status);
            if asked.send(answer.map_err(|error| with_sources(&error))).await.is_err() {
                return;
            }
        }
    });
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    let mut ended = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    loop {
        screen.0.draw(|frame| draw::draw(frame, &mut view))?;
        tokio::select! {
            Some(answer) = answers.recv() => view.answered(answer),
            key = keys.recv() => match key {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match view.pressed(key) {
                    Next::Go => {}
                    Next::Copy(text) => screen.copy(&text)?,
                    Next::Quit => break,
                },
                Some(_) => {}
                None => break,
            },
            _ = clock.tick() => {}
            _ = ended.recv() => break,
            _ = hung_up.recv() => break,
        }
    }
    asking.abort();
    Ok(())
}

/// Terminal events, read by a thread that ends with the process.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, events) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                break;
            }
        }
    });
    events
}

/// The terminal in raw mode; restored when dropped, and before a panic is printed.
#[derive(Debug)]
pub struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If it cannot be set up.
    pub fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    /// Asks the terminal to put `text` into the clipboard (OSC 52).
    fn copy(&mut self, text: &str) -> io::Result<()> {
        let out = self.0.backend_mut();
        write!(out, "\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = ratatui::try_restore();
    }
}
