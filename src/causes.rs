//! An error and what caused it, in one line for people.

use std::error::Error;

/// The error's text, followed by its causes. One whose text the line ends in already is not repeated: some libraries
/// put their cause into their own text.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
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
    fn each_cause_is_said_once() {
        let error = |verbose| Outer { verbose, source: std::io::Error::other("disk on fire") };
        assert_eq!(with_causes(&error(false)), "cannot read the file: disk on fire");
        assert_eq!(with_causes(&error(true)), "cannot read the file: disk on fire");
    }
}
