//! An error and what caused it, in one line for people.

use std::error::Error;

/// The error's text, followed by its causes. One whose text the line ends in already is not repeated: some libraries
/// put their cause into their own text.
#[must_use]
pub fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// A text that is quoted from elsewhere, in one line of 200 characters at most. Of a longer one the end is kept too:
/// what went wrong often stands there.
#[must_use]
pub fn in_brief(text: &str) -> String {
    const FIRST: usize = 140;
    const LAST: usize = 59;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.char_indices().nth(FIRST + LAST + 1).is_none() {
        return text;
    }
    let first: String = text.chars().take(FIRST).collect();
    let last = text.char_indices().rev().nth(LAST - 1).and_then(|(at, _)| text.get(at..)).unwrap_or_default();
    format!("{first}…{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends() {
        for length in [0, 139, 140, 141, 199, 200] {
            let text = "ä".repeat(length);
            assert_eq!(in_brief(&text), text);
        }
        let long = in_brief(&format!("begin {} end", "ä".repeat(1_000_000)));
        assert!(long.starts_with("begin ä") && long.contains("ä…ä") && long.ends_with("ä end"), "{long}");
        assert_eq!(long.chars().count(), 200);
        assert_eq!(in_brief(" two\n lines\t"), "two lines");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the file{}", if *.verbose { ": disk on fire" } else { "" })]
    struct Outer {
        verbose: bool,
        source: std::io::Error,
    }

    #[test]
    fn each_cause_is_said_once() {
        let error = |verbose| Outer { verbose, source: std::io::Error::other("disk on fire") };
        assert_eq!(with_sources(&error(false)), "cannot read the file: disk on fire");
        assert_eq!(with_sources(&error(true)), "cannot read the file: disk on fire");
    }
}
