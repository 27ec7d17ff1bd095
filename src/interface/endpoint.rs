//! A polled call as a row: which resource it is, how often it is asked, and which metrics its reply holds.

use crate::catalogue::{Family, Sink};
use crate::config::{App, Project, QueryNames, Resolution};

use super::number::Number;
use super::range::TimeRange;
use super::spec::{DecodeError, Request, RuleError, Spec};

/// What is polled; the value of the label `resource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// One app's settings.
    App,
    /// One app's response times.
    ResponseTime,
    /// One app's run execution times.
    RunExecutionTime,
    /// One project's storage alert thresholds.
    VolumeAlerts,
    /// One project's custom domains.
    Domains,
    /// The projects of a service account.
    Projects,
}

impl Resource {
    /// All resources.
    pub const ALL: [Self; 6] = [
        Self::App,
        Self::ResponseTime,
        Self::RunExecutionTime,
        Self::VolumeAlerts,
        Self::Domains,
        Self::Projects,
    ];

    /// The resource as a label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::ResponseTime => "response_time",
            Self::RunExecutionTime => "run_execution_time",
            Self::VolumeAlerts => "volume_alerts",
            Self::Domains => "domains",
            Self::Projects => "projects",
        }
    }
}

/// What one request of an endpoint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A service account: one reply tells of all its projects.
    Account,
    /// A project.
    Project,
    /// An app.
    App,
}

/// Which of the two configured intervals an endpoint follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// `poll.interval`: the call takes a range, and is asked per window and container.
    Metrics,
    /// `poll.settings_interval`.
    Settings,
}

/// The arguments of one request.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The project's id; unused by calls about an account.
    pub project: &'a str,
    /// The app's id; unused by calls about a project.
    pub app: &'a str,
    /// The range of a metrics call.
    pub range: Option<TimeRange>,
    /// The container a metrics call is restricted to.
    pub container: Option<&'a str>,
    /// The data resolution of a metrics call.
    pub resolution: Resolution,
    /// The names of the metrics calls' query parameters.
    pub names: &'a QueryNames,
}

/// Whose series are read from a reply, and which of them.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The project as configured.
    pub project: &'a Project,
    /// The app as configured, for calls about an app.
    pub app: Option<&'a App>,
    /// What was asked of a metrics call; `None` for settings.
    pub window: Option<Window<'a>>,
}

/// A trailing range shown as gauges.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Its length as the label `window` has it: `5m`.
    pub label: &'a str,
    /// The container it is restricted to.
    pub container: Option<&'a str>,
    /// Whether it is the first one configured; the gauges without a `window` label come from that.
    pub first: bool,
    /// The range that was asked for.
    pub range: TimeRange,
}

/// What accounting adds up: how many in a range, and which share of them within each threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// How many; `None` where the reply does not say, or says nonsense.
    pub total: Option<u64>,
    /// (threshold in seconds, share 0..=1) by rising threshold; empty for calls without a distribution.
    pub shares: Vec<(f64, f64)>,
    /// The range that the reply says it is about; `None` where it does not say.
    pub range: Option<TimeRange>,
}

/// What was read from one reply.
#[derive(Debug, Default)]
pub struct Reading {
    /// The series of each subject, in the order the subjects were given.
    pub sinks: Vec<Sink>,
    /// What accounting adds up, for the calls it uses.
    pub tally: Option<Tally>,
    /// Fields with values outside their meaning, once for each such value.
    pub unexpected: Vec<&'static str>,
}

/// A polled call. Implemented once, by [`Polled`]; an object so that calls of different replies stand in one list.
pub trait Endpoint: Sync + Send + std::fmt::Debug {
    /// What is polled.
    fn resource(&self) -> Resource;
    /// The call behind it.
    fn spec(&self) -> &'static Spec;
    /// What one request is about.
    fn scope(&self) -> Scope;
    /// Which interval it follows.
    fn cadence(&self) -> Cadence;
    /// Its families, in the order in which [`Endpoint::read`] fills them.
    fn families(&self) -> Vec<Family>;
    /// The request for `ask`.
    ///
    /// # Errors
    /// As [`Request::new`], and where the range ends before it starts.
    fn request(&self, ask: &Ask<'_>) -> Result<Request, RuleError>;
    /// Reads a successful reply for each of `subjects`.
    ///
    /// # Errors
    /// Where the reply as a whole can't be read; a single bad value only ends up in [`Reading::unexpected`].
    fn read(&self, body: &[u8], subjects: &[Subject<'_>]) -> Result<Reading, DecodeError>;
}

/// An endpoint whose reply is a `T`.
#[derive(Debug)]
pub struct Polled<T: 'static> {
    /// What is polled.
    pub resource: Resource,
    /// The call behind it.
    pub spec: &'static Spec,
    /// What one request is about.
    pub scope: Scope,
    /// Which interval it follows.
    pub cadence: Cadence,
    /// Makes the request.
    pub request: fn(&Ask<'_>) -> Result<Request, RuleError>,
    /// Reads the body.
    pub decode: fn(&[u8]) -> Result<T, DecodeError>,
    /// The metrics in it: one row a family.
    pub rows: &'static [Row<T>],
    /// What accounting adds up, for the calls it uses.
    pub tally: Option<fn(&T, &mut Unexpected) -> Tally>,
}

/// A family, and how its series are read from a reply.
#[derive(Debug)]
pub struct Row<T: 'static> {
    /// The family.
    pub family: Family,
    /// Puts its series.
    pub read: fn(&T, &mut Reader<'_>),
}

/// The fields whose values were outside their meaning.
#[derive(Debug, Default)]
pub struct Unexpected(pub Vec<&'static str>);

impl Unexpected {
    /// The value of `field`, where it is within `low..=high`; otherwise the field is noted, unless there is
    /// simply no value.
    pub fn check(&mut self, field: &'static str, number: Number, low: f64, high: f64) -> Option<f64> {
        let checked = number.within(low, high);
        if checked == Number::Unexpected {
            self.0.push(field);
        }
        checked.value()
    }
}

/// What a row reads into: the series of one subject.
#[derive(Debug)]
pub struct Reader<'a> {
    /// Whose series are read.
    pub subject: Subject<'a>,
    /// Bad values end up here.
    pub unexpected: &'a mut Unexpected,
    sink: &'a mut Sink,
}

impl Reader<'_> {
    /// Puts a series without labels of its own.
    pub fn put(&mut self, value: f64) {
        self.sink.put(value);
    }

    /// Puts a series with labels of its own.
    pub fn put_with(&mut self, labels: &[Label<'_>], value: f64) {
        let labels = labels.iter().map(|label| within(*label, self.unexpected));
        self.sink.put_labelled(labels, value);
    }

    /// Puts `number` times `scale`, where it is a value and not negative: no number of the interface may be.
    pub fn number(&mut self, field: &'static str, number: Number, scale: f64) {
        if let Some(value) = self.unexpected.check(field, number, 0.0, f64::MAX) {
            self.put(value * scale);
        }
    }

    /// Puts 1 with these labels and the configured ones of the subject: an info series.
    pub fn info(&mut self, labels: &[Label<'_>]) {
        let configured = match self.subject.app {
            Some(app) => &app.labels,
            None => &self.subject.project.labels,
        };
        let configured = configured.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels = labels.iter().map(|label| within(*label, self.unexpected));
        self.sink.put_labelled(labels.chain(configured), 1.0);
    }

    /// The labels `window` and, where one is set, `container_id` of what was asked, followed by `more`.
    pub fn put_window(&mut self, more: &[Label<'_>], value: f64) {
        let asked = self.subject.window;
        let window = asked.map(|window| ("window", window.label));
        let container = asked.and_then(|window| window.container).map(|id| ("container_id", id));
        self.sink.put_labelled(window.into_iter().chain(container).chain(more.iter().copied()), value);
    }
}

/// A label by name and value.
pub type Label<'a> = (&'static str, &'a str);

/// No name and no word of the interface is as long. Stores of metrics refuse label values beyond some such length.
const MAX_LABEL: usize = 1024;

/// The label as it is; where its value is longer than any may be it is noted, and empty: to Prometheus that is none.
fn within<'a>((name, value): Label<'a>, unexpected: &mut Unexpected) -> Label<'a> {
    if value.len() <= MAX_LABEL {
        return (name, value);
    }
    unexpected.0.push(name);
    (name, "")
}

impl<T: std::fmt::Debug> Endpoint for Polled<T> {
    fn resource(&self) -> Resource {
        self.resource
    }

    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn cadence(&self) -> Cadence {
        self.cadence
    }

    fn families(&self) -> Vec<Family> {
        self.rows.iter().map(|row| row.family).collect()
    }

    fn request(&self, ask: &Ask<'_>) -> Result<Request, RuleError> {
        (self.request)(ask)
    }

    fn read(&self, body: &[u8], subjects: &[Subject<'_>]) -> Result<Reading, DecodeError> {
        let reply = (self.decode)(body)?;
        let mut unexpected = Unexpected::default();
        let tally = self.tally.map(|tally| tally(&reply, &mut unexpected));
        if !subjects.is_empty() {
            // The rows meet the same values again; each is to be noted once.
            unexpected.0.clear();
        }
        let mut sinks = Vec::with_capacity(subjects.len());
        for subject in subjects {
            let mut sink = Sink::default();
            for row in self.rows {
                sink.next_family();
                let mut reader = Reader { subject: *subject, unexpected: &mut unexpected, sink: &mut sink };
                (row.read)(&reply, &mut reader);
            }
            sinks.push(sink);
        }
        Ok(Reading { sinks, tally, unexpected: unexpected.0 })
    }
}
