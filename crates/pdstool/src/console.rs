//! The terminal or its replacement: the one place where the tool writes and prompts.

use std::io::{self, BufRead, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use ratatui::crossterm::terminal;

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
/// A bar.
pub const BAR: Style = AnsiColor::Cyan.on_default();

/// Where output goes and input comes from. Results go to `out`, everything else to `err`.
pub struct Console {
    /// Standard output.
    pub out: Box<dyn Write>,
    /// Standard error.
    pub err: Box<dyn Write>,
    /// Standard input.
    pub input: Box<dyn BufRead>,
    /// Whether `out` is a terminal.
    pub out_is_terminal: bool,
    /// Whether the tool can prompt: `err` and `input` are terminals.
    pub can_ask: bool,
    /// Whether styles are written to `out`.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether tables are cut to `width`: there is a terminal, or `COLUMNS` is set. Programs get whole cells.
    pub cut: bool,
}

/// Columns if the terminal does not report its width.
const USUAL_WIDTH: usize = 100;

impl Console {
    /// The process's own terminal or pipes. `no_color` is whether the environment says `NO_COLOR`, `columns` the width
    /// that it gives for pipes (`COLUMNS`).
    pub fn of_process(no_color: bool, columns: Option<usize>) -> Self {
        let (out, err, input) = (io::stdout(), io::stderr(), io::stdin());
        let out_is_terminal = out.is_terminal();
        let size = || terminal::size().ok().map(|(columns, _)| columns.into());
        let width = if out_is_terminal { size() } else { columns };
        Self {
            can_ask: err.is_terminal() && input.is_terminal(),
            out_is_terminal,
            color: out_is_terminal && !no_color,
            cut: width.is_some(),
            width: width.unwrap_or(USUAL_WIDTH),
            out: Box::new(out),
            err: Box::new(err),
            input: Box::new(input.lock()),
        }
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

    /// Asks for a line on a terminal; `flag` says what takes its place without one.
    ///
    /// # Errors
    /// If there is no terminal to ask on, or it was closed.
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
            0 => Err(ToolError::NotConfirmed),
            _ => Ok(answer.trim().to_owned()),
        }
    }

    /// As [`Console::ask`], without showing what is typed.
    ///
    /// # Errors
    /// If the terminal cannot be set up or was closed.
    pub fn ask_secret(&mut self, question: &str) -> Result<String> {
        self.prompt(question);
        terminal::enable_raw_mode()?;
        let answer = self.hidden_line();
        // A terminal that is gone needs no restoring.
        let _ = terminal::disable_raw_mode();
        self.say("");
        let answer = answer?.ok_or(ToolError::NotConfirmed)?;
        Ok(String::from_utf8_lossy(&answer).trim().to_owned())
    }

    /// A line typed on a terminal in raw mode, which does not show it; `None` if the terminal was closed.
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
        match &*self.answer(&format!("This {consequence}. Go on? [y/N]"))?.to_lowercase() {
            "y" | "yes" => Ok(()),
            _ => Err(ToolError::NotConfirmed),
        }
    }
}
