//! Input and output of a call's rows: the samples of one subject, and the fields with bad values.

use pds_exposition::Sink;

use super::number::{Number, scaled};
use super::range::TimeRange;

/// The project or app whose series are read from a reply.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The project's id.
    pub project: &'a str,
    /// The app's id; empty if the call is not about one.
    pub app: &'a str,
    /// The labels configured for the project, or for the app if the call is about one.
    pub labels: &'a [(String, String)],
    /// The window of a metrics call; `None` for settings.
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
    /// The requested range.
    pub range: TimeRange,
}

/// Values outside their meaning.
#[derive(Debug, Default)]
pub struct Unexpected {
    /// Their fields, once for each such value.
    pub fields: Vec<&'static str>,
    /// The first label of a distribution that is no threshold.
    pub label: Option<String>,
}

impl Unexpected {
    /// The value of `field` if it is within `low..=high`. A value outside is recorded as unexpected.
    pub fn check(&mut self, field: &'static str, number: Number, low: f64, high: f64) -> Option<f64> {
        let within = number.value().filter(|value| (low..=high).contains(value));
        if within.is_none() && number != Number::Missing {
            self.fields.push(field);
        }
        within
    }
}

/// The validation status of a domain among unexpected fields: the interface does not name the field.
pub(super) const DOMAIN_STATUS: &str = "validation_status";

/// The configuration key that names an unexpected field, where one does.
pub fn named_by(field: &str) -> Option<&'static str> {
    (field == DOMAIN_STATUS).then_some("api.domain_status_field")
}

/// The output of a row: the samples of one subject.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The project or app whose series are read.
    pub subject: Subject<'a>,
    /// Collects fields with bad values.
    pub unexpected: &'a mut Unexpected,
    pub(super) sink: Sink,
}

impl<'a> Reader<'a> {
    /// Puts a series without labels of its own.
    pub fn put(&mut self, value: f64) {
        self.sink.put(value);
    }

    /// Puts a series with labels of its own.
    pub fn put_with(&mut self, labels: &[Label<'_>], value: f64) {
        self.put_after([None; 2], labels, value);
    }

    /// Puts a series with the labels `window` and, if one was requested, `container_id`, followed by `more`.
    pub fn put_window(&mut self, more: &[Label<'_>], value: f64) {
        let window = self.subject.window.map(|window| ("window", window.label));
        self.put_after([window, self.container()], more, value);
    }

    /// Puts the window's count, if it is known.
    pub fn put_window_count(&mut self, count: Option<f64>) {
        if let Some(count) = count {
            self.put_window(&[], count);
        }
    }

    /// Puts a series with the label `container_id`, if one was requested, followed by `more`.
    pub fn put_container(&mut self, more: &[Label<'_>], value: f64) {
        self.put_after([self.container(), None], more, value);
    }

    fn container(&self) -> Option<Label<'a>> {
        Some(("container_id", self.subject.window?.container?))
    }

    /// Puts a series with `labels` after those of the request. Several values that are unusable would become one series,
    /// so a series with such a value is left out, and the label is recorded as unexpected.
    fn put_after(&mut self, request: [Option<Label<'a>>; 2], labels: &[Label<'_>], value: f64) {
        let unusable = labels.iter().filter(|(_, value)| !is_usable(value));
        let before = self.unexpected.fields.len();
        self.unexpected.fields.extend(unusable.map(|(name, _)| name));
        if self.unexpected.fields.len() == before {
            self.sink.put_labelled(request.into_iter().flatten().chain(labels.iter().copied()), value);
        }
    }

    /// Puts `number` if it is a value and not negative: no number of the interface may be.
    pub fn number(&mut self, field: &'static str, number: impl Into<Number>) {
        self.scaled(field, number, 0);
    }

    /// Puts `number` times 10 to the power of `exponent` if it is a value and not negative.
    pub fn scaled(&mut self, field: &'static str, number: impl Into<Number>, exponent: i32) {
        let number = match number.into() {
            Number::Value(value) => Number::Value(scaled(value, exponent)),
            number => number,
        };
        // A number may be too large to hold once it is scaled.
        if let Some(value) = self.unexpected.check(field, number, 0.0, f64::MAX) {
            self.put(value);
        }
    }

    /// Puts 1 with these labels and those configured for the subject: an info series. An unusable value is recorded
    /// as unexpected and becomes empty, which means no label.
    pub fn info(&mut self, labels: &[Label<'_>]) {
        let configured = self.subject.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels = labels.iter().map(|&(name, value)| {
            if is_usable(value) {
                return (name, value);
            }
            self.unexpected.fields.push(name);
            (name, "")
        });
        self.sink.put_labelled(labels.chain(configured), 1.0);
    }
}

/// A label by name and value.
pub type Label<'a> = (&'static str, &'a str);

/// Maximum length of a label value. The interface's values are much shorter, and metric stores refuse values beyond
/// some such limit.
const MAX_LABEL: usize = 1024;

/// Whether `value` can be that of a label: not too long, and without bytes that were not UTF-8.
fn is_usable(value: &str) -> bool {
    // Nearly all values are ASCII, which is found out several times faster.
    value.len() <= MAX_LABEL && (value.is_ascii() || !value.contains(char::REPLACEMENT_CHARACTER))
}
