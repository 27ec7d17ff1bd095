//! The table as a whole; and recorded replies in, exposition text out, which the tests of all calls compare with.

use std::collections::HashSet;

use pds_exposition::Sink;
use pds_exposition::encode::{Format, head, labels, sample};
use pds_exposition::samples::Layouts;

use super::call::{Call, Method};
use super::polled::{Point, Polled, Scope};
use super::range::TimeRange;
use super::reader::{Subject, Window};
use super::{CALLS, MODULES, QueryNames, Resource, families, get_app, run_execution_time};

/// The requested range: five minutes that end at this second.
pub(crate) const END: i64 = 1_767_225_600;

/// The usual names.
pub(crate) fn query_names() -> QueryNames {
    let name = str::to_owned;
    QueryNames {
        start: name("start"),
        end: name("end"),
        container: name("container_id"),
        resolution: name("resolution"),
        key_name: name("name"),
        key_description: name("description"),
        key_expires_at: name("expiresAt"),
        tree_ref: name("ref"),
        tree_path: name("path"),
    }
}

/// The samples that `body` gives for app `p-1-ranker` of project `p-1`, as they stand on the page, and the fields
/// with unexpected values.
pub(crate) fn exposed(call: &Call, body: &(impl AsRef<[u8]> + ?Sized)) -> (String, Vec<&'static str>) {
    exposed_for(call, body, None)
}

/// The same for a window that is restricted to `container`.
pub(crate) fn exposed_for(
    call: &Call,
    body: &(impl AsRef<[u8]> + ?Sized),
    container: Option<&str>,
) -> (String, Vec<&'static str>) {
    let polled = call.polled.as_ref().unwrap();
    with_subject(polled, container, |subject| {
        let mut reading = polled.read(body.as_ref(), &[subject]).unwrap();
        (page(polled, reading.sinks.remove(0)), reading.unexpected)
    })
}

/// The samples that show `point`, as they stand on the page.
pub(crate) fn shown_for(call: &Call, point: Point, container: Option<&str>) -> String {
    let polled = call.polled.as_ref().unwrap();
    with_subject(polled, container, |subject| page(polled, run_execution_time::show(point, subject)))
}

fn with_subject<T>(polled: &Polled, container: Option<&str>, read: impl FnOnce(Subject<'_>) -> T) -> T {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut labels = vec![pair("team", "search"), pair("tier", "gold")];
    labels.truncate(if polled.scope == Scope::App { 2 } else { 1 });
    let range = TimeRange { start: END - 300, end: END };
    let window = Some(Window { label: "5m", container, first: true, range });
    let app = if polled.scope == Scope::App { "p-1-ranker" } else { "" };
    read(Subject { project: "p-1", app, labels: &labels, window })
}

fn page(polled: &Polled, sink: Sink) -> String {
    let samples = sink.finish(&Layouts::default());
    let of_app = Some(("app", "p-1-ranker")).filter(|_| polled.scope == Scope::App);
    let target = labels([("project", "p-1")].into_iter().chain(of_app));
    let mut page = Vec::new();
    for (i, family) in polled.families().iter().enumerate() {
        for (labels, value) in samples.of(i) {
            sample(&mut page, family, &target, labels, value);
        }
    }
    let page = String::from_utf8(page).unwrap();
    assert_is_exposition(polled, &page);
    page
}

/// Holds for every reply: no duplicate series, and a page that a strict parser accepts.
fn assert_is_exposition(polled: &Polled, page: &str) {
    let series: Vec<_> = page.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let mut names: Vec<_> = series.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), series.len(), "a series stands twice:\n{page}");
    if page.is_empty() {
        return; // The parser wants at least one family.
    }
    let mut whole = Vec::new();
    for family in polled.families() {
        let of_family = |line: &&str| line.split(['{', ' ']).next() == Some(family.name);
        let mut lines = page.lines().filter(of_family).peekable();
        // A family without series has no head either.
        if lines.peek().is_some() {
            head(&mut whole, Format::OpenMetrics, &family);
        }
        for line in lines {
            whole.extend_from_slice(line.as_bytes());
            whole.push(b'\n');
        }
    }
    whole.extend_from_slice(Format::OpenMetrics.trailer().as_bytes());
    let whole = String::from_utf8(whole).unwrap();
    if let Err(problem) = openmetrics_parser::openmetrics::parse_openmetrics(&whole) {
        panic!("{problem}\n{whole}");
    }
}

/// Fails where `body` can be read.
pub(crate) fn unreadable(call: &Call, body: &str) {
    let read = call.polled.as_ref().unwrap().read(body.as_bytes(), &[]);
    assert!(read.is_err(), "{body} was read as {read:?}");
}

#[test]
fn every_call_is_one_row_named_after_its_file() {
    assert!(CALLS.iter().map(|call| call.id).eq(MODULES.iter().copied()));
}

#[test]
fn every_resource_is_a_row_that_only_reads() {
    for (index, resource) in Resource::all().enumerate() {
        assert_eq!(resource.index(), index);
        assert_eq!(Resource::find(resource.as_str()), Some(resource));
        assert_eq!(resource.call().method, Method::GET);
        assert!(resource.call().command.consequence.is_none());
    }
    assert_eq!(Resource::find("apps"), None);
    assert_eq!(
        CALLS.iter().filter(|call| call.polled.is_some()).count(),
        Resource::COUNT,
        "polled calls come first"
    );
    assert_eq!(get_app::RESOURCE.call().id, "get_app");
}

#[test]
fn no_family_and_no_subcommand_is_declared_twice() {
    let names: Vec<_> = families().map(|family| family.name).collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    let words: HashSet<_> = CALLS.iter().map(|call| call.command.words).collect();
    assert_eq!(words.len(), CALLS.len());
}

#[test]
fn every_call_that_deletes_prompts() {
    for call in CALLS.iter().filter(|call| call.method == Method::DELETE) {
        assert!(call.command.consequence.is_some(), "{}", call.id);
    }
}
