//! Replies, and what is exposed of them.

use std::collections::BTreeMap;

use openmetrics_parser::{MetricsExposition, OpenMetricsType, OpenMetricsValue};
use pds_exposition::Family;
use pds_exposition::encode::{self, Format, head, sample};
use pds_exposition::samples::{Layouts, Sink};
use pds_interface::response_time::threshold_seconds;
use pds_interface::{Cadence, Counted, Resource, Subject, Window};
use pds_ledger::Ledger;

use super::RANGE;

/// Any body read as any endpoint's reply: no panic, and what comes out is finite and not negative.
pub(crate) fn replies(data: &[u8]) {
    for page in pages(data) {
        for ((name, labels), value) in page.series {
            assert!(value.is_finite() && value >= 0.0, "{name}{labels:?} {value}");
        }
    }
}

/// Any text as a label of the distribution: no panic, and a threshold is a time.
pub(crate) fn labels(data: &[u8]) {
    if let Some(seconds) = std::str::from_utf8(data).ok().and_then(threshold_seconds) {
        assert!(seconds > 0.0 && seconds.is_finite());
    }
}

/// A strict parser reads back the series of any body: the same ones, with the same labels and values.
pub(crate) fn exposition(data: &[u8]) {
    for page in pages(data) {
        if page.series.is_empty() {
            // The parser wants at least one family.
            continue;
        }
        let text = format!("{}{}", without_histogram_units(&page.text), Format::OpenMetrics.trailer());
        let parsed = openmetrics_parser::openmetrics::parse_openmetrics(&text);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read_back(&parsed), page.series, "{text}");
    }
}

/// The page without the UNIT lines of histograms, which the standard allows and the crate `openmetrics-parser` refuses.
fn without_histogram_units(page: &str) -> String {
    let histograms: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" histogram")).collect();
    let is_unit = |line: &&str| {
        let name = line.strip_prefix("# UNIT ").and_then(|of| of.split_once(' ')).map(|(name, _)| name);
        name.is_some_and(|name| histograms.contains(&name))
    };
    page.lines().filter(|line| !is_unit(line)).map(|line| format!("{line}\n")).collect()
}

/// Values by name of the family and labels. No two series are equal in both.
type Series = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Puts a series that must not be there yet.
fn put(series: &mut Series, family: &str, labels: BTreeMap<String, String>, value: f64) {
    let before = series.insert((family.to_owned(), labels.clone()), value);
    assert_eq!(before, None, "{family} with {labels:?} stands twice");
}

/// The series that the parser has read. The bound of a bucket is its label `le` again.
fn read_back(parsed: &MetricsExposition<OpenMetricsType, OpenMetricsValue>) -> Series {
    let mut series = Series::new();
    for (name, family) in &parsed.families {
        for sample in family.iter_samples() {
            let labels = sample.get_labelset().expect("a sample of a family");
            let labels: BTreeMap<_, _> =
                labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            match &sample.value {
                OpenMetricsValue::Gauge(value) => put(&mut series, name, labels, value.as_f64()),
                OpenMetricsValue::Counter(counter) => put(&mut series, name, labels, counter.value.as_f64()),
                OpenMetricsValue::Info => put(&mut series, name, labels, 1.0),
                OpenMetricsValue::Histogram(histogram) => {
                    for bucket in &histogram.buckets {
                        let mut labels = labels.clone();
                        labels.insert("le".to_owned(), bucket.upper_bound.to_string());
                        put(&mut series, name, labels, bucket.count.as_f64());
                    }
                }
                other => panic!("{name} is none of our types: {other:?}"),
            }
        }
    }
    series
}

/// The series of one reply.
#[derive(Default)]
struct Page {
    /// As OpenMetrics text without its end.
    text: String,
    /// The text that was meant to be written.
    series: Series,
}

/// The families of each endpoint that can read `data`, and of the ledger that it can be added to. The beginning of
/// `data` is a configured label too, so that there are all sorts of texts.
fn pages(data: &[u8]) -> Vec<Page> {
    let told: String = readable(&String::from_utf8_lossy(data)).chars().take(40).collect();
    let labels = vec![("team".to_owned(), told.clone())];
    let window = Window { label: "5m", container: None, first: true, range: RANGE };
    let mut pages = Vec::new();
    for resource in Resource::all() {
        let polled = resource.polled();
        let window = (polled.cadence == Cadence::Metrics).then_some(window);
        let subject = Subject { project: "p-1", app: "", labels: &labels, window };
        let Ok(reading) = polled.read(data, &[subject]) else { continue };
        pages.extend(reading.sinks.into_iter().map(|sink| page(&polled.families(), sink, &told)));
        let distributed = polled.counted == Some(Counted::Requests);
        let added =
            reading.tally.map(|tally| Ledger::open(RANGE.start).add(RANGE, &tally, distributed, i64::MAX));
        if let Some(Ok(ledger)) = added {
            pages.push(page(pds_ledger::FAMILIES, pds_ledger::series(resource, &ledger, true), &told));
        }
    }
    pages
}

/// The page of one target, whose own label is `told`.
fn page(families: &[Family], sink: Sink, told: &str) -> Page {
    let (mut text, mut series) = (Vec::new(), Series::new());
    let target = encode::labels([("app", told)]);
    let samples = sink.finish(&Layouts::default());
    for (index, family) in families.iter().enumerate() {
        let put_labels = samples.series(families, family).map(|(labels, _)| labels);
        for (position, ((extra, value), labels)) in samples.of(index).zip(put_labels).enumerate() {
            if position == 0 {
                head(&mut text, Format::OpenMetrics, family);
            }
            sample(&mut text, family, &target, extra, value);
            let own = [("app".to_owned(), told.to_owned())];
            let labels = own.into_iter().chain(labels.iter().map(|(name, value)| match name {
                "le" => (name.to_owned(), value.parse::<f64>().expect("a bound").to_string()),
                name => (name.to_owned(), readable(&value)),
            }));
            put(&mut series, family.base_name(), labels.collect(), value);
        }
    }
    Page { text: readable(std::str::from_utf8(&text).expect("a page is UTF-8")), series }
}

/// The parser takes a carriage return for the end of a line, which the specification does not.
fn readable(text: &str) -> String {
    text.replace('\r', "\u{240d}")
}
