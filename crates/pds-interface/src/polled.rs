//! Polled calls, and the metrics in their replies.

use std::sync::Arc;

use pds_exposition::{Family, Sink};
use serde::{Deserialize, Serialize};

use super::range::TimeRange;
use super::reader::{Reader, Subject, Unexpected};
use super::reply::DecodeError;

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

/// The configured interval that a polled call follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// `poll.interval`: the call takes a range, and is sent per window and container.
    Metrics,
    /// `poll.settings_interval`.
    Settings,
}

/// Counts that accounting takes from a call's replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Requests, with the distribution of their durations.
    Requests,
    /// Runs.
    Runs,
}

/// The input of accounting: the count of a range, and the share within each threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The count; `None` if the reply has no valid one.
    pub total: Option<u64>,
    /// Fraction of the count beyond that, below 1.
    pub fraction: f64,
    /// (threshold in seconds, share 0..=1) by rising threshold; empty for calls without a distribution.
    pub shares: Vec<(f64, f64)>,
    /// Whether the reply also has shares within thresholds that are not exposed.
    pub has_hidden_shares: bool,
    /// The range named in the reply, if any.
    pub range: Option<TimeRange>,
}

impl Tally {
    /// A tally of this count, which may have a fraction.
    pub(super) fn of(count: Option<f64>, shares: Vec<(f64, f64)>, range: Option<TimeRange>) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be within 0..=2^53")]
        let total = count.map(|count| count.floor() as u64);
        Self { total, fraction: count.map_or(0.0, f64::fract), shares, range, ..Self::default() }
    }

    /// The step that its shares are multiples of: a power of ten, 0.01 for whole percents; 1e-7 for shares that are not
    /// rounded, or finer than a number of 32 bits.
    pub fn share_step(&self) -> f64 {
        let fits = |scale: f64| {
            let noise = |(_, share): &(f64, f64)| (share - (share * scale).round() / scale).abs();
            self.shares.iter().all(|share| noise(share) < 1e-7)
        };
        (2..7).map(|decimals| 10f64.powi(decimals)).find(|scale| fits(*scale)).unwrap_or(1e7).recip()
    }

    /// The step that its shares are rounded to; `None` if they give whole counts, as exact shares do.
    pub fn rounding(&self) -> Option<f64> {
        let total = self.count().filter(|_| self.fraction == 0.0)?;
        let is_rounded = |(_, share): &(f64, f64)| {
            let count = share * total;
            (count - count.round()).abs() > (1e-6 * total).max(1e-6)
        };
        self.shares.iter().any(is_rounded).then(|| self.share_step())
    }

    /// The count with its fraction.
    pub fn count(&self) -> Option<f64> {
        self.total.map(|total| total as f64 + self.fraction)
    }
}

/// A datapoint of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Unix seconds.
    pub time: f64,
    /// Its values in seconds: p50, p90 and p99.
    pub values: [Option<f64>; 3],
}

impl Point {
    /// Whether it has any value.
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
    /// The first label of a distribution that is no threshold.
    pub unexpected_label: Option<String>,
    /// A message in the reply; not a metric.
    pub message: Option<String>,
}

/// Context for reading a reply.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The requested project; empty means any.
    pub project: Arc<str>,
    /// The requested app; empty means any.
    pub app: Arc<str>,
    /// The requested range, of a metrics call.
    pub range: Option<TimeRange>,
    /// The field of a custom domain that holds its validation status; `None` means the usual ones.
    pub domain_status: Option<String>,
    /// The thresholds of a distribution that are read, in seconds; empty means all.
    pub thresholds: Vec<f64>,
    /// Whether shares within the thresholds have no series.
    pub without_ratio: bool,
}

impl Terms {
    /// Terms for replies about an app of a project; without ids, about any.
    pub fn about(project: &str, app: &str) -> Self {
        Self { project: project.into(), app: app.into(), ..Self::default() }
    }
}

/// Reads the samples of each of the subjects from a reply that is decoded.
pub type ReadSubjects = Box<dyn FnOnce(&[Subject<'_>]) -> Reading + Send>;

/// Decodes the reply of one call.
type Decode = fn(&[u8], &Terms) -> Result<ReadSubjects, DecodeError>;

/// Polling of a call: the second half of its row.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// The value of the label `resource`.
    pub resource: &'static str,
    /// The scope of one request.
    pub scope: Scope,
    /// The interval it follows.
    pub cadence: Cadence,
    /// Counts that accounting takes from it.
    pub counted: Option<Counted>,
    /// Whether the reply has a series.
    pub has_series: bool,
    /// A reply in the form that section 4 of the interface gives it; the values are made up.
    pub example: &'static str,
    families: fn() -> Vec<Family>,
    decode: Decode,
}

impl Polled {
    /// A call whose reply is read into an `R`, polled as `resource`.
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
            has_series: R::HAS_SERIES,
            example,
            families: || R::ROWS.iter().map(|row| row.family).collect(),
            decode: decode::<R>,
        }
    }

    /// The families of its reply, in the order in which [`Polled::read`] fills them.
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

    /// Reads a successful reply of any app for each of `subjects`, with the names of fields that are usual.
    ///
    /// # Errors
    /// Same as [`Polled::decode`].
    pub fn read(&self, body: &[u8], subjects: &[Subject<'_>]) -> Result<Reading, DecodeError> {
        let range = subjects.first().and_then(|subject| subject.window).map(|window| window.range);
        Ok(self.decode(body, &Terms { range, ..Terms::default() })?(subjects))
    }
}

/// The checked values of a reply with metrics in it, which the rows read.
pub trait MetricSource: Sized + Send + 'static {
    /// The metrics: one row per family.
    const ROWS: &'static [Row<Self>];

    /// Counts for accounting.
    const COUNTED: Option<Counted> = None;

    /// Whether the reply has a series.
    const HAS_SERIES: bool = false;

    /// Reads a reply, and checks the values that several rows or subjects share, each once.
    ///
    /// # Errors
    /// Same as [`ReplyBody::decode`](super::ReplyBody::decode).
    fn read(body: &[u8], terms: &Terms, unexpected: &mut Unexpected) -> Result<Self, DecodeError>;

    /// Adds what the reply holds beside its series.
    fn add_to(self, _: &mut Reading) {}
}

/// A family, and how its series are read from the values of a reply.
#[derive(Debug)]
pub struct Row<R: 'static> {
    /// The family.
    pub family: Family,
    /// Puts its series.
    pub read: fn(&R, &mut Reader<'_>),
}

/// Declares `ROWS`, and a constant for each family: `rows! { Reply, "source of all families": … }`, with a line per
/// family: `NAME: kind(family, [labels], help) => |reply, reader| puts the series;`
macro_rules! rows {
    ($reply:ty, $source:literal: $($name:ident: $kind:ident($family:literal, $labels:tt, $help:literal) => $read:expr;)+) => {
        $(
            #[doc = $help]
            pub const $name: Family = Family::$kind($family, &$labels, $help).with_source($source);
        )+

        pub(super) static ROWS: &[Row<$reply>] = &[$(Row { family: $name, read: $read }),+];
    };
}
pub(super) use rows;

fn decode<R: MetricSource>(body: &[u8], terms: &Terms) -> Result<ReadSubjects, DecodeError> {
    let mut unexpected = Unexpected::default();
    let reply = R::read(body, terms, &mut unexpected)?;
    Ok(Box::new(move |subjects| {
        let sinks = subjects.iter().map(|subject| sink(&reply, *subject, &mut unexpected)).collect();
        let Unexpected { fields: unexpected, label: unexpected_label } = unexpected;
        let mut reading = Reading { sinks, unexpected, unexpected_label, ..Reading::default() };
        reply.add_to(&mut reading);
        reading
    }))
}

pub(super) fn sink<R: MetricSource>(reply: &R, subject: Subject<'_>, unexpected: &mut Unexpected) -> Sink {
    let mut reader = Reader { subject, unexpected, sink: Sink::default() };
    for row in R::ROWS {
        reader.sink.next_family();
        (row.read)(reply, &mut reader);
    }
    reader.sink
}

#[cfg(test)]
mod tests {
    use super::Terms;
    use crate::CALLS;
    use crate::tests::exposed;

    #[test]
    fn each_example_is_a_reply_with_nothing_unexpected() {
        for call in CALLS {
            let Some(polled) = &call.polled else { continue };
            let (page, unexpected) = exposed(call, &polled.example.replace("p-abc12345", "p-1"));
            assert_eq!(unexpected, [""; 0], "{}", call.id);
            assert!(!page.is_empty(), "{}", call.id);
        }
    }

    #[test]
    fn a_reply_is_judged_by_what_a_poll_reads() {
        for (call, polled) in CALLS.iter().filter_map(|call| Some((call, call.polled.as_ref()?))) {
            let is_good = |reply: &&str| call.judge(reply.as_bytes(), &Terms::default()).is_ok();
            assert!(is_good(&polled.example), "{}", call.id);
            let error = br#"{"status":"error","errorMessage":"the database is down"}"#;
            let error = call.judge(error, &Terms::default()).unwrap_err();
            assert_eq!(error.to_string(), "the service reports: the database is down", "{}", call.id);
            assert!(!["{}", "", "null", "<html>"].iter().any(is_good), "{}", call.id);
        }
    }
}
