//! The contents of the pages: windows, texts of the service, counters that are behind.

use std::sync::Arc;
use std::time::Duration;

use pds_interface::{Cadence, get_app, list_domains, run_execution_time};
use pds_ledger::{Key, Ledger};
use pds_simulator::{Fault, Quirks, Settings};
use tracing::Level;

use crate::process::series;
use crate::rig::{self, FaultExt as _, Log};

use super::{Rig, one_app};

#[tokio::test(start_paused = true)]
async fn a_window_that_a_reload_removes_leaves_the_page_at_once() {
    let mut rig = Rig::start(one_app(), "[poll]\nwindows = [\"5m\", \"1h\"]\n").await;
    rig.pass(0).await;
    let count = |rig: &Rig, window: &str| rig.page().matches(&format!("window=\"{window}\"")).count();
    assert!(count(&rig, "5m") > 4 && count(&rig, "1h") > 4);
    let before = count(&rig, "5m");
    let old = Arc::clone(rig.plan_in_force());
    rig.reload("[poll]\nwindows = [\"5m\"]\n");
    assert_eq!((count(&rig, "5m"), count(&rig, "1h")), (before, 0), "nothing was polled since");
    // A poll that the reload has overtaken brings nothing back.
    rig::poll(rig.context(), &old, |target| target.endpoint.cadence == Cadence::Metrics).await;
    assert_eq!((count(&rig, "5m"), count(&rig, "1h")), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn an_objective_at_a_threshold_that_no_reply_has_is_a_reason() {
    for (threshold, is_reason) in [("1s", false), ("1000ms", false), ("7s", true)] {
        let objective = format!(", objective = {{ threshold = \"{threshold}\", share = 0.99 }}");
        let rig = Rig::of(one_app(), "[poll]\nsettle = \"20s\"\n", objective.leak(), None).await;
        rig.minutes(5).await;
        let reasons = &rig.status().summary.reasons;
        let reason = reasons.iter().find(|reason| reason.code == "objective_unknown");
        assert_eq!(reason.is_some(), is_reason, "{threshold}: {reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn zeros_of_all_busy_apps_are_a_reason_while_their_counters_wait() {
    let (log, _guard) = Log::start(Level::WARN);
    let rig = Rig::start(Settings { apps: 6, ..Settings::default() }, "").await;
    let reason = |rig: &Rig| {
        let reasons = &rig.status().summary.reasons;
        reasons.iter().find(|reason| reason.code == "no_requests").map(|reason| reason.text.clone())
    };
    for _ in 0..15 {
        rig.pass(60).await;
        assert_eq!(reason(&rig), None);
    }
    rig.world.faults().set([Fault::value("total_requests", "0")]);
    rig.minutes(3).await;
    let text = reason(&rig).unwrap_or_default();
    let begins = "Nearly all busy apps of a token suddenly have no requests: the counters of ";
    assert!(text.starts_with(begins) && text.ends_with(" apps wait"), "{text}");
    rig.world.faults().clear();
    rig.minutes(6).await;
    assert_eq!(reason(&rig), None);
    // The next one is news.
    rig.world.faults().set([Fault::value("total_requests", "0")]);
    rig.minutes(3).await;
    assert_eq!(log.lines_with("nearly all busy apps suddenly have no requests").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn shares_too_coarse_for_an_objective_are_on_the_apps_page_and_in_the_json_but_no_reason() {
    const NOTE: &str =
        "The service reports shares in steps of 1 %, coarser than the 0.4 % that the objective allows.";
    let fine = ", objective = { threshold = \"500ms\", share = 0.996 }";
    let coarse = ", objective = { threshold = \"500ms\", share = 0.99 }";
    for (whole_percent, objective, step, note) in [
        (true, fine, Some(0.01), Some(NOTE)),
        (true, coarse, Some(0.01), None),
        (true, "", None, None),
        (false, fine, None, None),
    ] {
        let quirks = Quirks { whole_percent, ..Quirks::default() };
        let rig = Rig::of(Settings { quirks, ..one_app() }, "", objective, None).await;
        rig.minutes(10).await;
        rig.poll(Cadence::Settings).await;
        let status = rig.status();
        let app = &status.apps[0];
        assert_eq!((app.share_step, app.share_note.as_deref()), (step, note), "{whole_percent} {objective}");
        assert!(status.summary.reasons.is_empty(), "{:?}", status.summary.reasons);
        let page = rig.web(&rig.of_app());
        assert_eq!(page.contains(NOTE), note.is_some(), "{whole_percent} {objective}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_apps_error_text_is_on_its_page_and_in_the_json_and_no_metric() {
    let rig = Rig::start(one_app(), "").await;
    let page = rig.of_app();
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
    assert!(!rig.web(&page).contains("error message:"));

    let token = rig.world.token(&rig.world.projects()[0].0).unwrap().expose().to_owned();
    let text = format!("OOM <b>\u{1b}[31m\nkilled\u{202e}; sent {token}; {}", "x".repeat(5000));
    let json = serde_json::Value::from(text).to_string();
    rig.world.faults().set([Fault::value("errorMessage", &json).on(get_app::RESOURCE)]);
    rig.poll(Cadence::Settings).await;
    let message = rig.status().apps[0].error_message.clone().unwrap();
    assert!(message.starts_with("OOM <b> [31m killed ; sent [redacted]; xxx"), "{message}");
    assert_eq!(message.chars().count(), 1000);
    let html = rig.web(&page);
    assert!(html.contains("OOM &lt;b&gt; [31m killed ; sent [redacted]; xxx"), "{html}");
    assert!(!html.contains(&token) && !rig.page().contains("OOM"));

    // A stale text is not shown, nor one that the service no longer sends.
    rig.world.faults().set([Fault::status(500)]);
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
    rig.world.faults().clear();
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
}

#[tokio::test(start_paused = true)]
async fn counters_that_nothing_polls_leave_the_page_within_stale_after_and_are_behind_from_that_moment() {
    let rig = Rig::start(one_app(), "").await;
    rig.minutes(5).await;
    let mut left = None;
    for seconds in 1..=400u64 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let page = rig.page();
        let behind = series(&page).find(|(name, _)| {
            name.starts_with("pds_app_accounting_behind_seconds") && name.contains("\"response_time\"")
        });
        assert_ne!(page.contains("pds_app_requests_total{"), behind.is_some(), "after {seconds} s");
        left = left.or(behind.map(|(_, behind)| (seconds, behind)));
    }
    let (seconds, behind) = left.unwrap();
    assert!(seconds <= 300 && behind == seconds as f64, "{behind} s behind after {seconds} s");
}

#[tokio::test(start_paused = true)]
async fn counters_that_are_behind_are_hidden_and_the_status_shows_how_far() {
    let rig = Rig::start(one_app(), "").await;
    rig.minutes(5).await;
    let counters = || rig.page().matches("pds_app_requests_total{").count();
    let gauge = "pds_app_accounting_behind_seconds";
    let of_ledger = ["_accounted_", "_unaccounted_", "_late_", "_overcounted_", "_rechecked_", "_duration_"];
    let others = || {
        let page = rig.page();
        of_ledger.iter().filter(|part| page.contains(&format!("pds_app{part}"))).count()
    };
    assert_eq!((counters(), rig.problem()), (1, (None, None)));
    assert!(!rig.page().contains(gauge) && rig.page().contains("pds_app_requests_accounted_seconds_total"));
    rig.world.faults().set([Fault::status(500).of_ranges_longer_than(0)]);
    let until = rig.ledger().until;
    for minute in 1..40u64 {
        rig.pass(60).await;
        let (problem, behind) = rig.problem();
        let hidden = counters() == 0;
        // The page leaves a counter out once it lacks a step that had settled two polls ago.
        assert_eq!(hidden, minute > 2, "after {minute} minutes");
        assert_eq!(behind, hidden.then_some(minute * 60));
        assert!(problem.is_some(), "it is failing");
        let status = rig.status();
        let texts: Vec<&str> = status.apps[0].problems.iter().map(|problem| &*problem.text).collect();
        // And nothing that follows from it.
        assert_eq!(texts, ["response time, run execution time: the service returns errors (500)"]);
        let resource = "resource=\"response_time\"";
        let behind = series(&rig.page())
            .find(|(name, _)| name.starts_with(gauge) && name.contains(resource))
            .map(|(_, seconds)| seconds);
        assert_eq!(behind, hidden.then_some((minute * 60) as f64), "it says how far");
        assert_eq!(others() == 0, hidden, "a page is of one moment");
    }
    rig.world.faults().clear();
    // Ranges that failed together did not fail because of their length, so few requests fetch the missing ones.
    let mut polls = 0;
    while counters() == 0 {
        rig.pass(60).await;
        polls += 1;
    }
    assert!(polls <= 3, "{polls} polls");
    rig.pass(60).await;
    assert_eq!(rig.problem(), (None, None));
    assert!(!rig.page().contains(gauge));
    assert_eq!(rig.ledger().until - until, (40 + polls) * 60);
}

#[tokio::test(start_paused = true)]
async fn domains_without_a_validation_status_are_named_once_with_the_key_that_finds_it() {
    let (log, _guard) = Log::start(Level::INFO);
    let mut rig = Rig::start(one_app(), "").await;
    let by_status = |rig: &Rig| rig.page().matches("pds_project_custom_domains_by_status{").count();
    rig.world.faults().set([Fault::value("validationStatus", "null").on(list_domains::RESOURCE)]);
    for _ in 0..3 {
        rig.poll(Cadence::Settings).await;
    }
    assert_eq!(by_status(&rig), 0);
    let told = log.lines_with("api.domain_status_field");
    assert_eq!(told.len(), 1, "{told:#?}");
    // Tables follow those of [api].
    rig.reload("domain_status_field = \"region\"\n");
    rig.poll(Cadence::Settings).await;
    assert_eq!(by_status(&rig), 5, "the words in the interface, and two regions");
}

#[tokio::test(start_paused = true)]
async fn a_range_that_is_counted_hours_later_shows_no_run_times() {
    let rig = Rig::start(one_app(), "").await;
    let hours_ago = |hours: i64| rig.clock.unix_seconds() / 3600 * 3600 - hours * 3600;
    let key = Key { resource: run_execution_time::RESOURCE, ..rig.key(0) };
    rig.context().ledgers.commit(&key, Ledger::open(hours_ago(4))).await.unwrap();
    let point = |time: i64| format!("{{\"timestamp\":{time},\"p50\":1,\"p90\":2,\"p99\":3}}");
    let series = format!("[{},{}]", point(hours_ago(4)), point(hours_ago(4) + 60));
    rig.world.faults().set([
        Fault::value("time_series", "[]"),
        Fault::value("time_series", &series).of_ranges_longer_than(600),
    ]);
    rig.minutes(2).await;
    assert!(rig.context().ledgers.ledger(&key).unwrap().until > hours_ago(4));
    assert!(!rig.page().contains("pds_app_run_execution_time_seconds{"), "{}", rig.page());
}

#[tokio::test(start_paused = true)]
async fn counters_stand_still_after_settle_was_raised_and_the_page_says_until_when() {
    let mut rig = Rig::start(one_app(), "").await;
    rig.minutes(3).await;
    rig.reload("[poll]\nsettle = \"20m\"\n");
    rig.pass(60).await;
    let until = ", because a clock was set back or poll.settle was raised, until 2026-03-01 12:22:00 UTC";
    let problem = rig.problem().0.unwrap();
    assert!(problem.ends_with(until), "{problem}");
    let before = rig.ledger();
    for minutes in 5..=23 {
        assert_eq!(rig.ledger(), before, "{minutes} minutes");
        rig.pass(60).await;
    }
    assert_eq!((rig.problem().0, rig.ledger().until), (None, before.until + 60));
}
