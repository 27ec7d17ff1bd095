//! Counters that come back from Prometheus: nothing goes back, nothing begins at 0 in silence, and all counts are true.

mod bad_answers;
mod bad_series;
mod engines;
mod look_back;
mod many;
mod model;
pub(crate) mod prometheus;
mod rig;

use pds_core::memory::{Holder, MemoryBudget};
use pds_interface::{Resource, response_time};
use pds_ledger::restore::{Answer, Source};
use pds_ledger::{Key, Owner};
use pds_simulator::Fault;

use crate::process::series;
use rig::{Exporter, RESTORED, Rig, sharded};

/// The counters of a page that a query sees, and their values.
fn counters(page: &str) -> Vec<(String, f64)> {
    let counts =
        |name: &str| name.starts_with("pds_app_") && name.contains("_total{") || name.contains("_bucket{");
    let of = series(page).filter(|(name, _)| counts(name) && name.starts_with("pds_app_"));
    of.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn key(rig: &Rig, app: usize) -> Key {
    let owner = Owner::new(rig.project(), rig.apps()[app].clone());
    Key { owner, resource: response_time::RESOURCE }
}

/// All ledgers hold what there was since `first`.
fn assert_true(rig: &Rig, exporter: &Exporter, first: i64) {
    for app in rig.apps() {
        for resource in Resource::all().filter(|resource| resource.polled().counted.is_some()) {
            let key = Key { owner: Owner::new(rig.project(), app.clone()), resource };
            let ledger = exporter.handle.context.ledgers.ledger(&key).unwrap();
            let truth = rig.truth(&app, resource, first, ledger.until);
            assert_eq!((ledger.total, ledger.unaccounted), (truth, 0), "{key} up to {}", ledger.until);
        }
    }
}

#[tokio::test]
async fn a_new_process_continues_exactly_from_the_last_scrape() {
    let rig = Rig::start(2).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    let before = rig.predecessor().await;
    assert!(counters(&before).iter().any(|(_, value)| *value > 0.0));
    rig.pass(1700);

    let exporter = rig.exporter(rig.config(2, ""), "new").await;
    assert_eq!(exporter.metric(RESTORED), None, "nothing was tried yet");
    exporter.poll().await;
    assert_eq!((exporter.shown(), counters(&exporter.page()).len()), (0, 0));
    assert!(exporter.handle.restorer.restore().await);
    assert_eq!(exporter.metric(RESTORED), Some(1.0));
    assert_eq!(exporter.shown(), 0, "hidden until it has caught up");
    // Once up to the hour and once up to now.
    rig.run(&exporter, 1).await;
    assert_eq!(exporter.shown(), 2);
    let after = exporter.page();
    for (name, value) in counters(&before) {
        let now = crate::process::value(&after, &name).unwrap_or_else(|| panic!("{name} is gone"));
        assert!(now >= value, "{name} went back from {value} to {now}");
    }
    assert_true(&rig, &exporter, first);
    rig.run(&exporter, 3).await;
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn what_was_read_back_is_shown_once_it_holds_all_that_had_settled_by_then() {
    let rig = Rig::start(1).await;
    let old = rig.started("old").await;
    rig.scrape(&old);
    rig.run(&old, 3).await;
    rig.prometheus.answer(|_| Some((503, String::new())));
    let exporter = rig.started("new").await;
    rig.run(&old, 4).await;
    exporter.poll().await;
    let before = old.page();
    // Prometheus is a minute behind, and the service fails just now.
    let now = rig.clock.unix_seconds();
    rig.prometheus.change(|_, samples| samples.retain(|(time, _)| *time < now - 50));
    rig.prometheus.mend();
    rig.world.faults().set([Fault::status(500)]);
    assert!(exporter.handle.restorer.restore().await);
    exporter.poll().await;
    assert_eq!(exporter.shown(), 0, "the other one may have shown more");
    rig.world.faults().clear();
    exporter.poll().await;
    assert_eq!(exporter.shown(), 1);
    let after = exporter.page();
    for (name, value) in counters(&before) {
        assert!(crate::process::value(&after, &name) >= Some(value), "{name} went back");
    }
}

#[tokio::test]
async fn nothing_known_opens_a_counter_only_once_this_very_process_was_scraped_with_it() {
    let rig = Rig::start(2).await;
    let exporter = rig.started("new").await;
    let configured = rig.clock.unix_seconds();
    assert_eq!(exporter.metric(RESTORED), Some(0.0));
    assert!(exporter.obstacle().await.contains("no page of this process was scraped yet"));
    // A page of another process says nothing, be it of the same instance.
    let other = rig.exporter(rig.config(2, ""), "new").await;
    other.poll().await;
    rig.scrape(&other);
    for _ in 0..3 {
        rig.pass(60);
        exporter.poll().await;
        assert!(!exporter.handle.restorer.restore().await);
    }
    // Nor does one on which its labels are others, as where the scrape sets labels of the same name.
    rig.scrape(&exporter);
    let renamed = |mut labels: prometheus::Labels| {
        if let Some(app) = labels.remove("app") {
            labels.insert("exported_app".to_owned(), app);
        }
        Some(labels)
    };
    rig.prometheus.relabel(renamed);
    assert!(!exporter.handle.restorer.restore().await);
    assert_eq!(exporter.shown(), 0);
    assert!(series(&exporter.page()).any(|(name, _)| name.starts_with("pds_app_window_requests{")));

    rig.scrape(&exporter);
    assert!(exporter.handle.restorer.restore().await);
    assert_eq!(exporter.metric(RESTORED), Some(1.0));
    rig.run(&exporter, 2).await;
    assert_eq!(exporter.shown(), 2);
    // From the step that had settled when the process started, not when it was recognised.
    assert_true(&rig, &exporter, (configured - 20) / 60 * 60);
}

#[tokio::test]
async fn an_app_that_a_reload_adds_is_read_back_and_the_others_go_on() {
    let rig = Rig::start(2).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    rig.predecessor().await;
    let exporter = rig.started_with(rig.config(1, ""), "new").await;
    rig.run(&exporter, 2).await;
    assert_eq!(exporter.shown(), 1);
    rig.pass(1);
    exporter.handle.reconfigure(rig.config(2, "")).await.unwrap();
    exporter.poll().await;
    assert_eq!(exporter.shown(), 1);
    let missing = exporter.status().await.0.exporter.restoring.as_ref().unwrap().missing;
    assert_eq!(missing, 2, "requests and runs of one app");
    assert!(exporter.handle.restorer.restore().await);
    rig.run(&exporter, 1).await;
    assert_eq!(exporter.shown(), 2);
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn counters_continue_when_an_app_moves_between_shards() {
    let rig = Rig::start(6).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    rig.predecessor().await;
    for count in [3, 5, 2] {
        rig.pass(1);
        let mut shards = Vec::new();
        for index in 0..count {
            let config = sharded(rig.config(6, ""), index, count);
            shards.push(rig.started_with(config, &format!("{index} of {count}")).await);
        }
        for shard in &shards {
            rig.run(shard, 2).await;
        }
        let shown: usize = shards.iter().map(Exporter::shown).sum();
        assert_eq!(shown, 6);
    }
    let whole = rig.started("whole").await;
    rig.run(&whole, 2).await;
    assert_true(&rig, &whole, first);
}

#[tokio::test]
async fn of_the_state_file_and_prometheus_the_later_one_counts_unless_it_holds_less() {
    let rig = Rig::start(1).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    let state = rig.folder.path().join("state.log");
    let with_file = rig.config(1, &format!("path = {state:?}"));
    // The file is of the first minutes; what came later was counted without it.
    let exporter = rig.started_with(with_file.clone(), "old").await;
    rig.scrape(&exporter);
    rig.run(&exporter, 3).await;
    drop(exporter);
    let without = rig.started("old").await;
    rig.run(&without, 30).await;
    let later = rig.handle_total(&without);
    drop(without);

    let both = rig.reopened(&with_file).await;
    assert!(both.handle.restorer.restore().await);
    assert_eq!(rig.handle_total(&both), later, "Prometheus knew more");
    rig.pass(1200);
    rig.run(&both, 2).await;
    assert_true(&rig, &both, first);
    let total = rig.handle_total(&both);
    drop(both);

    // Another exporter of the same app, which began later and counted further.
    rig.pass(600);
    rig.prometheus.change(|labels, samples| {
        let name = labels["__name__"].as_str();
        if let Some(last) = samples.last_mut() {
            match name {
                "pds_app_accounted_until_timestamp_seconds" => last.1 += 60.0,
                "pds_app_requests_total" | "pds_app_runs_total" => last.1 = 0.0,
                "pds_app_request_duration_seconds_bucket" => last.1 = 0.0,
                _ => {}
            }
        }
    });
    let both = rig.reopened(&with_file).await;
    assert!(both.handle.restorer.restore().await);
    assert_eq!(rig.handle_total(&both), total, "what was shown is not taken back");
    assert_eq!(both.status().await.0.exporter.restoring.as_ref().unwrap().kept, 2);
    rig.run(&both, 2).await;
    assert_true(&rig, &both, first);
}

impl Rig {
    /// What the ledger of the first app's requests holds.
    fn handle_total(&self, exporter: &Exporter) -> u64 {
        exporter.handle.context.ledgers.ledger(&key(self, 0)).unwrap().total
    }

    /// A new process on the state file of one that has ended, polled once.
    async fn reopened(&self, config: &pds_config::Config) -> Exporter {
        let path = config.state.path.clone().unwrap();
        crate::process::until("the state file is free", async || {
            std::fs::File::open(&path).unwrap().try_lock().is_ok()
        })
        .await;
        let exporter = self.exporter(config.clone(), "old").await;
        exporter.poll().await;
        exporter
    }
}

#[tokio::test]
async fn a_recent_state_file_does_not_wait_for_prometheus() {
    let rig = Rig::start(1).await;
    let state = rig.folder.path().join("state.log");
    let config = rig.config(1, &format!("path = {state:?}"));
    let exporter = rig.started_with(config.clone(), "old").await;
    rig.scrape(&exporter);
    rig.run(&exporter, 3).await;
    drop(exporter);
    rig.prometheus.answer(|_| Some((503, String::new())));
    let exporter = rig.reopened(&config).await;
    assert!(exporter.handle.restorer.restore().await, "nothing is missing");
    rig.pass(60);
    exporter.poll().await;
    assert_eq!(exporter.shown(), 1);
    assert_eq!(exporter.metric(RESTORED), Some(1.0));
}

#[tokio::test]
async fn without_the_key_nothing_is_asked_or_held_back_and_a_reload_can_take_it_away() {
    let rig = Rig::start(1).await;
    let mut config = rig.config(1, "");
    config.state.prometheus = None;
    let exporter = rig.started_with(config.clone(), "old").await;
    rig.run(&exporter, 2).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, None));
    assert_eq!(rig.prometheus.asked().len(), 0);
    drop(exporter);

    rig.prometheus.answer(|_| Some((503, String::new())));
    let exporter = rig.started("new").await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (0, Some(0.0)));
    exporter.handle.reconfigure(config).await.unwrap();
    for _ in 0..3 {
        rig.pass(60);
        exporter.poll().await;
    }
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, None));
}

#[tokio::test]
async fn a_daemon_retries_a_restore_and_polls_restored_targets_at_once() {
    let rig = Rig::start(1).await;
    rig.predecessor().await;
    rig.pass(1700);
    let failures = std::sync::atomic::AtomicUsize::new(2);
    rig.prometheus.answer(move |_| {
        let left = failures.load(std::sync::atomic::Ordering::Relaxed);
        failures.store(left.saturating_sub(1), std::sync::atomic::Ordering::Relaxed);
        (left > 0).then(|| (503, String::new()))
    });
    let mut config = rig.config(1, "");
    // No second poll falls due within this test.
    config.poll.interval = std::time::Duration::from_secs(3600);
    let handle = rig.exporter(config, "new").await.run();
    let context = &handle.context;
    crate::process::until("the counters are back", async || {
        let plan = handle.plan().await;
        let now = tokio::time::Instant::now();
        plan.targets.iter().all(|target| {
            let shown = target.counter.as_ref().is_none_or(|cell| cell.shows_counters(now));
            shown && context.ledgers.held_back(&target.key).is_none()
        })
    })
    .await;
    let restoring = context.telemetry.snapshot().restoring.unwrap();
    assert_eq!((restoring.restored, restoring.missing), (2, 0));
}

#[tokio::test]
async fn a_search_that_is_given_up_leaves_nothing_behind() {
    let rig = Rig::start(3).await;
    rig.predecessor().await;
    let memory = MemoryBudget::default();
    let prometheus = rig.config(3, "").state.prometheus.unwrap();
    let source = Source::new(&prometheus, memory.share(Holder::Restoring)).unwrap();
    let keys: Vec<Key> = (0..3).map(|app| key(&rig, app)).collect();
    let search = async || {
        let at = source.now().await.unwrap();
        source.ledgers(&keys, at, rig.clock.unix_seconds(), |_, _| {}).await
    };
    let check = async || {
        let (answers, result) = search().await;
        result.unwrap();
        assert!(
            answers.len() == 3 && answers.iter().all(|(_, answer)| matches!(answer, Answer::Ledger { .. }))
        );
        while memory.used() > 0 {
            tokio::task::yield_now().await;
        }
    };
    assert!(crate::given_up::at_each_await(search, check).await > 0);
}
