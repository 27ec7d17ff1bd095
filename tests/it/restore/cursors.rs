//! The cursor that counts, and counters without one.

use std::collections::BTreeSet;
use std::fs;

use pds_interface::response_time;
use tracing::Level;

use crate::process::assert_has;
use crate::rig::Log;

use super::prometheus::Labels;
use super::rig::{ARRIVES, Exporter, RESTORED, Rig};
use super::{CURSOR, cursor, give_up, greatest, key, reasons};

#[tokio::test]
async fn the_greatest_cursor_up_to_now_counts_once_it_has_settled() {
    let (log, _guard) = Log::start(Level::WARN);
    let rig = Rig::after_one(1).await;
    rig.pass(35).await;
    let now = rig.clock.unix_seconds();
    let unsettled = now / 60 * 60;
    assert!(unsettled > now - 20 && greatest(&rig) < unsettled);
    // Another exporter has counted further, and a third one lives in the future.
    let scraped = |instance: &str, until: i64| {
        for (mut labels, _) in rig.prometheus.of(CURSOR) {
            labels.insert("instance".to_owned(), instance.to_owned());
            rig.prometheus.put(labels, until as f64);
        }
    };
    scraped("b", unsettled);
    scraped("c", now + 3600);
    scraped("b", now + 7200);
    let exporter = rig.started("a").await;
    assert_eq!(cursor(&rig, &exporter), unsettled);
    let ignored = log.lines_with("ignored cursors in Prometheus that are ahead of the service's clock");
    assert_eq!(ignored.len(), 1);
    exporter.poll().await;
    assert_eq!(cursor(&rig, &exporter), unsettled, "nothing is counted before it has settled");
    rig.run(&exporter, 3).await;
    let until = cursor(&rig, &exporter);
    let truth = rig.truth(&rig.apps()[0], response_time::RESOURCE, unsettled, until);
    assert_eq!(exporter.handle.context.ledgers.ledger(&key(&rig, 0)).unwrap().total, truth);
}

/// A scrape that drops families has to keep these.
#[tokio::test]
async fn the_page_on_scale_names_each_family_that_a_restore_reads() {
    let rig = Rig::after_one(1).await;
    drop(rig.started("a").await);
    let read = rig.prometheus.asked().into_iter().map(|asked| {
        let (_, name) = asked.form["query"].split_once("{__name__=\"").unwrap();
        name.split('"').next().unwrap().to_owned()
    });
    let page = fs::read_to_string("docs/scale.md").unwrap();
    let (_, kept) = page.split_once("With `state.prometheus_url`, keep").unwrap();
    let named = kept.split('.').next().unwrap().split('`').skip(1).step_by(2).map(str::to_owned);
    assert_eq!(named.collect::<BTreeSet<_>>(), read.collect::<BTreeSet<_>>());
}

#[tokio::test]
async fn time_that_is_pending_at_a_restart_counts_as_unaccounted_once() {
    let rig = Rig::start(1).await;
    let exporter = rig.started("a").await;
    rig.run(&exporter, 6).await;
    give_up(&rig, &exporter, 900).await;
    rig.run(&exporter, 2).await;
    let seconds = |exporter: &Exporter| {
        let of_app =
            format!("{{project=\"{}\",app=\"{}\",resource=\"response_time\"}}", rig.project(), rig.apps()[0]);
        ["pds_app_pending_seconds", "pds_app_unaccounted_seconds_total"]
            .map(|name| exporter.metric(&format!("{name}{of_app}")))
    };
    assert_eq!(seconds(&exporter), [Some(900.0), Some(0.0)]);
    drop(exporter);
    // The next process is killed while its counters stand at 0.
    for instance in ["a", "b"] {
        let exporter = rig.started(instance).await;
        exporter.poll().await;
        rig.scrape(&exporter);
        assert_eq!(seconds(&exporter), [Some(900.0), Some(0.0)], "it grows after a scrape, as every counter");
    }
    let exporter = rig.started("b").await;
    exporter.poll().await;
    rig.scrape(&exporter);
    rig.run(&exporter, 4).await;
    assert_eq!(seconds(&exporter), [Some(0.0), Some(900.0)]);
    assert_eq!(rig.prometheus.increase("pds_app_unaccounted_seconds_total", &rig.apps()[0]), 900.0);
    drop(exporter);
    let exporter = rig.started("a").await;
    exporter.poll().await;
    rig.scrape(&exporter);
    rig.run(&exporter, 4).await;
    assert_eq!(seconds(&exporter), [Some(0.0), Some(0.0)]);
}

#[tokio::test]
async fn counters_without_a_cursor_begin_where_they_were_configured_and_that_is_reported_until_one_is_found()
{
    let (log, _guard) = Log::start(Level::WARN);
    let rig = Rig::start(2).await;
    let exporter = rig.exporter(rig.config(2, "prometheus_selector = 'job=\"pds\"'"), "a").await;
    exporter.poll().await;
    let configured = rig.clock.unix_seconds();
    rig.pass(50).await;
    exporter.poll().await;
    rig.scrape(&exporter);
    rig.pass(ARRIVES).await;
    assert!(exporter.handle.restorer.restore().await);
    assert_eq!(
        cursor(&rig, &exporter),
        (configured - 20) / 60 * 60,
        "when it was configured, not recognised"
    );
    assert_eq!(exporter.metric(RESTORED), Some(0.0));
    let reasons = reasons(&exporter).await;
    assert_has(&reasons, &["no_cursors: ", "with job=\"pds\"", "exported_app"]);
    let told = log.lines_with("target label `app` or `project` renames the exporter's to `exported_app`");
    assert!(told.len() == 1 && told[0].contains("job=\\\"pds"), "{told:?}");
    rig.run(&exporter, 2).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (2, Some(1.0)));
    rig.assert_exact();
}

#[tokio::test]
async fn target_labels_that_rename_ours_are_reported_for_as_long_as_they_do() {
    let rig = Rig::start(1).await;
    let renamed = |mut labels: Labels| {
        if let Some(app) = labels.remove("app") {
            labels.insert("exported_app".to_owned(), app);
        }
        Some(labels)
    };
    let exporter = rig.started("a").await;
    for _ in 0..5 {
        rig.pass(60).await;
        exporter.poll().await;
        rig.scrape(&exporter);
        rig.prometheus.relabel(renamed);
        exporter.handle.restorer.restore().await;
    }
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, Some(0.0)));
    assert!(reasons(&exporter).await.contains("exported_app"));
}

#[tokio::test]
async fn without_a_sample_of_this_process_cursors_count_after_two_minutes() {
    let rig = Rig::after_one(1).await;
    let found = greatest(&rig);
    let exporter = rig.exporter(rig.config(1, ""), "a").await;
    exporter.poll().await;
    // A page of another process says nothing, be it of the same instance.
    let other = rig.exporter(rig.config(1, ""), "a").await;
    rig.scrape(&other);
    rig.pass(ARRIVES).await;
    assert!(!exporter.handle.restorer.restore().await);
    rig.pass(119).await;
    assert!(!exporter.handle.restorer.restore().await);
    rig.pass(1).await;
    assert!(exporter.handle.restorer.restore().await);
    assert_eq!(cursor(&rig, &exporter), found);
}
