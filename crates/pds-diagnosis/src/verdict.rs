//! Verdicts on apps, projects and the whole, with their problems and reasons. The comments here are the descriptions in the
//! schema of `/api/v1/status`.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::{About, Cause, Verdict};
use super::incident::Disputed;

/// The verdict on the whole, and the number of apps in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Whether the numbers can be trusted; `ok` only without reasons about numbers.
    pub verdict: Verdict,
    /// Reasons about numbers or apps, most severe first.
    pub reasons: Vec<Reason>,
    /// The apps by their own state, regardless of their numbers.
    pub apps: Apps,
    /// Apps whose numbers cannot be trusted.
    pub untrusted: usize,
    /// Apps of verdict `ok`.
    pub ok: usize,
    /// Apps of verdict `warning`.
    pub warning: usize,
    /// Apps of verdict `problem`.
    pub problem: usize,
    /// Apps of verdict `waiting`.
    pub waiting: usize,
    /// Requests of all apps that the service no longer has; null if it has all.
    pub disputed: Option<Disputed>,
    /// Number of those apps.
    pub disputed_apps: usize,
    /// The results of audits since the start.
    pub audit: Audited,
}

/// Apps by their own state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Apps {
    /// All of them.
    pub all: usize,
    /// Healthy apps.
    pub ok: usize,
    /// Apps with an error message or a failed build.
    pub warning: usize,
    /// Apps whose status is an error.
    pub problem: usize,
    /// Apps whose state is not known.
    pub waiting: usize,
}

impl Apps {
    /// The number of apps that are not healthy.
    pub fn unwell(self) -> usize {
        self.warning + self.problem
    }

    /// The worst state of any app.
    pub fn verdict(self) -> Verdict {
        match self {
            Self { problem: 1.., .. } => Verdict::Problem,
            Self { warning: 1.., .. } => Verdict::Warning,
            Self { waiting: 1.., .. } => Verdict::Waiting,
            _ => Verdict::Ok,
        }
    }
}

/// A problem of an app or a project. In JSON it is its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub struct Problem {
    /// Its cause; `None` for a problem that was read as text.
    pub cause: Option<&'static Cause>,
    /// The problem in words.
    pub text: String,
    /// The longest current failure.
    pub failing: Option<Failing>,
    /// The service's message, or the id that was probably meant.
    pub detail: Option<String>,
}

/// A problem known only as text.
impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self { cause: None, text, failing: None, detail: None }
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        problem.text
    }
}

impl Problem {
    /// Whether it is about numbers.
    pub fn is_of_numbers(&self) -> bool {
        self.cause.is_none_or(|cause| cause.about == About::Numbers)
    }

    /// The verdict it leads to.
    pub fn verdict(&self) -> Verdict {
        self.cause.map_or(Verdict::Problem, |cause| cause.verdict)
    }

    /// Whether its cause has this code.
    pub fn is(&self, code: &str) -> bool {
        self.cause.is_some_and(|cause| cause.code == code)
    }

    /// The problem of this cause, in words.
    pub fn of(cause: &'static Cause, text: String) -> Self {
        Self { cause: Some(cause), text, failing: None, detail: None }
    }
}

/// Since when and why a resource fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Failing {
    /// When it began to fail.
    pub since: Timestamp,
    /// When it began to fail for the cause of this class.
    #[serde(skip)]
    pub cause_since: Timestamp,
    /// The class of the last failure.
    pub class: Cow<'static, str>,
    /// The last failure in words.
    pub message: Arc<str>,
}

/// A reason why numbers or apps are not ok: a cause with everything it stops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reason {
    /// The code of the cause; codes do not change between versions.
    pub code: Cow<'static, str>,
    /// Whether it is about numbers or apps.
    pub about: About,
    /// How severe it is.
    pub verdict: Verdict,
    /// The reason in words.
    pub text: String,
    /// The last failure in words, or other details; null if there are none.
    pub detail: Option<String>,
    /// How many objects it concerns: apps and projects, else tokens or fields; 1 for the service or the exporter.
    pub count: usize,
    /// The first of these objects, 20 at most: `project/app`, a project, a token or a field.
    pub objects: Vec<String>,
    /// The page that shows all of them, and no others.
    pub link: String,
    /// Its remedy.
    pub remedy: String,
}

/// Ranges that audits compared with the sum of their parts, and with the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Audited {
    /// The ranges that are equal.
    pub equal: u64,
    /// The ranges that differ.
    pub different: u64,
}
