//! What must hold for any input. The fuzz targets call these with inputs they make up; the ordinary tests replay the
//! corpus through the same functions.
#![allow(dead_code, reason = "each target uses one of them")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use openmetrics_parser::{MetricsExposition, OpenMetricsType, OpenMetricsValue};
use pds_exporter::accounting::recheck::Ages;
use pds_exporter::accounting::{self, Ledger, LedgerStore, tables};
use pds_exporter::catalogue::Family;
use pds_exporter::catalogue::encode::{Format, head, label, sample};
use pds_exporter::catalogue::samples::{Layouts, Sink};
use pds_exporter::client::redact::Redactor;
use pds_exporter::config;
use pds_exporter::interface::response_time::threshold_seconds;
use pds_exporter::interface::{Cadence, Counted, Resource, Subject, TimeRange, Window, response_time};
use pds_exporter::printable::{is_steering, plain, plain_lines};
use pds_exporter::secret::Secret;
use pds_exporter::store::{Key, Owner};
use pds_exporter::telemetry::Telemetry;
use pds_exporter::web::{basic_auth, filter, negotiate, webconfig};

/// The range that replies are read for.
const RANGE: TimeRange = TimeRange { start: 1_767_225_600, end: 1_767_225_900 };

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

/// Any file as the configuration: no panic; what is refused says why, what is followed asks for something.
pub(crate) fn configuration(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the file");
    let path = dir.path().join("pds-exporter.toml");
    std::fs::write(&path, data).expect("the file can be written");
    match config::load(&path, []) {
        Ok(loaded) => {
            assert!(!loaded.config.projects.is_empty());
            let load = loaded.config.requests_per_minute().total;
            assert!(load > 0.0 && load.is_finite(), "{load} requests a minute");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Any text as the headers by which a form is asked for: no panic; capitals change nothing, nor does an element that is
/// empty or none of ours.
pub(crate) fn negotiation(data: &[u8]) {
    let Ok(header) = std::str::from_utf8(data) else { return };
    for same in [header.to_ascii_uppercase(), format!(" ,x-y/z;q=0.9,{header}")] {
        assert_eq!(negotiate::format(Some(header)), negotiate::format(Some(&same)), "{header:?}");
        assert_eq!(negotiate::encoding(Some(header)), negotiate::encoding(Some(&same)), "{header:?}");
    }
}

/// Any file as the web configuration: no panic, and what is refused says why.
pub(crate) fn web_configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = webconfig::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Any query: what is read of it, written as a query, reads the same.
pub(crate) fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = filter::parse(Some(text));
    let names = read.names.iter().map(|name| ("name[]", name));
    let projects = read.projects.iter().map(|project| ("project", project));
    let apps = read.apps.iter().map(|app| ("app", app));
    let pairs = names.chain(projects).chain(apps);
    let written = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    assert_eq!(filter::parse(Some(&written)), read, "{text:?}");
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

/// What is exposed of any body, a strict parser reads back: the same series, with the same labels and values.
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

/// Values by name of the family and labels. No two series are equal in both.
type Series = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Puts a series that must not be there yet.
fn put(series: &mut Series, family: &str, labels: BTreeMap<String, String>, value: f64) {
    let before = series.insert((family.to_owned(), labels.clone()), value);
    assert_eq!(before, None, "{family} with {labels:?} stands twice");
}

/// What the parser has read. The bound of a bucket is its label `le` again.
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

/// What is exposed of one reply.
#[derive(Default)]
struct Page {
    /// As OpenMetrics text without its end.
    text: String,
    /// What was meant to be written.
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
        let subject = Subject { project: "p-1", labels: &labels, window };
        let Ok(reading) = polled.read(data, &[subject]) else { continue };
        pages.extend(reading.sinks.into_iter().map(|sink| page(&polled.families(), sink, &told)));
        let distributed = polled.counted == Some(Counted::Requests);
        let added =
            reading.tally.map(|tally| Ledger::open(RANGE.start).add(RANGE, &tally, distributed, i64::MAX));
        if let Some(Ok(ledger)) = added {
            pages.push(page(accounting::FAMILIES, accounting::series(resource, &ledger, true), &told));
        }
    }
    pages
}

/// The page of one target, whose own label is `told`.
fn page(families: &[Family], sink: Sink, told: &str) -> Page {
    let (mut text, mut series) = (Vec::new(), Series::new());
    let mut target = String::new();
    label(&mut target, "app", told);
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
                name => (name.to_owned(), readable(value)),
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

/// Runs `check` on every file in `corpus`.
pub(crate) fn replay(corpus: &Path, check: impl Fn(&[u8])) -> usize {
    let files = std::fs::read_dir(corpus).expect("the corpus is there");
    files.map(|file| check(&std::fs::read(file.expect("listed").path()).expect("a readable file"))).count()
}

/// Any bytes as an `Authorization` header: no panic, and what is read says the same when written again.
pub(crate) fn authorization(data: &[u8]) {
    use base64::Engine as _;
    let Some(read) = basic_auth::parse(data) else { return };
    assert!(!read.user.contains(&b':'));
    let text =
        base64::engine::general_purpose::STANDARD.encode([&*read.user, b":", &*read.password].concat());
    for scheme in ["Basic ", "bAsIc "] {
        assert!(basic_auth::parse(format!("{scheme}{text}").as_bytes()) == Some(read.clone()));
        assert!(basic_auth::parse(format!("{scheme} \t{text} ").as_bytes()) == Some(read.clone()));
    }
    assert!(basic_auth::parse(text.as_bytes()).is_none(), "a scheme is needed");
}

/// Each line as the reply about the next minute of one ledger, whose hours are counted again as they age: no counter ever
/// falls, the buckets stay cumulative, and a reply that is refused changes nothing.
pub(crate) fn ledger(data: &[u8]) {
    const START: i64 = 1_767_225_600;
    let ages = Ages::new([3600]);
    let mut ledger = Ledger::open(START);
    for body in data.split(|byte| *byte == b'\n') {
        let Ok(reading) = response_time::RESOURCE.polled().read(body, &[]) else { continue };
        let tally = reading.tally.unwrap_or_default();
        let now = ledger.until + 3600;
        let next = match ledger.recheck_due(&ages, 0, now) {
            Some(hour) => {
                ledger.recheck(hour, &tally, true, (&ages, 0, now)).map(|next| next.map(|(next, _)| next))
            }
            None => {
                let range = TimeRange { start: ledger.until, end: ledger.until + 60 };
                ledger.add(range, &tally, true, START).map(Some)
            }
        };
        let Ok(Some(next)) = next else { continue };
        assert!(
            next.total >= ledger.total && next.late >= ledger.late && next.overcounted >= ledger.overcounted
        );
        assert!(next.until >= ledger.until && next.rechecked_until >= ledger.rechecked_until);
        let after: BTreeMap<u64, u64> =
            next.buckets().map(|(bound, count)| (bound.to_bits(), count)).collect();
        for (bound, count) in ledger.buckets() {
            assert!(after[&bound.to_bits()] >= count, "the bucket {bound} fell from {count}");
        }
        let counts: Vec<u64> = next.buckets().map(|(_, count)| count).collect();
        assert!(counts.is_sorted() && counts.last().is_none_or(|last| *last <= next.total), "{counts:?}");
        ledger = next;
    }
}

/// A token among other text, each of its characters escaped in a way that the input chooses, up to three times over: what
/// is left of it reads as no token, however often escapes are undone.
pub(crate) fn redaction(data: &[u8]) {
    const TOKEN: &str = "s3rvice/acc0unt+t0ken\"of\"p-1";
    let Some((ways, around)) = data.split_at_checked(TOKEN.len().min(data.len())) else { return };
    let mut text = String::new();
    for (index, byte) in TOKEN.bytes().enumerate() {
        match ways.get(index).map_or(0, |way| way % 4) {
            1 => text.push_str(&format!("\\u{byte:04x}")),
            2 => text.push_str(&format!("%{byte:02X}")),
            3 if matches!(byte, b'/' | b'"') => text.extend(['\\', char::from(byte)]),
            _ => text.push(char::from(byte)),
        }
    }
    for _ in 0..ways.first().map_or(0, |way| way / 4 % 3) {
        text = text.replace('\\', "\\\\").replace('"', "\\\"");
    }
    let around = String::from_utf8_lossy(around);
    let redactor = Redactor::default();
    redactor.add(&"p-1".into(), &Secret::new(TOKEN));
    let mut left = redactor.text(&format!("{around}{text}{around}"));
    for _ in 0..4 {
        assert!(!left.contains(TOKEN), "{text:?} is left in {left:?}");
        left = unescaped(&left);
    }
}

/// One layer of escapes undone.
fn unescaped(text: &str) -> String {
    let hex = |digits: Option<&str>| char::from_u32(u32::from_str_radix(digits?, 16).ok()?);
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let escape = match first {
            '%' => hex(rest.get(1..3)).map(|char| (char, 3)),
            '\\' if rest[1..].starts_with('u') => hex(rest.get(2..6)).map(|char| (char, 6)),
            '\\' => rest[1..].chars().next().filter(|char| "\\\"/".contains(*char)).map(|char| (char, 2)),
            _ => None,
        };
        let (char, length) = escape.unwrap_or((first, first.len_utf8()));
        out.push(char);
        rest = &rest[length..];
    }
    out
}

/// Any text as it reaches a terminal: nothing in it steers, and what does not steer stays.
pub(crate) fn terminal(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(!plain(&text).contains(is_steering));
    assert!(!plain_lines(&text).replace('\n', "").contains(is_steering));
    let kept: String = text.chars().filter(|char| !is_steering(*char)).collect();
    assert_eq!(plain(&kept), kept);
}

/// Any bytes as a state file, and a good state file with five bytes of the input at a time as an offset and what is
/// changed there: what is read is what was written, or the file is refused.
pub(crate) fn state_file(data: &[u8]) {
    let path = Path::new("state.redb");
    drop(tables::examine(path, data.to_vec()));
    let (good, expected) = good_state();
    let mut bytes = good.clone();
    for change in data.chunks_exact(5) {
        let offset = u32::from_le_bytes([change[0], change[1], change[2], change[3]]);
        let length = bytes.len();
        bytes[usize::try_from(offset).unwrap_or_default() % length] ^= change[4];
    }
    if let Ok((_, ledgers)) = tables::examine(path, bytes) {
        assert_eq!(&ledgers, expected, "damage went unnoticed");
    }
}

/// The bytes of a state file, and what is in it.
type StateFile = (Vec<u8>, Vec<(Key, Ledger)>);

fn good_state() -> &'static StateFile {
    static GOOD: OnceLock<StateFile> = OnceLock::new();
    GOOD.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a folder for the file");
        let path = dir.path().join("state.redb");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let telemetry = Telemetry::new(false).expect("metrics");
            let (ledgers, committer) =
                LedgerStore::open(Some(&path), telemetry, Duration::ZERO).await.expect("a new file");
            for app in 0..40 {
                let owner = Owner::new("p-1".into(), format!("p-1-app-{app}").into());
                let key = Key { owner, resource: response_time::RESOURCE };
                let ledger = Ledger::open(RANGE.start + app).with_buckets(&[(0.5, 3), (1.0, 7)]);
                ledgers.commit(&key, ledger).await.expect("room on the disk");
            }
            ledgers.close();
            committer.finished().await;
        });
        let bytes = std::fs::read(&path).expect("the file");
        let (_, ledgers) = tables::examine(&path, bytes.clone()).expect("a good file");
        assert_eq!(ledgers.len(), 40);
        (bytes, ledgers)
    })
}
