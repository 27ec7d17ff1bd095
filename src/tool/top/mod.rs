//! `pdstool top`: a live view of the apps in the terminal.
//!
//! - [`source`]: where rows come from: a running exporter, or the service itself.
//! - [`view`]: which rows are shown, and in which order; what keys do.
//! - [`draw`]: the screen.

pub mod draw;
pub mod source;
pub mod view;

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::console::Console;
use super::error::ToolError;
use super::exporter::ExporterArgs;
use super::service::{Environment, ServiceArgs};
use source::Source;
use view::{Next, View};

/// `pdstool top`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Keys:
  q quit   ? help   Enter details of an app   s S sort by the next, the previous column   r reverse
  / filter, Enter or Esc ends it
  up down page-up page-down home end: move

Examples:
  pdstool top
  pdstool top --exporter http://pds-exporter.internal:10090
  pdstool top --direct --config.file /etc/pds-exporter/pds-exporter.toml")]
pub struct TopArgs {
    #[command(flatten)]
    exporter: ExporterArgs,

    /// Poll the service for the configured apps, instead of reading a running exporter.
    #[arg(long)]
    direct: bool,

    /// Refresh interval [default: 2s for an exporter, poll.interval for the service].
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    interval: Option<Duration>,

    /// Only apps whose project, id, status or problem contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    #[command(flatten)]
    service: ServiceArgs,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_millis(100) {
        Err("must be at least 100ms".to_owned())
    } else {
        Ok(interval)
    }
}

/// The default refresh interval for an exporter, which answers from memory.
const EXPORTER_INTERVAL: Duration = Duration::from_secs(2);

/// Watches until `q`.
///
/// # Errors
/// If standard output is not a terminal, or the configuration is not valid.
pub async fn run(console: &mut Console, environment: &Environment, args: &TopArgs) -> Result<(), ToolError> {
    if !console.out_is_terminal || !console.can_ask {
        return Err(ToolError::Usage("top needs a terminal; use pdstool apps instead".to_owned()));
    }
    let (source, usual) = if args.direct {
        let service = args.service.open(environment)?;
        let interval = service.config.poll.interval;
        (Source::service(service), interval)
    } else {
        (Source::Exporter(args.exporter.open()?), EXPORTER_INTERVAL)
    };
    let view = View::new(source.name(), args.filter.clone(), console.color);
    let _silence = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::new());
    let screen = Screen::open(console).map_err(ToolError::Output)?;
    watch(screen, source, args.interval.unwrap_or(usual), view).await
}

async fn watch(
    mut screen: Screen<'_>,
    source: Source,
    interval: Duration,
    mut view: View,
) -> Result<(), ToolError> {
    let mut keys = keys();
    let (asked, mut answers) = mpsc::channel(1);
    // In a task of its own, so that a slow service does not block keys.
    let asking = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if asked.send(source.ask().await).await.is_err() {
                return;
            }
        }
    });
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    loop {
        screen.terminal.draw(|frame| draw::draw(frame, &mut view))?;
        tokio::select! {
            Some(answer) = answers.recv() => view.answered(answer),
            key = keys.recv() => match key {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release && pressed(&mut view, key) => break,
                Some(_) => {}
                None => break,
            },
            _ = clock.tick() => {}
        }
    }
    asking.abort();
    Ok(())
}

/// Whether the key quits.
fn pressed(view: &mut View, key: KeyEvent) -> bool {
    view.pressed(key) == Next::Quit
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
pub struct Screen<'a> {
    terminal: Terminal<CrosstermBackend<&'a mut Box<dyn Write>>>,
}

impl fmt::Debug for Screen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl<'a> Screen<'a> {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If it cannot be set up.
    pub fn open(console: &'a mut Console) -> io::Result<Self> {
        // What a panic says belongs on the terminal as it was found, not on the screen that vanishes.
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = disable_raw_mode();
            let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
            former(panic);
        }));
        enable_raw_mode()?;
        execute!(console.out, EnterAlternateScreen)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(&mut console.out))? })
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = disable_raw_mode();
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen);
        let _ = self.terminal.show_cursor();
        // A panicking thread cannot change the hook, and needs it no more.
        if !std::thread::panicking() {
            drop(std::panic::take_hook());
        }
    }
}
