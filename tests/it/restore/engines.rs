//! Engines with the HTTP API of Prometheus, as far as their documentation says where they differ: Thanos and Mimir.
//! Prometheus and VictoriaMetrics themselves are in `real_restore`.

use super::bad_answers::EMPTY;
use super::prometheus::Asked;
use super::rig::{Exporter, RESTORED, Rig};
use super::{cursor, greatest};

/// Two replicas of Prometheus scrape the exporter, the second one 30 seconds before the first; then it is killed.
async fn scraped_by_two_replicas() -> Rig {
    let rig = Rig::start(2).await;
    let old = rig.started("a").await;
    for _ in 0..6 {
        rig.pass(30).await;
        old.poll().await;
        scrape(&rig, &old, "b");
        rig.pass(30).await;
        old.poll().await;
        scrape(&rig, &old, "a");
        old.handle.restorer.restore().await;
    }
    rig
}

fn scrape(rig: &Rig, exporter: &Exporter, replica: &str) {
    let target = [("job", "pds"), ("instance", "a"), ("prometheus_replica", replica)];
    rig.prometheus.scrape(&exporter.page(), &target);
}

#[tokio::test]
async fn thanos_returns_each_replica_and_the_furthest_cursor_is_used() {
    let rig = scraped_by_two_replicas().await;
    let found = greatest(&rig);
    // Deduplicated, the series of two replicas are one, without the label that tells them apart.
    let deduplicated = |asked: &Asked| asked.form.get("dedup").map(String::as_str) != Some("false");
    rig.prometheus.answer(move |asked| deduplicated(asked).then(|| (200, EMPTY.to_owned())));
    let exporter = rig.started("a").await;
    assert_eq!((exporter.metric(RESTORED), cursor(&rig, &exporter)), (Some(1.0), found));
}

#[tokio::test]
async fn thanos_with_a_store_that_is_down_hides_the_counters_whether_it_fails_or_warns() {
    let rig = scraped_by_two_replicas().await;
    let found = greatest(&rig);
    let down = "receive series from Addr: store-2:10901: rpc error: code = Unavailable";
    // It fails where partial responses are not wanted, and warns where a proxy drops that wish.
    let fails = format!(r#"{{"status":"error","errorType":"execution","error":"{down}"}}"#);
    let warns = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[]}},"warnings":["{down}"]}}"#
    );
    for (status, told) in [(422, fails), (200, warns)] {
        rig.prometheus.answer(move |asked| {
            assert_eq!(asked.form["partial_response"], "false");
            Some((status, told.clone()))
        });
        let exporter = rig.started("a").await;
        assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (0, Some(0.0)));
        assert!(exporter.obstacle().await.ends_with(down), "{}", exporter.obstacle().await);
        rig.prometheus.mend();
        assert!(exporter.handle.restorer.restore().await);
        assert_eq!((cursor(&rig, &exporter), exporter.metric(RESTORED)), (found, Some(1.0)));
    }
}

/// Mimir: 401 without a tenant, nothing for a tenant without series, and what it holds for that of the exporters.
fn tenants(asked: &Asked) -> Option<(u16, String)> {
    let tenant = asked.headers.get("x-scope-orgid").map(|tenant| tenant.to_str().unwrap());
    match tenant {
        None => Some((401, "no org id\n".to_owned())),
        Some("team") => None,
        Some(_) => Some((200, EMPTY.to_owned())),
    }
}

#[tokio::test]
async fn mimir_answers_for_the_right_tenant_only() {
    let rig = Rig::after_one(1).await;
    let found = greatest(&rig);
    rig.prometheus.answer(tenants);
    let header = |tenant: &str| format!("prometheus_headers = {{ X-Scope-OrgID = \"{tenant}\" }}");
    let with = async |more: &str| {
        let mut config = rig.config(1, more);
        let prometheus = config.state.prometheus.as_mut().unwrap();
        prometheus.url = prometheus.url.join("prometheus").unwrap();
        rig.started_with(config, "a").await
    };
    let without = with("").await;
    assert_eq!((without.shown(), without.metric(RESTORED)), (0, Some(0.0)));
    assert!(without.obstacle().await.ends_with("returned 401: no org id"), "{}", without.obstacle().await);

    let other = with(&header("other")).await;
    assert_eq!((other.shown(), other.metric(RESTORED)), (0, Some(0.0)));
    assert!(other.obstacle().await.contains("the tenant or the selector is wrong"));

    let right = with(&header("team")).await;
    assert_eq!((cursor(&rig, &right), right.metric(RESTORED)), (found, Some(1.0)));
    assert!(rig.prometheus.asked().iter().any(|asked| asked.path == "/prometheus/api/v1/query"));
}

#[tokio::test]
async fn every_query_has_credentials_parameters_and_selector_and_recent_cursors_are_not_searched_further_back()
 {
    let rig = Rig::after_one(1).await;
    let token = rig.folder.path().join("token");
    std::fs::write(&token, "s3cret-token\n").unwrap();
    let more = format!("prometheus_token_file = {token:?}\nprometheus_selector = 'job=\"pds\"'");
    for (age, windows) in [
        (0, &["300s] offset 5s)", "600s])", "600s]) > 0"][..]),
        (1700, &["300s] offset 5s)", "600s])", "864000s])", "864000s]) > 0"]),
    ] {
        rig.pass(age).await;
        let from = rig.prometheus.asked().len();
        let exporter = rig.started_with(rig.config(1, &more), "a").await;
        assert_eq!(exporter.metric(RESTORED), Some(1.0));
        let asked = &rig.prometheus.asked()[from..];
        for query in asked {
            assert_eq!(query.headers["authorization"], "Bearer s3cret-token");
            let names = ["dedup", "partial_response", "deny_partial_response", "nocache"];
            assert_eq!(names.map(|name| &*query.form[name]), ["false", "false", "1", "1"]);
            assert!(query.form["query"].contains(",job=\"pds\"}["));
        }
        let asked: Vec<&str> =
            asked.iter().map(|asked| asked.form["query"].rsplit_once('[').unwrap().1).collect();
        assert_eq!(asked, windows);
    }
}
