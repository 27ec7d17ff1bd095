//! Verdicts on apps, projects and the whole, with their reasons. The comments here are the descriptions in the
//! schema of `/api/v1/status`.

use schemars::JsonSchema;
use serde::Serialize;

use super::rechecked::CountedAgain;

/// The verdict on an app and its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Something is missing or wrong.
    Problem,
    /// Something needs attention.
    Warning,
    /// Not every resource has been polled yet.
    #[default]
    Waiting,
    /// All is well.
    Ok,
}

/// The verdict on the whole, and the number of apps in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Whether the numbers can be trusted: `ok` only if there is no reason against it.
    pub verdict: Verdict,
    /// Why the verdict is not `ok`, most severe first.
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
    /// How severe it is.
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
    /// All verdicts, most severe first.
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
