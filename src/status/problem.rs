//! What is wrong with an app or a project.

use serde::Serialize;

use super::cause::Cause;
use super::verdict::Verdict;

/// A problem of an app or a project. In JSON it is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code of its cause.
    pub code: &'static str,
    /// The problem in words.
    pub text: String,
    /// The same without details of the app, so that apps with the same problem can be grouped.
    pub(super) summary: String,
    pub(super) cause: &'static Cause,
}

impl Problem {
    /// What to do about it.
    #[must_use]
    pub fn action(&self) -> &'static str {
        self.cause.action
    }

    /// How severe it is.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.cause.verdict
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
