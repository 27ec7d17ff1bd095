//! A problem of an app or a project: its cause, and since when it lasts.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cause::{About, Cause, Verdict};

/// A problem of an app or a project. In JSON it is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its cause; `None` for a problem that was read as text.
    pub cause: Option<&'static Cause>,
    /// The problem in words.
    pub text: String,
    /// The failure that has lasted longest.
    pub(super) failing: Option<Failing>,
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from_text)
    }
}

impl Problem {
    /// A problem of which only the text is known.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self { cause: None, text, failing: None }
    }

    /// Whether it is about numbers.
    #[must_use]
    pub fn is_of_numbers(&self) -> bool {
        self.cause.is_none_or(|cause| cause.about == About::Numbers)
    }

    /// The verdict it leads to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.cause.map_or(Verdict::Problem, |cause| cause.verdict)
    }

    /// Whether its cause has this code.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        self.cause.is_some_and(|cause| cause.code == code)
    }

    pub(super) fn of(cause: &'static Cause, text: String) -> Self {
        Self { cause: Some(cause), text, failing: None }
    }
}

/// Since when and why a resource fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Failing {
    /// When it began to fail.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// The class of the last failure.
    pub class: Cow<'static, str>,
    /// The last failure in words.
    pub message: Arc<str>,
}
