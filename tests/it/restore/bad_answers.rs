//! Answers of a Prometheus that are errors, incomplete, or of something else: counters stay hidden, with the reason.

use crate::client::transport::{authority, goaway};

use super::counters;
use super::prometheus::Asked;
use super::rig::{Exporter, RESTORED, Rig};

/// Counters stay hidden while Prometheus answers so, gauges are shown, and it is said why; once it answers properly,
/// everything is there.
async fn hides(reason: &str, trouble: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) {
    let rig = Rig::after_one(1).await;
    rig.prometheus.answer(trouble);
    let exporter = rig.started("a").await;
    rig.run(&exporter, 3).await;
    assert_eq!(counters(&exporter.page()), [], "{reason}");
    assert_eq!(exporter.metric(RESTORED), Some(0.0), "{reason}");
    assert!(exporter.page().contains("\npds_app_window_requests{"), "{reason}");
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.contains(reason), "{reason}: {obstacle}");
    let restoring = exporter.status().await.0.exporter.restoring.clone().unwrap();
    assert_eq!((restoring.missing, restoring.expected), (2, false), "{reason}");
    assert_reason(&exporter, "not_restored: ", reason).await;

    rig.prometheus.mend();
    rig.run(&exporter, 4).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, Some(1.0)), "{reason}");
    rig.assert_exact();
}

/// Fails unless a reason with this code has this part.
async fn assert_reason(exporter: &Exporter, code: &str, part: &str) {
    let (_, reasons) = exporter.status().await;
    assert!(reasons.iter().any(|told| told.starts_with(code) && told.contains(part)), "{reasons:?}");
}

/// This answer to every query.
fn says(status: u16, body: &'static str) -> impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static {
    move |_| Some((status, body.to_owned()))
}

/// The answer of a store without such series.
pub(super) const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

#[tokio::test]
async fn an_error_reply_hides_the_counters_until_a_good_one() {
    hides("returned 503: no healthy upstream", says(503, "no healthy upstream")).await;
    let large = r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples"}"#;
    hides("returned 422: execution: query processing would load too many samples", says(422, large)).await;
    let late = r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#;
    hides("failed: timeout: query timed out", says(200, late)).await;
}

#[tokio::test]
async fn an_answer_that_lacks_something_hides_the_counters_until_it_is_whole() {
    let partial = r#"{"status":"success","warnings":["fetch series from store-1: EOF"],"data":{"resultType":"vector","result":[]}}"#;
    hides("may be incomplete: fetch series from store-1: EOF", says(200, partial)).await;
    let partial = r#"{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}}"#;
    hides("may be incomplete: it is marked as partial", says(200, partial)).await;
    hides("is not from the Prometheus HTTP API: EOF", says(200, &EMPTY[..EMPTY.len() - 4])).await;
}

#[tokio::test]
async fn an_answer_of_something_else_hides_the_counters() {
    hides("is not from the Prometheus HTTP API", says(200, "<html>Sign in</html>")).await;
    hides("returned 302", says(302, "elsewhere")).await;
}

#[tokio::test]
async fn a_wrong_tenant_that_answers_empty_lets_counters_begin_after_two_minutes_and_is_reported() {
    let rig = Rig::after_one(1).await;
    rig.prometheus.answer(says(200, EMPTY));
    let exporter = rig.started("a").await;
    rig.run(&exporter, 1).await;
    assert_eq!((counters(&exporter.page()).len(), exporter.metric(RESTORED)), (0, Some(0.0)));
    assert_reason(&exporter, "restoring: ", "tenant").await;
    rig.run(&exporter, 4).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (1, Some(0.0)));
    assert_reason(&exporter, "no_cursors: ", "tenant").await;
}

#[tokio::test]
async fn an_unreachable_prometheus_hides_the_counters_and_errors_show_no_secret() {
    let rig = Rig::start(1).await;
    let password = rig.folder.path().join("password");
    let more = format!(
        "prometheus_username = \"pds\"\nprometheus_password_file = {password:?}\n\
         prometheus_headers = {{ X-Scope-OrgID = \"tenant-7\", X-Cell = \"1\" }}"
    );
    let config = rig.config(1, &more);
    let exporter = rig.started_with(config.clone(), "a").await;
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.contains("state.prometheus_password_file: cannot read"), "{obstacle}");
    std::fs::write(&password, "hunter2\n").unwrap();
    rig.prometheus.answer(|asked| {
        let told =
            ["authorization", "x-scope-orgid", "x-cell"].map(|name| asked.headers[name].to_str().unwrap());
        Some((403, format!("no: {}", told.join(", "))))
    });
    exporter.handle.restorer.restore().await;
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.ends_with("returned 403: no: Basic [redacted], [redacted], [redacted]"), "{obstacle}");
    rig.prometheus.answer(says(200, "<html>"));
    exporter.handle.restorer.restore().await;
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.ends_with("expected value at line 1 column 1"), "a short value: {obstacle}");

    let mut config = config;
    config.state.prometheus.as_mut().unwrap().url = "http://127.0.0.1:1".parse().unwrap();
    let exporter = rig.started_with(config.clone(), "a").await;
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.starts_with("http://127.0.0.1:1/api/v1/query cannot be reached: "), "{obstacle}");
    assert!(obstacle.ends_with("(os error 111)"), "a short value: {obstacle}");
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (0, Some(0.0)));

    let (ca, tls) = authority(rig.folder.path(), "127.0.0.1");
    let prometheus = config.state.prometheus.as_mut().unwrap();
    prometheus.url = format!("https://{}", goaway(tls, "no hunter2".to_owned()).await).parse().unwrap();
    prometheus.ca_file = Some(ca);
    let obstacle = rig.started_with(config, "a").await.obstacle().await;
    assert!(obstacle.contains("no [redacted]") && obstacle.len() < 1_200, "{obstacle}");
}

#[tokio::test]
async fn no_eight_characters_of_a_password_come_out_wherever_an_answer_is_shortened() {
    const PASSWORD: &str = "hunter2/0f-the+pr0metheus";
    let rig = Rig::start(1).await;
    let password = rig.folder.path().join("password");
    std::fs::write(&password, PASSWORD).unwrap();
    let more = format!("prometheus_username = \"pds\"\nprometheus_password_file = {password:?}");
    rig.prometheus.answer(|_| Some((503, "not yet".to_owned())));
    let exporter = rig.started_with(rig.config(1, &more), "a").await;
    let encoded = "aHVudGVyMi8wZi10aGUrcHIwbWV0aGV1cw";
    let forms = [
        PASSWORD.to_owned(),
        PASSWORD.replace('/', "%2F").replace('+', "%2B"),
        PASSWORD.replace('/', "\\/").replace('+', "\\u002b"),
        PASSWORD.replace('/', "&#47;").replace('+', "&#x2b;"),
        encoded.to_owned(),
    ];
    for form in forms {
        for shift in (100..145).step_by(3) {
            let text = format!("{}{form}{}", "x".repeat(shift), "y".repeat(100));
            let failed = format!(r#"{{"status":"error","errorType":"internal","error":"{text}"}}"#);
            for (status, body) in [(503, text), (200, failed.clone()), (400, failed)] {
                rig.prometheus.answer(move |_| Some((status, body.clone())));
                exporter.handle.restorer.restore().await;
                let said = exporter.obstacle().await;
                assert!(said.contains("xxx"), "{said}");
                let parts =
                    [PASSWORD, encoded, &*form].map(|text| (0..text.len() - 8).map(|at| &text[at..at + 8]));
                let part = parts.into_iter().flatten().find(|part| said.contains(part));
                assert_eq!(part, None, "{status} {shift}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_requested_in_parts() {
    let beyond_a_limit = r#"{"status":"error","errorType":"execution","error":"the query exceeded the maximum number of series"}"#;
    for answer in [(200, " ".repeat((32 << 20) + 1)), (422, beyond_a_limit.to_owned())] {
        let rig = Rig::after_one(4).await;
        rig.prometheus.answer(move |asked| {
            let two = asked.form["query"].split("app=~").nth(1).is_some_and(|apps| apps.contains('|'));
            two.then(|| answer.clone())
        });
        let exporter = rig.started("a").await;
        rig.run(&exporter, 3).await;
        assert_eq!(exporter.shown(), 4);
        rig.assert_exact();
    }
}
