//! How a call is polled, and how the metrics in its reply are read.

use crate::catalogue::{Family, Sink};

use super::call::{DecodeError, ReplyBody};
use super::range::TimeRange;
use super::reader::{Reader, Unexpected};

/// What one request of a polled call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A service account: one reply describes all its projects.
    Account,
    /// A project.
    Project,
    /// An app.
    App,
}

/// Which of the two configured intervals a polled call follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// `poll.interval`: the call takes a range, and is asked per window and container.
    Metrics,
    /// `poll.settings_interval`.
    Settings,
}

/// What accounting counts with a call's replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Requests, with the distribution of their durations.
    Requests,
    /// Runs.
    Runs,
}

/// Whose series are read from a reply, and which of them.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The project's id.
    pub project: &'a str,
    /// The labels configured for the project, or for the app if the call is about one.
    pub labels: &'a [(String, String)],
    /// What was asked of a metrics call; `None` for settings.
    pub window: Option<Window<'a>>,
}

/// A trailing range shown as gauges.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Its length as in the label `window`: `5m`.
    pub label: &'a str,
    /// The container it is restricted to.
    pub container: Option<&'a str>,
    /// Whether it is the first one configured, which the gauges without a `window` label come from.
    pub first: bool,
    /// The range that was asked for.
    pub range: TimeRange,
}

/// What accounting adds up: how many in a range, and which share of them within each threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// How many; `None` if the reply does not say, or says nonsense.
    pub total: Option<u64>,
    /// (threshold in seconds, share 0..=1) by rising threshold; empty for calls without a distribution.
    pub shares: Vec<(f64, f64)>,
    /// The range that the reply names; `None` if it names none.
    pub range: Option<TimeRange>,
}

/// What was read from one reply.
#[derive(Debug, Default)]
pub struct Reading {
    /// The series of each subject, in the order of the subjects.
    pub sinks: Vec<Sink>,
    /// What accounting adds up, for counted calls.
    pub tally: Option<Tally>,
    /// Fields with values outside their meaning, once for each such value.
    pub unexpected: Vec<&'static str>,
}

/// How a call is polled: the second half of its row.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// The value of the label `resource`.
    pub resource: &'static str,
    /// What one request is about.
    pub scope: Scope,
    /// Which interval it follows.
    pub cadence: Cadence,
    /// What accounting counts with it.
    pub counted: Option<Counted>,
    families: fn() -> Vec<Family>,
    read: fn(&[u8], &[Subject<'_>]) -> Result<Reading, DecodeError>,
}

impl Polled {
    /// A call whose reply is an `R`, polled as `resource`.
    pub const fn of<R: MetricSource>(resource: &'static str, scope: Scope, cadence: Cadence) -> Self {
        Self { resource, scope, cadence, counted: R::COUNTED, families: families::<R>, read: read::<R> }
    }

    /// The families of its reply, in the order in which [`Polled::read`] fills them.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        (self.families)()
    }

    /// Reads a successful reply for each of `subjects`.
    ///
    /// # Errors
    /// If the reply as a whole cannot be read; a single bad value only ends up in [`Reading::unexpected`].
    pub fn read(&self, body: &[u8], subjects: &[Subject<'_>]) -> Result<Reading, DecodeError> {
        (self.read)(body, subjects)
    }
}

/// A reply with metrics in it.
pub trait MetricSource: ReplyBody + 'static {
    /// What the rows read: the checked values of a reply.
    type Facts: 'static;

    /// The metrics: one row per family.
    const ROWS: &'static [Row<Self::Facts>];

    /// What accounting counts.
    const COUNTED: Option<Counted> = None;

    /// Checks the values that several rows or subjects share, each once. `asked` is the range of a metrics call.
    fn facts(self, asked: Option<TimeRange>, unexpected: &mut Unexpected) -> Self::Facts;

    /// What accounting adds up.
    fn tally(_: Self::Facts) -> Option<Tally> {
        None
    }
}

/// A family, and how its series are read from the facts of a reply.
#[derive(Debug)]
pub struct Row<F: 'static> {
    /// The family.
    pub family: Family,
    /// Puts its series.
    pub read: fn(&F, &mut Reader<'_>),
}

fn families<R: MetricSource>() -> Vec<Family> {
    R::ROWS.iter().map(|row| row.family).collect()
}

fn read<R: MetricSource>(body: &[u8], subjects: &[Subject<'_>]) -> Result<Reading, DecodeError> {
    let mut unexpected = Unexpected::default();
    let asked = subjects.first().and_then(|subject| subject.window).map(|window| window.range);
    let facts = R::decode(body)?.facts(asked, &mut unexpected);
    let mut sinks = Vec::with_capacity(subjects.len());
    for subject in subjects {
        let mut sink = Sink::default();
        for row in R::ROWS {
            sink.next_family();
            (row.read)(&facts, &mut Reader::new(*subject, &mut unexpected, &mut sink));
        }
        sinks.push(sink);
    }
    Ok(Reading { sinks, tally: R::tally(facts), unexpected: unexpected.0 })
}
