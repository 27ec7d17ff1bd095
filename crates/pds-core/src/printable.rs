//! Text from elsewhere, fit for a terminal, a log line or a page.

use std::borrow::Cow;

/// Whether a character controls a terminal, or changes the direction of the text around it.
pub fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A line, with U+FFFD in place of each such character.
pub fn plain(line: &str) -> Cow<'_, str> {
    if line.contains(is_terminal_control) {
        Cow::Owned(line.replace(is_terminal_control, "\u{fffd}"))
    } else {
        Cow::Borrowed(line)
    }
}

/// Like [`plain`], for text of several lines.
pub fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// A quoted text in one line of at most 200 characters. A longer text keeps its beginning and its end, which often says
/// what went wrong.
pub fn excerpt(text: &str) -> String {
    in_one_line(text, 140, 59)
}

/// Like [`excerpt`], in at most 1000 characters, for pages.
pub fn long_excerpt(text: &str) -> String {
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
    fn terminal_controls_are_replaced_and_other_characters_stay() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\td"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d");
        assert_eq!(plain("a\u{9b}2J\u{7}\u{202e}b\u{2069}"), "a\u{fffd}2J\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(plain("Größe 東京 🦀"), "Größe 東京 🦀");
        assert_eq!(plain_lines("a\r\nb\u{7}\n"), "a\nb\u{fffd}");
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        for length in [0, 139, 140, 141, 199, 200] {
            let text = "ä".repeat(length);
            assert_eq!(excerpt(&text), text);
        }
        let long = excerpt(&format!("begin {} end", "ä".repeat(1_000_000)));
        assert!(long.starts_with("begin ä") && long.contains("ä…ä") && long.ends_with("ä end"), "{long}");
        assert_eq!(long.chars().count(), 200);
        assert_eq!(excerpt(" two\n lines\t"), "two lines");
        assert_eq!(long_excerpt(&"ä".repeat(1000)).chars().count(), 1000);
        assert_eq!(long_excerpt(&"ä".repeat(9999)).chars().count(), 1000);
    }

    #[test]
    fn terminal_controls_are_removed() {
        assert_eq!(excerpt("out of\u{1b}[31m memory\0\u{7f}\u{202e}yromem"), "out of [31m memory yromem");
        assert_eq!(long_excerpt("\r\n\u{2066}"), "");
    }
}
