//! What must hold for any input. The fuzz targets call these with inputs they make up; the ordinary tests replay the
//! corpus through the same functions.
#![allow(dead_code, reason = "each target uses one of them")]

use std::path::Path;

use pds_exporter::catalogue::encode::{Format, head, sample};
use pds_exporter::catalogue::samples::Layouts;
use pds_exporter::config::{self, App, Project};
use pds_exporter::interface::endpoint::{Cadence, Subject, Window};
use pds_exporter::interface::response_time::threshold_seconds;
use pds_exporter::interface::{ENDPOINTS, TimeRange};
use pds_exporter::web::{filter, negotiate, webconfig};

/// The range that replies are read for.
const RANGE: TimeRange = TimeRange { start: 1_767_225_600, end: 1_767_225_900 };

/// Any body read as any endpoint's reply: no panic, and what comes out is finite and not negative.
pub fn replies(data: &[u8]) {
    for page in pages(data) {
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let value: f64 = line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect(line);
            assert!(value.is_finite() && value >= 0.0, "{line}");
        }
    }
}

/// Any text as a label of the distribution: no panic, and a threshold is a time.
pub fn labels(data: &[u8]) {
    if let Some(seconds) = std::str::from_utf8(data).ok().and_then(threshold_seconds) {
        assert!(seconds > 0.0 && seconds.is_finite());
    }
}

/// Any file as the configuration: no panic, and what is refused says why.
pub fn configuration(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the file");
    let path = dir.path().join("pds-exporter.toml");
    std::fs::write(&path, data).expect("the file can be written");
    match config::load(&path, [], &["name", "project", "app"]) {
        Ok(loaded) => assert!(!loaded.config.projects.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Any text as the headers by which a form is asked for: no panic, and an empty element changes nothing.
pub fn negotiation(data: &[u8]) {
    let Ok(header) = std::str::from_utf8(data) else { return };
    let same = format!(" ,{header}");
    assert_eq!(negotiate::format(Some(header)), negotiate::format(Some(&same)), "{header:?}");
    assert_eq!(negotiate::encoding(Some(header)), negotiate::encoding(Some(&same)), "{header:?}");
}

/// Any file as the web configuration: no panic, and what is refused says why.
pub fn web_configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = webconfig::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Any query: what is read of it, written as a query, reads the same.
pub fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = filter::parse(Some(text));
    let names = read.names.iter().map(|name| ("name[]", name));
    let projects = read.projects.iter().map(|project| ("project", project));
    let apps = read.apps.iter().map(|app| ("app", app));
    let pairs = names.chain(projects).chain(apps);
    let written = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    assert_eq!(filter::parse(Some(&written)), read, "{text:?}");
}

/// What is exposed of any body, a strict parser reads back: the same number of series, with the same values.
pub fn exposition(data: &[u8]) {
    for page in pages(data) {
        let lines: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        if lines.is_empty() {
            // The parser wants at least one family.
            continue;
        }
        let page = format!("{page}# EOF\n");
        let parsed = openmetrics_parser::openmetrics::parse_openmetrics(&page);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}\n{page}"));
        let read_back: usize = parsed.families.values().map(|family| family.iter_samples().count()).sum();
        assert_eq!(read_back, lines.len(), "{page}");
    }
}

/// The families of each endpoint that can read `data`, as OpenMetrics text without its end.
fn pages(data: &[u8]) -> Vec<String> {
    let app = App { id: "p-1-a\"b\\c".into(), interval: None, containers: Vec::new(), labels: Vec::new() };
    let project =
        Project { id: "p-1".into(), token: None, labels: Vec::new(), apps: vec![app.clone()], polled: true };
    let window = Window { label: "5m", container: None, first: true, range: RANGE };
    let mut pages = Vec::new();
    for endpoint in ENDPOINTS {
        let window = (endpoint.cadence() == Cadence::Metrics).then_some(window);
        let subject = Subject { project: &project, app: Some(&app), window };
        let Ok(reading) = endpoint.read(data, &[subject]) else { continue };
        let mut page = Vec::new();
        for sink in reading.sinks {
            let samples = sink.finish(&Layouts::default());
            for (index, family) in endpoint.families().iter().enumerate() {
                for (position, (extra, value)) in samples.of(index).enumerate() {
                    if position == 0 {
                        head(&mut page, Format::OpenMetrics, family);
                    }
                    sample(&mut page, family, "project=\"p-1\"", extra, value);
                }
            }
        }
        pages.push(String::from_utf8(page).expect("a page is UTF-8"));
    }
    pages
}

/// Runs `check` on every file in `corpus`.
pub fn replay(corpus: &Path, check: impl Fn(&[u8])) -> usize {
    let files = std::fs::read_dir(corpus).expect("the corpus is there");
    files.map(|file| check(&std::fs::read(file.expect("listed").path()).expect("a readable file"))).count()
}
