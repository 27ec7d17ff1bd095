//! Query parameters and body fields: their names, their values and the rules of sections 4 and 8.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::range::{Ignored, TimeRange, parse_rfc3339};

/// A query parameter, or a field of a JSON body.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its default name; the interface does not fix the names of query parameters.
    pub name: &'static str,
    /// The configured name of a query parameter; `None` for a body field, whose name is fixed.
    pub configured: Option<fn(&QueryNames) -> &String>,
    /// Its values.
    pub kind: ParamKind,
    /// Its purpose.
    pub purpose: &'static str,
}

impl Param {
    /// Its name in a request.
    pub fn sent_as<'a>(&self, names: &'a QueryNames) -> &'a str {
        self.configured.map_or(self.name, |configured| configured(names))
    }

    /// Checks a value against the rule of this parameter, but for the bounds of a range, which [`check_range`] checks.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(&self, value: &str, now: Timestamp) -> Result<(), RuleError> {
        match self.kind {
            ParamKind::Text { max_chars: Some(max), .. } => match value.chars().count() {
                len if len > max => Err(RuleError::TooLong { name: self.name, max, len }),
                _ => Ok(()),
            },
            ParamKind::Text { .. } | ParamKind::RangeStart | ParamKind::RangeEnd => Ok(()),
            ParamKind::FutureDate => {
                match value.parse::<Date>().ok().filter(|date| date.to_string() == value) {
                    None => Err(self.malformed("a date as YYYY-MM-DD", value)),
                    Some(date) if date > now.to_zoned(TimeZone::UTC).date() => Ok(()),
                    Some(_) => Err(RuleError::NotInFuture { date: value.to_owned() }),
                }
            }
            ParamKind::Word { words, .. } if words.contains(&value) => Ok(()),
            ParamKind::Word { words, .. } => {
                Err(self.malformed(&format!("one of {}", words.join(", ")), value))
            }
        }
    }

    fn malformed(&self, wanted: &str, value: &str) -> RuleError {
        let value = value.chars().take(MAX_SHOWN).collect();
        RuleError::Malformed { name: self.name, wanted: wanted.to_owned(), value }
    }
}

/// The longest part of a bad value that an error repeats.
const MAX_SHOWN: usize = 100;

/// Values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each kind says what its fields are")]
pub enum ParamKind {
    /// Text, with the limit in characters if section 8 gives one, and its default if section 4 does.
    Text { max_chars: Option<usize>, default: Option<&'static str> },
    /// An RFC 3339 timestamp: the start of a range.
    RangeStart,
    /// An RFC 3339 timestamp: the end of a range, not before its start.
    RangeEnd,
    /// A calendar date in the future, YYYY-MM-DD.
    FutureDate,
    /// One of these words. The default is not sent.
    Word { words: &'static [&'static str], default: Option<&'static str> },
}

/// `[api.query_names]`: how the service calls its query parameters, which the interface leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the name of the parameter that it is called after")]
pub struct QueryNames {
    pub start: String,
    pub end: String,
    pub container: String,
    pub resolution: String,
    pub key_name: String,
    pub key_description: String,
    pub key_expires_at: String,
    pub tree_ref: String,
    pub tree_path: String,
}

impl QueryNames {
    /// Report about a service that ignores bounds of `asked` and replied `answered`, with key and remedy.
    pub fn describe_ignored(&self, ignored: Ignored, asked: TimeRange, answered: TimeRange) -> String {
        let (start, end) = (&self.start, &self.end);
        let (what, keys) = match ignored {
            Ignored::Start => (format!("`{start}`"), "api.query_names.start"),
            Ignored::End => (format!("`{end}`"), "api.query_names.end"),
            Ignored::Both => (format!("`{start}` and `{end}`"), "api.query_names.start and .end"),
        };
        format!(
            "the service ignores {what}: it returned {answered} for {asked}; set {keys} to the names that `pdstool check service` prints"
        )
    }
}

pds_core::worded! {
    /// Section 4.4, data resolution.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum Resolution {
        /// The service's default, which is not sent.
        #[default]
        Standard = "standard",
        /// More data points.
        Medium = "medium",
        /// Most data points.
        High = "high",
    }
}

/// A rule of the interface that arguments break; found before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what their fields are")]
pub enum RuleError {
    /// A body field is missing.
    #[error("{name} is missing")]
    Missing { name: &'static str },
    /// A value that is not of the form of its identifier or parameter.
    #[error("{name} must be {wanted}, not '{value}'")]
    Malformed { name: &'static str, wanted: String, value: String },
    /// Text over its limit (section 8).
    #[error("{name} may have at most {max} characters, not {len}")]
    TooLong { name: &'static str, max: usize, len: usize },
    /// An expiration date that is not in the future (section 4.1).
    #[error("the expiration date must be in the future, and {date} is not")]
    NotInFuture { date: String },
    /// A range that ends before it starts (section 4.4).
    #[error("the range must not end before it starts: {start} to {end}")]
    EndBeforeStart { start: String, end: String },
}

/// The length in seconds of the range whose bounds are in `sent`, which gives the values of `params` by default name;
/// `None` if one of them was not sent.
///
/// # Errors
/// If a bound is no RFC 3339 timestamp, or the range ends before it starts.
pub fn check_range<'a>(
    params: &[Param],
    sent: impl Fn(&str) -> Option<&'a str>,
) -> Result<Option<i64>, RuleError> {
    let bound = |kind| {
        let param = params.iter().find(|param| param.kind == kind)?;
        let text = sent(param.name)?;
        let instant = parse_rfc3339(text).ok_or_else(|| param.malformed("an RFC 3339 timestamp", text));
        Some(instant.map(|instant| (instant, text)))
    };
    let bounds = (bound(ParamKind::RangeStart).transpose()?, bound(ParamKind::RangeEnd).transpose()?);
    let (Some((start, sent_start)), Some((end, sent_end))) = bounds else { return Ok(None) };
    if end < start {
        return Err(RuleError::EndBeforeStart { start: sent_start.to_owned(), end: sent_end.to_owned() });
    }
    Ok(Some(end.as_second() - start.as_second()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::query_names;

    #[test]
    fn a_service_that_ignores_the_start_is_reported_with_key_and_remedy() {
        let six = 1_767_247_200;
        let range = |start: i64, end: i64| TimeRange { start: six + start, end: six + end };
        let text = query_names().describe_ignored(Ignored::Start, range(780, 1080), range(0, 3600));
        assert_eq!(
            text,
            "the service ignores `start`: it returned 06:00 to 07:00 UTC for 06:13 to 06:18 UTC; set \
             api.query_names.start to the names that `pdstool check service` prints"
        );
    }
}
