//! The two exposition formats, byte for byte: text 0.0.4 and OpenMetrics 1.0.
//!
//! Everything that is exposed passes through these functions, whether it comes from the store or from the
//! `prometheus` registry, so both formats stay equal in all but what the formats themselves prescribe.

use std::borrow::Cow;

use super::family::{Family, Kind};

/// An exposition format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    Text,
    /// OpenMetrics text format 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Text, Self::OpenMetrics];

    /// The value of the Content-Type header.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The end of a page in this format.
    pub fn trailer(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::OpenMetrics => "# EOF\n",
        }
    }
}

/// Writes the HELP, TYPE and (OpenMetrics) UNIT lines of `family`.
pub fn head(out: &mut Vec<u8>, format: Format, family: &Family) {
    let name = match format {
        Format::Text => family.name,
        Format::OpenMetrics => family.base_name(),
    };
    let kind = match (family.kind, format) {
        (Kind::Info, Format::Text) => Kind::Gauge,
        (kind, _) => kind,
    };
    let (separator, source) = (family.separator(), family.source);
    line(
        out,
        &["# HELP ", name, " ", family.help, separator, source, "\n# TYPE ", name, " ", kind.as_str(), "\n"],
    );
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit()) {
        line(out, &["# UNIT ", name, " ", unit, "\n"]);
    }
}

/// Writes one sample line. `target` and `extra` are label texts as [`labels`] makes them; either may be empty.
#[inline]
pub fn sample(out: &mut Vec<u8>, family: &Family, target: &str, extra: &str, value: f64) {
    named_sample(out, family.name, family.sample_suffix(), target, extra, value);
}

/// Writes the samples of one target and family, given as (label text, value). The common start of their lines is built
/// once. In text, a histogram also has its `_count`: readers of custom buckets drop a histogram without it. OpenMetrics
/// allows it only beside `_sum`.
#[inline]
pub fn samples<'a>(
    out: &mut Vec<u8>,
    format: Format,
    family: &Family,
    target: &str,
    samples: impl IntoIterator<Item = (&'a str, f64)>,
) {
    let mut samples = samples.into_iter();
    let begin = out.len();
    let Some((extra, value)) = samples.next() else { return };
    sample(out, family, target, extra, value);
    let mut last = (extra, value);
    let brace = usize::from(!target.is_empty());
    let common = begin..begin + family.name.len() + family.sample_suffix().len() + brace + target.len();
    for (extra, value) in samples {
        out.reserve(common.len() + extra.len() + REST);
        out.extend_from_within(common.clone());
        rest(out, target, extra, value);
        last = (extra, value);
    }
    if (family.kind, format) == (Kind::Histogram, Format::Text) && last.0 == INFINITE {
        named_sample(out, family.name, "_count", target, "", last.1);
    }
}

/// The label of a histogram's last bucket.
const INFINITE: &str = "le=\"+Inf\"";

/// Writes one sample line of the given name and suffix.
#[inline]
pub fn named_sample(out: &mut Vec<u8>, name: &str, suffix: &str, target: &str, extra: &str, value: f64) {
    out.reserve(name.len() + suffix.len() + target.len() + extra.len() + REST);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(suffix.as_bytes());
    if !target.is_empty() {
        out.push(b'{');
        out.extend_from_slice(target.as_bytes());
    }
    rest(out, target, extra, value);
}

/// A reservation per line: a number takes at most 24 bytes, the punctuation 6.
const REST: usize = 30;

/// A line from the end of the target's labels on.
#[inline]
fn rest(out: &mut Vec<u8>, target: &str, extra: &str, value: f64) {
    if !extra.is_empty() {
        out.push(if target.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(extra.as_bytes());
    }
    out.extend_from_slice(if target.is_empty() && extra.is_empty() { b" " } else { b"} " });
    number(out, value);
    out.push(b'\n');
}

/// Whole numbers up to here are written without fraction or exponent; beyond, f64 has gaps between them.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Writes a value: whole numbers as integers, others as the shortest text that reads back the same.
#[inline]
pub fn number(out: &mut Vec<u8>, value: f64) {
    // `trunc` would be a call.
    #[expect(clippy::cast_possible_truncation, reason = "the comparison shows whether anything was lost")]
    let whole = Some(value as i64).filter(|whole| *whole as f64 == value && value.abs() <= WHOLE);
    if let Some(whole) = whole {
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    } else if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    }
}

/// The text of labels: `name="value"` each, with the value escaped, separated by commas.
pub fn labels<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    write_labels(&mut text, pairs);
    text
}

/// Appends the text of [`labels`].
pub(super) fn write_labels<'a>(text: &mut String, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        text.push_str(name);
        text.push_str("=\"");
        // Few values need an escape, and only those are copied.
        if value.bytes().any(|byte| matches!(byte, b'\\' | b'"' | b'\n')) {
            text.push_str(&value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
        } else {
            text.push_str(value);
        }
        text.push('"');
    }
}

/// The value that a label is written with as `text`.
pub(super) fn label_value(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut chars = text.chars();
    let next = || match chars.next()? {
        '\\' => chars.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped }),
        other => Some(other),
    };
    std::iter::from_fn(next).collect()
}

/// A number as the value of a label (`threshold`, `le`), the same in both formats: `0.25`, `1.0`, `+Inf`.
#[derive(Default)]
pub struct LabelNumber(zmij::Buffer);

impl LabelNumber {
    /// The text of `value`.
    pub fn text(&mut self, value: f64) -> &str {
        if value == f64::INFINITY { "+Inf" } else { self.0.format(value) }
    }
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads_differ_only_as_the_formats_prescribe() {
        let family = Family::counter("pds_x_seconds_total", &[], "Said once");
        assert_eq!(
            text(|out| head(out, Format::Text, &family)),
            "# HELP pds_x_seconds_total Said once\n# TYPE pds_x_seconds_total counter\n"
        );
        assert_eq!(
            text(|out| head(out, Format::OpenMetrics, &family)),
            "# HELP pds_x_seconds Said once\n# TYPE pds_x_seconds counter\n# UNIT pds_x_seconds seconds\n"
        );
        let gauge = Family::gauge("pds_x", &[], "Said once").with_source("from a reply");
        assert!(
            text(|out| head(out, Format::Text, &gauge)).starts_with("# HELP pds_x Said once; from a reply\n")
        );
        let info = Family::info("pds_app_info", &[], "h");
        assert!(text(|out| head(out, Format::Text, &info)).ends_with("# TYPE pds_app_info gauge\n"));
        assert!(text(|out| head(out, Format::OpenMetrics, &info)).ends_with("# TYPE pds_app info\n"));
    }

    #[test]
    fn numbers_read_back_the_same() {
        for value in [0.0, 1.0, -3.0, 0.1, 1e-9, 1e22, 123_456_789.25, f64::MAX, WHOLE, f64::INFINITY] {
            let written = text(|out| number(out, value));
            assert_eq!(
                written.trim_start_matches('+').parse::<f64>().unwrap().to_bits(),
                value.to_bits(),
                "{written}"
            );
        }
        assert_eq!(text(|out| number(out, 5.0)), "5");
        for (value, label) in [(1.0, "1.0"), (0.001, "0.001"), (3600.0, "3600.0"), (f64::INFINITY, "+Inf")] {
            assert_eq!(LabelNumber::default().text(value), label);
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let labels = labels([("project", "a\"b\\c\nd<script>🦀"), ("app", "")]);
        assert_eq!(labels, "project=\"a\\\"b\\\\c\\nd<script>🦀\",app=\"\"");
        for (alone, escaped) in [("\"", "\\\""), ("\\", "\\\\"), ("\n", "\\n")] {
            assert_eq!(super::labels([("app", alone)]), format!("app=\"{escaped}\""));
        }
        let family = Family::histogram("pds_h_seconds", &[], "");
        assert_eq!(
            text(|out| sample(out, &family, "app=\"x\"", "le=\"1.0\"", 2.5)),
            "pds_h_seconds_bucket{app=\"x\",le=\"1.0\"} 2.5\n"
        );
    }

    #[test]
    fn samples_of_one_target_are_written_like_each_alone() {
        let family = Family::histogram("pds_h_seconds", &[], "");
        let series = [("", 1.0), ("le=\"1.0\"", 2.5), ("le=\"+Inf\"", 3.0), ("", f64::NAN)];
        for target in ["", "app=\"x\""] {
            assert_eq!(
                text(|out| samples(out, Format::Text, &family, target, series)),
                text(|out| series
                    .iter()
                    .for_each(|(extra, value)| sample(out, &family, target, extra, *value)))
            );
        }
        assert_eq!(text(|out| named_sample(out, "up", "", "", "", 1.0)), "up 1\n");
    }

    #[test]
    fn a_histogram_has_a_count_in_text_alone() {
        let family = Family::histogram("pds_h_seconds", &[], "");
        let written = |format| {
            let buckets = [("le=\"1.0\"", 2.0), ("le=\"+Inf\"", 3.0)];
            text(|out| samples(out, format, &family, "app=\"x\"", buckets))
        };
        let buckets =
            "pds_h_seconds_bucket{app=\"x\",le=\"1.0\"} 2\npds_h_seconds_bucket{app=\"x\",le=\"+Inf\"} 3\n";
        assert_eq!(written(Format::OpenMetrics), buckets);
        assert_eq!(written(Format::Text), format!("{buckets}pds_h_seconds_count{{app=\"x\"}} 3\n"));
    }
}
