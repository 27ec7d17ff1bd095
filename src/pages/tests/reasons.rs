//! One reason per cause: its text, its objects, and its link.

use pds_client::{Observer as _, TokenSource};
use pds_core::secret::Secret;
use pds_interface::{list_projects, response_time};
use pds_ledger::restore::Restoring;
use pds_ledger::{Hold, Key, Observer as _};
use tokio::time::{Duration, advance};

use crate::status::tests::fixture::{self, Fixture};
use pds_diagnosis::{About, Reason, ServiceState, Verdict};
use pds_telemetry::Difference;

use super::super::query::Query;
use super::{get, site};

mod since;

/// Five projects of two apps, each project with its own token, after successful polls.
async fn answered() -> Fixture {
    let ids: Vec<(String, String)> =
        (0..10).map(|n| (format!("p-{}", n / 2), format!("p-{}-app-{n}", n / 2))).collect();
    let apps: Vec<(&str, &str)> = ids.iter().map(|(project, app)| (&**project, &**app)).collect();
    let token = |project: &str| match project {
        "p-4" => Some(TokenSource::Inline(Secret::new("in-the-configuration"))),
        _ => Some(TokenSource::File(format!("/run/secrets/{project}").into())),
    };
    let fixture = fixture::with_tokens(&apps, token).await;
    for token in 0..4 {
        // There is no such file on this machine.
        fixture.token(&format!("p-{token}"), |facts| facts.readable = Some(true));
    }
    fixture.answer(1.0);
    fixture.count_until(0).await;
    advance(Duration::from_secs(60)).await;
    fixture.answer(1.0);
    fixture.count_until(0).await;
    fixture
}

/// The reasons a little later. Checks that each link leads to the objects that the reason counts.
async fn reasons(fixture: &Fixture) -> Vec<Reason> {
    advance(Duration::from_secs(2)).await;
    let status = fixture.source.status();
    for reason in &status.summary.reasons {
        let Some((_, query)) = reason.link.split_once("/?") else { continue };
        let query = Query::read(query.trim_end_matches("#projects"));
        let apps = query.select(&status.apps, &status.projects);
        let projects = status.projects.iter().filter(|project| query.lists(project)).count();
        assert_eq!(apps.len() + projects, reason.count, "{reason:?}");
        assert!(
            query.ignored.is_empty() && !apps.is_empty() || reason.link.ends_with("#projects"),
            "{reason:?}"
        );
        assert!(reason.objects.len() == reason.count.min(20), "{reason:?}");
    }
    status.summary.reasons.clone()
}

/// Code, text and remedy of the only reason.
async fn only(fixture: &Fixture) -> (String, String, String) {
    let all = reasons(fixture).await;
    let [reason] = &*all else { panic!("{all:#?}") };
    (reason.code.to_string(), reason.text.clone(), reason.remedy.clone())
}

fn of_project(project: &'static str) -> impl Fn(&Key) -> bool {
    move |key| &*key.owner.project == project
}

#[tokio::test(start_paused = true)]
async fn one_refused_token_of_several_is_one_reason_with_its_name_file_and_apps() {
    let fixture = answered().await;
    assert_eq!(reasons(&fixture).await, []);
    fixture.fail("401", "GET https://api.example.com/v2/a returned 401", of_project("p-1"));
    fixture.fail("unauthorized_paused", "not sent", |key| {
        of_project("p-1")(key) && key.resource == response_time::RESOURCE
    });
    let (code, text, remedy) = only(&fixture).await;
    assert_eq!(code, "token_refused");
    assert_eq!(text, "The service refuses the token of p-1 (401) since 03:01 UTC: 2 apps and 1 project");
    assert_eq!(
        remedy,
        "Create a new token in the service's dashboard and replace /run/secrets/p-1 (on Kubernetes, its Secret); no restart is needed, and the kubelet updates the file within two minutes."
    );
    let page = get(&site(&fixture.source, ""), "/", "");
    let (_, tile) = page.split_once("<dt>Token</dt>").unwrap();
    let tile = super::texts(tile.split_once("</div>").unwrap().0);
    assert!(tile.contains("refused The service refuses the token of p-1 (401)"), "{tile}");
    let app = fixture.source.status().apps[2].problems.clone();
    let texts: Vec<&str> = app.iter().map(|problem| &*problem.text).collect();
    assert_eq!(
        texts,
        ["settings, response time, run execution time: the service refuses the token (401)"],
        "one line"
    );
    // Its expiry is the cause.
    let past = "2026-02-28T00:00:00Z".parse().unwrap();
    fixture.token("p-1", |facts| facts.expires = Some(past));
    let (code, text, _) = only(&fixture).await;
    assert_eq!(code, "token_expired");
    assert_eq!(text, "The token of p-1 expired (401) at 2026-02-28 00:00:00 UTC: 2 apps and 1 project");
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_target_have_each_a_cause_and_a_remedy_of_their_own() {
    let mut remedies = std::collections::HashSet::new();
    for (class, code, says) in [
        ("404", "not_found", "The service does not know the id (404) since 03:01 UTC: p-2-app-4"),
        ("refused", "range_differs", "Replies cannot be added to the counters since 03:01 UTC: p-2-app-4"),
        ("403", "forbidden", "The token may not read this resource (403) since 03:01 UTC: p-2-app-4"),
        ("forbidden_paused", "forbidden", "The token may not read this resource since 03:01 UTC: p-2-app-4"),
        ("502", "service_error", "The service returns errors (502) since 03:01 UTC: p-2-app-4"),
        ("timeout", "service_slow", "Requests to the service time out since 03:01 UTC: p-2-app-4"),
        (
            "connect",
            "service_down",
            "The service cannot be reached (api.example.com:443) since 03:01 UTC: p-2-app-4",
        ),
        ("3xx", "not_the_service", "The service returns a redirect since 03:01 UTC: p-2-app-4"),
        ("decode", "reply_unreadable", "Replies do not match the interface since 03:01 UTC: p-2-app-4"),
        ("402", "payment_required", "The service requires payment (402) since 03:01 UTC: p-2-app-4"),
    ] {
        let fixture = answered().await;
        fixture.fail(class, "what it said", |key| &*key.owner.app == "p-2-app-4");
        let (found, text, remedy) = only(&fixture).await;
        assert_eq!((&*found, &*text), (code, says), "{class}");
        remedies.insert(remedy);
        assert_eq!(fixture.source.status().service.state, ServiceState::Up, "{class}");
    }
    assert_eq!(remedies.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_the_reason_of_counters_that_stand_still() {
    let fixture = answered().await;
    fixture.context.telemetry.committed(Err("No space left on device (os error 28)"));
    let full = "The state file cannot be written: No space left on device (os error 28)";
    assert_eq!(only(&fixture).await.1, full);
    fixture.count_until(600).await;
    let (code, text, remedy) = only(&fixture).await;
    assert_eq!((&*code, &*text), ("state_not_written", &*format!("{full}; 10 apps")));
    assert!(remedy.starts_with("Free disk space"), "{remedy}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_service_is_one_reason() {
    let fixture = answered().await;
    fixture.fail("timeout", "got no complete reply within 10s", |_| true);
    fixture.count_until(600).await;
    let (code, text, _) = only(&fixture).await;
    assert_eq!(code, "service_slow");
    assert_eq!(text, "Requests to the service time out since 03:01 UTC: 10 apps and 5 projects");
}

#[tokio::test(start_paused = true)]
async fn fifty_expiring_tokens_are_one_reason_and_hide_no_failed_build() {
    let fixture = fixture::with_many_tokens(50).await;
    let success = r#""lastBuildStatus":"success""#;
    fixture.answer_with(1.0, |body| body.replace(success, r#""lastBuildStatus":"failed""#));
    for project in &fixture.plan.config.projects {
        let soon = "2026-03-03T00:00:00Z".parse().unwrap();
        fixture.token(&project.id, |facts| facts.expires = Some(soon));
    }
    let all = reasons(&fixture).await;
    let texts: Vec<(&str, usize)> = all.iter().map(|reason| (&*reason.text, reason.count)).collect();
    assert_eq!(
        texts,
        [
            ("50 tokens (p-00, p-01 and 48 more) will expire, the first at 2026-03-03 00:00:00 UTC", 50),
            ("The last build failed: 50 apps (p-00-a, p-01-a, p-02-a, ...)", 50),
        ]
    );
    assert_eq!((all[0].objects.len(), all[1].about), (20, About::Apps));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_answers_counted_ranges_is_not_silent_where_its_windows_time_out() {
    let fixture = answered().await;
    fixture.fail("timeout", "no reply", |key| !key.owner.app.is_empty());
    advance(Duration::from_secs(600)).await;
    fixture.plan.watermark.observe(Some(fixture.context.clock.now()));
    fixture.count_until(0).await;
    let (code, ..) = only(&fixture).await;
    assert_eq!((&*code, fixture.source.status().service.state), ("service_slow", ServiceState::Up));
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_the_app_names_the_service() {
    let fixture = answered().await;
    fixture.fail("connect", "connection refused", |_| true);
    advance(Duration::from_secs(2)).await;
    let detail = fixture.source.detail("p-0", "p-0-app-0").unwrap();
    let texts: Vec<&str> = detail.app.problems.iter().map(|problem| &*problem.text).collect();
    assert_eq!(texts, ["settings, response time, run execution time: the service cannot be reached"]);
}

#[tokio::test(start_paused = true)]
async fn counters_that_are_hidden_until_they_are_restored_are_in_the_verdict_of_their_app() {
    let fixture = answered().await;
    let held = fixture.plan.targets.iter().filter(|target| target.counter.is_some());
    held.filter(|target| &*target.key.owner.app == "p-3-app-6")
        .for_each(|target| fixture.context.ledgers.set_hold(&target.key, Hold::Unknown));
    for (obstacle, verdict, code, text) in [
        (
            None,
            Verdict::Waiting,
            "restoring",
            "The exporter is reading the cursors of counters from Prometheus: 2 counters hidden; p-3-app-6",
        ),
        (
            Some("connection refused".into()),
            Verdict::Problem,
            "not_restored",
            "The cursors of counters cannot be read from Prometheus: 2 counters hidden, connection refused; p-3-app-6",
        ),
    ] {
        fixture.context.telemetry.restoring(Some(Restoring { missing: 2, obstacle, ..Restoring::default() }));
        let (found, said, _) = only(&fixture).await;
        assert_eq!((&*found, &*said), (code, text));
        let status = fixture.source.status();
        let app = status.apps.iter().find(|app| &*app.id == "p-3-app-6").unwrap();
        assert_eq!((app.verdict, status.summary.verdict), (verdict, verdict), "{:?}", app.problems);
        let page = get(&site(&fixture.source, ""), "/", "");
        assert!(!page.contains("has been polled yet"), "{page}");
        assert_eq!(status.apps[0].verdict, Verdict::Ok);
    }
}

#[tokio::test(start_paused = true)]
async fn counters_that_wait_for_the_clocks_are_a_reason_of_their_own() {
    let fixture = fixture::fixture(1).await;
    fixture.answer_undated(1.0, |body| body);
    let (code, text, _) = only(&fixture).await;
    assert_eq!(code, "counters_wait");
    assert_eq!(text, "Counters wait until the time is certain");
    let behind = || fixture.context.clock.now() - jiff::SignedDuration::from_secs(231);
    fixture.context.telemetry.clock_skew(-231.0);
    fixture.plan.watermark.observe(Some(behind()));
    let apart = "The clocks of the service and of this machine differ: the service's is 3 min 51 s behind this machine's";
    let begins = "; counting begins once two of its replies agree on the time";
    assert_eq!(only(&fixture).await.1, format!("{apart}{begins}"));
    fixture.plan.watermark.observe(Some(behind()));
    let codes: Vec<_> = reasons(&fixture).await.iter().map(|reason| reason.text.clone()).collect();
    assert_eq!(codes.first().map(String::as_str), Some(apart), "{codes:?}");
    fixture.context.telemetry.clock_skew(0.0);
    fixture.answer(1.0);
    assert_eq!(reasons(&fixture).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_reason_names_twenty_objects_at_most_and_counts_all() {
    let fixture = answered().await;
    for account in 0..25 {
        let difference = Difference {
            what: "the service leaves out the end of ranges".into(),
            remedy: "set accounting.range_end = \"exclusive\"".into(),
            target: format!("response_time of p-{account}/a"),
        };
        fixture.context.telemetry.audit_differs(&format!("p-{account}"), response_time::RESOURCE, difference);
    }
    let all = reasons(&fixture).await;
    assert_eq!((&*all[0].code, all[0].count, all[0].objects.len()), ("audit_differs", 25, 20));
}

#[tokio::test(start_paused = true)]
async fn a_missing_list_of_projects_blames_the_address_and_not_an_id() {
    let fixture = answered().await;
    fixture.fail("404", "no such app", |key| !key.owner.app.is_empty());
    fixture.fail("address", "GET https://api.example.com/v2/v2/projects returned 404", |key| {
        key.owner.app.is_empty()
    });
    let (code, text, remedy) = only(&fixture).await;
    assert_eq!(code, "wrong_address");
    assert_eq!(
        text,
        "The service is not at api.base_url, which returns no list of projects (404) since 03:01 UTC: 10 apps and 5 \
         projects"
    );
    assert!(remedy.starts_with("Set api.base_url"), "{remedy}");
    assert_eq!(fixture.source.status().service.state, ServiceState::Down);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_id_is_compared_with_those_that_the_token_lists() {
    let is_list = |key: &Key| key.resource == list_projects::RESOURCE;
    let short = fixture::with_apps(&[("p-1", "ranker")]).await;
    short.answer_only(is_list);
    short.fail("404", "no such app", |key| !key.owner.app.is_empty());
    let all = reasons(&short).await;
    assert_eq!(all[0].detail.as_deref(), Some("ranker is short for p-1-ranker"));
    assert!(all[0].text.ends_with(": ranker"), "{}", all[0].text);

    let typo = fixture::with_apps(&[("p-abc12346", "p-abc12346-ranker")]).await;
    typo.answer_some(is_list, 1.0, |body| {
        body.replace("\"id\":\"p-abc12346\",\"name\"", "\"id\":\"p-abc12345\",\"name\"")
    });
    typo.fail("404", "no such app", |key| !key.owner.app.is_empty());
    let near = "the token knows no project p-abc12346; the nearest is p-abc12345";
    assert_eq!(reasons(&typo).await[0].detail.as_deref(), Some(near));
    typo.fail("404", "no such project", |key| !is_list(key));
    reasons(&typo).await;
    assert_eq!(typo.source.status().projects[0].problems[0].detail.as_deref(), Some(near));
    typo.answer(1.0);
    typo.fail("404", "no such app", |key| !key.owner.app.is_empty());
    assert_eq!(reasons(&typo).await[0].detail.as_deref(), Some("no such app"), "the id worked");
}

#[tokio::test(start_paused = true)]
async fn a_broken_app_is_one_line_with_the_words_of_the_service() {
    let fixture = answered().await;
    fixture.answer_with(1.0, |body| match body.contains("p-2-app-4") {
        true => body
            .replace("\"status\":\"Ready\"", "\"status\":\"build_error\"")
            .replace("\"errorMessage\":\"\"", "\"errorMessage\":\"CUDA out of memory\"")
            .replace("\"lastBuildStatus\":\"success\"", "\"lastBuildStatus\":\"failed\""),
        false => body,
    });
    let all = reasons(&fixture).await;
    let app = fixture.source.status().apps[4].problems.clone();
    let texts: Vec<&str> = app.iter().map(|problem| &*problem.text).collect();
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0].text, "The app's status is an error: p-2-app-4");
    assert_eq!(texts, ["the app's status is build_error: CUDA out of memory"], "{app:?}");
    assert_eq!(all[0].detail.as_deref(), Some("CUDA out of memory"));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_too_low_is_named_with_the_value_to_set_and_explains_late_polls() {
    let low = |mut config: pds_config::Config| {
        config.api.max_requests_per_second = std::num::NonZeroU32::new(1);
        config
    };
    let ids: Vec<String> = (0..30).map(|n| format!("p-{n}")).collect();
    let apps: Vec<(&str, &str)> = ids.iter().map(|id| ("p", id.as_str())).collect();
    let fixture = fixture::with_config(&apps, low).await;
    fixture.context.telemetry.poll_lag(Some(Duration::from_secs(60)));
    let codes = async || {
        let all = reasons(&fixture).await;
        all.iter().map(|reason| reason.code.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(codes().await, ["overloaded", "waiting"], "in the first round, everything is late");
    fixture.answer(1.0);
    advance(Duration::from_secs(150)).await;
    assert_eq!(codes().await, ["overloaded"]);
    let text = reasons(&fixture).await[0].text.clone();
    let set = "The configuration needs more requests than api.max_requests_per_second allows: \
               set api.max_requests_per_second = ";
    assert!(text.starts_with(set) && text.ends_with("; 30 apps"), "{text}");
}
