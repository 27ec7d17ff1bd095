//! The pages of a filled store.

mod app;
mod finding;
mod hours;
mod reasons;
mod truth;

use tokio::time::{Duration, advance};

use crate::status::Source;
use crate::status::tests::fixture::{self, Fixture, HOSTILE};
use pds_client::Observer as _;
use pds_diagnosis::Verdict;
use pds_exposition::{Family, Group};
use pds_interface::{Resource, get_app};

use super::links::{Links, encode};
use super::{Asset, PagesConfig, Rendered, StatusPages};

fn site(source: &Source, prefix: &str) -> StatusPages {
    StatusPages::new(source.clone(), catalogue(), PagesConfig { prefix, ..PagesConfig::default() })
}

fn catalogue() -> Vec<Group> {
    let stopped = Family::gauge("pds_x", &[], "A help text that ends in a full stop.");
    Resource::all()
        .map(|resource| Group { title: resource.call().purpose, families: resource.polled().families() })
        .chain([Group { title: "x", families: vec![stopped] }])
        .collect()
}

fn get(site: &StatusPages, path: &str, query: &str) -> String {
    let asset = path.strip_prefix("/static/").and_then(Asset::named);
    match site.respond(path, query) {
        Some(Rendered::Page(text) | Rendered::Json(text)) => text,
        other => asset.unwrap_or_else(|| panic!("{path}: {other:?}")).content.to_owned(),
    }
}

/// The text between the tags.
fn texts(markup: &str) -> String {
    let texts = markup.split('<').filter_map(|tag| tag.split_once('>')).map(|(_, text)| text.trim());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

async fn answered(apps: usize) -> Fixture {
    let fixture = fixture::fixture(apps).await;
    for poll in 0..30 {
        fixture.answer(1.0 + f64::from(poll) / 10.0);
        advance(Duration::from_secs(60)).await;
    }
    fixture.answer(1.0);
    fixture
}

/// The overview's first sentence, a little later.
async fn says(fixture: &Fixture) -> String {
    advance(Duration::from_secs(5)).await;
    let page = get(&site(&fixture.source, ""), "/", "");
    let (_, rest) = page.split_once("role=\"status\">").unwrap();
    rest.split_once("</p>").unwrap().0.to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_reports_whether_the_numbers_can_be_trusted() {
    let fixture = fixture::fixture(3).await;
    assert!(says(&fixture).await.contains("Nothing has been polled yet"));
    fixture.answer(1.0);
    assert_eq!(
        says(&fixture).await,
        "<strong>All numbers can be trusted</strong>: 3 apps, every resource fresh."
    );
    fixture.fail("timeout", "no reply", |key| key.owner.app.ends_with("app-1"));
    assert_eq!(
        says(&fixture).await,
        "<strong>Some numbers cannot be trusted</strong>: those of 1 of 3 apps."
    );
}

#[tokio::test(start_paused = true)]
async fn an_app_that_is_unwell_does_not_make_its_numbers_doubtful() {
    let broken = |body: String| body.replace(r#""status":"Ready""#, r#""status":"build_error""#);
    let (fixture, alone) = (fixture::fixture(2).await, fixture::fixture(1).await);
    fixture.answer_with(1.0, broken);
    alone.answer_with(1.0, broken);
    assert!(texts(&get(&site(&alone.source, ""), "/", "")).contains("1 of 1 app is unhealthy"));
    let page = async || {
        advance(Duration::from_secs(5)).await;
        get(&site(&fixture.source, ""), "/", "")
    };
    assert!(says(&fixture).await.contains("All numbers can be trusted"));
    let unwell = page().await;
    assert!(unwell.contains("<title>2 apps unhealthy · pds-exporter</title>"), "{unwell}");
    assert!(texts(&unwell).contains("2 of 2 apps are unhealthy"), "{unwell}");
    let summary = fixture.source.status().summary.clone();
    assert_eq!((summary.verdict, summary.apps.problem, summary.untrusted), (Verdict::Ok, 2, 0));
    let app = get(&site(&fixture.source, ""), "/apps/p-00000000/p-00000000-app-0", "");
    assert!(texts(&app).contains("Its numbers can be trusted."), "{app}");
    fixture.answer(1.0);
    assert!(texts(&page().await).contains("2 apps are healthy"));
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_reports_why_the_service_sends_nothing() {
    for (class, what) in [
        ("connect", "The service cannot be reached (api.example.com:443)"),
        ("timeout", "Requests to the service time out"),
        ("500", "The service returns errors (500)"),
        ("decode", "Replies do not match the interface"),
        ("3xx", "The service returns a redirect"),
        ("credentials", "The default token cannot be used"),
        ("401", "The service refuses the default token (401)"),
        ("unauthorized_paused", "The service refuses the default token"),
        ("429", "The service throttles the default token (429)"),
        ("paused", "The service throttles the default token"),
    ] {
        let fixture = fixture::fixture(3).await;
        fixture.answer(1.0);
        advance(Duration::from_secs(60)).await;
        fixture.fail(class, "what it said", |_| true);
        let said = says(&fixture).await;
        let wanted = format!(
            "<strong>{what} since 03:01 UTC: 3 apps and 1 project</strong> (<time datetime=\"2026-03-01T03:00:00Z\" \
             data-relative=\"ago\" title=\"2026-03-01 03:00:00 UTC\">65 s ago</time>).\
             <span class=\"reason\">what it said</span><span class=\"action\">"
        );
        assert!(said.starts_with(&wanted), "{class}: {said}");
        let site = site(&fixture.source, "");
        let json = get(&site, "/api/v1/status", "");
        assert!(json.contains("\"state\":\"down\",\"last_success\""), "{class}: {json}");
        for path in ["/", "/apps/p-00000000/p-00000000-app-0"] {
            let page = texts(&get(&site, path, ""));
            assert!(!page.contains("_paused") && !page.contains("app's page"), "{class}: {page}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_reports_counters_that_stand_still_and_clocks_that_differ() {
    let fixture = fixture::fixture(3).await;
    fixture.answer(1.0);
    fixture.context.telemetry.clock_skew(14.6);
    fixture.count_until(0).await;
    let reasons = async || {
        advance(Duration::from_secs(5)).await;
        let status = fixture.source.status();
        status.summary.reasons.iter().map(|reason| reason.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(reasons().await, [""; 0]);
    let still = "Counters stand still, because a clock was set back or poll.settle was raised: p-00000000-app-0, p-00000000-app-1 and p-00000000-app-2".to_owned();
    fixture.count_until(-3600).await;
    assert_eq!(reasons().await.concat(), still);
    assert_eq!(says(&fixture).await, "<strong>The numbers of all 3 apps cannot be trusted</strong>.");
    fixture.count_until(0).await;
    fixture.context.telemetry.clock_skew(3599.7);
    assert_eq!(
        reasons().await,
        [
            "The clocks of the service and of this machine differ: the service's is 1 h ahead of this machine's"
        ]
    );
    assert_eq!(
        says(&fixture).await,
        "<strong>Something needs attention</strong>; no number is known to be wrong."
    );
    fixture.context.telemetry.clock_skew(-3600.2);
    fixture.count_until(-3600).await;
    let clocks =
        "The clocks of the service and of this machine differ: the service's is 1 h behind this machine's";
    assert_eq!(reasons().await, [still, clocks.to_owned()]);
    fixture.count_until(0).await;
    fixture.fail("clock", "an hour off", |key| key.owner.app.ends_with("-0"));
    assert_eq!(
        reasons().await,
        ["The clocks of the service and of this machine disagree about the requested time since 03:00 UTC: \
          the service's is 1 h behind this machine's; p-00000000-app-0"]
    );
}

#[tokio::test(start_paused = true)]
async fn six_hundred_apps_are_a_small_page() {
    let fixture = fixture::fixture(600).await;
    for _ in 0..5 {
        fixture.answer(1.0);
        advance(Duration::from_secs(60)).await;
    }
    let page = get(&site(&fixture.source, ""), "/", "sort=p95");
    assert!(page.len() < 300_000, "{} bytes", page.len());
    assert!(page.contains("Page 1 of 12") && page.contains("rel=\"next\" href=\"/?sort=p95&amp;page=2\""));
    assert_eq!(page.matches("<a class=\"app\"").count(), 50);
}

#[tokio::test(start_paused = true)]
async fn hostile_names_do_nothing() {
    let fixture = fixture::with_apps(&[(HOSTILE, HOSTILE)]).await;
    fixture.answer(1.0);
    fixture.fail("timeout", HOSTILE, |_| true);
    let site = site(&fixture.source, "");
    let app = Links::new("", "").app(HOSTILE, HOSTILE);
    let filter = format!("name={}&project={}", encode(HOSTILE), encode(HOSTILE));
    for (path, query) in [("/", &filter[..]), (&app[..], ""), ("/metrics-catalogue", "")] {
        let page = get(&site, path, query);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{path}");
        assert!(!page.contains("<script>"), "{path}");
        assert_eq!(
            page.matches("<script src=").count(),
            page.matches("<script").count(),
            "{path}: none but ours"
        );
        assert!(!page.contains(" style=") && !page.contains(" onload="), "{path}: nothing inline");
    }
    let Some(Rendered::NoPage(page)) = site.respond("/apps/%3Cscript%3E/%22", "") else {
        panic!("there is no such app")
    };
    assert!(!page.contains("<script>"));
}

#[tokio::test(start_paused = true)]
async fn all_links_stay_behind_the_prefix_and_lead_somewhere() {
    let fixture = answered(60).await;
    let site = site(&fixture.source, "/behind/a/proxy/");
    for path in ["/", "/apps/p-00000000/p-00000000-app-0", "/config", "/metrics-catalogue"] {
        let page = get(&site, path, "");
        let parts = page.split(['"', '>']);
        let mut attribute = "";
        for part in parts {
            if attribute.ends_with("href=") || attribute.ends_with("src=") || attribute.ends_with("action=") {
                let link = part.replace("&amp;", "&");
                if !link.starts_with('#') && link.split('?').next() != Some("/behind/a/proxy/metrics") {
                    let inside =
                        link.strip_prefix("/behind/a/proxy").unwrap_or_else(|| panic!("{path}: {link}"));
                    let inside = inside.split('#').next().unwrap();
                    let (to, query) = inside.split_once('?').unwrap_or((inside, ""));
                    get(&site, to, query);
                }
            }
            attribute = part;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_page_keeps_its_bytes_and_its_etag() {
    let fixture = answered(2).await;
    let site = site(&fixture.source, "");
    let (page, json) = (get(&site, "/", ""), get(&site, "/api/v1/status", ""));
    advance(Duration::from_secs(2)).await;
    assert_eq!(get(&site, "/", ""), page, "ages are told in steps");
    advance(Duration::from_secs(20)).await;
    assert_ne!(get(&site, "/", ""), page);
    assert_eq!(get(&site, "/api/v1/status", ""), json, "the model never ages");
}

#[tokio::test(start_paused = true)]
async fn a_row_has_all_columns_of_an_app() {
    let fixture = fixture::fixture(1).await;
    fixture.answer(1.0);
    advance(Duration::from_secs(5)).await;
    let page = get(&site(&fixture.source, ""), "/", "");
    let (_, row) = page.split_once("<tbody role=\"rowgroup\">").unwrap();
    let row = row.split_once("</tr>").unwrap().0;
    assert_eq!(
        texts(row),
        "✓ ok ready ranker p-00000000-app-0 in p-00000000 ✓ settings fresh 5 s ✓ response time fresh 5 s ✓ run execution time fresh 5 s \
         304 40 ms 210 ms 800 ms 1–8 AMPERE_A10 $1.10 none"
    );
}

#[tokio::test(start_paused = true)]
async fn a_row_draws_how_p95_and_requests_went_of_late() {
    let fixture = answered(1).await;
    advance(Duration::from_secs(5)).await;
    let page = get(&site(&fixture.source, ""), "/", "");
    assert!(!page.contains("class=\"\""), "nothing is sent that says nothing");
    let cell = |name: &str| {
        let (_, rest) = page.split_once(&format!(" data-name=\"{name}\">")).unwrap();
        rest.split_once("</td>").unwrap().0
    };
    for (name, label, value) in
        [("p95", "recent p95", "210 ms"), ("Requests/min", "recent Requests/min", "304")]
    {
        let cell = cell(name);
        assert_eq!(cell.matches("<svg class=\"sparkline\"").count(), 1, "{cell}");
        assert!(cell.contains(&format!("aria-label=\"{label}\"")) && cell.contains(value), "{cell}");
        let line = cell.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(line.split_whitespace().count() >= 30, "{line}");
    }
    assert!(!cell("p50").contains("<svg"), "the others have none");
}

#[tokio::test(start_paused = true)]
async fn the_header_shows_the_health_of_the_exporter() {
    let fixture = answered(2).await;
    let telemetry = &fixture.context.telemetry;
    let facts = || {
        let page = get(&site(&fixture.source, ""), "/", "");
        assert!(page.contains(&format!("<span class=\"version\">{}</span>", env!("CARGO_PKG_VERSION"))));
        let (_, list) = page.split_once("<dl class=\"facts\"").unwrap();
        texts(list.split_once("</dl>").unwrap().0)
    };
    fixture.token("default", |facts| facts.expires = Some("2026-03-03T04:00:00Z".parse().unwrap()));
    telemetry.poll_lag(Some(Duration::ZERO));
    let due = tokio::time::Instant::now() + Duration::from_secs(45);
    fixture.plan.targets.iter().for_each(|target| target.progress.lock().due = Some(due));
    advance(Duration::from_secs(5)).await;
    assert_eq!(
        facts(),
        "Service https://api.example.com/ last success 5 s ago \
         Requests sent 9 / min no failures \
         Next poll in 40 s polls are on schedule \
         Configuration active loaded 30 min ago \
         Token ▲ expires in 2 d 1 service account \
         Up 30 min since 2026-03-01 03:00:00 UTC"
    );
    fixture.fail("timeout", "no reply", |key| key.resource == get_app::RESOURCE);
    fixture.token("default", |facts| facts.readable = Some(false));
    telemetry.config_loaded(None);
    telemetry.poll_lag(Some(Duration::from_secs(12)));
    advance(Duration::from_secs(60)).await;
    assert_eq!(
        facts(),
        "Service ✕ https://api.example.com/ last success 65 s ago \
         Requests sent ▲ 9.5 / min 2 resources failing now \
         Next poll ▲ now the last started 12 s late \
         Configuration ▲ last reload refused loaded 31 min ago \
         Token ✕ unusable The default token cannot be used \
         Up 31 min since 2026-03-01 03:00:00 UTC"
    );
    fixture.token("default", |facts| facts.readable = Some(true));
    fixture.fail("401", "no", |_| true);
    advance(Duration::from_secs(5)).await;
    assert!(facts().contains("Token ✕ refused"), "{}", facts());
}

#[tokio::test(start_paused = true)]
async fn the_header_claims_no_schedule_while_nothing_is_polled() {
    let fixture = answered(1).await;
    for (lag, says) in
        [(None, "no polls"), (Some(Duration::ZERO), "polls are on schedule"), (None, "no polls")]
    {
        fixture.context.telemetry.poll_lag(lag);
        advance(Duration::from_secs(2)).await;
        let page = get(&site(&fixture.source, ""), "/", "");
        let (_, list) = page.split_once("<dl class=\"facts\"").unwrap();
        let facts = texts(list.split_once("</dl>").unwrap().0);
        assert!(facts.contains(says), "{facts}");
    }
}
