//! How things are found: chips, groups, searches.

use std::num::NonZeroU32;

use crate::status::tests::fixture;
use pds_config::{Explained, Origin, Shard};

use super::{Rendered, StatusPages, answered, catalogue, get, site, texts};

#[tokio::test(start_paused = true)]
async fn chips_count_the_apps_of_each_state_and_show_only_those() {
    let fixture = answered(30).await;
    fixture.fail("timeout", "no reply", |key| key.owner.app.ends_with("app-7"));
    fixture.source.set_plan(fixture.plan.clone(), Vec::new());
    let site = site(&fixture.source, "");
    let page = get(&site, "/", "");
    let (_, chips) = page.split_once("<nav class=\"chips\"").unwrap();
    let chips = chips.split_once("</nav>").unwrap().0;
    assert_eq!(texts(chips), "all 30 ✕ problem 1 ✓ ok 29");
    assert!(chips.contains("href=\"/?state=problem\"") && chips.contains("href=\"/\" aria-current=\"true\""));
    let problems = get(&site, "/", "state=problem");
    assert_eq!(problems.matches("<a class=\"app\"").count(), 1);
    assert!(problems.contains("1 app of 30"));
    let wrong = get(&site, "/", "state=sleepy");
    assert!(wrong.contains("Not recognised and ignored: <code>state=sleepy</code>"));
}

#[tokio::test(start_paused = true)]
async fn a_page_beyond_the_last_leads_back_to_that() {
    let fixture = answered(60).await;
    let page = get(&site(&fixture.source, ""), "/", "page=9");
    assert!(page.contains("There is no page 9. <a href=\"/?page=2\">Last page</a>"), "{page}");
    assert!(page.contains("<a rel=\"prev\" href=\"/?page=2\">Previous</a>"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn apps_are_grouped_by_project_on_request() {
    let fixture = answered(45).await;
    let site = site(&fixture.source, "");
    assert!(!get(&site, "/", "").contains("<tr class=\"group\""));
    let page = get(&site, "/", "group=project");
    assert_eq!(page.matches("<tr class=\"group\"").count(), 3);
    assert!(page.contains("name=\"group\" value=\"project\" checked"));
}

#[tokio::test(start_paused = true)]
async fn the_legend_names_every_sign_of_freshness() {
    let fixture = answered(1).await;
    let said = texts(&get(&site(&fixture.source, ""), "/", ""));
    for sign in ["✓ fresh: the last poll succeeded", "○ waiting:", "▲ late:", "✕ failing:", "✕ stale:"]
    {
        assert!(said.contains(sign), "{sign}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_of_any_length_takes_one_line_and_is_whole_in_its_tooltip() {
    let name = "a".repeat(600);
    let fixture = fixture::with_apps(&[("p-1", &name)]).await;
    let page = get(&site(&fixture.source, ""), "/", "");
    assert!(page.contains(&format!("title=\"{name}\"")));
    let style = super::super::links::STYLE.content;
    assert!(style.contains(
        ".line, .apps .app, .title h1, .projects th a { overflow: hidden; text-overflow: ellipsis; white-space: nowrap;"
    ));
}

#[tokio::test(start_paused = true)]
async fn a_shard_names_itself_and_the_shard_that_polls_another_app() {
    let apps = ["p-abc12345-ranker", "p-abc12345-embed"].map(|app| ("p-abc12345", app));
    let (ranker, embed) = ("/apps/p-abc12345/p-abc12345-ranker", "/apps/p-abc12345/p-abc12345-embed");
    let shard = async |index: u32, count: u32| {
        let shard = Shard { index, count: NonZeroU32::new(count).unwrap() };
        let fixture = fixture::with_config(&apps, |config| config.shard(shard)).await;
        fixture.answer(1.0);
        site(&fixture.source, "")
    };
    let missing = |site: &StatusPages, path: &str| match site.respond(path, "") {
        Some(Rendered::NoPage(page)) => texts(&page),
        other => panic!("{path}: {other:?}"),
    };

    let second = shard(1, 3).await;
    let page = texts(&get(&second, "/", ""));
    assert!(page.contains("Shard 1 of 3 counted from 0; the others poll the other apps"), "{page}");
    assert!(page.contains("All numbers can be trusted : 1 app, every resource fresh."), "{page}");
    assert!(get(&second, "/api/v1/status", "").contains("\"shard\":1,\"shards\":3,"));
    get(&second, ranker, "");
    let told = missing(&second, embed);
    assert!(told.contains("This is shard 1 of 3. If there is such an app, shard 2 polls it."), "{told}");
    // An id that belongs to this shard: no other one has it.
    let mine = Shard { index: 1, count: NonZeroU32::new(3).unwrap() };
    let own = (0..).map(|n| format!("app-{n}")).find(|app| mine.owns_app("p-abc12345", app)).unwrap();
    let told = missing(&second, &format!("/apps/p-abc12345/{own}"));
    assert!(told.contains("No such app") && !told.contains("This is shard"), "{told}");

    let first = shard(0, 3).await;
    let page = texts(&get(&first, "/", ""));
    for told in [
        "Shard 0 of 3",
        "No configured app belongs to this shard.",
        "All numbers can be trusted : this shard polls no app.",
    ] {
        assert!(page.contains(told), "{page}");
    }

    let only = shard(0, 1).await;
    assert!(!texts(&get(&only, "/", "")).contains("Shard "));
    assert!(!missing(&only, "/apps/p-abc12345/nothing").contains("This is shard"));
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_is_searched_and_a_query_says_more_than_its_family() {
    let fixture = answered(1).await;
    let site = site(&fixture.source, "");
    let page = get(&site, "/metrics-catalogue", "");
    assert!(!page.contains("..</td>"), "one full stop ends a help text");
    let rows = page.matches("<tr id=\"pds_").count();
    let families: usize = catalogue().iter().map(|group| group.families.len()).sum();
    assert_eq!(rows, families);
    let queries: Vec<&str> =
        page.split("data-copy=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(queries.len() > families / 2, "{queries:?}");
    assert!(queries.iter().all(|query| query.contains(['(', ' '])), "{queries:?}");
    let found = get(&site, "/metrics-catalogue", "q=VOLUME");
    assert!(found.contains("<tr id=\"pds_project_volume_alert_threshold_enabled\""));
    assert!(found.matches("<tr id=\"pds_").count() < 4 && found.contains(" of "));
    assert!(get(&site, "/metrics-catalogue", "q=nothing+like+it").contains("No metric matches."));
}

#[tokio::test(start_paused = true)]
async fn the_configuration_folds_projects_shows_changes_alone_and_is_copied_as_toml() {
    let fixture = answered(1).await;
    let row = |key: &str, value: &str, origin| Explained {
        key: key.to_owned(),
        value: value.to_owned(),
        origin,
        variable: None,
        help: "".into(),
    };
    let explained = vec![
        row("--shard.index", "0", Origin::Default),
        row("poll.interval", "\"60s\"", Origin::Default),
        row("poll.settle", "\"1m\"", Origin::File),
        row("projects[0].id", "\"p-1\"", Origin::File),
        row("projects[0].apps", "[\"p-1-a\"]", Origin::File),
        row("projects[1].id", "\"p-2\"", Origin::File),
    ];
    fixture.source.set_plan(fixture.plan.clone(), explained);
    let site = site(&fixture.source, "");
    let page = get(&site, "/config", "");
    assert_eq!(page.matches("<details class=\"reply\" data-key=\"projects[").count(), 2);
    let said = texts(&page);
    assert!(said.contains("&quot;p-1&quot; projects[0], 2 keys"), "{said}");
    let toml = "[poll]\nsettle = &quot;1m&quot;\n\n[[projects]]\nid = &quot;p-1&quot;\napps = [&quot;p-1-a&quot;]\n\n[[projects]]\nid = &quot;p-2&quot;";
    assert!(page.contains(toml), "{page}");
    let changed = get(&site, "/config", "changed=1");
    assert!(!changed.contains("<code>poll.interval</code>") && changed.contains("<code>poll.settle</code>"));
    assert!(changed.contains("value=\"1\" checked"));
}
