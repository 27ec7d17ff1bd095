//! Content negotiation: the `Accept` and `Accept-Encoding` headers, as Prometheus writes them.
//!
//! Pure functions of a header's text. No header is an error: parts that cannot be parsed are skipped, and a client that
//! accepts none of our formats gets text 0.0.4, uncompressed.

use std::cmp::Reverse;

use pds_exposition::Format;

/// The form of a metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The exposition format.
    pub format: Format,
    /// Whether the chosen range requested an escaping scheme; the response then names ours.
    pub escaping: bool,
}

impl Negotiated {
    /// The text format, as every client reads it.
    pub const TEXT: Self = Self { format: Format::Text, escaping: false };

    /// The `Content-Type` of the answer. All our names are legacy names, as `underscores` promises.
    pub fn content_type(self) -> &'static str {
        match (self.format, self.escaping) {
            (format, false) => format.content_type(),
            (Format::Text, true) => "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            (Format::OpenMetrics, true) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
            }
        }
    }
}

pds_core::worded! {
    /// A content coding, with its name in headers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Encoding {
        /// None.
        Identity = "identity",
        /// gzip.
        Gzip = "gzip",
    }
}

/// The exposition format for an `Accept` header (`None`: not sent).
///
/// Each format has the quality of the most specific range that covers it. The highest quality wins; then the more
/// specific range, then the first, then text.
pub fn format(accept: Option<&str>) -> Negotiated {
    let ranges: Vec<Range<'_>> = elements(accept.unwrap_or_default()).map(Range::parse).collect();
    let ranked = Format::ALL.into_iter().filter_map(|format| {
        let covering = ranges
            .iter()
            .enumerate()
            .filter_map(|(place, range)| Some(((range.specificity(format)?, Reverse(place)), range)));
        let (specificity, range) = covering.max_by_key(|(specificity, _)| *specificity)?;
        let rank = (range.quality, specificity, format == Format::Text);
        (range.quality > 0).then_some((rank, Negotiated { format, escaping: range.escaping }))
    });
    let best = ranked.max_by_key(|(rank, _)| *rank).map(|(_, negotiated)| negotiated);
    best.unwrap_or(Negotiated::TEXT)
}

/// The content coding for an `Accept-Encoding` header: gzip, unless the header does not name it, or prefers `identity`.
pub fn encoding(accept_encoding: Option<&str>) -> Encoding {
    let header = accept_encoding.unwrap_or_default();
    let quality_of = |name: &str| {
        let mut codings = elements(header).map(Range::parse);
        codings.find(|coding| coding.kind.eq_ignore_ascii_case(name)).map(|coding| coding.quality)
    };
    // gzip's old name, RFC 9110 section 8.4.1.3.
    let gzip = quality_of("gzip").or_else(|| quality_of("x-gzip")).or_else(|| quality_of("*")).unwrap_or(0);
    // If it is not named, identity is acceptable, but any named coding is preferred.
    let identity = quality_of("identity").unwrap_or(1);
    if gzip > 0 && gzip >= identity { Encoding::Gzip } else { Encoding::Identity }
}

/// Quality in thousandths, as RFC 9110 allows three decimals.
type Quality = u16;
const FULL: Quality = 1000;

/// A media range of an `Accept` header, or a coding of an `Accept-Encoding` header.
struct Range<'a> {
    kind: &'a str,
    version: Option<&'a str>,
    escaping: bool,
    quality: Quality,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let mut range = Self { kind, version: None, escaping: false, quality: FULL };
        for (key, value) in parts.filter_map(parameter) {
            match key.to_ascii_lowercase().as_str() {
                "q" => range.quality = quality_value(value),
                "escaping" => range.escaping = true,
                // The first of several counts.
                "version" => range.version = range.version.or(Some(value)),
                _ => {}
            }
        }
        range
    }

    /// Specificity of its format: from `*/*` to a type with its version; `None` for other formats.
    fn specificity(&self, format: Format) -> Option<u8> {
        let (kind, any, version) = match format {
            Format::Text => ("text/plain", "text/*", "0.0.4"),
            Format::OpenMetrics => ("application/openmetrics-text", "application/*", "1.0.0"),
        };
        match self.version {
            _ if self.kind == "*/*" => Some(0),
            _ if self.kind.eq_ignore_ascii_case(any) => Some(1),
            _ if !self.kind.eq_ignore_ascii_case(kind) => None,
            None => Some(2),
            Some(asked) => (asked == version).then_some(3),
        }
    }
}

/// The elements of a list header, without empty ones. A comma inside quotes does not separate.
fn elements(header: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    header
        .split(move |c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .map(str::trim)
        .filter(|element| !element.is_empty())
}

fn parameter(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    Some((key.trim(), value.trim().trim_matches('"')))
}

/// Clamped to 0..=1. A value that is no number counts as missing, as in Prometheus' own libraries.
fn quality_value(text: &str) -> Quality {
    let value = text.parse().ok().filter(|value: &f64| !value.is_nan()).unwrap_or(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "clamped to 0..=1000")]
    let thousandths = (value.clamp(0.0, 1.0) * f64::from(FULL)).round() as Quality;
    thousandths
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const OPENMETRICS_ESCAPED: &str =
        "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores";

    /// Headers of scrapers, and the type they get.
    const SCRAPERS: &[(&str, &str, &str)] = &[
        (
            "Prometheus 2.26",
            "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            TEXT,
        ),
        (
            "Prometheus 2.43",
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            OPENMETRICS,
        ),
        (
            "Prometheus 2.43 with native histograms",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            OPENMETRICS,
        ),
        (
            "Prometheus 2.50",
            "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            OPENMETRICS,
        ),
        (
            "Prometheus 2.50 with PrometheusProto first",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,application/openmetrics-text;version=0.0.1;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            OPENMETRICS,
        ),
        (
            "Prometheus 3.0",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            OPENMETRICS_ESCAPED,
        ),
        (
            "Prometheus 3.0.0, whose last range is no media range",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,/;q=0.1",
            OPENMETRICS_ESCAPED,
        ),
        (
            "Prometheus 3.x",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=0.0.1;q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3",
            OPENMETRICS_ESCAPED,
        ),
        (
            "Prometheus 3.x with PrometheusProto first",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            OPENMETRICS_ESCAPED,
        ),
        (
            "Prometheus 3.x that prefers text",
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.3",
            TEXT,
        ),
        (
            "Prometheus 3.x, legacy names",
            "application/openmetrics-text;version=1.0.0;escaping=underscores;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            OPENMETRICS_ESCAPED,
        ),
        ("curl", "*/*", TEXT),
        ("a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8", TEXT),
        ("vmagent", "text/plain;version=0.0.4;q=1,*/*;q=0.1", TEXT),
    ];

    #[test]
    fn every_scraper_gets_the_type_it_prefers() {
        for (who, accept, content_type) in SCRAPERS {
            assert_eq!(format(Some(accept)).content_type(), *content_type, "{who}");
        }
        assert_eq!(format(None).content_type(), TEXT);
    }

    #[test]
    fn nonsense_is_skipped_and_never_refused() {
        for accept in ["", ",", ";;;", "q=1", "/", "text", "image/png", "\"", "a/b;=,;q", "\u{fffd}/*;q=x"] {
            assert_eq!(format(Some(accept)).content_type(), TEXT, "{accept:?}");
        }
    }

    #[test]
    fn qualities_are_clamped_and_read_leniently() {
        let wins = |accept| format(Some(accept)).format;
        assert_eq!(wins("text/plain;q=0.9,application/openmetrics-text;q=7"), Format::OpenMetrics);
        assert_eq!(wins("text/plain;q=0.1,application/openmetrics-text;q=-3"), Format::Text);
        assert_eq!(wins("text/plain;q=0.9,application/openmetrics-text;q=much"), Format::OpenMetrics);
        assert_eq!(wins("text/plain;q=0.9,application/openmetrics-text;q=NaN"), Format::OpenMetrics);
        for lenient in [
            "text/plain; Q = 0.2 , Application/OpenMetrics-Text ; VERSION=\"1.0.0\"",
            "application/openmetrics-text;version=1.0.0;version=2;charset=utf-8;x",
        ] {
            assert_eq!(wins(lenient), Format::OpenMetrics, "{lenient}");
        }
    }

    #[test]
    fn between_equals_the_more_specific_type_wins_then_the_first() {
        let wins = |accept| format(Some(accept)).format;
        assert_eq!(wins("*/*,application/openmetrics-text"), Format::OpenMetrics);
        assert_eq!(wins("application/*;q=0.5,text/plain;q=0.5"), Format::Text);
        assert_eq!(wins("text/plain,application/openmetrics-text;version=1.0.0"), Format::OpenMetrics);
        assert_eq!(wins("application/openmetrics-text,text/plain"), Format::OpenMetrics);
        assert_eq!(wins("text/plain,application/openmetrics-text"), Format::Text);
        // A refusal by name is not undone by a wildcard.
        assert_eq!(wins("application/openmetrics-text;q=0,*/*"), Format::Text);
        assert_eq!(wins("text/plain;q=0,*/*;q=0.1"), Format::OpenMetrics);
        assert_eq!(wins("*/*;q=0"), Format::Text);
    }

    #[test]
    fn codings_follow_the_highest_quality() {
        for (header, expected) in [
            ("gzip", Encoding::Gzip),
            ("zstd;q=1, gzip;q=0.9", Encoding::Gzip),
            ("deflate, x-gzip;q=0.5", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("gzip;q=0.5, identity", Encoding::Identity),
            ("identity;q=0, gzip;q=0.1", Encoding::Gzip),
            ("*", Encoding::Gzip),
            ("gzip;q=0, *", Encoding::Identity),
            ("*;q=0", Encoding::Identity),
            ("identity;q=0", Encoding::Identity),
            ("br", Encoding::Identity),
            ("", Encoding::Identity),
            ("GZIP ; q=0.001", Encoding::Gzip),
        ] {
            assert_eq!(encoding(Some(header)), expected, "{header}");
        }
        assert_eq!(encoding(None), Encoding::Identity);
    }

    proptest::proptest! {
        #[test]
        fn any_header_gets_an_answer(header in ".*") {
            let _ = format(Some(&header)).content_type();
            let _ = encoding(Some(&header)).as_str();
        }
    }
}
