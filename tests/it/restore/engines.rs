//! Engines with the HTTP API of Prometheus, as far as their documentation says where they differ: Thanos and Mimir.
//! Prometheus and VictoriaMetrics themselves are in `real_restore`.

use super::assert_true;
use super::prometheus::Asked;
use super::rig::{Exporter, RESTORED, Rig};

const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

/// Two replicas of Prometheus scrape the exporter, the second one 30 seconds before the first; then it is killed.
async fn scraped_by_two_replicas() -> (Rig, i64) {
    let rig = Rig::start(2).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    let old = rig.started("old").await;
    let scrape = |exporter: &Exporter, replica: &str| {
        let target = [("job", "pds"), ("instance", "old"), ("prometheus_replica", replica)];
        rig.prometheus.scrape(&exporter.page(), &target);
    };
    scrape(&old, "a");
    for _ in 0..6 {
        old.handle.restorer.restore().await;
        rig.pass(30);
        old.poll().await;
        scrape(&old, "b");
        rig.pass(30);
        old.poll().await;
        scrape(&old, "a");
    }
    (rig, first)
}

#[tokio::test]
async fn thanos_returns_each_replica_and_the_furthest_one_is_used() {
    let (rig, first) = scraped_by_two_replicas().await;
    // Deduplicated, the series of two replicas are one, without the label that tells them apart.
    let deduplicated = |asked: &Asked| asked.form.get("dedup").map(String::as_str) != Some("false");
    rig.prometheus.answer(move |asked| deduplicated(asked).then(|| (200, EMPTY.to_owned())));
    let exporter = rig.started("new").await;
    assert_eq!(exporter.metric(RESTORED), Some(1.0));
    rig.run(&exporter, 2).await;
    assert_eq!(exporter.shown(), 2);
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn thanos_with_a_store_that_is_down_hides_the_counters_whether_it_fails_or_warns() {
    let (rig, first) = scraped_by_two_replicas().await;
    let down = "receive series from Addr: store-2:10901: rpc error: code = Unavailable";
    // It fails where partial responses are not wanted, and warns where a proxy drops that wish.
    let fails = format!(r#"{{"status":"error","errorType":"execution","error":"{down}"}}"#);
    let warns = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[]}},"warnings":["{down}"]}}"#
    );
    for (status, told) in [(422, fails), (200, warns)] {
        rig.prometheus.answer(move |asked| {
            assert_eq!(asked.form["partial_response"], "false");
            (asked.form["query"] != "time()").then(|| (status, told.clone()))
        });
        let exporter = rig.started("new").await;
        assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (0, Some(0.0)));
        assert!(exporter.obstacle().await.ends_with(down), "{}", exporter.obstacle().await);
        rig.prometheus.mend();
        exporter.handle.restorer.restore().await;
        rig.run(&exporter, 2).await;
        assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (2, Some(1.0)));
        assert_true(&rig, &exporter, first);
    }
}

/// Mimir: 401 without a tenant, nothing for a tenant without series, and what it holds for that of the exporters.
fn tenants(asked: &Asked) -> Option<(u16, String)> {
    let tenant = asked.headers.get("x-scope-orgid").map(|tenant| tenant.to_str().unwrap());
    let is_time = asked.form["query"] == "time()";
    match tenant {
        None => Some((401, "no org id\n".to_owned())),
        Some("team") => None,
        Some(_) => (!is_time).then(|| (200, EMPTY.to_owned())),
    }
}

#[tokio::test]
async fn mimir_answers_for_the_right_tenant_only() {
    let rig = Rig::start(1).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    rig.predecessor().await;
    rig.prometheus.answer(tenants);
    let header = |tenant: &str| format!("prometheus_headers = {{ X-Scope-OrgID = \"{tenant}\" }}");
    let with = async |more: &str| {
        let mut config = rig.config(1, more);
        let prometheus = config.state.prometheus.as_mut().unwrap();
        prometheus.url = prometheus.url.join("prometheus").unwrap();
        let exporter = rig.started_with(config, "new").await;
        rig.run(&exporter, 2).await;
        exporter
    };
    let without = with("").await;
    assert_eq!((without.shown(), without.metric(RESTORED)), (0, Some(0.0)));
    assert!(without.obstacle().await.ends_with("answered 401: no org id"), "{}", without.obstacle().await);

    let other = with(&header("other")).await;
    assert_eq!((other.shown(), other.metric(RESTORED)), (0, Some(0.0)));
    assert!(other.obstacle().await.contains("the tenant or the selector is wrong"));

    let right = with(&header("team")).await;
    assert_eq!((right.shown(), right.metric(RESTORED)), (1, Some(1.0)));
    assert_true(&rig, &right, first);
    assert!(rig.prometheus.asked().iter().any(|asked| asked.path == "/prometheus/api/v1/query"));
}
