//! Pages about the last hours.

use tokio::time::{Duration, advance};

use crate::status::Refused;
use crate::status::tests::fixture::{self, Fixture};
use pds_client::TokenSource;
use pds_core::secret::Secret;
use pds_diagnosis::{Incident, IncidentKind};

use super::{get, site, texts};

/// Reads the model each minute, as the exporter does, after `each`.
async fn minutes(fixture: &Fixture, minutes: u32, each: impl AsyncFn()) {
    for _ in 0..minutes {
        advance(Duration::from_secs(60)).await;
        each().await;
        drop(fixture.source.look());
    }
}

/// The kind, beginning and end of each, and its detail.
fn told(incidents: &[Incident]) -> Vec<String> {
    let minute = |at: jiff::Timestamp| at.strftime("%H:%M").to_string();
    let text = |it: &Incident| {
        let end = it.end.map(minute).unwrap_or_default();
        format!("{} {}-{end} {}", it.kind.as_str(), minute(it.start), it.detail.as_deref().unwrap_or("-"))
    };
    incidents.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn outage_catch_up_restart_reload_and_build_are_visible_at_once() {
    let fixture = fixture::fixture(2).await;
    let answered = async |behind| {
        fixture.answer(1.0);
        fixture.count_until(behind).await;
    };
    let built = async || {
        let build = |id: &str| format!("\"latestReadyBuildId\":\"{id}\"");
        fixture.answer_with(1.0, |body| body.replace(&build("b-31"), &build("b-32")));
    };
    minutes(&fixture, 10, async || answered(0).await).await;
    let site = site(&fixture.source, "");
    let quiet = get(&site, "/", "");
    assert!(texts(&quiet).contains("No outage of the service since the start at 03:00 UTC."), "{quiet}");
    assert!(!quiet.contains("<section class=\"timeline\""), "a line without facts takes no room");
    fixture.fail("connect", "connection refused", |_| true);
    minutes(&fixture, 20, async || ()).await;
    minutes(&fixture, 3, async || answered(20 * 60).await).await;
    minutes(&fixture, 1, async || answered(0).await).await;
    fixture.source.reloaded(None);
    let at = fixture.context.clock.now();
    fixture.source.reloaded(Some(Refused { at, problems: "unknown key".to_owned() }));
    minutes(&fixture, 2, built).await;

    let status = fixture.source.status();
    let expected = [
        "restart 03:00-03:00 -",
        "outage 03:10-03:30 the service cannot be reached",
        "catch-up 03:31-03:33 -",
        "reload 03:34-03:34 -",
        "reload refused 03:34-03:34 -",
    ];
    assert_eq!(told(&status.service.incidents), expected);
    assert_eq!(told(&status.apps[0].incidents), ["new build 03:35-03:35 b-32"]);
    assert_eq!(told(&status.exporter.tokens[0].incidents), [""; 0], "it fares as the service does");

    let timeline = |path: &str| {
        let page = get(&site, path, "");
        let (_, rest) = page.split_once("<section class=\"timeline\"").unwrap();
        rest.split_once("</section>").unwrap().0.to_owned()
    };
    let (overview, app) = (timeline("/"), timeline("/apps/p-00000000/p-00000000-app-0"));
    let known = "viewBox=\"0 0 36 10\"";
    let all_known = "<rect class=\"known\" x=\"0\" width=\"36\"";
    assert!(
        overview.contains(known) && overview.contains(all_known),
        "the line begins at the start: {overview}"
    );
    assert!(texts(&overview).contains("03:10–03:30 outage : the service cannot be reached"), "{overview}");
    assert!(
        overview.contains("aria-label=\"Service: 03:00 restart; 03:10–03:30 outage: the service"),
        "{overview}"
    );
    assert!(texts(&app).contains("03:35 new build : b-32") && app.contains("class=\"problem\""), "{app}");

    advance(Duration::from_secs(7 * 3600)).await;
    drop(fixture.source.look());
    let incidents = &fixture.source.status().service.incidents;
    assert!(incidents.iter().all(|it| it.kind == IncidentKind::CatchUp && it.end.is_none()), "{incidents:?}");
}

#[tokio::test(start_paused = true)]
async fn an_incident_of_one_token_or_app_is_shown_only_there() {
    let apps = [("p-a", "p-a-1"), ("p-b", "p-b-1"), ("p-b", "p-b-2")];
    let token = |project: &str| (project == "p-a").then(|| TokenSource::Inline(Secret::new("u")));
    let fixture = fixture::with_tokens(&apps, token).await;
    fixture.answer(1.0);
    fixture.fail("401", "no", |key| &*key.owner.project == "p-a");
    fixture.fail("404", "no such app", |key| &*key.owner.app == "p-b-2");
    minutes(&fixture, 1, async || ()).await;
    let status = fixture.source.status();
    assert_eq!(told(&status.service.incidents), ["restart 03:00-03:00 -"]);
    let of_tokens: Vec<_> = status.exporter.tokens.iter().map(|it| (&*it.name, it.incidents.len())).collect();
    assert_eq!(of_tokens, [("p-a", 1), ("default", 0)]);
    let of_apps: Vec<usize> = status.apps.iter().map(|app| app.incidents.len()).collect();
    assert_eq!(of_apps, [0, 0, 1], "the first is told of by its token");
    let page = get(&site(&fixture.source, ""), "/", "");
    assert!(texts(&page).contains("since 03:00 outage , p-a : "), "{page}");
    assert!(page.contains("1 other token had none."), "{page}");
    advance(Duration::from_secs(2 * 86_400)).await;
    drop(fixture.source.look());
    let page = get(&site(&fixture.source, ""), "/", "");
    assert!(texts(&page).contains("since 2026-03-01 03:00 outage , p-a : "), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_token_without_room_for_its_line_is_not_called_well() {
    let fixture = fixture::with_many_tokens(13).await;
    fixture.answer(1.0);
    fixture.fail("401", "no", |key| &*key.owner.project != "p-12");
    minutes(&fixture, 1, async || ()).await;
    let page = get(&site(&fixture.source, ""), "/", "");
    assert_eq!(page.matches("<div class=\"line-of\">").count(), 6, "five, and the service");
    assert!(page.contains("<bdi>p-00</bdi>: <bdi>the service refuses the token</bdi>"), "{page}");
    assert!(
        page.contains(
            "7 more tokens had outages of their own; an app's page shows the outages of its token."
        ),
        "{page}"
    );
    assert!(page.contains("1 other token had none."), "{page}");
}

#[tokio::test(start_paused = true)]
async fn without_apps_the_page_shows_how_to_add_one() {
    let fixture = fixture::with_apps(&[]).await;
    let page = texts(&get(&site(&fixture.source, ""), "/", ""));
    assert!(page.contains("No app is configured. Add one to [[projects]] in the configuration"), "{page}");
    let one = fixture::fixture(1).await;
    one.answer(1.0);
    one.fail("timeout", "no reply", |key| key.resource.as_str() == "response_time");
    let page = texts(&get(&site(&one.source, ""), "/", "group=project"));
    assert!(page.contains("The numbers of the only app cannot be trusted"), "{page}");
    assert!(!page.contains("1 apps") && page.contains("p-00000000, 1 app"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_on_the_timeline_as_soon_as_the_page_reports_it() {
    let fixture = fixture::fixture(1).await;
    minutes(&fixture, 3, async || fixture.answer(1.0)).await;
    fixture.fail("connect", "connection refused", |_| true);
    advance(Duration::from_secs(5)).await;
    let page = texts(&get(&site(&fixture.source, ""), "/", ""));
    assert!(page.contains("The service cannot be reached"), "{page}");
    assert!(!page.contains("No outage") && page.contains("since 03:03 outage"), "{page}");
}
