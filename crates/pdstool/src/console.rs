//! The terminal or its replacement: the one place where the tool writes and prompts.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, IsTerminal as _, Write};
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget};
use jiff::Timestamp;
use pds_core::units;
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};

use super::error::{Result, ToolError};

/// The main text of a line.
pub const STRONG: Style = Style::new().bold();
/// Secondary text.
pub const FAINT: Style = Style::new().dimmed();
/// A good result.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A bad result.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// A result that needs attention.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// The style of a verdict, or of the state of a finding.
pub fn style_of(state: &str) -> Style {
    match state {
        "ok" => GOOD,
        "warning" => WARN,
        "problem" => BAD,
        _ => FAINT,
    }
}

/// Output and input. Results go to `out`, everything else to `err`.
pub struct Console {
    /// Standard output.
    pub out: Box<dyn Write>,
    /// Whether the reader of standard output has left.
    pub is_unread: Rc<Cell<bool>>,
    /// Standard error.
    pub err: Box<dyn Write>,
    /// Standard input.
    pub input: Box<dyn BufRead>,
    /// Whether `out` is a terminal.
    pub out_is_terminal: bool,
    /// Whether the terminal lacks escape sequences.
    pub is_dumb: bool,
    /// Whether the tool can prompt: `err` and `input` are terminals.
    pub can_ask: bool,
    /// Whether styles are written to `out`.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether tables are cut to `width`: on a terminal, or if `COLUMNS` is set. Programs get whole cells.
    pub cut: bool,
}

/// Standard output, and nowhere once its reader has left: that ends no command, and changes no exit code.
struct Output {
    out: io::Stdout,
    is_unread: Rc<Cell<bool>>,
}

impl Output {
    fn unless_unread<T>(&self, written: io::Result<T>, dropped: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread.set(true);
                Ok(dropped)
            }
            written => written,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.unless_unread(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.unless_unread(flushed, ())
    }
}

/// Columns if the terminal does not report its width.
const USUAL_WIDTH: usize = 100;

impl Console {
    /// The process's own terminal or pipes. `no_color` is whether `NO_COLOR` is set, `is_dumb` whether `TERM` lacks
    /// escape sequences, `columns` the width for pipes (`COLUMNS`).
    pub fn of_process(no_color: bool, is_dumb: bool, columns: Option<usize>) -> Self {
        let (out, err, input) = (io::stdout(), io::stderr(), io::stdin());
        let is_unread = Rc::new(Cell::new(false));
        let out_is_terminal = out.is_terminal();
        let width = if out_is_terminal { size().map(|(columns, _)| columns) } else { columns };
        Self {
            can_ask: err.is_terminal() && input.is_terminal(),
            out_is_terminal,
            is_dumb,
            color: out_is_terminal && !is_dumb && !no_color,
            cut: width.is_some(),
            width: width.unwrap_or(USUAL_WIDTH),
            out: Box::new(Output { out, is_unread: Rc::clone(&is_unread) }),
            is_unread,
            err: Box::new(err),
            input: Box::new(input.lock()),
        }
    }

    /// Shows `progress` on standard error if that is a capable terminal.
    pub fn shown(&self, progress: ProgressBar) -> ProgressBar {
        if self.is_dumb {
            progress.set_draw_target(ProgressDrawTarget::hidden());
        }
        progress
    }

    /// Writes `text` and a line end to standard output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn print(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Writes `text` and a line end to standard error. A failure is ignored: there is nowhere to report it.
    pub fn say(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}");
    }

    /// `text` in `style`, if styles are written.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Prompts for a line on a terminal; without a terminal, the error names `flag` as the alternative.
    ///
    /// # Errors
    /// If there is no terminal, or it was closed.
    pub fn ask(&mut self, question: &str, flag: &str) -> Result<String> {
        if !self.can_ask {
            return Err(ToolError::Usage(format!("there is no terminal to prompt on; use {flag}")));
        }
        self.answer(question)
    }

    /// Writes a question that is answered in the same line. A failure is ignored: there is nowhere to report it.
    fn prompt(&mut self, question: &str) {
        let _ = write!(self.err, "{question} ").and_then(|()| self.err.flush());
    }

    fn answer(&mut self, question: &str) -> Result<String> {
        self.prompt(question);
        let mut answer = String::new();
        match self.input.read_line(&mut answer)? {
            0 => Err(no_answer()),
            _ => Ok(answer.trim().to_owned()),
        }
    }

    /// Like [`Console::ask`], without showing what is typed.
    ///
    /// # Errors
    /// If the terminal cannot be set up or was closed.
    pub fn ask_secret(&mut self, question: &str) -> Result<String> {
        self.prompt(question);
        let mut modes = tcgetattr(io::stdin()).map_err(io::Error::from)?;
        let before = modes.clone();
        modes.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &modes).map_err(io::Error::from)?;
        let answer = self.hidden_line();
        // A closed terminal needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        self.say("");
        let answer = answer?.ok_or_else(no_answer)?;
        Ok(String::from_utf8_lossy(&answer).trim().to_owned())
    }

    /// Reads a line from a terminal in raw mode, which does not show it; `None` if the terminal was closed.
    fn hidden_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            match (self.input.read(&mut byte)?, byte) {
                (0, _) | (_, [0x03 | 0x04]) => return Ok(None),
                (_, [b'\r' | b'\n']) => return Ok(Some(line)),
                (_, [0x08 | 0x7f]) => drop(line.pop()),
                (_, [byte]) => line.push(byte),
            }
        }
    }

    /// Prompts before an action that cannot be undone or costs money; `yes` is `--yes`.
    ///
    /// # Errors
    /// If the answer is no, or there is no terminal to prompt on.
    pub fn confirm(&mut self, consequence: &str, yes: bool) -> Result<()> {
        if yes {
            return Ok(());
        }
        if !self.can_ask {
            return Err(ToolError::Usage(format!(
                "this {consequence}; there is no terminal to prompt on: use --yes to confirm"
            )));
        }
        match self.answer(&format!("This {consequence}. Continue? [y/N]")) {
            Ok(answer) if ["y", "yes"].contains(&&*answer.to_lowercase()) => Ok(()),
            _ => Err(ToolError::failed("not confirmed; nothing was sent")),
        }
    }
}

fn no_answer() -> ToolError {
    ToolError::Failed { message: "interrupted: the prompt has no answer".to_owned(), code: 130 }
}

/// The columns and lines of the terminal, if it reports its width.
fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    let lines = if size.ws_row > 0 { size.ws_row.into() } else { USUAL_HEIGHT };
    Some((size.ws_col.into(), lines)).filter(|(columns, _)| *columns > 0)
}

/// Lines if the terminal does not report its height.
const USUAL_HEIGHT: usize = 24;

/// Output that is kept.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Kept {
    fn take(&self) -> Vec<u8> {
        mem::take(&mut self.0.borrow_mut())
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `show` repeatedly until an error that another attempt cannot fix. On a terminal, each output replaces the last,
/// up to the height of the terminal, with errors and warnings above all else; elsewhere it follows the last.
///
/// # Errors
/// If standard output cannot be written, or the arguments are wrong.
pub async fn repeat(
    console: &mut Console,
    every: Duration,
    mut show: impl AsyncFnMut(&mut Console) -> Result<()>,
) -> Result<()> {
    if !console.out_is_terminal || console.is_dumb {
        loop {
            attempt(console, &mut show).await?;
            console.print("")?;
            console.out.flush()?;
            if console.is_unread.get() {
                return Ok(());
            }
            tokio::time::sleep(every).await;
        }
    }
    let (results, messages) = (Kept::default(), Kept::default());
    let mut screen = mem::replace(&mut console.out, Box::new(results.clone()));
    console.err = Box::new(messages.clone());
    let mut start = "\x1b[2J";
    loop {
        let (width, height) = size().unwrap_or((USUAL_WIDTH, USUAL_HEIGHT));
        console.width = width;
        let now = units::time(Timestamp::now());
        let head = format!("{now}, every {}; Ctrl-C ends it", units::seconds(every.as_secs_f64()));
        console.say(&console.styled(FAINT, &head));
        attempt(console, &mut show).await?;
        let text = [messages.take(), results.take()].concat();
        let text = String::from_utf8_lossy(&text);
        screen.write_all(format!("{start}{}", frame(&text, (width, height))).as_bytes())?;
        screen.flush()?;
        start = "";
        tokio::time::sleep(every).await;
    }
}

/// Prints the output of `show`, and its error if the next attempt may succeed.
async fn attempt(
    console: &mut Console,
    show: &mut impl AsyncFnMut(&mut Console) -> Result<()>,
) -> Result<()> {
    match show(console).await {
        Err(error @ ToolError::Failed { .. }) => {
            let label = console.styled(BAD, "error:");
            console.say(&format!("{label} {error}"));
            Ok(())
        }
        other => other,
    }
}

/// `text` that overwrites a screen of this size from its top, cut to what fits.
fn frame(text: &str, (width, height): (usize, usize)) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut room = height.saturating_sub(1);
    let heights = lines.iter().map(|line| visible(line).div_ceil(width).max(1));
    let fits = heights.take_while(|rows| room.checked_sub(*rows).inspect(|left| room = *left).is_some());
    let rows = match fits.count() {
        rows if rows < lines.len() => rows.saturating_sub(1),
        all => all,
    };
    let mut frame = "\x1b[H".to_owned();
    for line in lines.iter().take(rows) {
        frame.push_str(line);
        frame.push_str("\x1b[K\n");
    }
    if rows < lines.len() {
        frame.push_str(&format!("and {} more lines\x1b[K\n", lines.len() - rows));
    }
    frame + "\x1b[J"
}

/// The columns that `line` takes, styles apart.
fn visible(line: &str) -> usize {
    let styled = line.split("\x1b[").skip(1).map(|part| part.find('m').map_or(0, |end| end + 3));
    line.chars().count().saturating_sub(styled.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_covers_the_last_one_and_fits_the_screen() {
        for (text, height, shown) in [
            ("a\n\x1b[31mb\x1b[0m\n", 24, "a\x1b[K\n\x1b[31mb\x1b[0m\x1b[K\n"),
            ("a\nb\nc\nd\n", 4, "a\x1b[K\nb\x1b[K\nand 2 more lines\x1b[K\n"),
            ("a\n0123456789-\nc\n", 5, "a\x1b[K\n0123456789-\x1b[K\nc\x1b[K\n"),
            ("a\n0123456789-\nc\n", 4, "a\x1b[K\nand 2 more lines\x1b[K\n"),
        ] {
            assert_eq!(frame(text, (10, height)), format!("\x1b[H{shown}\x1b[J"), "{text:?}");
        }
    }
}
