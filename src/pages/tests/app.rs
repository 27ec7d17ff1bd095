//! The page of an app.

use tokio::time::{Duration, advance};

use super::{PagesConfig, StatusPages, answered, catalogue, fixture, get, site, texts};

const APP: &str = "/apps/p-00000000/p-00000000-app-0";

#[tokio::test(start_paused = true)]
async fn the_page_of_an_app_has_its_plots_settings_polls_and_queries() {
    let fixture = answered(1).await;
    fixture.fail("timeout", "GET https://api.example.com got no complete reply within 10s", |key| {
        key.resource.as_str() == "response_time"
    });
    advance(Duration::from_secs(5)).await;
    let page = get(&site(&fixture.source, ""), APP, "");
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 5);
    for said in [
        "p95 210 ms",
        "requests done within",
        // The whole window, not a minute of it.
        "<dt>requests in 5m</dt><dd>1,520</dd>",
        "requests / min",
        "response time",
        "failed polls",
        "run execution time",
        "AMPERE_A10",
        "$1.10 / h",
        "16 GB",
        "tier",
        "got no complete reply within 10s",
        "pds_app_response_time_seconds{project=&quot;p-00000000&quot;,app=&quot;p-00000000-app-0&quot;,percentile=&quot;p95&quot;}",
        "href=\"/metrics-catalogue#pds_app_cooldown_seconds\"",
        "href=\"/metrics?project=p-00000000&amp;app=p-00000000-app-0\"",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn raw_replies_are_shown_only_on_request() {
    let fixture = answered(1).await;
    let escaped = "&quot;latestReadyBuildId&quot;: &quot;b-31&quot;";
    let page = |replies| {
        let config = PagesConfig { replies, ..PagesConfig::default() };
        get(&StatusPages::new(fixture.source.clone(), catalogue(), config), APP, "")
    };
    assert!(!page(false).contains(escaped) && !page(false).contains("Last replies"));
    assert!(page(true).contains(escaped));
}

#[tokio::test(start_paused = true)]
async fn the_page_of_an_app_begins_with_its_verdict_one_cause_and_the_remedy() {
    let fixture = answered(1).await;
    let begins = || {
        let page = get(&site(&fixture.source, ""), APP, "");
        let (_, rest) = page.split_once("<section class=\"banner").unwrap();
        texts(rest.split_once("</section>").unwrap().0)
    };
    assert_eq!(begins(), "✓ Its numbers can be trusted .");
    fixture.fail("timeout", "no reply", |key| key.resource.as_str() == "app");
    advance(Duration::from_secs(5)).await;
    assert_eq!(
        begins(),
        "✕ settings: requests to the service time out . Check the service; if it is only slow, raise api.timeout."
    );
}

#[tokio::test(start_paused = true)]
async fn a_setting_links_to_its_meaning_which_omits_1_and_0() {
    let fixture = answered(1).await;
    let page = get(&site(&fixture.source, ""), APP, "");
    let (_, settings) = page.split_once("<table class=\"settings cards\" role=\"table\">").unwrap();
    let settings = settings.split_once("</table>").unwrap().0;
    let rows = settings.matches("<td class=\"value\" role=\"cell\">").count();
    assert!(rows > 20 && settings.matches("<a href=\"/metrics-catalogue#pds_").count() == rows, "{rows}");
    assert!(!settings.contains("<button") && !settings.contains("<details"), "{settings}");
    assert!(!settings.contains("0 where"), "a switch is yes or no");
}

#[tokio::test(start_paused = true)]
async fn plots_of_the_last_hours_show_the_requested_range_and_the_recorded_one() {
    let fixture = answered(1).await;
    fixture.fail("timeout", "no reply", |key| key.resource.as_str() == "response_time");
    advance(Duration::from_secs(5)).await;
    let site = site(&fixture.source, "");
    let page = get(&site, APP, "");
    assert!(page.contains("Memory holds six hours in steps of 15 s, with the highest value of each."));
    assert!(page.contains("?range=30m#hours\">30m</a>"), "a reach that is not the one shown");
    assert!(
        page.contains("?range=2h#hours\" aria-current=\"true\">2h</a>"),
        "half an hour and some is in two"
    );
    assert!(get(&site, APP, "range=6h").contains("?range=6h#hours\" aria-current=\"true\""));
    let (_, failures) = page.split_once("<h3>Failed polls</h3>").unwrap();
    let rows = failures.split_once("</table>").unwrap().0;
    assert_eq!(rows.matches("<td class=\"number\">1</td><td class=\"number\">").count(), 1, "{rows}");
    assert!(rows.matches("<tr data-x=\"").count() > 20, "rows have their place under the pointer");
}

#[tokio::test(start_paused = true)]
async fn a_new_build_is_marked_and_listed_with_the_other_changes() {
    let fixture = answered(1).await;
    assert!(get(&site(&fixture.source, ""), APP, "").contains("No changes since <time"));
    let deploy = |body: String| {
        body.replace("\"latestReadyBuildId\":\"b-31\"", "\"latestReadyBuildId\":\"b-32\"")
            .replace("\"maxReplicaCount\":\"8\"", "\"maxReplicaCount\":\"12\"")
    };
    advance(Duration::from_secs(60)).await;
    fixture.answer_with(1.0, deploy);
    advance(Duration::from_secs(60)).await;
    fixture.answer_with(1.0, deploy);
    advance(Duration::from_secs(5)).await;
    let page = get(&site(&fixture.source, ""), APP, "");
    let (_, changes) = page.split_once("id=\"changes\"").unwrap();
    let rows = texts(changes.split_once("</tbody>").unwrap().0.split_once("<tbody>").unwrap().1);
    assert_eq!(rows, "65 s ago max replicas 8 12 65 s ago latest ready build id b-31 b-32");
    assert_eq!(page.matches("<li class=\"deploy\">new build</li>").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_its_unit_hides_is_shown_in_full() {
    let fixture = fixture::fixture(1).await;
    for seconds in ["3600", "3620"] {
        fixture.answer_with(1.0, |body| {
            let mut reply: serde_json::Value = serde_json::from_str(&body).unwrap();
            if reply.get("maxReplicaCount").is_some() {
                reply["cooldownPeriodSeconds"] = seconds.into();
            }
            reply.to_string()
        });
        advance(Duration::from_secs(60)).await;
    }
    let page = texts(&get(&site(&fixture.source, ""), APP, ""));
    assert!(page.contains("cooldown 3600 3620"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn polls_that_began_on_another_day_have_its_date() {
    let fixture = answered(1).await;
    advance(Duration::from_secs(2 * 86_400)).await;
    fixture.answer(1.0);
    let page = texts(&get(&site(&fixture.source, ""), APP, ""));
    assert!(page.contains("more since 2026-03-01 03:0"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_window_shows_nothing_that_was_counted_before_it() {
    let fixture = answered(2).await;
    fixture.count_until(0).await;
    fixture.fail("404", "no such app", |key| key.owner.app.ends_with("app-1"));
    let page = get(&site(&fixture.source, ""), APP, "");
    let (_, rest) = page.split_once("id=\"window\"").unwrap();
    let (window, rest) = rest.split_once("id=\"hours\"").unwrap();
    assert!(!window.contains("counted") && rest.contains(" requests counted so far."), "{window}");

    let never = super::fixture::fixture(1).await;
    never.count_until(0).await;
    never.fail("404", "no such app", |_| true);
    let page = get(&site(&never.source, ""), APP, "");
    assert!(!page.contains("counted so far"), "an app that never answered has no total");
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_an_app_keeps_its_last_known_name_and_is_found_by_it() {
    let fixture = answered(1).await;
    advance(Duration::from_secs(1)).await;
    let site = site(&fixture.source, "");
    let is_old = || get(&site, "/", "name=RANKER").contains("; last known name");
    assert!(!is_old());
    fixture.fail("connect", "connection refused", |_| true);
    advance(Duration::from_secs(3 * 3600)).await;
    assert!(is_old(), "{}", get(&site, "/", "name=ranker"));
    assert!(get(&site, APP, "").contains("<span class=\"sub\">last known name</span>"));
    let json = get(&site, "/api/v1/status", "name=ranker");
    assert!(json.contains("\"name\":\"ranker\",\"name_is_old\":true,\"status\":null"), "{json}");
    fixture.answer(1.0);
    advance(Duration::from_secs(1)).await;
    assert!(!is_old());
}

#[tokio::test(start_paused = true)]
async fn an_invisible_name_is_missing() {
    for blank in ["", "  ", "\u{200b}\u{2060}", "\u{202e}"] {
        let fixture = super::fixture::fixture(1).await;
        fixture
            .answer_with(1.0, |body| body.replace("\"name\":\"ranker\"", &format!("\"name\":\"{blank}\"")));
        let page = get(&site(&fixture.source, ""), "/", "");
        let link = "title=\"p-00000000-app-0\">p-00000000-app-0</a>";
        assert!(page.contains(link), "{blank:?}");
    }
}
