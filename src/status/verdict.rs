//! The verdict on apps, on projects and on all of it, with its reasons. The comments here are the descriptions in the
//! schema of `/api/v1/status`.

use schemars::JsonSchema;
use serde::Serialize;

use super::rechecked::CountedAgain;

/// The verdict on an app and its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Something is not there or not right.
    Problem,
    /// Something deserves a look.
    Warning,
    /// Not every resource was polled yet.
    #[default]
    Waiting,
    /// All is well.
    Ok,
}

/// The verdict on all of it, and how many apps are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Whether the numbers can be trusted: `ok` only without any reason to the contrary.
    pub verdict: Verdict,
    /// Why the verdict is not `ok`, the gravest first.
    pub reasons: Vec<Reason>,
    /// All apps.
    pub apps: usize,
    /// Apps of verdict `ok`.
    pub ok: usize,
    /// Apps of verdict `warning`.
    pub warning: usize,
    /// Apps of verdict `problem`.
    pub problem: usize,
    /// Apps of verdict `waiting`.
    pub waiting: usize,
    /// Requests of all apps that were counted again.
    pub rechecked: CountedAgain,
}

/// A reason why the verdict is not `ok`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reason {
    /// Its code; codes do not change between versions.
    pub code: &'static str,
    /// How grave it is.
    pub verdict: Verdict,
    /// The reason in words.
    pub text: String,
    /// How many apps or projects it concerns; 1 for a reason of the service or the exporter.
    pub count: usize,
    /// The page that shows more of it.
    pub link: String,
    /// What to do about it.
    pub action: &'static str,
}

impl Verdict {
    /// All verdicts, the gravest first.
    pub const ALL: [Self; 4] = [Self::Problem, Self::Warning, Self::Waiting, Self::Ok];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Waiting => "waiting",
            Self::Ok => "ok",
        }
    }
}
