//! A real terminal: programs run in tmux, and the screen is read back as text.

use std::time::{Duration, Instant};

use crate::deploy::{command, output};
use crate::process::DEADLINE;

/// A screen that stays the same for so long is not expected to change.
const STANDS_STILL: Duration = Duration::from_secs(5);

/// A terminal in which a program runs. Its server ends with it.
pub(super) struct Terminal {
    socket: String,
}

impl Terminal {
    /// A terminal of 80 columns and 24 lines.
    pub(super) fn run(name: &str, program: &str) -> Self {
        Self::of_size(name, program, 80, 24)
    }

    pub(super) fn of_size(name: &str, program: &str, columns: u16, lines: u16) -> Self {
        let terminal = Self { socket: format!("pdstool-{name}-{}", std::process::id()) };
        let size = [columns.to_string(), lines.to_string()];
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], program]);
        terminal
    }

    pub(super) fn tmux(&self, args: &[&str]) -> String {
        output(command("tmux", ["-L", &self.socket]).args(args).env("LANG", "C.UTF-8"))
    }

    /// Presses keys by their tmux names; what is not a name is typed.
    pub(super) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types `text` as it is.
    pub(super) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    pub(super) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The screen with its styles as escape sequences.
    pub(super) fn styled(&self) -> String {
        self.tmux(&["capture-pane", "-e", "-p"])
    }

    /// The screen, once it is as wanted. Fails if it stands still, or stays empty until [`DEADLINE`].
    pub(super) fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let (began, mut changed, mut before) = (Instant::now(), Instant::now(), String::new());
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            if screen != before {
                (changed, before) = (Instant::now(), screen);
            }
            let stands_still = !before.trim().is_empty() && changed.elapsed() > STANDS_STILL;
            assert!(!stands_still && began.elapsed() < DEADLINE, "{what} never came:\n{before}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = command("tmux", ["-L", &self.socket, "kill-server"]).output();
    }
}
