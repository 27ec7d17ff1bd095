//! Since when a reason holds, which leads, and which other reasons it explains.

use pds_interface::Cadence;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_reason_has_the_time_of_its_own_cause() {
    let fixture = answered().await;
    fixture.fail("timeout", "no reply", of_project("p-1"));
    advance(Duration::from_secs(600)).await;
    fixture.answer_only(|key| &*key.owner.project != "p-1");
    fixture.count_until(0).await;
    fixture.fail("401", "no", of_project("p-1"));
    let (_, text, _) = only(&fixture).await;
    assert_eq!(text, "The service refuses the token of p-1 (401) since 03:11 UTC: 2 apps and 1 project");
    fixture.fail("unauthorized_paused", "not sent", of_project("p-1"));
    assert_eq!(only(&fixture).await.1.replace(" (401)", ""), text.replace(" (401)", ""));
    let token = |name: &str, at: &str| fixture.token(name, |facts| facts.expires = Some(at.parse().unwrap()));
    token("p-1", "2026-03-02T00:00:00Z");
    token("p-2", "2026-03-05T00:00:00Z");
    let texts: Vec<String> = reasons(&fixture).await.into_iter().map(|reason| reason.text).collect();
    assert_eq!(texts[1..], ["The token of p-2 will expire at 2026-03-05 00:00:00 UTC"], "p-1's is refused");
    token("p-1", "2026-03-01T03:05:00Z");
    let text = reasons(&fixture).await[0].text.clone();
    assert!(text.starts_with("The token of p-1 expired at 2026-03-01 03:05:00 UTC"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_last_cause_leads_and_a_refused_token_is_one() {
    let fixture = answered().await;
    fixture.fail("502", "bad gateway", |_| true);
    advance(Duration::from_secs(120)).await;
    for (class, code) in [("429", "throttled"), ("401", "token_refused")] {
        fixture.fail(class, "no", |key| key.resource.polled().cadence == Cadence::Metrics);
        assert_eq!(reasons(&fixture).await[0].code, code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cause_that_concerns_a_few_does_not_lead() {
    let fixture = answered().await;
    fixture.fail("502", "bad gateway", |_| true);
    advance(Duration::from_secs(600)).await;
    fixture.fail("429", "no", |key| {
        &*key.owner.app == "p-2-app-4" && key.resource.polled().cadence == Cadence::Metrics
    });
    let codes: Vec<_> = reasons(&fixture).await.into_iter().map(|reason| reason.code).collect();
    assert_eq!(codes, ["service_error", "throttled"]);
}

#[tokio::test(start_paused = true)]
async fn ignored_ranges_explain_only_what_is_behind_for_their_token() {
    let fixture = answered().await;
    assert!(fixture.plan.client.account("p-1").range_ignored("another range"));
    fixture.token("p-1", |facts| facts.readable = Some(true));
    advance(Duration::from_secs(300)).await;
    fixture.answer(1.0);
    fixture.count_until(0).await;
    fixture.count_until_of(180, |key| &*key.owner.project == "p-1").await;
    let codes = |all: &[Reason]| all.iter().map(|reason| reason.code.to_string()).collect::<Vec<_>>();
    assert_eq!(codes(&reasons(&fixture).await), ["range_ignored"]);
    fixture.count_until_of(180, |key| &*key.owner.project == "p-2").await;
    let all = reasons(&fixture).await;
    assert_eq!(codes(&all), ["range_ignored", "counters_behind"]);
    assert_eq!(all[1].count, 4, "all that its link shows");
}
