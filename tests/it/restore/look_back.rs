//! The search for pages: what it costs, how far it goes, and what ends it.

use std::time::Duration;

use super::assert_true;
use super::rig::{Exporter, RESTORED, Rig};

const TOTAL: &str = "pds_app_requests_total";
const CURSOR: &str = "pds_app_accounted_until_timestamp_seconds";

/// Prometheus has scraped these families once more, and no others.
fn scrape_only(rig: &Rig, families: &[&str]) {
    let now = rig.clock.unix_seconds();
    rig.prometheus.change(|labels, samples| {
        let name = &*labels["__name__"];
        if families.contains(&name) {
            let (_, value) = *samples.last().unwrap();
            samples.push((now, value + f64::from(u8::from(name == TOTAL))));
        }
    });
}

async fn missing(exporter: &Exporter) -> usize {
    exporter.status().await.0.exporter.restoring.as_ref().unwrap().missing
}

#[tokio::test]
async fn what_every_question_has_in_common_and_how_the_look_back_widens() {
    let rig = Rig::start(1).await;
    rig.predecessor().await;
    rig.pass(1700);
    let token = rig.folder.path().join("token");
    std::fs::write(&token, "s3cret-token\n").unwrap();
    let more = format!(
        "prometheus_token_file = {token:?}\nprometheus_headers = {{ X-Scope-OrgID = \"tenant-7\" }}\n\
         prometheus_selector = 'job=\"pds\"'"
    );
    let mut config = rig.config(1, &more);
    let prefixed = config.state.prometheus.as_mut().unwrap();
    prefixed.url = prefixed.url.join("prometheus/").unwrap();
    let from = rig.prometheus.asked().len();
    let exporter = rig.started_with(config, "new").await;
    assert_eq!(exporter.metric(RESTORED), Some(1.0));
    let asked = &rig.prometheus.asked()[from..];
    for question in asked {
        assert_eq!(question.path, "/prometheus/api/v1/query");
        assert_eq!(question.headers["authorization"], "Bearer s3cret-token");
        assert_eq!(question.headers["x-scope-orgid"], "tenant-7");
        for (name, value) in
            [("dedup", "false"), ("partial_response", "false"), ("deny_partial_response", "1")]
        {
            assert_eq!(question.form[name], value);
        }
    }
    assert_eq!(asked[0].form["query"], "time()");
    let windows: Vec<&str> =
        asked[1..].iter().map(|asked| asked.form["query"].rsplit_once('[').unwrap().1).collect();
    assert_eq!(windows, ["300s]", "3600s]", "3600s])"], "what an hour has is not looked for in ten days");
    assert!(asked[1..].iter().all(|asked| asked.form["query"].contains(",job=\"pds\"}[")));
    let times: std::collections::BTreeSet<&String> =
        asked[1..].iter().map(|asked| &asked.form["time"]).collect();
    assert_eq!(times.len(), 1, "all is asked of one moment");
}

#[tokio::test]
async fn a_refused_page_is_not_replaced_by_one_of_days_ago() {
    let rig = Rig::start(1).await;
    rig.predecessor().await;
    rig.pass(3 * 86_400);
    scrape_only(&rig, &[CURSOR, TOTAL]);
    rig.pass(7_200);
    let exporter = rig.started("new").await;
    assert_eq!((missing(&exporter).await, exporter.metric(RESTORED)), (1, Some(0.0)));
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.contains("its +Inf bucket is missing"), "{obstacle}");
}

#[tokio::test]
async fn a_total_without_its_cursor_is_refused_however_short_the_look_back_is() {
    for lookback in [300_u32, 3_600] {
        let rig = Rig::start(1).await;
        rig.predecessor().await;
        rig.pass(2 * i64::from(lookback));
        scrape_only(&rig, &[TOTAL]);
        rig.pass(60);
        let mut config = rig.config(1, "");
        config.state.prometheus.as_mut().unwrap().lookback = Duration::from_secs(lookback.into());
        let exporter = rig.started_with(config, "new").await;
        let obstacle = exporter.obstacle().await;
        assert!(obstacle.contains("were never scraped together"), "{lookback} s: {obstacle}");
    }
}

#[tokio::test]
async fn a_counter_whose_page_is_not_found_does_not_begin_at_0() {
    let rig = Rig::start(1).await;
    rig.predecessor().await;
    rig.pass(3 * 86_400);
    // Its total is known, but not when it was scraped.
    let nothing = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    rig.prometheus
        .answer(move |asked| asked.form["query"].ends_with(":3600s]").then(|| (200, nothing.to_owned())));
    let exporter = rig.started("new").await;
    let obstacle = exporter.obstacle().await;
    assert!(obstacle.contains("its cursor and its total were never scraped together"), "{obstacle}");
}

#[tokio::test]
async fn a_search_asks_little_however_long_the_look_back_is() {
    let rig = Rig::start(1).await;
    rig.predecessor().await;
    scrape_only(&rig, &[CURSOR, TOTAL]);
    rig.pass(9 * 86_400);
    let from = rig.prometheus.asked().len();
    let exporter = rig.started("new").await;
    assert_eq!(missing(&exporter).await, 1);
    let asked = rig.prometheus.asked().len() - from;
    // The time, two windows, what the look-back has, and at most seven hours with two questions each.
    assert!(asked <= 1 + 2 + 2 + 7 * 2, "{asked} questions");
}

#[tokio::test]
async fn what_is_found_is_kept_if_a_later_query_fails() {
    let rig = Rig::start(2).await;
    let first = rig.clock.unix_seconds() / 60 * 60;
    let page = rig.predecessor().await;
    rig.pass(1_700);
    // Only one of the apps is on a page of the last minutes.
    let left_out = format!("app={:?}", rig.apps()[1]);
    let page: String =
        page.lines().filter(|line| !line.contains(&left_out)).map(|line| format!("{line}\n")).collect();
    rig.prometheus.scrape(&page, &[("job", "pds"), ("instance", "old")]);
    rig.prometheus.answer(|asked| asked.form["query"].contains("[3600s]").then(|| (503, String::new())));
    let exporter = rig.started("new").await;
    assert_eq!((missing(&exporter).await, exporter.metric(RESTORED)), (2, Some(0.0)));
    rig.run(&exporter, 2).await;
    assert_eq!(exporter.shown(), 1);
    rig.prometheus.mend();
    rig.run(&exporter, 2).await;
    assert_eq!((exporter.shown(), exporter.metric(RESTORED)), (2, Some(1.0)));
    assert_true(&rig, &exporter, first);
}

#[tokio::test]
async fn a_reload_ends_a_search() {
    let rig = Rig::start(1).await;
    rig.predecessor().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = rig.config(1, "");
    let url = format!("http://{}", silent.local_addr().unwrap());
    config.state.prometheus.as_mut().unwrap().url = url.parse().unwrap();
    config.poll.interval = Duration::from_secs(1);
    let handle = rig.exporter(config, "new").await.run();
    let _asked = silent.accept().await.unwrap();
    handle.reconfigure(rig.config(1, "")).await.unwrap();
    let began = std::time::Instant::now();
    crate::process::until("the counters are read back", async || {
        handle.context.telemetry.snapshot().restoring.is_some_and(|restoring| restoring.missing == 0)
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(30), "a query may take a minute");
}
