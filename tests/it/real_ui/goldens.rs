//! Pictures of the pages, taken in paused time and so equal each time, kept beside this file and compared.
//! `UPDATE_GOLDEN=1` retakes them; look at them before you commit them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pds_client::{Observer as _, TokenFacts};
use pds_core::clock::Clock;
use pds_exporter::pages::{Asset, PagesConfig, Rendered, StatusPages};
use pds_exporter::poll::{Context, Plan};
use pds_exporter::status::Source;
use pds_interface::{Cadence, response_time};
use pds_simulator::{Fault, Settings, World};
use serde_json::{Value, json};

use crate::golden::is_updating;
use crate::rig::{self, Configuration, FaultExt as _};

use super::look;

/// Minutes of polls before a picture is taken.
const MINUTES: u64 = 50;
/// The service's name on the pages, whose port differs from run to run.
const SERVICE: &str = "https://api.example.com";

#[tokio::test(start_paused = true)]
async fn pages_look_as_they_did() {
    let update = if is_updating() { "yes" } else { "no" };
    show("goldens", None, update).await;
}

/// Not a test: `tests/pictures` runs it for the pictures of the README.
#[tokio::test(start_paused = true)]
#[ignore = "takes the pictures of the README; run by tests/pictures"]
async fn pictures() {
    show("pictures", Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/pictures")), "no").await;
}

/// Lets the browser look at the pages as the part `part` of the script.
async fn show(part: &'static str, folder: Option<&Path>, update: &'static str) {
    let pages = pages().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pages.to_string()).unwrap();
    let file = file.path().to_str().unwrap();
    // The browser takes its time, which is not paused.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(look(part, "", folder, &[("PAGES", file), ("UPDATE", update)]));
        });
    });
}

/// All that a browser loads, by its path and query.
async fn pages() -> Value {
    let start: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let clock = Clock::starting_at(start);
    let world = World::new(Settings::default(), clock.clone());
    let service = rig::serve(&world).await;
    let text = Configuration::new(&world, &service)
        .api("max_retries = 0\nmax_requests_per_second = 0\n")
        .tables("[web]\nprometheus_url = \"https://prometheus.example.com\"\ngrafana_url = \"https://grafana.example.com\"")
        .text();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let loaded = pds_config::load(file.path(), []).unwrap();
    let (context, _committer) = rig::open(None, &clock).await;
    let plan = Arc::new(rig::plan(loaded.config, &context, None));
    context.telemetry.config_loaded(Some(clock.now()));
    let source = Source::new(context.clone(), Arc::clone(&plan), loaded.explained);
    poll(&world, &context, &plan, &source).await;
    let known = context.telemetry.snapshot().tokens;
    for (account, hours) in plan.client.accounts().zip([700, 90, 1_000]) {
        let expires = start.checked_add(SignedDuration::from_hours(hours)).ok();
        let facts = TokenFacts { expires, ..known[account.name()] };
        context.telemetry.token(account.name(), Some(facts));
    }
    let site = StatusPages::new(source, pds_telemetry::catalogue::catalogue(), PagesConfig::default());
    let (project, apps) = world.projects().remove(0);
    let [app, failing] = [0, 1].map(|index: usize| format!("/apps/{project}/{}", apps[index]));
    let mut pages = serde_json::Map::new();
    for path in ["/", &app, &failing, "/config", "/metrics-catalogue"] {
        let Some(Rendered::Page(body)) = site.respond(path, "") else { panic!("{path}") };
        let body = body.replace(&service, SERVICE);
        for link in body.split('"') {
            if let Some(asset) = link.strip_prefix("/static/").and_then(Asset::named) {
                let asset = json!({ "type": asset.content_type, "body": asset.content });
                pages.insert(link.to_owned(), asset);
            }
        }
        pages.insert(path.to_owned(), json!({ "type": "text/html", "body": body }));
    }
    json!({ "app": app, "failing": failing, "pages": pages, "now": Timestamp::as_millisecond(clock.now()) })
}

/// Polls everything each minute; one app gets a new build, and another fails for a while and again at the end.
async fn poll(world: &World, context: &Context, plan: &Plan, source: &Source) {
    let (_, apps) = world.projects().remove(0);
    let build = || Fault::value("latestReadyBuildId", "\"b-2041\"").of_app(&apps[0]);
    let fails = |app: usize| Fault::status(503).on(response_time::RESOURCE).of_app(&apps[app]);
    for minute in 0..MINUTES {
        match minute {
            20 => world.faults().set([fails(0)]),
            24 => world.faults().set([build()]),
            48 => world.faults().set([build(), fails(1)]),
            _ => {}
        }
        let all = minute % 5 == 4 || minute == 0;
        rig::poll(context, plan, |target| all || target.endpoint.cadence == Cadence::Metrics).await;
        drop(source.status());
        // The last polls were a moment ago.
        let seconds = if minute + 1 < MINUTES { 60 } else { 7 };
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }
}
