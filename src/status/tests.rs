//! The model against real plan, store and metrics.

mod detail;
pub(crate) mod fixture;
mod reload;

use std::sync::Arc;

use tokio::time::{Duration, advance};

use fixture::Fixture;
use pds_client::TokenSource;
use pds_config::{Config, Project};
use pds_core::secret::Secret;
use pds_diagnosis::{Counting, ServiceState, State, Verdict};
use pds_interface::{Resource, get_app, list_projects, response_time, run_execution_time};
use pds_ledger::{Hold, Key};

/// One app, answered a minute ago.
async fn answered() -> Fixture {
    let fixture = fixture::fixture(1).await;
    fixture.answer(1.0);
    advance(Duration::from_secs(61)).await;
    fixture
}

fn is_metrics(resource: Resource) -> bool {
    matches!(resource, response_time::RESOURCE | run_execution_time::RESOURCE)
}

#[tokio::test(start_paused = true)]
async fn apps_that_were_never_polled_are_waiting_and_not_ok() {
    let status = fixture::fixture(3).await.source.status();
    assert_eq!(status.service.state, ServiceState::Waiting);
    assert_eq!((status.summary.apps.all, status.summary.waiting), (3, 3));
    assert_eq!(status.apps[0].response_time.p95, None);
}

#[tokio::test(start_paused = true)]
async fn a_reading_is_kept_for_a_second_and_not_beyond_a_reload() {
    let fixture = answered().await;
    let first = fixture.source.status();
    assert!(Arc::ptr_eq(&first, &fixture.source.status()));
    fixture.source.set_plan(Arc::clone(&fixture.plan), Vec::new());
    let second = fixture.source.status();
    assert!(!Arc::ptr_eq(&first, &second));
    advance(Duration::from_secs(1)).await;
    assert!(!Arc::ptr_eq(&second, &fixture.source.status()));
}

#[tokio::test(start_paused = true)]
async fn an_answered_app_shows_every_value() {
    let status = answered().await.source.status();
    let app = &status.apps[0];
    assert_eq!((app.verdict, app.problems.len()), (Verdict::Ok, 0), "{:?}", app.problems);
    assert_eq!((app.name.as_deref(), app.status.as_deref()), (Some("ranker"), Some("ready")));
    assert_eq!((app.response_time.p50, app.response_time.p99), (Some(0.04), Some(0.8)));
    assert_eq!((app.requests_per_minute, app.window.as_str()), (Some(304.0), "5m"));
    assert_eq!((app.min_replicas, app.max_replicas), (Some(1.0), Some(8.0)));
    assert_eq!(app.hardware.as_deref(), Some("AMPERE_A10"));
    assert!((app.dollars_per_replica_hour.unwrap() - 1.1016).abs() < 1e-9);
    assert_eq!(app.trend.len(), 1);
    assert_eq!(status.service.state, ServiceState::Up);
    assert_eq!(status.exporter.configuration_good, Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_failing_resource_keeps_its_values_until_they_are_stale() {
    let fixture = answered().await;
    fixture.fail("timeout", "no reply within 10s", |key| key.resource == response_time::RESOURCE);
    let status = fixture.source.status();
    let app = &status.apps[0];
    assert_eq!(
        (app.verdict, &app.problems[0].text[..]),
        (Verdict::Problem, "response time: requests to the service time out")
    );
    assert_eq!(app.response_time.p50, Some(0.04));
    assert_eq!(app.last_error.as_ref().unwrap().class, "timeout");
    assert_eq!(status.service.state, ServiceState::Up, "run execution times still come");
    advance(Duration::from_secs(3600)).await;
    let status = fixture.source.status();
    assert_eq!(status.apps[0].response_time.p50, None);
    assert!(status.apps[0].resources.iter().all(|resource| resource.state == State::Stale));
}

#[tokio::test(start_paused = true)]
async fn a_late_resource_is_a_warning() {
    let fixture = answered().await;
    advance(Duration::from_secs(80)).await;
    let status = fixture.source.status();
    assert_eq!(status.apps[0].verdict, Verdict::Warning);
    let texts: Vec<&str> = status.apps[0].problems.iter().map(|problem| &*problem.text).collect();
    assert_eq!(texts, ["response time, run execution time: the next poll is overdue"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_makes_no_resource_late() {
    let fixture = answered().await;
    fixture.context.clock.jump(jiff::SignedDuration::from_hours(1));
    let status = fixture.source.status();
    assert!(status.apps[0].resources.iter().all(|resource| resource.state == State::Fresh));
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_metrics_all_fail_is_down_since_its_last_answer() {
    let fixture = answered().await;
    fixture.fail("connect", "connection refused", |key| is_metrics(key.resource));
    let service = fixture.source.status().service.clone();
    assert_eq!(service.state, ServiceState::Down);
    assert_eq!(service.down_since.unwrap().to_string(), "2026-03-01T03:00:00Z");
    assert_eq!(service.reason.as_deref(), Some("connection refused"));
    fixture.answer(1.0);
    advance(Duration::from_secs(2)).await;
    let status = fixture.source.status();
    assert_eq!((status.service.state, status.service.down_since), (ServiceState::Up, None));
    assert_eq!(status.apps[0].last_error.as_ref().unwrap().class, "connect", "it stays to be seen");
}

#[tokio::test(start_paused = true)]
async fn a_service_is_down_while_all_metrics_polls_fail_because_of_it_or_a_token() {
    let first = |key: &pds_ledger::Key| key.resource == response_time::RESOURCE;
    for (one, other, state) in [
        ("401", "429", ServiceState::Down),
        ("credentials", "connect", ServiceState::Down),
        // The service has answered; bad replies are problems of the apps.
        ("unsettled", "refused", ServiceState::Up),
        ("panic", "connect", ServiceState::Up),
    ] {
        let fixture = answered().await;
        fixture.fail(one, one, first);
        fixture.fail(other, other, |key| is_metrics(key.resource) && !first(key));
        let status = fixture.source.status();
        assert_eq!(status.service.state, state, "{one} and {other}");
        assert_eq!(status.service.reason.is_some(), state != ServiceState::Up, "{one} and {other}");
        assert_eq!(status.summary.problem, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn counters_that_do_not_keep_up_are_a_problem() {
    let fixture = answered().await;
    // Five minutes until a value is stale, and a step.
    for (ago, counting, problem) in [
        (0, Counting::Current, None),
        (179, Counting::Current, None),
        (
            180,
            Counting::Behind,
            Some("response time, run execution time: counters are catching up, 3 min behind"),
        ),
        (
            -361,
            Counting::Ahead,
            Some(
                "response time, run execution time: counters stand still, because a clock was set back or poll.settle was raised, until 2026-03-01 03:27:02 UTC",
            ),
        ),
    ] {
        // By then, no earlier process can have shown more.
        fixture.answer(1.0);
        advance(Duration::from_secs(300)).await;
        fixture.answer(1.0);
        fixture.count_until(ago).await;
        let app = &fixture.source.status().apps[0];
        let resource = app.resources.iter().find(|resource| resource.resource == "response_time").unwrap();
        assert_eq!(resource.counting, Some(counting), "{ago}");
        assert_eq!(app.problems.first().map(|problem| &*problem.text), problem, "{ago}");
        assert!(
            app.resources.iter().all(|r| matches!(&*r.resource, "response_time" | "run_execution_time")
                == r.accounted_until.is_some())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn counters_from_before_a_restart_are_judged_after_the_first_poll() {
    let fixture = fixture::fixture(1).await;
    fixture.count_until(7200).await;
    assert_eq!(fixture.source.status().apps[0].verdict, Verdict::Waiting);
}

#[tokio::test(start_paused = true)]
async fn events_change_the_model_and_time_alone_does_not() {
    let fixture = answered().await;
    let model = || serde_json::to_value(&*fixture.source.status()).unwrap();
    let first = model();
    advance(Duration::from_secs(5)).await;
    assert_eq!(model(), first);
    fixture.answer(2.0);
    advance(Duration::from_secs(5)).await;
    assert_ne!(model(), first);
}

#[tokio::test(start_paused = true)]
async fn each_family_with_a_series_has_an_example() {
    let fixture = answered().await;
    let examples = fixture.source.examples(&["pds_app_response_time_seconds", "pds_up"]);
    assert_eq!(
        examples["pds_app_response_time_seconds"],
        "pds_app_response_time_seconds{project=\"p-00000000\",app=\"p-00000000-app-0\",window=\"5m\",percentile=\"p50\"} 0.04"
    );
    assert!(examples["pds_up"].ends_with(" 1"), "{}", examples["pds_up"]);
    assert!(examples["pds_exporter_build_info"].contains("version="));
}

#[tokio::test(start_paused = true)]
async fn an_example_is_of_an_app_where_the_first_project_has_none() {
    let empty_first = |mut config: Config| {
        let first = Project { id: "p-a".into(), apps: Vec::new(), ..config.projects[0].clone() };
        config.projects.insert(0, first);
        config
    };
    let fixture = fixture::with_config(&[("p-b", "p-b-1")], empty_first).await;
    fixture.answer(1.0);
    let examples = fixture.source.examples(&["pds_app_cpu_cores", "pds_project_custom_domains"]);
    assert!(examples["pds_app_cpu_cores"].contains("{project=\"p-b\",app=\"p-b-1\"}"), "{examples:?}");
    assert!(examples["pds_project_custom_domains"].contains("project=\"p-a\""), "{examples:?}");
}

#[tokio::test(start_paused = true)]
async fn every_one_of_many_apps_is_judged_once_and_in_order() {
    let fixture = fixture::fixture(1_001).await;
    fixture.answer(1.0);
    fixture.count_until(0).await;
    fixture.fail("timeout", "the first", |key| key.owner.app.ends_with("-app-3"));
    advance(Duration::from_secs(2)).await;
    fixture.fail("connect", "the last", |key| key.owner.app.ends_with("-app-1000"));
    let is_held = |key: &Key| key.owner.app.ends_with("-app-40");
    let held = fixture.plan.targets.iter().filter(|target| target.counter.is_some() && is_held(&target.key));
    held.for_each(|target| fixture.context.ledgers.set_hold(&target.key, Hold::Unknown));
    let status = fixture.source.status();
    let configured = fixture.plan.config.projects.iter().flat_map(|project| &project.apps);
    assert!(status.apps.iter().map(|app| &app.id).eq(configured.map(|app| &app.id)));
    assert!(status.apps.iter().all(|app| app.resources.len() == 3));
    let ids: Vec<&str> =
        status.apps.iter().filter(|app| app.verdict == Verdict::Problem).map(|app| &*app.id).collect();
    assert_eq!(ids, ["p-00000000-app-3", "p-00000002-app-40", "p-00000050-app-1000"]);
    assert_eq!((status.summary.apps.all, status.summary.ok, status.summary.problem), (1_001, 998, 3));
    assert_eq!((status.failing, status.service.state), (6, ServiceState::Up));
    fixture.fail("429", "slow down", |_| true);
    advance(Duration::from_secs(2)).await;
    let service = fixture.source.status().service.clone();
    assert_eq!((service.state, service.reason.as_deref()), (ServiceState::Down, Some("slow down")));
    assert_eq!(service.down_since.unwrap().to_string(), fixture::NOW);
}

/// The codes of the reasons, a little later.
async fn codes(fixture: &Fixture) -> Vec<String> {
    advance(Duration::from_secs(2)).await;
    fixture.source.status().summary.reasons.iter().map(|reason| reason.code.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_missing_list_of_projects_is_a_missing_call_while_other_calls_succeed() {
    let fixture = fixture::with_apps(&[("p-1", "p-1-a"), ("p-1", "p-1-b")]).await;
    fixture.answer(1.0);
    fixture.fail("address", "no such route", |key| key.resource == list_projects::RESOURCE);
    fixture.fail("404", "no such app", |key| &*key.owner.app == "p-1-b");
    assert_eq!(codes(&fixture).await, ["not_found", "call_missing"]);
    fixture.fail("404", "no such route", |key| key.resource != list_projects::RESOURCE);
    assert_eq!(codes(&fixture).await, ["wrong_address"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_accepted_has_not_expired() {
    let fixture = answered().await;
    fixture.token("default", |facts| facts.expires = Some(fixture::NOW.parse().unwrap()));
    assert_eq!(codes(&fixture).await, ["token_expired"]);
    fixture.token("default", |facts| facts.accepted = Some(true));
    assert_eq!(codes(&fixture).await, ["token_expires_soon"]);
    fixture.token("default", |facts| facts.accepted = Some(false));
    fixture.fail("401", "expired", |_| true);
    assert_eq!(codes(&fixture).await, ["token_expired"]);
    assert_eq!(fixture.source.status().service.state, ServiceState::Down);
}

#[tokio::test(start_paused = true)]
async fn an_app_is_not_known_to_be_healthy_while_the_service_does_not_answer() {
    let fixture = answered().await;
    let apps = || fixture.source.status().summary.apps;
    assert!(apps().ok > 0 && apps().waiting == 0);
    fixture.fail("timeout", "no reply", |key| key.resource == response_time::RESOURCE);
    advance(Duration::from_secs(2)).await;
    assert_eq!((apps().ok, apps().waiting), (0, apps().all), "settings of before prove nothing");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_reads_an_app_of_its_project_is_for_that_project() {
    // {"project_id":"p-b"}
    let token = |_: &str| Some(TokenSource::Inline(Secret::new("e30.eyJwcm9qZWN0X2lkIjoicC1iIn0.c2ln")));
    let fixture = fixture::with_tokens(&[("p-1", "p-1-a"), ("p-1", "p-1-b")], token).await;
    fixture.answer(1.0);
    fixture.fail("404", "no such app", |key| &*key.owner.app == "p-1-b");
    assert_eq!(codes(&fixture).await, ["not_found"]);
    fixture.fail("403", "not yours", |key| key.resource != list_projects::RESOURCE);
    assert_eq!(codes(&fixture).await, ["token_elsewhere"]);
}

#[tokio::test(start_paused = true)]
async fn settings_that_no_app_has_are_a_missing_call_while_each_has_metrics() {
    let fixture = fixture::with_apps(&[("p-1", "p-1-a"), ("p-1", "p-1-b")]).await;
    fixture.answer(1.0);
    let is_settings = |key: &Key| key.resource == get_app::RESOURCE;
    fixture.fail("404", "no such app", |key| is_settings(key) && &*key.owner.app == "p-1-b");
    assert_eq!(codes(&fixture).await, ["not_found"]);
    fixture.fail("404", "no such route", is_settings);
    assert_eq!(codes(&fixture).await, ["call_missing"]);
    fixture.fail("404", "no such app", |key| &*key.owner.app == "p-1-b");
    assert_eq!(codes(&fixture).await, ["not_found", "call_missing"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_app_does_not_lack_a_call_that_answered_before() {
    let fixture = fixture::with_apps(&[("p-1", "p-1-a"), ("p-1", "p-1-b")]).await;
    fixture.answer(1.0);
    advance(Duration::from_secs(30)).await;
    fixture.fail("404", "no such app", |key| is_metrics(key.resource) && &*key.owner.app == "p-1-b");
    assert_eq!(codes(&fixture).await, ["not_found"]);
}

#[tokio::test(start_paused = true)]
async fn values_that_a_panic_has_cost_are_a_problem() {
    let fixture = answered().await;
    fixture.fail("panic", "a bug", |_| true);
    assert_eq!(codes(&fixture).await, ["panicked"]);
    // The values of metrics are stale, and those of settings are not.
    advance(Duration::from_secs(400)).await;
    assert_eq!(codes(&fixture).await, ["resource_stale", "panicked"]);
    assert_eq!(fixture.source.status().summary.verdict, Verdict::Problem);
    advance(Duration::from_secs(3600)).await;
    assert_eq!(codes(&fixture).await, ["resource_stale"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_file_that_cannot_be_read_again_is_a_warning_while_its_last_token_works() {
    let fixture = answered().await;
    fixture.token("default", |facts| facts.accepted = Some(true));
    fixture.token("default", |facts| facts.readable = Some(false));
    assert_eq!(codes(&fixture).await, ["token_unreadable"]);
    let summary = fixture.source.status().summary.clone();
    let text = "The default token cannot be used, so the last one read stays in use";
    assert_eq!((summary.verdict, &*summary.reasons[0].text), (Verdict::Warning, text));
    fixture.token("default", |facts| facts.accepted = Some(false));
    fixture.fail("credentials", "no such file", |_| true);
    assert_eq!(codes(&fixture).await, ["token_unreadable"]);
    assert_eq!(fixture.source.status().summary.verdict, Verdict::Problem);
}
