//! Counters that continue at a cursor of Prometheus: the scrapes of all processes together add up to the truth.

mod bad_answers;
mod cursors;
mod engines;
mod many;
mod model;
pub(crate) mod prometheus;
mod returning;
mod rig;

use std::sync::atomic::{AtomicUsize, Ordering};

use pds_core::memory::{Holder, MemoryBudget};
use pds_interface::response_time;
use pds_ledger::restore::{Source, Targets};
use pds_ledger::{Hold, Key, Owner};
use pds_simulator::{Fault, Quirks, Settings};

use crate::process::series;
use crate::rig::FaultExt as _;
use rig::{ARRIVES, Exporter, RESTORED, Rig, sharded};

const CURSOR: &str = "pds_app_accounted_until_timestamp_seconds";

/// The counters of a page that a query sees, and their values.
fn counters(page: &str) -> Vec<(String, f64)> {
    let counts =
        |name: &str| name.starts_with("pds_app_") && name.contains("_total{") || name.contains("_bucket{");
    let counters = series(page).filter(|(name, _)| counts(name) && name.starts_with("pds_app_"));
    counters.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn key(rig: &Rig, app: usize) -> Key {
    let owner = Owner::new(rig.project(), rig.apps()[app].clone());
    Key { owner, resource: response_time::RESOURCE }
}

/// Has the first app's requests give up `seconds` at their cursor, once these have passed.
async fn give_up(rig: &Rig, exporter: &Exporter, seconds: i64) {
    let (ledgers, key) = (&exporter.handle.context.ledgers, key(rig, 0));
    let ledger = ledgers.ledger(&key).unwrap();
    rig.pass(seconds).await;
    let (given_up, _) = ledger.give_up(ledger.until + seconds, ledger.until).unwrap();
    ledgers.commit(&key, given_up).await.unwrap();
}

/// The cursor of the first app's requests, as its ledger has it.
fn cursor(rig: &Rig, exporter: &Exporter) -> i64 {
    exporter.handle.context.ledgers.ledger(&key(rig, 0)).unwrap().until
}

/// The cursors on the page.
fn cursors(exporter: &Exporter) -> Vec<i64> {
    let page = exporter.page();
    series(&page).filter(|(name, _)| name.starts_with(CURSOR)).map(|(_, until)| until as i64).collect()
}

/// The greatest cursor that Prometheus holds.
fn greatest(rig: &Rig) -> i64 {
    let samples = rig.prometheus.of(CURSOR).into_iter().flat_map(|(_, samples)| samples);
    samples.map(|(_, until)| until as i64).max().unwrap()
}

async fn reasons(exporter: &Exporter) -> String {
    exporter.status().await.1.join("\n")
}

#[tokio::test]
async fn counters_begin_at_the_cursor_and_stand_at_0_until_they_were_read_for_a_minute() {
    let rig = Rig::after_one(2).await;
    let found = greatest(&rig);
    rig.pass(1700).await;

    let exporter = rig.exporter(rig.config(2, ""), "a").await;
    assert_eq!(exporter.metric(RESTORED), None, "nothing was tried yet");
    exporter.poll().await;
    assert_eq!((exporter.shown(), counters(&exporter.page()).len()), (0, 0));
    rig.scrape(&exporter);
    assert!(!exporter.handle.restorer.restore().await, "samples of this moment may still arrive");
    assert!(exporter.obstacle().await.contains("has not scraped this process yet"));
    rig.pass(ARRIVES).await;
    assert!(exporter.handle.restorer.restore().await);
    assert_eq!((exporter.metric(RESTORED), exporter.shown()), (Some(1.0), 0), "it has to catch up");

    // Once up to the hour and once up to now.
    exporter.poll().await;
    for seconds in [0, 15, 14] {
        rig.pass(seconds).await;
        exporter.poll().await;
        let counters = counters(&exporter.page());
        assert!(counters.len() > 2 * 7 && counters.iter().all(|(_, value)| *value == 0.0), "{counters:?}");
        assert!(cursors(&exporter).iter().all(|until| *until == found), "{:?}", cursors(&exporter));
        rig.scrape(&exporter);
    }
    rig.pass(31).await;
    exporter.poll().await;
    rig.scrape(&exporter);
    assert!(cursors(&exporter).iter().all(|until| *until > found + 1700));
    rig.assert_exact();
    rig.run(&exporter, 3).await;
    rig.assert_exact();
}

#[tokio::test]
async fn a_restart_loses_late_data_of_the_hours_that_were_to_be_counted_again_and_no_other() {
    let quirks = Quirks { late_share: 0.03, late_within: 1200, ..Quirks::default() };
    let rig = Rig::of(Settings { seed: 7, projects: 1, apps: 1, quirks, ..Settings::default() }).await;
    let hours = async |exporter: &Exporter, hours: usize| {
        for _ in 0..12 * hours {
            rig.pass(300).await;
            exporter.poll().await;
            rig.scrape(exporter);
        }
    };
    let former = rig.started("a").await;
    hours(&former, 4).await;
    let ledger = former.handle.context.ledgers.ledger(&key(&rig, 0)).unwrap();
    assert!(ledger.late > 0, "{ledger:?}");
    let unchecked = former.unchecked(0).await;
    drop(former);
    let exporter = rig.started("a").await;
    hours(&exporter, 3).await;
    rig.world.end_late_data();
    hours(&exporter, 3).await;
    rig.assert_exact_less_late(&unchecked);
}

#[tokio::test]
async fn unread_counters_stand_at_0_for_two_minutes() {
    let rig = Rig::after_one(1).await;
    let found = greatest(&rig);
    let exporter = rig.started("a").await;
    for minute in 0..=2 {
        rig.pass(60 * i64::from(minute > 0)).await;
        exporter.poll().await;
        let hold = exporter.handle.context.ledgers.hold(&key(&rig, 0));
        assert_eq!(
            hold,
            (minute < 2).then_some(Hold::Begun { until: found, pending: 0 }),
            "after {minute} minutes"
        );
    }
}

#[tokio::test]
async fn a_cursor_older_than_max_catch_up_is_given_up_from_0_on() {
    let rig = Rig::after_one(1).await;
    let found = greatest(&rig);
    rig.pass(7200).await;
    let mut config = rig.config(1, "");
    config.accounting.max_catch_up = std::time::Duration::from_secs(3600);
    config.accounting.recheck_after = Vec::new();
    let exporter = rig.started_with(config, "a").await;
    exporter.poll().await;
    exporter.poll().await;
    let unaccounted = |exporter: &Exporter| {
        let page = exporter.page();
        series(&page).find(|(name, _)| name.starts_with("pds_app_unaccounted_seconds_total")).unwrap().1
    };
    assert_eq!((unaccounted(&exporter), cursors(&exporter)), (0.0, vec![found; 2]));
    rig.run(&exporter, 2).await;
    let until = cursor(&rig, &exporter);
    assert!(unaccounted(&exporter) > 3600.0, "{}", unaccounted(&exporter));
    let total =
        rig.truth(&rig.apps()[0], response_time::RESOURCE, found + unaccounted(&exporter) as i64, until);
    assert_eq!(rig.prometheus.of("pds_app_requests_total")[0].1.last().unwrap().1, total as f64);
}

#[tokio::test]
async fn an_app_that_a_reload_adds_continues_and_the_others_are_not_affected() {
    let rig = Rig::after_one(2).await;
    let exporter = rig.started_with(rig.config(1, ""), "a").await;
    rig.run(&exporter, 3).await;
    assert_eq!(exporter.shown(), 1);
    exporter.handle.reconfigure(rig.config(2, "")).await.unwrap();
    exporter.poll().await;
    assert_eq!(exporter.shown(), 1);
    let missing = exporter.status().await.0.exporter.restoring.as_ref().unwrap().missing;
    assert_eq!(missing, 2, "requests and runs of one app");
    rig.run(&exporter, 4).await;
    assert_eq!(exporter.shown(), 2);
    rig.assert_exact();
}

#[tokio::test]
async fn an_app_is_counted_once_while_it_moves_between_shards_also_if_their_lives_overlap() {
    let rig = Rig::start(6).await;
    let mut shards: Vec<Exporter> = Vec::new();
    for count in [2, 3, 2] {
        // As in a rolling update of a stateful set: the last one first, each at its own address.
        for index in (0..count.max(3)).rev() {
            let name = format!("shard-{index}");
            shards.retain(|shard| shard.instance != name);
            if index < count {
                shards.push(rig.started_with(sharded(rig.config(6, ""), index, count), &name).await);
            }
            rig.run_all(&shards, 1, 60).await;
        }
        rig.run_all(&shards, 6, 60).await;
        let apps_shown: usize = shards.iter().map(Exporter::shown).sum();
        assert_eq!(apps_shown, 6, "with {count} shards");
    }
    rig.assert_exact();
}

#[tokio::test]
async fn a_state_file_does_not_wait_for_prometheus() {
    let rig = Rig::start(1).await;
    let state = rig.folder.path().join("state.log");
    let config = rig.config(1, &format!("path = {state:?}"));
    let exporter = rig.started_with(config.clone(), "a").await;
    rig.run(&exporter, 3).await;
    drop(exporter);
    crate::process::until("the state file is free", async || {
        std::fs::File::open(&state).unwrap().try_lock().is_ok()
    })
    .await;
    rig.prometheus.answer(|_| Some((503, String::new())));
    let exporter = rig.exporter(config, "a").await;
    assert!(exporter.handle.restorer.restore().await, "nothing is missing");
    rig.run(&exporter, 1).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, Some(1.0)));
    rig.assert_exact();
}

#[tokio::test]
async fn without_the_key_nothing_is_queried_or_hidden_and_a_reload_may_remove_it() {
    let rig = Rig::start(1).await;
    let mut config = rig.config(1, "");
    config.state.prometheus = None;
    let exporter = rig.started_with(config.clone(), "a").await;
    rig.run(&exporter, 2).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, None));
    assert_eq!(rig.prometheus.asked().len(), 0);
    drop(exporter);

    rig.prometheus.answer(|_| Some((503, String::new())));
    let exporter = rig.started("b").await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (0, Some(0.0)));
    exporter.handle.reconfigure(config).await.unwrap();
    for _ in 0..3 {
        rig.pass(60).await;
        exporter.poll().await;
    }
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, None));
}

#[tokio::test]
async fn a_daemon_retries_and_polls_a_counter_at_once_when_its_cursor_is_known() {
    let rig = Rig::after_one(1).await;
    rig.pass(1700).await;
    let asked = AtomicUsize::new(0);
    let fails = move || asked.fetch_add(1, Ordering::Relaxed) < 2;
    rig.prometheus.answer(move |_| fails().then(|| (503, String::new())));
    let mut config = rig.config(1, "");
    // No second poll falls due within this test.
    config.poll.interval = std::time::Duration::from_secs(3600);
    let exporter = rig.exporter(config, "a").await;
    rig.scrape(&exporter);
    rig.suspend(ARRIVES);
    let handle = exporter.run();
    crate::process::until("the counters are on the page", async || {
        let plan = handle.plan().await;
        let now = tokio::time::Instant::now();
        plan.targets.iter().all(|target| target.counter.as_ref().is_none_or(|cell| cell.shows_counters(now)))
    })
    .await;
    let restoring = handle.context.telemetry.snapshot().restoring.unwrap();
    assert_eq!((restoring.restored, restoring.missing), (2, 0));
}

#[tokio::test]
async fn a_reload_ends_a_query() {
    let rig = Rig::after_one(1).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = rig.config(1, "");
    let url = format!("http://{}", silent.local_addr().unwrap());
    config.state.prometheus.as_mut().unwrap().url = url.parse().unwrap();
    config.poll.interval = std::time::Duration::from_secs(1);
    let handle = rig.exporter(config, "a").await.run();
    let _asked = silent.accept().await.unwrap();
    let from = rig.prometheus.asked().len();
    handle.reconfigure(rig.config(1, "")).await.unwrap();
    let began = std::time::Instant::now();
    crate::process::until("the other Prometheus is asked", async || rig.prometheus.asked().len() > from)
        .await;
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "a query may take a minute");
}

#[tokio::test]
async fn a_counter_hidden_at_0_returns_at_0() {
    let rig = Rig::after_one(1).await;
    let found = greatest(&rig);
    let exporter = rig.started("a").await;
    exporter.poll().await;
    assert_eq!(cursors(&exporter), [found; 2]);
    rig.world.faults().set([Fault::status(500)]);
    for _ in 0..4 {
        rig.pass(60).await;
        exporter.poll().await;
    }
    assert_eq!(exporter.shown(), 0);
    rig.world.faults().clear();
    exporter.poll().await;
    assert_eq!(cursors(&exporter), [found; 2]);
    rig.scrape(&exporter);
    rig.run(&exporter, 2).await;
    rig.assert_exact();
}

#[tokio::test]
async fn a_search_that_is_given_up_leaves_nothing_behind() {
    let rig = Rig::after_one(3).await;
    let memory = MemoryBudget::default();
    let prometheus = rig.config(3, "").state.prometheus.unwrap();
    let source = Source::new(&prometheus, memory.share(Holder::Restoring)).unwrap();
    let keys: Vec<Key> = (0..3).map(|app| key(&rig, app)).collect();
    let search = async || source.cursors(keys.clone(), rig.clock.unix_seconds(), &Targets::new()).await;
    let check = async || {
        let (answers, result) = search().await;
        result.unwrap();
        assert!(answers.len() == 3 && answers.iter().all(|answer| answer.cursor.is_some()));
        while memory.used() > 0 {
            tokio::task::yield_now().await;
        }
    };
    assert!(crate::given_up::at_each_await(search, check).await > 0);
}
