//! An error and what caused it, in one line for people.

use std::error::Error;

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

#[cfg(test)]
mod tests {
    use super::*;

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
