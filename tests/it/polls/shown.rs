//! What stands on the pages and what does not: windows, texts of the service, counters that are behind.

use std::sync::Arc;

use pds_exporter::interface::{Cadence, get_app, response_time};
use pds_exporter::poll::execute;
use pds_exporter::poll::slots::PollSlots;
use pds_exporter::simulator::{Fault, Kind, Settings};

use super::Rig;

fn one_app() -> Settings {
    Settings { apps: 1, ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_window_that_a_reload_removes_leaves_the_page_at_once() {
    let mut rig = Rig::start(one_app(), "[poll]\nwindows = [\"5m\", \"1h\"]\n").await;
    rig.pass(0, response_time::RESOURCE).await;
    let shown = |rig: &Rig, window: &str| rig.page().matches(&format!("window=\"{window}\"")).count();
    assert!(shown(&rig, "5m") > 4 && shown(&rig, "1h") > 4);
    let before = shown(&rig, "5m");
    let old = Arc::clone(rig.plan_in_force());
    rig.reload("[poll]\nwindows = [\"5m\"]\n");
    assert_eq!((shown(&rig, "5m"), shown(&rig, "1h")), (before, 0), "nothing was polled since");
    // A poll that the reload has overtaken brings nothing back.
    for target in old.targets.iter().filter(|target| target.endpoint.cadence == Cadence::Metrics) {
        execute::poll(rig.context(), &old, target, &rig.transitions, PollSlots::default().enter()).await;
    }
    assert_eq!((shown(&rig, "5m"), shown(&rig, "1h")), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn an_apps_error_text_is_on_its_page_and_in_the_json_and_no_metric() {
    let rig = Rig::start(one_app(), "").await;
    let (project, apps) = rig.world.projects().remove(0);
    let page = format!("/apps/{project}/{}", apps[0]);
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
    assert!(!rig.web(&page).contains("error message:"));

    let token = rig.world.token(&project).unwrap().expose().to_owned();
    let text = format!("OOM <b>\u{1b}[31m\nkilled\u{202e}; sent {token}; {}", "x".repeat(5000));
    let json = serde_json::Value::from(text).to_string();
    let fault = Kind::Value { field: "errorMessage".to_owned(), json };
    rig.world.faults().set([Fault::from(fault).on(get_app::RESOURCE)]);
    rig.poll(Cadence::Settings).await;
    let message = rig.status().apps[0].error_message.clone().unwrap();
    assert!(message.starts_with("OOM <b> [31m killed ; sent [redacted]; xxx"), "{message}");
    assert_eq!(message.chars().count(), 1000);
    let shown = rig.web(&page);
    assert!(shown.contains("OOM &lt;b&gt; [31m killed ; sent [redacted]; xxx"), "{shown}");
    assert!(!shown.contains(&token) && !rig.page().contains("OOM"));

    // What is stale is not shown, and neither is what the service no longer says.
    rig.world.faults().set([Fault::status(500)]);
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
    rig.world.faults().clear();
    rig.poll(Cadence::Settings).await;
    assert_eq!(rig.status().apps[0].error_message, None);
}

#[tokio::test(start_paused = true)]
async fn counters_that_are_behind_are_not_shown_and_the_status_says_how_far() {
    let rig = Rig::start(one_app(), "").await;
    for _ in 0..5 {
        rig.pass(60, response_time::RESOURCE).await;
    }
    let counters = || rig.page().matches("pds_app_requests_total{").count();
    assert_eq!((counters(), rig.problem()), (1, (None, None)));
    rig.world.faults().set([Fault::status(500).of_ranges_longer_than(0)]);
    let until = rig.ledger().until;
    for minute in 1..40u64 {
        rig.pass(60, response_time::RESOURCE).await;
        let (problem, behind) = rig.problem();
        let hidden = counters() == 0;
        // The page leaves a counter out once it lacks a step that had settled two polls ago.
        assert_eq!(hidden, minute > 2, "after {minute} minutes");
        assert_eq!(behind, hidden.then_some(minute * 60));
        assert!(problem.is_some(), "it is failing");
        let (texts, expected) =
            (rig.status(), format!("response time: catching up, {minute} minutes behind"));
        assert_eq!(texts.apps[0].problems.iter().any(|problem| problem.text == expected), hidden);
        assert!(rig.page().contains("pds_app_accounted_until_timestamp_seconds"), "of what was last shown");
    }
    rig.world.faults().clear();
    // What failed together did not fail for its length, so that few requests bring back what is missing.
    let mut polls = 0;
    while counters() == 0 {
        rig.pass(60, response_time::RESOURCE).await;
        polls += 1;
    }
    assert!(polls <= 3, "{polls} polls");
    rig.pass(60, response_time::RESOURCE).await;
    assert_eq!(rig.problem(), (None, None));
    assert_eq!(rig.ledger().until - until, (40 + polls) * 60);
}
