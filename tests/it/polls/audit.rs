//! Audits: services that count otherwise than assumed are found out, honest ones never.

use std::sync::Arc;
use std::time::Duration;

use pds_interface::{Cadence, response_time};
use pds_simulator::{Fault, Quirks, Settings};
use pds_telemetry::AuditSnapshot;
use tracing::Level;

use crate::rig::{self, FaultExt as _, Log};

use super::Rig;

pub(super) fn settings(quirks: Quirks) -> Settings {
    Settings { apps: 3, quirks, ..Settings::default() }
}

pub(super) fn unnamed() -> Quirks {
    Quirks { unnamed_ranges: true, ..Quirks::default() }
}

async fn after(quirks: Quirks, tables: &str, minutes: u32) -> Rig {
    let rig = Rig::start(settings(quirks), tables).await;
    rig.minutes(minutes).await;
    rig
}

pub(super) fn found(rig: &Rig) -> AuditSnapshot {
    rig.context().telemetry.snapshot().audit
}

/// The remedy of what was found, once.
fn remedy(rig: &Rig) -> String {
    let audit = found(rig);
    let remedy = &audit.differences.values().next().unwrap().remedy;
    assert!(audit.differences.values().all(|of| of.remedy == *remedy), "{audit:?}");
    remedy.to_string()
}

/// Asserts that the first app's requests are counted from `first` on.
pub(super) fn assert_exact(rig: &Rig, first: i64) {
    let ledger = rig.ledger();
    assert_eq!(ledger.total, rig.truth(first, ledger.until));
    assert_eq!(ledger.until, rig.plan_in_force().watermark.settled_step());
}

#[tokio::test(start_paused = true)]
async fn every_range_of_an_honest_service_is_equal_at_five_percent_more_requests() {
    let audited = after(Quirks::default(), "", 5 * 60).await;
    let audit = found(&audited);
    // Three apps with two resources each, four hours after the first, and each call before it was counted.
    assert!((20..=32).contains(&audit.equal), "{audit:?}");
    assert_eq!((audit.different, audit.unanswered, audit.differences.len()), (0, 0, 0));
    assert!(audited.page().contains("pds_app_requests_total"));
    let without = after(Quirks::default(), "[accounting]\naudit = false\n", 5 * 60).await;
    assert_eq!(found(&without).equal, 0);
    let (more, usual) = (audited.world.requests().total, without.world.requests().total);
    assert!(more > usual && more * 100 <= usual * 105, "{more} instead of {usual}");
}

#[tokio::test(start_paused = true)]
async fn replies_without_a_range_are_counted_once_a_check_has_passed() {
    let rig = after(unnamed(), "", 1).await;
    let first = rig.ledger().until;
    assert_eq!(found(&rig).equal, 0);
    rig.minutes(10).await;
    let audit = found(&rig);
    assert_eq!((audit.equal, audit.different), (2, 0), "once for all apps of the token and call");
    assert_exact(&rig, first);
    assert!(rig.page().contains("pds_app_requests_total"));
    // A reload that asks the same service in the same way forgets nothing.
    let mut rig = rig;
    rig.reload("[poll]\nwindows = [\"10m\"]\n");
    rig.pass(60).await;
    assert_eq!(found(&rig).equal, 2);
    assert_exact(&rig, first);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_ignores_ranges_without_saying_so_is_not_counted() {
    for (quirks, names, expected) in [
        (
            Quirks { ignores_range: true, ..unnamed() },
            "",
            "set api.query_names.start and api.query_names.end",
        ),
        (unnamed(), "[api.query_names]\nstart = \"from\"\nend = \"to\"\n", "set api.query_names.start and"),
        (unnamed(), "[api.query_names]\nstart = \"from\"\n", "set api.query_names.start;"),
        (unnamed(), "[api.query_names]\nend = \"to\"\n", "set api.query_names.end;"),
    ] {
        let mut rig = after(quirks, names, 20).await;
        let ledger = rig.ledger();
        assert_eq!((ledger.total, ledger.unaccounted), (0, 0), "{names}: {ledger:?}");
        assert!(remedy(&rig).starts_with(expected), "{names}: {}", remedy(&rig));
        assert!(!rig.page().contains("pds_app_requests_total{"), "{}", rig.page());
        let of_windows = ["window=", "pds_app_response_time_seconds{", "pds_app_run_execution_time_seconds{"];
        assert!(!of_windows.iter().any(|part| rig.page().contains(part)), "{}", rig.page());
        let problem = rig.problem().0.unwrap();
        assert!(problem.contains("the service ignores the requested ranges"), "{problem}");
        if names.is_empty() {
            // Without audits, what is known to be of another range is not counted either.
            rig.reload("[accounting]\naudit = false\n");
            rig.minutes(3).await;
            assert_eq!(rig.ledger().total, 0);
        } else {
            // The right names: the same process counts on from where it began.
            let old = Arc::clone(rig.plan_in_force());
            rig.reload("");
            rig.minutes(3).await;
            assert!(rig.page().contains("pds_app_window_requests{"), "{}", rig.page());
            assert_exact(&rig, ledger.until);
            assert!(found(&rig).differences.is_empty(), "settings changed, so nothing is known to differ");
            // An audit that the reload has overtaken finds nothing either.
            tokio::time::advance(Duration::from_secs(60)).await;
            rig::poll(rig.context(), &old, |target| target.endpoint.cadence == Cadence::Metrics).await;
            assert!(found(&rig).differences.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_difference_lasts_no_longer_than_the_audits_that_may_end_it() {
    let quirks = Quirks { inclusive_ends: true, ..unnamed() };
    let (log, _guard) = Log::start(Level::INFO);
    let mut rig = after(quirks, "", 130).await;
    let has_found = |rig: &Rig| !found(rig).differences.is_empty();
    let logged = || log.lines_with("an audit found a difference").len();
    assert!(has_found(&rig));
    for off in [
        "[accounting]\naudit = false\n",
        "[accounting]\nenabled = false\n",
        "[poll]\nresources = [\"app\"]\n",
    ] {
        let before = logged();
        rig.reload(off);
        assert!(!has_found(&rig), "{off}");
        rig.reload("");
        rig.minutes(130).await;
        assert!(has_found(&rig) && logged() > before, "{off}");
    }
    let mut config = rig.config();
    config.projects[0].apps.clear();
    rig::plan(config, rig.context(), Some(rig.plan_in_force()));
    assert!(!has_found(&rig), "no app is left that could agree");
}

#[tokio::test(start_paused = true)]
async fn a_difference_is_found_anew_under_another_name_of_its_account() {
    let quirks = Quirks { inclusive_ends: true, ..unnamed() };
    let (log, _guard) = Log::start(Level::INFO);
    let logged = || log.lines_with("an audit found a difference").len();
    let mut rig = after(quirks, "", 130).await;
    let before = logged();
    let mut config = rig.config();
    config.api.token = config.projects[0].token.take();
    let plan = rig::plan(config, rig.context(), Some(rig.plan_in_force()));
    rig.running.as_mut().unwrap().1 = Arc::new(plan);
    assert!(found(&rig).differences.is_empty());
    rig.minutes(130).await;
    assert!(found(&rig).differences.keys().all(|(account, _)| &**account == "default"), "{:?}", found(&rig));
    assert!(!found(&rig).differences.is_empty());
    assert!(logged() > before, "it is known under the former name only");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_begins_to_ignore_ranges_is_not_counted_until_a_check_passes() {
    let folder = tempfile::tempdir().unwrap();
    let state = Some(folder.path().join("ledgers"));
    let tables = "[accounting]\nrecheck_after = []\n";
    let mut rig = Rig::of(settings(unnamed()), tables, "", state).await;
    rig.minutes(5).await;
    assert!(rig.ledger().total > 0);
    let total = |json| Fault::value("total_requests", json).on(response_time::RESOURCE);
    rig.world.faults().set([total("5000")]);
    for _ in 0..70 {
        if found(&rig).differences.is_empty() {
            rig.pass(60).await;
        }
    }
    let stands = rig.ledger();
    let stands_still = |rig: &Rig| {
        assert!(remedy(rig).starts_with("set api.query_names.start and"), "{}", remedy(rig));
        assert_eq!((rig.ledger().total, rig.ledger().until), (stands.total, stands.until));
        assert!(!rig.page().contains("pds_app_window_requests{"), "{}", rig.page());
    };
    // An app that is not answered keeps its mark, and its window until that is stale.
    let apps = rig.world.projects()[0].1.clone();
    let silent = |app: usize| Fault::status(500).on(response_time::RESOURCE).of_app(&apps[app]);
    rig.world.faults().set([total("5000"), silent(1)]);
    rig.minutes(6).await;
    stands_still(&rig);
    // The next checks find another difference.
    rig.world.faults().set([total("5000").of_ranges_longer_than(90), silent(1)]);
    rig.minutes(2).await;
    stands_still(&rig);
    // After a restart, its mark proves nothing about replies that state no range.
    let marked = rig.ledger_of(1);
    rig.world.faults().set([total("5000"), silent(0), silent(2)]);
    rig.restart().await;
    rig.minutes(2).await;
    rig.world.faults().set([total("5000")]);
    rig.minutes(3).await;
    stands_still(&rig);
    assert_eq!((rig.ledger_of(1).total, rig.ledger_of(1).until), (marked.total, marked.until));
    rig.world.faults().clear();
    rig.minutes(3).await;
    let ledger = rig.ledger();
    assert!(ledger.until > stands.until && found(&rig).differences.is_empty());
    assert_eq!(ledger.total - stands.total, rig.truth(stands.until, ledger.until));
    assert!(rig.page().contains("pds_app_window_requests{"), "{}", rig.page());
}

#[tokio::test(start_paused = true)]
async fn an_audit_that_a_reload_has_overtaken_stops_counting_and_shows_nothing() {
    let mut rig = after(unnamed(), "[accounting]\nrecheck_after = []\n", 5).await;
    let old = Arc::clone(rig.plan_in_force());
    rig.reload("[accounting]\nrecheck_after = []\n[poll]\nwindows = [\"10m\"]\n");
    rig.world.faults().set([Fault::value("total_requests", "5000").on(response_time::RESOURCE)]);
    for _ in 0..70 {
        tokio::time::advance(Duration::from_secs(60)).await;
        rig::poll(rig.context(), &old, |target| target.endpoint.cadence == Cadence::Metrics).await;
    }
    assert!(found(&rig).differences.is_empty());
    let stands = rig.ledger().total;
    rig.minutes(3).await;
    assert_eq!(rig.ledger().total, stands);
    assert!(remedy(&rig).starts_with("set api.query_names.start and"), "{}", remedy(&rig));
}

#[tokio::test(start_paused = true)]
async fn ranges_that_are_rounded_in_silence_are_not_counted() {
    let rig = after(Quirks { round_to: 900, ..unnamed() }, "", 20).await;
    assert_eq!(rig.ledger().total, 0);
    assert_eq!(remedy(&rig), "set accounting.step to the length that the service rounds to");
    // Rounded to what is asked for anyway, they are exact.
    let rig = after(Quirks { round_to: 60, ..unnamed() }, "", 1).await;
    let first = rig.ledger().until;
    rig.minutes(10).await;
    assert_exact(&rig, first);
}

#[tokio::test(start_paused = true)]
async fn rounded_ranges_that_claim_to_be_exact_are_not_counted() {
    let quirks = Quirks { round_to: 900, echoes_ranges: true, ..Quirks::default() };
    let mut rig = after(quirks, "", 20).await;
    let until = rig.ledger().until;
    assert_eq!(rig.ledger().total, 0);
    assert_eq!(remedy(&rig), "set accounting.step to the length that the service rounds to");
    let status = rig.status();
    let mut details = status.summary.reasons.iter().filter_map(|reason| reason.detail.as_deref());
    assert!(details.any(|detail| detail.contains("accounting.step")));
    rig.reload("[accounting]\nstep = \"15m\"\n");
    rig.minutes(20).await;
    assert!(rig.ledger().total > 0);
    assert_exact(&rig, until);
}

#[tokio::test(start_paused = true)]
async fn counters_that_grew_without_audits_are_checked_once_there_are_audits() {
    let quirks = Quirks { round_to: 900, echoes_ranges: true, ..Quirks::default() };
    let mut rig = after(quirks, "[accounting]\naudit = false\n", 5).await;
    let unchecked = rig.ledger();
    assert!(unchecked.total > 0);
    rig.reload("");
    rig.minutes(5).await;
    assert_eq!(rig.ledger(), unchecked);
    assert_eq!(remedy(&rig), "set accounting.step to the length that the service rounds to");
}

#[tokio::test(start_paused = true)]
async fn counters_stand_at_0_until_a_check_has_passed_which_the_state_file_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let state = Some(folder.path().join("ledgers"));
    let quirks = Quirks { longest_range: 600, ..Quirks::default() };
    let mut rig = Rig::of(settings(quirks), "", "", state).await;
    rig.pass(0).await;
    let first = rig.ledger().until;
    rig.world.faults().set([Fault::status(500).on(response_time::RESOURCE).of_ranges_longer_than(90)]);
    rig.minutes(20).await;
    let page = rig.page();
    let of_requests = |name: &str| page.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert!(of_requests("pds_app_requests_total{").iter().all(|line| line.ends_with(" 0")), "{page}");
    assert_eq!(of_requests("pds_app_requests_total{").len(), 3);
    assert!(!page.contains("pds_app_accounting_behind_seconds{"), "{page}");
    assert_eq!(rig.ledger().until, first);
    rig.poll(Cadence::Settings).await;
    assert!(rig.context().store.is_complete(), "it is ready");
    // While the service is down, a counter at 0 would be a claim.
    rig.world.faults().set([Fault::status(500)]);
    rig.minutes(10).await;
    let page = rig.page();
    assert!(!page.contains("pds_app_requests_total{"), "{page}");
    assert!(page.contains("pds_app_accounting_behind_seconds{"), "{page}");
    rig.world.faults().clear();
    // Ranges become longer again one poll after the other.
    rig.minutes(25).await;
    assert_exact(&rig, first);
    let checks = |rig: &Rig| found(rig).equal;
    assert_eq!(checks(&rig), 2);
    // Another process counts on at once; with another setting it checks again.
    rig.restart().await;
    rig.pass(60).await;
    assert_exact(&rig, first);
    assert_eq!(checks(&rig), 0);
    rig.tables = "[accounting]\nstep = \"120s\"\n".to_owned();
    rig.restart().await;
    rig.minutes(4).await;
    assert_eq!(checks(&rig), 2);
}

#[tokio::test(start_paused = true)]
async fn hours_counted_with_other_settings_are_no_difference() {
    let inclusive = || settings(Quirks { inclusive_ends: true, ..Quirks::default() });
    let (folder, right) = (tempfile::tempdir().unwrap(), "[accounting]\nrange_end = \"inclusive\"\n");
    for state in [None, Some(folder.path().join("ledgers"))] {
        // Each boundary of ranges is counted twice.
        let wrong = "[accounting]\naudit = false\n";
        let mut rig = Rig::of(inclusive(), wrong, "", state.clone()).await;
        rig.minutes(100).await;
        let ledger = rig.ledger();
        assert!(ledger.total > rig.truth(ledger.until - 6000, ledger.until), "{ledger:?}");
        match state {
            None => rig.reload(right),
            Some(_) => {
                rig.tables = right.to_owned();
                rig.restart().await;
            }
        }
        rig.minutes(200).await;
        let audit = found(&rig);
        assert_eq!((audit.different, audit.differences.len()), (0, 0), "{audit:?}");
        assert!(audit.equal > 8, "{audit:?}");
    }
}
