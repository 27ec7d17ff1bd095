//! How a call is polled, and how the metrics in its reply are read.

use pds_exposition::{Family, Sink};

use super::range::TimeRange;
use super::reader::{Reader, Unexpected};
use super::reply::{DecodeError, ReplyBody};
use super::subject::Subject;

/// The scope of one request of a polled call.
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

/// What accounting counts from a call's replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Requests, with the distribution of their durations.
    Requests,
    /// Runs.
    Runs,
}

/// The input of accounting: the count of a range, and the share within each threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// The count; `None` if the reply has no valid one.
    pub total: Option<u64>,
    /// (threshold in seconds, share 0..=1) by rising threshold; empty for calls without a distribution.
    pub shares: Vec<(f64, f64)>,
    /// The range named in the reply, if any.
    pub range: Option<TimeRange>,
}

/// A datapoint of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Unix seconds.
    pub time: f64,
    /// Its values in seconds: p50, p90 and p99.
    pub values: [Option<f64>; 3],
}

impl Point {
    /// Whether it has any value.
    #[must_use]
    pub fn has_value(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }
}

/// The contents of one reply.
#[derive(Debug, Default)]
pub struct Reading {
    /// The series of each subject, in the order of the subjects.
    pub sinks: Vec<Sink>,
    /// The input of accounting, for counted calls.
    pub tally: Option<Tally>,
    /// The datapoints by rising time, for calls with a series.
    pub points: Vec<Point>,
    /// Fields with values outside their meaning, once for each such value.
    pub unexpected: Vec<&'static str>,
    /// A message in the reply; not a metric.
    pub message: Option<String>,
}

/// What a reply is read with, beside its bytes.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The range asked for, of a metrics call.
    pub range: Option<TimeRange>,
    /// The field of a custom domain that holds its validation status; `None` means the usual ones.
    pub domain_status: Option<String>,
}

/// Reads the samples of each of the subjects from a reply that is decoded.
pub type ReadSubjects = Box<dyn FnOnce(&[Subject<'_>]) -> Reading + Send>;

/// Decodes the reply of one call.
type Decode = fn(&[u8], &Terms) -> Result<ReadSubjects, DecodeError>;

/// How a call is polled: the second half of its row.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// The value of the label `resource`.
    pub resource: &'static str,
    /// The scope of one request.
    pub scope: Scope,
    /// Which interval it follows.
    pub cadence: Cadence,
    /// What accounting counts from it.
    pub counted: Option<Counted>,
    /// A reply in the form that section 4 of the interface gives it; the values are made up.
    pub example: &'static str,
    families: fn() -> Vec<Family>,
    decode: Decode,
    point: Option<fn(Option<Point>, Subject<'_>) -> Sink>,
}

impl Polled {
    /// A call whose reply is an `R`, polled as `resource`.
    pub const fn of<R: MetricSource>(
        resource: &'static str,
        scope: Scope,
        cadence: Cadence,
        example: &'static str,
    ) -> Self {
        Self {
            resource,
            scope,
            cadence,
            counted: R::COUNTED,
            example,
            families: families::<R>,
            decode: decode::<R>,
            point: None,
        }
    }

    /// The same for a reply with a series, of which one datapoint is shown.
    pub const fn with_series<R: SeriesSource>(self) -> Self {
        Self { point: Some(point::<R>), ..self }
    }

    /// Whether the reply has a series.
    #[must_use]
    pub fn has_series(&self) -> bool {
        self.point.is_some()
    }

    /// The samples for `point` of `subject`, or for no datapoint; `None` for a call without a series.
    #[must_use]
    pub fn show_point(&self, point: Option<Point>, subject: Subject<'_>) -> Option<Sink> {
        self.point.map(|show| show(point, subject))
    }

    /// The families of its reply, in the order in which [`Polled::read`] fills them.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        (self.families)()
    }

    /// Decodes a successful reply: the part of the work that grows with its size, and needs no subject.
    ///
    /// # Errors
    /// If the reply as a whole cannot be read; a single bad value only ends up in [`Reading::unexpected`].
    pub fn decode(&self, body: &[u8], terms: &Terms) -> Result<ReadSubjects, DecodeError> {
        (self.decode)(body, terms)
    }

    /// Reads a successful reply for each of `subjects`, with the names of fields that are usual.
    ///
    /// # Errors
    /// As [`Polled::decode`].
    pub fn read(&self, body: &[u8], subjects: &[Subject<'_>]) -> Result<Reading, DecodeError> {
        let range = subjects.first().and_then(|subject| subject.window).map(|window| window.range);
        Ok(self.decode(body, &Terms { range, domain_status: None })?(subjects))
    }
}

/// A reply with metrics in it.
pub trait MetricSource: ReplyBody + 'static {
    /// The checked values of a reply, which the rows read.
    type Facts: Send + 'static;

    /// The metrics: one row per family.
    const ROWS: &'static [Row<Self::Facts>];

    /// What accounting counts.
    const COUNTED: Option<Counted> = None;

    /// Reads a reply, and checks the values that several rows or subjects share, each once.
    ///
    /// # Errors
    /// As [`ReplyBody::decode`].
    fn facts(body: &[u8], terms: &Terms, unexpected: &mut Unexpected) -> Result<Self::Facts, DecodeError>;

    /// The datapoints by rising time.
    fn points(_: &mut Self::Facts) -> Vec<Point> {
        Vec::new()
    }

    /// A message; not a metric.
    fn message(_: &Self::Facts) -> Option<String> {
        None
    }

    /// The input of accounting.
    fn tally(_: Self::Facts) -> Option<Tally> {
        None
    }
}

/// A reply with a series of datapoints.
pub trait SeriesSource: MetricSource {
    /// Facts that hold only this datapoint.
    fn only(shown: Option<Point>) -> Self::Facts;
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

fn decode<R: MetricSource>(body: &[u8], terms: &Terms) -> Result<ReadSubjects, DecodeError> {
    let mut unexpected = Unexpected::default();
    let mut facts = R::facts(body, terms, &mut unexpected)?;
    Ok(Box::new(move |subjects| {
        let points = R::points(&mut facts);
        let sinks = subjects.iter().map(|subject| sink::<R>(&facts, *subject, &mut unexpected)).collect();
        let message = R::message(&facts);
        Reading { sinks, tally: R::tally(facts), points, unexpected: unexpected.0, message }
    }))
}

fn point<R: SeriesSource>(shown: Option<Point>, subject: Subject<'_>) -> Sink {
    sink::<R>(&R::only(shown), subject, &mut Unexpected::default())
}

fn sink<R: MetricSource>(facts: &R::Facts, subject: Subject<'_>, unexpected: &mut Unexpected) -> Sink {
    let mut sink = Sink::default();
    for row in R::ROWS {
        sink.next_family();
        (row.read)(facts, &mut Reader::new(subject, unexpected, &mut sink));
    }
    sink
}

#[cfg(test)]
mod tests {
    use crate::CALLS;
    use crate::recorded::exposed;

    #[test]
    fn each_example_is_a_reply_with_nothing_unexpected() {
        for call in CALLS {
            let Some(polled) = &call.polled else { continue };
            let (page, unexpected) = exposed(call, &polled.example.replace("p-abc12345", "p-1"));
            assert_eq!(unexpected, [""; 0], "{}", call.id);
            assert!(!page.is_empty(), "{}", call.id);
        }
    }
}
