//! An error and what caused it, in one line for people.

use std::error::Error;

use super::printable::is_terminal_control;

/// The text of an error, followed by its causes. A cause is not repeated if the line already ends in its text: some
/// libraries include the cause in their own text.
pub fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| (*cause).source()) {
        let more = cause.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
    }
    text
}

/// A quoted text in one line of at most 200 characters. A longer text keeps its beginning and its end, which often says
/// what went wrong.
pub fn shortened(text: &str) -> String {
    in_one_line(text, 140, 59)
}

/// Like [`shortened`], in at most 1000 characters, for pages.
pub fn in_full(text: &str) -> String {
    in_one_line(text, 800, 199)
}

/// The text without control characters and characters that change its direction.
fn in_one_line(text: &str, first: usize, last: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || is_terminal_control(c));
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.char_indices().nth(first + last + 1).is_none() {
        return line;
    }
    let start: String = line.chars().take(first).collect();
    let end = line.char_indices().rev().nth(last - 1).and_then(|(at, _)| line.get(at..)).unwrap_or_default();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends() {
        for length in [0, 139, 140, 141, 199, 200] {
            let text = "ä".repeat(length);
            assert_eq!(shortened(&text), text);
        }
        let long = shortened(&format!("begin {} end", "ä".repeat(1_000_000)));
        assert!(long.starts_with("begin ä") && long.contains("ä…ä") && long.ends_with("ä end"), "{long}");
        assert_eq!(long.chars().count(), 200);
        assert_eq!(shortened(" two\n lines\t"), "two lines");
        assert_eq!(in_full(&"ä".repeat(1000)).chars().count(), 1000);
        assert_eq!(in_full(&"ä".repeat(9999)).chars().count(), 1000);
    }

    #[test]
    fn terminal_controls_are_removed() {
        assert_eq!(in_full("out of\u{1b}[31m memory\0\u{7f}\u{202e}yromem"), "out of [31m memory yromem");
        assert_eq!(in_full("\r\n\u{2066}"), "");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the file{}", if *.verbose { ": disk on fire" } else { "" })]
    struct Outer {
        verbose: bool,
        source: std::io::Error,
    }

    #[test]
    fn each_cause_is_named_once() {
        let error = |verbose| Outer { verbose, source: std::io::Error::other("disk on fire") };
        assert_eq!(with_sources(&error(false)), "cannot read the file: disk on fire");
        assert_eq!(with_sources(&error(true)), "cannot read the file: disk on fire");
    }
}
