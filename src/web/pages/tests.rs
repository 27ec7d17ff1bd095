//! The pages of a filled store.

use tokio::time::{Duration, Instant, advance};

use crate::catalogue::markdown::Group;
use crate::interface::{ENDPOINTS, Resource};
use crate::status::Source;
use crate::status::fixture::{self, Fixture, HOSTILE};

use super::{Reply, Site};

fn site(source: &Source, prefix: &str) -> Site {
    let groups = ENDPOINTS
        .iter()
        .map(|endpoint| Group { title: endpoint.spec().purpose, families: endpoint.families() })
        .collect();
    Site::new(source.clone(), groups, prefix)
}

fn get(site: &Site, path: &str, query: &str) -> String {
    match site.respond(path, query) {
        Reply::Page(text) | Reply::Json(text) => text,
        Reply::Asset(_, text) => text.to_owned(),
        other => panic!("{path}: {other:?}"),
    }
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

#[tokio::test(start_paused = true)]
async fn write_for_a_look() {
    let folder = std::path::Path::new("/tmp/site");
    let fixture = answered(45).await;
    fixture.fail("timeout", "GET https://api.example.com/v2/projects/p-00000000/apps/p-00000000-app-3 got no complete reply within 10s", |key| key.app.ends_with("app-3") && key.resource != Resource::App);
    advance(Duration::from_secs(12)).await;
    let site = site(&fixture.source, "");
    for (name, path, query) in [
        ("index.html", "/", ""),
        ("app.html", "/apps/p-00000000/p-00000000-app-3", ""),
        ("config.html", "/config", ""),
        ("metrics.html", "/metrics-catalogue", ""),
    ] {
        std::fs::create_dir_all(folder.join("static")).unwrap();
        let page = get(&site, path, query);
        for link in page.split('"').filter(|link| link.starts_with("/static/")) {
            std::fs::write(folder.join(&link[1..]), get(&site, link, "")).unwrap();
        }
        std::fs::write(folder.join(name), page).unwrap();
    }
    fixture.fail("connect", "connection refused", |_| true);
    advance(Duration::from_secs(600)).await;
    std::fs::write(folder.join("down.html"), get(&site, "/", "")).unwrap();
}
