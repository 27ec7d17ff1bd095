//! Requests with a container filter say nothing of their app; and a filter that the service ignores is found out.

use pds_interface::response_time;
use pds_simulator::{Fault, Kind};
use tracing::Level;

use crate::rig::{FaultExt as _, Log};

use super::{Rig, one_app};

const TWO: &str = ", containers = [\"c-1\", \"c-2\"]";

#[tokio::test(start_paused = true)]
async fn an_error_for_a_container_never_concerns_the_app() {
    let statuses = [400, 403, 404, 410, 422, 500, 503].map(Fault::status);
    let in_reply = Fault::value("status", r#""error""#);
    let broken = Fault::from(Kind::RawError { status: 200, text: "<html>".to_owned() });
    let unread = Fault::value("data", "null");
    let elsewhere = Fault::value("start_date", r#""2026-01-01T00:00:00Z""#);
    for fault in statuses.into_iter().chain([in_reply, broken, unread, elsewhere, Kind::Reset.into()]) {
        let status = format!("{:?}", fault.kind);
        let (log, _guard) = Log::start(Level::INFO);
        let rig = Rig::of(one_app(), "", TWO, None).await;
        rig.pass(0).await;
        let first = rig.ledger().until;
        rig.world.faults().set([fault.of_container("c-1")]);
        rig.minutes(12).await;
        let page = rig.page();
        let count = |family: &str, labels: &str| {
            page.lines().filter(|line| line.starts_with(family) && line.contains(labels)).count()
        };
        assert!(!page.lines().any(|line| line.starts_with("pds_up{") && line.ends_with(" 0")), "{status}");
        assert_eq!(count("pds_app_window_requests{", "container_id=\"c-1\""), 0, "{status}: stale");
        assert_eq!(count("pds_app_window_requests{", "container_id=\"c-2\""), 1, "{status}");
        assert_eq!(count("pds_app_window_requests{", ""), 2, "{status}: the app and its other container");
        assert_eq!(count("pds_app_response_time_seconds{", "container_id=\"c-2\""), 4, "{status}");
        let ledger = rig.ledger();
        assert_eq!(ledger.total, rig.truth(first, ledger.until), "{status}");
        assert!(rig.plan_in_force().watermark.settled_step() - ledger.until <= 60, "{status}");
        let told = log.lines_with("requests for a container fail");
        assert_eq!(told.len(), 2, "{status}: once for each call: {told:?}");
        assert!(log.lines_with("polling began to fail").is_empty(), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_requests_no_further_container_after_one_that_does_not_reply() {
    for (kind, in_a_poll) in [(Kind::CutBody, 1), (Fault::status(500).kind, 2)] {
        let rig = Rig::of(one_app(), "", TWO, None).await;
        rig.pass(0).await;
        rig.world
            .faults()
            .set(["c-1", "c-2"].map(|container| Fault::from(kind.clone()).of_container(container)));
        let mut first = Vec::new();
        for _ in 0..4 {
            let before = rig.world.requests().total;
            rig.pass(60).await;
            let journal = rig.world.requests();
            let new =
                journal.entries.iter().rev().take(usize::try_from(journal.total - before).unwrap()).rev();
            let of_call = new.filter(|entry| entry.call == response_time::RESOURCE.call().id);
            let mut containers: Vec<_> = of_call.filter_map(|entry| entry.container.clone()).collect();
            // A reply that breaks off is requested again.
            containers.dedup();
            assert_eq!(containers.len(), in_a_poll, "{kind:?}: {containers:?}");
            first.push(containers.remove(0));
        }
        first.dedup();
        assert_eq!(
            first.len(),
            if in_a_poll == 1 { 4 } else { 1 },
            "{kind:?}: the next poll begins behind it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_that_always_fails_keeps_no_container_waiting_behind_a_silent_one() {
    let rig = Rig::of(one_app(), "[poll]\nwindows = [\"5m\", \"1h\"]\n", TWO, None).await;
    let fails = Fault::status(500).of_ranges_longer_than(3599);
    rig.world.faults().set([Fault::from(Kind::CutBody).of_container("c-1"), fails]);
    rig.minutes(6).await;
    let page = rig.page();
    assert!(page.contains("pds_app_window_requests{") && page.contains("container_id=\"c-2\""), "{page}");
}

#[tokio::test(start_paused = true)]
async fn series_of_a_missing_container_stay_until_they_are_stale_and_return_with_it() {
    let rig = Rig::of(one_app(), "", TWO, None).await;
    rig.pass(0).await;
    let count = || rig.page().matches("container_id=\"c-1\"").count();
    let before = count();
    assert!(before > 4);
    rig.world.faults().set([Fault::status(404).of_container("c-1")]);
    rig.minutes(3).await;
    assert_eq!(count(), before, "one 404 may be of a gateway");
    rig.minutes(3).await;
    assert_eq!(count(), 0);
    rig.world.faults().clear();
    rig.pass(60).await;
    assert_eq!(count(), before);
}

#[tokio::test(start_paused = true)]
async fn an_ignored_container_filter_is_logged_once() {
    let (log, _guard) = Log::start(Level::INFO);
    let tables = "[api.query_names]\ncontainer = \"box\"\n";
    let mut rig = Rig::of(one_app(), tables, TWO, None).await;
    let told = || log.lines_with("api.query_names.container");
    for poll in 0..4 {
        rig.pass(60).await;
        assert_eq!(told(), [""; 0], "poll {poll}: it may be chance");
    }
    rig.minutes(20).await;
    rig.reload(tables);
    rig.minutes(20).await;
    let lines = told();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("container=\"c-1\""), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_filter_that_works_is_not_suspected() {
    let (log, _guard) = Log::start(Level::INFO);
    let rig = Rig::of(one_app(), "", TWO, None).await;
    rig.minutes(20).await;
    assert_eq!(log.lines_with("api.query_names.container"), [""; 0]);
}
