//! Pages when little is known, or when something is wrong.

use tokio::time::{Duration, advance};

use crate::status::source::Refused;
use crate::status::tests::fixture::{self, Fixture};
use pds_client::{TokenFacts, TokenSource};
use pds_core::secret::Secret;
use pds_interface::response_time;
use pds_telemetry::{AuditResult, Difference};

use super::super::Rendered;
use super::{answered, get, site, texts};

const APP: &str = "/apps/p-00000000/p-00000000-app-0";

#[tokio::test(start_paused = true)]
async fn nothing_known_is_never_no_request() {
    let fixture = fixture::fixture(1).await;
    assert!(get(&site(&fixture.source, ""), APP, "").contains("Nothing is known about the last 5m."));
    fixture.answer(1.0);
    fixture.fail("timeout", "no reply", |_| true);
    // The values go stale.
    advance(Duration::from_secs(3600)).await;
    let site = site(&fixture.source, "");
    for (path, query) in [(APP, ""), ("/", ""), ("/api/v1/status", "")] {
        let page = get(&site, path, query).to_lowercase();
        assert!(!page.contains("no request") && !page.contains("no failures"), "{path}");
    }
    let page = get(&site, APP, "");
    assert_eq!(page.matches("Nothing is known about the last 5m.").count(), 2, "{page}");
    assert!(get(&site, "/api/v1/status", "").contains("\"requests_per_minute\":null"));
}

#[tokio::test(start_paused = true)]
async fn a_distribution_that_the_configuration_leaves_out_is_not_missed_from_the_service() {
    let without = |mut config: pds_config::Config| {
        config.poll.within_ratio = false;
        config
    };
    let fixture = fixture::with_config(&[("p-00000000", "p-00000000-app-0")], without).await;
    fixture.answer_with(1.0, |body| body.replace("\"distribution\"", "\"left_out\""));
    let page = get(&site(&fixture.source, ""), APP, "");
    assert!(page.contains("poll.within_ratio = false leaves the distribution out."), "{page}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_a_minute_shows_at_once_and_is_over_at_once() {
    let fixture = answered(2).await;
    let says = || texts(&get(&site(&fixture.source, ""), "/", ""));
    assert!(says().contains("All numbers can be trusted"));
    fixture.fail("timeout", "no reply", |_| true);
    advance(Duration::from_secs(2)).await;
    assert!(says().contains("Requests to the service time out") && !says().contains("no failures"));
    fixture.answer(1.0);
    advance(Duration::from_secs(2)).await;
    assert!(says().contains("All numbers can be trusted"), "{}", says());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_expired_long_ago_shows_its_expiry() {
    let fixture = answered(1).await;
    let expired = "2026-02-26T03:00:00Z".parse().unwrap();
    fixture.token("default", |facts| facts.expires = Some(expired));
    advance(Duration::from_secs(5)).await;
    let page = get(&site(&fixture.source, ""), "/", "");
    let said = texts(&page);
    assert!(said.contains("Token ✕ expired 3 d ago"), "{said}");
    assert!(said.contains("The default token expired at 2026-02-26 03:00:00 UTC"), "{said}");
    assert!(page.contains("class=\"banner problem\""), "and the numbers are not called good");
}

#[tokio::test(start_paused = true)]
async fn the_token_tile_agrees_with_the_reason() {
    let expires = "2026-03-03T04:00:00Z".parse().unwrap();
    let inline = |_: &str| Some(TokenSource::Inline(Secret::new("two words")));
    let (file, inline) = (answered(1).await, fixture::with_tokens(&[("p-1", "p-1-a")], inline).await);
    let tile = |fixture: &Fixture| {
        let page = get(&site(&fixture.source, ""), "/", "");
        let (_, tile) = page.split_once("<dt>Token</dt>").unwrap();
        texts(tile.split_once("</div>").unwrap().0)
    };
    let (expires, accepted, readable) = (Some(expires), Some(true), Some(false));
    file.token("default", |facts| *facts = TokenFacts { expires, accepted, readable, ..*facts });
    advance(Duration::from_secs(5)).await;
    let kept = "▲ expires in 2 d The default token cannot be used, so the last one read stays in use";
    assert_eq!(tile(&file), kept);
    file.fail("credentials", "no such file", |_| true);
    advance(Duration::from_secs(5)).await;
    assert!(tile(&file).starts_with("✕ unusable The default token cannot be used since "), "{}", tile(&file));
    assert_eq!(tile(&inline), "✕ unusable The token of p-1 cannot be used", "it has no file");
}

#[tokio::test(start_paused = true)]
async fn the_configuration_page_shows_why_a_reload_was_refused_until_one_succeeds() {
    let fixture = answered(1).await;
    let says = || texts(&get(&site(&fixture.source, ""), "/config", ""));
    assert!(!says().contains("Refused"));
    let problems = "poll.interval: \"-1\" is not a duration".to_owned();
    fixture.source.reloaded(Some(Refused { at: fixture.context.clock.now(), problems }));
    fixture.context.telemetry.config_loaded(None);
    advance(Duration::from_secs(65)).await;
    let said = says();
    assert!(said.contains("Refused 65 s ago : poll.interval: &quot;-1&quot; is not a duration"), "{said}");
    fixture.source.reloaded(None);
    assert!(!says().contains("poll.interval"));
}

#[tokio::test(start_paused = true)]
async fn the_page_of_a_missing_app_has_the_layout_of_the_others() {
    let fixture = answered(1).await;
    let Some(Rendered::NoPage(page)) = site(&fixture.source, "/x").respond("/apps/p/none", "") else {
        panic!("there is no such app")
    };
    assert!(page.contains("<h1>No such app</h1>") && page.contains("aria-label=\"Pages\""));
    assert!(page.contains("href=\"/x/\""));
}

#[tokio::test(start_paused = true)]
async fn audits_are_the_evidence_of_the_verdict_and_a_difference_is_a_reason() {
    let fixture = answered(2).await;
    let banner = async || {
        advance(Duration::from_secs(2)).await;
        let page = get(&site(&fixture.source, ""), "/", "");
        texts(page.split_once("aria-label=\"Verdict\"").unwrap().1.split_once("</section>").unwrap().0)
    };
    assert!(!banner().await.contains("checked"), "nothing was checked yet");
    let telemetry = &fixture.context.telemetry;
    (0..9_120).for_each(|_| telemetry.audited(response_time::RESOURCE, AuditResult::Equal));
    assert!(banner().await.contains("9,120 ranges checked, all equal."), "{}", banner().await);
    fixture.fail("timeout", "no reply", |key| key.owner.app.ends_with("app-1"));
    assert!(!banner().await.contains("checked"), "under numbers that cannot be trusted, it would calm");
    fixture.answer(1.0);
    telemetry.audited(response_time::RESOURCE, AuditResult::Different);
    telemetry.audit_differs(
        "default",
        response_time::RESOURCE,
        Difference {
            what: "the service leaves out the end of ranges".into(),
            remedy: "set accounting.range_end = \"exclusive\"".into(),
            target: "response_time of p-1/a".to_owned(),
        },
    );
    let said = banner().await;
    for part in [
        "9,121 ranges checked, 1 different.",
        "Some numbers cannot be trusted",
        "An audit found ranges that do not add up the service leaves out the end of ranges; set accounting.range_end",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_the_status_is_a_document_of_json() {
    let fixture = fixture::fixture(1).await;
    let schema = get(&site(&fixture.source, ""), "/api/v1/status/schema", "");
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["title"], "Status");
}
