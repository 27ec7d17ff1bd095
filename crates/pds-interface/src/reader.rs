//! The output of a call's rows: the samples of one subject, and the fields with bad values.

use pds_exposition::Sink;

use super::number::{Number, scaled};
use super::subject::Subject;

/// The fields whose values were outside their meaning.
#[derive(Debug, Default)]
pub struct Unexpected(pub Vec<&'static str>);

impl Unexpected {
    /// The value of `field` if it is within `low..=high`. A value outside is recorded as unexpected.
    pub fn check(&mut self, field: &'static str, number: Number, low: f64, high: f64) -> Option<f64> {
        let checked = number.within(low, high);
        if checked == Number::Unexpected {
            self.0.push(field);
        }
        checked.value()
    }
}

/// The validation status of a domain among unexpected fields: the interface does not name the field.
pub(super) const DOMAIN_STATUS: &str = "validation_status";

/// The configuration key that names an unexpected field, where one does.
#[must_use]
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
    sink: &'a mut Sink,
}

impl<'a> Reader<'a> {
    pub(super) fn new(subject: Subject<'a>, unexpected: &'a mut Unexpected, sink: &'a mut Sink) -> Self {
        Self { subject, unexpected, sink }
    }

    /// Puts a series without labels of its own.
    pub fn put(&mut self, value: f64) {
        self.sink.put(value);
    }

    /// Puts a series with labels of its own. Several values that are too long would become one series, so a series with
    /// such a value is left out, and the label is recorded as unexpected.
    pub fn put_with(&mut self, labels: &[Label<'_>], value: f64) {
        let too_long = labels.iter().filter(|(_, value)| value.len() > MAX_LABEL);
        let before = self.unexpected.0.len();
        self.unexpected.0.extend(too_long.map(|(name, _)| name));
        if self.unexpected.0.len() == before {
            self.sink.put_labelled(labels.iter().copied(), value);
        }
    }

    /// Puts `number` if it is a value and not negative: no number of the interface may be.
    pub fn number(&mut self, field: &'static str, number: Number) {
        self.scaled(field, number, 0);
    }

    /// Puts `number` times 10 to the power of `exponent` if it is a value and not negative.
    pub fn scaled(&mut self, field: &'static str, number: Number, exponent: i32) {
        if let Some(value) = self.unexpected.check(field, number, 0.0, f64::MAX) {
            self.put(scaled(value, exponent));
        }
    }

    /// Records `field` as unexpected if its id is not the one asked about.
    pub fn expect_id(&mut self, field: &'static str, id: &str, asked: &str) {
        if !id.is_empty() && !asked.is_empty() && id != asked {
            self.unexpected.0.push(field);
        }
    }

    /// Puts 1 with these labels and those configured for the subject: an info series.
    pub fn info(&mut self, labels: &[Label<'_>]) {
        let configured = self.subject.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels = labels.iter().map(|label| within(*label, self.unexpected));
        self.sink.put_labelled(labels.chain(configured), 1.0);
    }

    /// Puts a series with the labels `window` and, if one was asked for, `container_id`, followed by `more`.
    pub fn put_window(&mut self, more: &[Label<'_>], value: f64) {
        let window = self.subject.window.map(|window| ("window", window.label));
        let container = self.container();
        let more = more.iter().map(|label| within(*label, self.unexpected));
        let labels = window.into_iter().chain(container).chain(more);
        self.sink.put_labelled(labels, value);
    }

    /// Puts the window's count, if it is known.
    pub fn put_window_count(&mut self, count: Option<u64>) {
        if let Some(count) = count {
            #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
            self.put_window(&[], count as f64);
        }
    }

    /// Puts a series with the label `container_id`, if one was asked for, followed by `more`.
    pub fn put_container(&mut self, more: &[Label<'_>], value: f64) {
        let labels = self.container().into_iter().chain(more.iter().copied());
        self.sink.put_labelled(labels, value);
    }

    fn container(&self) -> Option<Label<'a>> {
        Some(("container_id", self.subject.window?.container?))
    }
}

/// A label by name and value.
pub type Label<'a> = (&'static str, &'a str);

/// Maximum length of a label value. The interface's values are much shorter, and metric stores refuse values beyond
/// some such limit.
const MAX_LABEL: usize = 1024;

/// The label. A value that is too long is recorded as unexpected and becomes empty, which means no label.
fn within<'a>((name, value): Label<'a>, unexpected: &mut Unexpected) -> Label<'a> {
    if value.len() <= MAX_LABEL {
        return (name, value);
    }
    unexpected.0.push(name);
    (name, "")
}
