//! Verdicts on apps, projects and the whole, with their problems and reasons. The comments here are the descriptions in the
//! schema of `/api/v1/status`.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cause::{About, Cause, Verdict};
use crate::poll::progress::{Hole, Rechecked};

/// The verdict on the whole, and the number of apps in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Summary {
    /// Whether the numbers can be trusted: `ok` only if there is no reason about numbers.
    pub verdict: Verdict,
    /// What is wrong with numbers or apps, most severe first.
    pub reasons: Vec<Reason>,
    /// The apps by their own state, whatever their numbers.
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
    /// Requests of all apps that were counted again.
    pub rechecked: CountedAgain,
    /// What audits found since the start.
    pub audit: Audited,
}

/// Apps by their own state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Apps {
    /// All of them.
    pub all: usize,
    /// Those in which nothing is wrong.
    pub ok: usize,
    /// Those with an error message or a failed build.
    pub warning: usize,
    /// Those whose status is an error.
    pub problem: usize,
    /// Those whose state is not known.
    pub waiting: usize,
}

impl Apps {
    /// Those in which something is wrong.
    #[must_use]
    pub fn unwell(self) -> usize {
        self.warning + self.problem
    }

    /// The worst state of any.
    #[must_use]
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

/// Something wrong with numbers or apps: a cause with everything it stops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
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
    /// What to do about it.
    pub remedy: String,
}

/// Ranges that audits compared: with the sum of their parts, and with what was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Audited {
    /// Those that are equal.
    pub equal: u64,
    /// Those that are not.
    pub different: u64,
}

/// Requests or runs counted again since the exporter started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct CountedAgain {
    /// How many were counted again.
    pub counted: u64,
    /// How many of them the service knew of only after they were first counted.
    pub late: u64,
    /// How many fewer there were than first counted; they stay in the counters.
    pub overcounted: u64,
}

/// Time that the service always refused, while it answered for later time. Its requests are in no counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct GivenUp {
    /// Its start.
    #[schemars(with = "String")]
    pub start: Timestamp,
    /// Its end.
    #[schemars(with = "String")]
    pub end: Timestamp,
    /// How the service refused it.
    pub reason: Arc<str>,
}

impl From<Hole> for GivenUp {
    fn from(Hole { range, reason }: Hole) -> Self {
        let time = |second: i64| Timestamp::from_second(second).unwrap_or_default();
        Self { start: time(range.start), end: time(range.end), reason }
    }
}

impl CountedAgain {
    /// The share that came late; `None` before anything was counted again.
    #[must_use]
    pub fn late_share(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        (self.counted > 0).then(|| self.late as f64 / self.counted as f64)
    }

    /// The sum of all.
    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, one| Self {
            counted: sum.counted + one.counted,
            late: sum.late + one.late,
            overcounted: sum.overcounted + one.overcounted,
        })
    }
}

impl From<Rechecked> for CountedAgain {
    fn from(Rechecked { counted, late, overcounted }: Rechecked) -> Self {
        Self { counted, late, overcounted }
    }
}
