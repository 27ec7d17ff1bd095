//! The store seen from a poll and from a scrape.

mod expiry;
mod recorded;

use std::sync::Arc;

use bytes::Bytes;
use flate2::read::GzDecoder;
use jiff::Timestamp;
use tokio::time::{Duration, Instant, advance};

use pds_exposition::{Family, Format, Sink};
use pds_interface::{Resource, get_app, list_domains, response_time};
use pds_ledger::Owner;
use pds_telemetry::Telemetry;
use pds_web::{Encoding, ResponseBody};

use super::*;

const COUNTERS: &[Family] = &[Family::counter("pds_app_requests_total", &[], "Counted.")];

fn key(project: &str, app: &str, resource: Resource) -> Key {
    Key { owner: Owner::new(project.into(), app.into()), resource }
}

/// Makes `store` hold exactly these cells.
fn reconcile(store: &Store, wanted: Vec<(Key, Section)>) {
    let mut cells = store.new_cells();
    for (key, section) in wanted {
        cells.add(key, section);
    }
    cells.replace(Timestamp::UNIX_EPOCH);
}

/// A store with one project's domains and one app's counter.
fn small_store() -> (Store, Arc<TargetState>, Arc<TargetState>) {
    let store = Store::new(COUNTERS);
    let (domains, counter) =
        (key("p", "", list_domains::RESOURCE), key("p", "a\"b", response_time::RESOURCE));
    reconcile(&store, vec![(domains.clone(), Section::Endpoint), (counter.clone(), Section::Counters)]);
    let domains = store.cell(&domains, Section::Endpoint).unwrap();
    domains.set_stale_after(Some(Duration::from_secs(300)));
    let counter = store.cell(&counter, Section::Counters).unwrap();
    (store, domains, counter)
}

/// A poll that ended then.
fn end(cell: &TargetState, second: i64, failure: Option<PollFailure>) -> Transition {
    let (at, took) = (Timestamp::from_second(second).unwrap(), Duration::from_secs(1));
    cell.record(PollRecord { at, took, behind: false, failure }, &Variant::default())
}

/// The same failure, of the target itself or of its whole service account.
fn fail(cell: &TargetState, second: i64, class: &'static str, tell: bool) -> Transition {
    end(cell, second, Some(PollFailure { class, message: "no reply".into(), is_own: tell }))
}

fn put(cell: &TargetState, value: f64) {
    let mut sink = Sink::default();
    sink.next_family();
    sink.put(value);
    cell.replace(&Variant::default(), sink);
}

fn text(store: &Store, format: Format, filter: &Filter) -> String {
    let mut page = Vec::new();
    let Ok(()) = store.snapshot(Instant::now(), filter).write(format, &mut |chunk: &[u8]| {
        page.extend_from_slice(chunk);
        Ok::<(), std::convert::Infallible>(())
    });
    String::from_utf8(page).unwrap()
}

fn series(page: &str) -> Vec<&str> {
    page.lines().filter(|line| !line.starts_with('#')).collect()
}

#[tokio::test(start_paused = true)]
async fn an_empty_reply_shows_nothing() {
    let (store, ..) = small_store();
    assert_eq!(text(&store, Format::Text, &Filter::default()), "");
    assert!(!store.is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_failed_poll_keeps_the_last_samples_until_they_go_stale() {
    let (store, domains, counter) = small_store();
    put(&domains, 3.0);
    put(&counter, 7.0);
    let is_down = || store.is_down(&Filter::default());
    assert!(!is_down(), "not polled yet");
    end(&domains, 1000, None);
    assert!(store.is_complete() && !is_down());
    advance(Duration::from_secs(299)).await;
    assert_eq!(fail(&domains, 1299, "timeout", true), Transition::Failing);
    assert!(is_down());
    assert_eq!(fail(&domains, 1300, "timeout", true), Transition::Same);
    let lines = [
        "pds_project_custom_domains{project=\"p\"} 3",
        "pds_app_requests_total{project=\"p\",app=\"a\\\"b\"} 7",
        "pds_up{project=\"p\",resource=\"domains\"} 0",
        "pds_last_success_timestamp_seconds{project=\"p\",resource=\"domains\"} 1000",
    ];
    assert_eq!(series(&text(&store, Format::Text, &Filter::default())), lines);
    advance(Duration::from_secs(1)).await;
    assert_eq!(
        series(&text(&store, Format::Text, &Filter::default())),
        lines[1..],
        "counters never go stale"
    );
    let recovered = end(&domains, 1319, None);
    assert_eq!(recovered, Transition::Recovered { after: Duration::from_secs(20) });
}

#[tokio::test]
async fn failures_of_the_service_account_cause_no_transition_of_its_targets() {
    let (_store, domains, _) = small_store();
    let at = |second| Timestamp::from_second(second).unwrap();
    assert_eq!(fail(&domains, 10, "paused", false), Transition::Same);
    assert_eq!(end(&domains, 20, None), Transition::Same);
    assert_eq!(fail(&domains, 30, "403", true), Transition::Failing);
    assert_eq!(fail(&domains, 40, "unauthorized_paused", false), Transition::Same);
    assert_eq!(fail(&domains, 50, "403", true), Transition::Same, "that was said before");
    assert_eq!(fail(&domains, 60, "500", true), Transition::Failing);
    assert_eq!(domains.health_at(&Variant::default(), Instant::now()).0.failing.unwrap().since, at(30));
    assert_eq!(end(&domains, 70, None), Transition::Recovered { after: Duration::from_secs(40) });
}

#[tokio::test(start_paused = true)]
async fn a_removed_target_vanishes_at_once_and_one_that_stays_keeps_its_samples() {
    let (store, domains, counter) = small_store();
    put(&domains, 3.0);
    put(&counter, 7.0);
    reconcile(&store, vec![(counter.key.clone(), Section::Counters)]);
    assert_eq!(
        series(&text(&store, Format::Text, &Filter::default())),
        ["pds_app_requests_total{project=\"p\",app=\"a\\\"b\"} 7"]
    );
    assert!(store.is_complete(), "what is no longer wanted need not be asked");
}

#[tokio::test]
async fn windows_are_in_order_whichever_was_polled_first() {
    let (store, domains, _) = small_store();
    for window in [300, 60, 900] {
        let mut sink = Sink::default();
        sink.next_family();
        sink.put(window as f64);
        domains.replace(&Variant { window, container: None }, sink);
    }
    let page = text(&store, Format::Text, &Filter::default());
    let values: Vec<&str> = series(&page).iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(values, ["60", "300", "900"]);
}

#[tokio::test]
async fn settings_of_apps_alone_have_changes() {
    let store = Store::new(COUNTERS);
    let targets = [("a", get_app::RESOURCE), ("a", response_time::RESOURCE), ("", list_domains::RESOURCE)];
    let keys = targets.map(|(app, resource)| key("p", app, resource));
    let cells = keys.iter().map(|key| (key.clone(), Section::Endpoint)).collect();
    reconcile(&store, cells);
    let changes = keys.map(|key| {
        let cell = store.cell(&key, Section::Endpoint).unwrap();
        let first = key.resource.polled().families()[0];
        for (text, number) in [("one", 1.0), ("two", 2.0)] {
            let labels: Vec<(&str, &str)> = first.labels.iter().map(|label| (*label, text)).collect();
            let mut sink = Sink::default();
            sink.next_family();
            sink.put_with(&labels, number);
            cell.replace(&Variant::default(), sink);
            end(&cell, 1000, None);
        }
        !cell.history(|history| history.changes(Timestamp::UNIX_EPOCH)).is_empty()
    });
    assert_eq!(changes, [true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn a_filter_gives_its_part_of_the_page() {
    let (store, domains, counter) = small_store();
    put(&domains, 3.0);
    put(&counter, 7.0);
    let filter = |names: &[&str], project: Option<&str>, app: Option<&str>| Filter {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        projects: project.map(str::to_owned).into_iter().collect(),
        apps: app.map(str::to_owned).into_iter().collect(),
    };
    let count = |filter: &Filter| series(&text(&store, Format::Text, filter)).len();
    assert_eq!(count(&filter(&["pds_project_custom_domains"], None, None)), 1);
    assert_eq!(count(&filter(&["pds_app_requests"], None, None)), 1, "by its OpenMetrics name too");
    assert_eq!(count(&filter(&[], Some("p"), None)), 2);
    assert_eq!(count(&filter(&[], Some("p"), Some("a\"b"))), 1);
    assert_eq!(count(&filter(&[], None, Some("b"))), 0);
    assert_eq!(count(&filter(&[], Some("p2"), None)), 0);
}

/// The whole page and its first piece; a compressed one is decompressed.
async fn whole(pages: &Pages, format: Format, encoding: Encoding) -> (String, Bytes) {
    let pieces = match pages.page(format, encoding, &Filter::default(), ()).await.unwrap() {
        ResponseBody::Parts(parts) => Vec::from(parts),
        ResponseBody::Channel { mut pieces, .. } => {
            let mut received = Vec::new();
            while let Some(Ok(piece)) = pieces.recv().await {
                assert!(piece.len() < 400 * 1024, "a piece of {} bytes", piece.len());
                received.push(piece);
            }
            received
        }
    };
    let all = pieces.concat();
    let text = match encoding {
        Encoding::Gzip => std::io::read_to_string(GzDecoder::new(&all[..])).unwrap(),
        _ => String::from_utf8(all).unwrap(),
    };
    (text, pieces[0].clone())
}

#[tokio::test(start_paused = true)]
async fn a_page_is_compressed_once_a_change_and_shared() {
    let (store, domains, _) = small_store();
    let pages = Pages::new(store.clone(), Telemetry::new(false).unwrap());
    let zipped = async || whole(&pages, Format::OpenMetrics, Encoding::Gzip).await;
    put(&domains, 3.0);
    let first = zipped().await;
    assert!(first.0.ends_with("# EOF\n"));
    assert_eq!(first.1.as_ptr(), zipped().await.1.as_ptr(), "the very same bytes");
    advance(Duration::from_secs(1)).await;
    assert_eq!(first.1.as_ptr(), zipped().await.1.as_ptr(), "what was said is not rendered again");
    put(&domains, 4.0);
    let second = zipped().await.0;
    assert!(second.contains("pds_project_custom_domains{project=\"p\"} 4\n"));
    let plain = whole(&pages, Format::OpenMetrics, Encoding::Identity).await.0;
    assert_eq!(plain, second, "both codings show the same");
    advance(Duration::from_secs(301)).await;
    let third = zipped().await.0;
    assert!(!third.contains("pds_project_custom_domains"), "a page expires with its samples");
}

/// A store of so many apps, each with a thousand counters.
pub(super) fn large_store(apps: usize) -> (Store, Arc<TargetState>) {
    let store = Store::new(COUNTERS);
    let keys: Vec<Key> = (0..apps).map(|n| key("p", &format!("app-{n}"), response_time::RESOURCE)).collect();
    reconcile(&store, keys.iter().map(|key| (key.clone(), Section::Counters)).collect());
    for key in &keys {
        let mut sink = Sink::default();
        sink.next_family();
        for n in 0..1000 {
            sink.put_with(&[("threshold", &n.to_string())], 1.0);
        }
        store.cell(key, Section::Counters).unwrap().replace(&Variant::default(), sink);
    }
    let first = store.cell(&keys[0], Section::Counters).unwrap();
    (store, first)
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_holds_only_the_selection_of_its_filter() {
    let (store, _) = large_store(3);
    let series = |filter: Filter| store.snapshot(Instant::now(), &filter).series();
    assert_eq!(series(Filter::default()), 3_000);
    assert_eq!(series(Filter { apps: vec!["app-1".to_owned()], ..Filter::default() }), 1_000);
    assert_eq!(series(Filter { projects: vec!["other".to_owned()], ..Filter::default() }), 0);
    assert_eq!(series(Filter { names: vec!["other".to_owned()], ..Filter::default() }), 0);
    let bytes = |filter: &Filter| store.snapshot(Instant::now(), filter).bytes();
    assert!((24_000..40_000).contains(&bytes(&Filter::default())), "eight a value, and what names them");
    assert!(bytes(&Filter { apps: vec!["app-1".to_owned()], ..Filter::default() }) < 10_000);
    assert_eq!(series(Filter { names: vec!["pds_up".to_owned()], ..Filter::default() }), 0);
}

#[tokio::test]
async fn any_filter_selects_the_cells_that_it_names_in_their_order() {
    let store = Store::new(COUNTERS);
    let resources = [response_time::RESOURCE, list_domains::RESOURCE];
    let owners = ["p", "p2", "q"].iter().flat_map(|project| ["", "a", "a2", "b"].map(|app| (*project, app)));
    let keys = owners.flat_map(|(project, app)| resources.map(|resource| key(project, app, resource)));
    reconcile(&store, keys.map(|key| (key, Section::Endpoint)).collect());
    let index = store.index();
    let lists: [&[&str]; 6] = [&[], &["p"], &["q", "p"], &["a"], &["a2", "", "a", "a"], &["p2", "b", "x"]];
    for (projects, apps) in lists.iter().flat_map(|projects| lists.map(|apps| (*projects, apps))) {
        let own = |list: &[&str]| list.iter().map(|&value| value.to_owned()).collect();
        let filter = Filter { names: Vec::new(), projects: own(projects), apps: own(apps) };
        let selectors = filter.select(&index.apps);
        for cells in &index.sections {
            let mut rest = cells.as_slice();
            let selected = selectors.iter().flat_map(|selector| selector.take(&mut rest));
            let named = cells.iter().filter(|cell| {
                let owner = &cell.key.owner;
                (projects.is_empty() || projects.contains(&&*owner.project))
                    && (apps.is_empty() || !owner.app.is_empty() && apps.contains(&&*owner.app))
            });
            assert!(selected.map(Arc::as_ptr).eq(named.map(Arc::as_ptr)), "{filter:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_page_comes_in_pieces_that_make_the_whole_and_is_compressed_once() {
    for (apps, is_streamed) in [(100, false), (300, true)] {
        let (store, _) = large_store(apps);
        let pages = Pages::new(store, Telemetry::new(false).unwrap());
        let plain = whole(&pages, Format::Text, Encoding::Identity).await.0;
        let first = pages.page(Format::Text, Encoding::Gzip, &Filter::default(), ()).await.unwrap();
        assert_eq!(matches!(&first, ResponseBody::Channel { .. }), is_streamed, "{apps}");
        drop(first);
        let mut kept = whole(&pages, Format::Text, Encoding::Gzip).await;
        for _ in 0..2 {
            let again = pages.page(Format::Text, Encoding::Gzip, &Filter::default(), ()).await;
            assert!(matches!(again, Ok(ResponseBody::Parts(_))), "it is kept while nothing changes");
            kept = whole(&pages, Format::Text, Encoding::Gzip).await;
        }
        assert!(kept.0 == plain, "{apps}: the same text");
        let counted = series(&plain).iter().filter(|line| line.starts_with("pds_app_requests_total")).count();
        assert_eq!(counted, 1_000 * apps);
    }
}

#[test]
fn a_large_page_that_something_changed_meanwhile_is_not_kept() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _clock = runtime.enter();
    let (store, counter) = large_store(300);
    let pages = Pages::new(store.clone(), Telemetry::new(false).unwrap());
    for changes in [false, true] {
        runtime.block_on(tokio::time::advance(Duration::from_secs(1)));
        let snapshot = store.snapshot(Instant::now(), &Filter::default());
        let mut zipped = Vec::new();
        let sent = pages.send(&snapshot, (Format::Text, Encoding::Gzip), |piece| {
            if changes {
                put(&counter, 2.0);
            }
            zipped.extend_from_slice(&piece);
            Ok::<(), std::convert::Infallible>(())
        });
        assert!(sent.is_ok() && GzDecoder::new(&zipped[..]).header().is_some());
        let kept = runtime.block_on(pages.page(Format::Text, Encoding::Gzip, &Filter::default(), ()));
        assert_eq!(matches!(kept, Ok(ResponseBody::Parts(_))), !changes);
    }
}
