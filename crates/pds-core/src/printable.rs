//! Text from elsewhere, fit for a terminal.

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
}
