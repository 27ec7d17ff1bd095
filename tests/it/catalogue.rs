//! Every documented family is on the page, and no other.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use pds_core::clock::Clock;
use pds_exposition::Family;
use pds_interface::{get_app, list_domains, response_time};
use pds_simulator::faults::Fault;
use pds_simulator::{Settings, World};

use crate::process::{DEADLINE, Exporter, http};
use crate::rig::{self, Configuration, FaultExt as _};

/// An exporter in `folder` that exposes every family: with an expiring token in a file, a state file, a web
/// configuration, and a service that misbehaves a little.
async fn exporter(folder: &Path) -> Exporter {
    let world = World::new(Settings::default(), Clock::system());
    let tables = "[poll]\ninterval = \"5s\"\nsettings_interval = \"10s\"\nsettle = \"1s\"\n[accounting]\nstep = \"1s\"";
    let config = Configuration::new(&world, &rig::serve(&world).await)
        .api("max_retries = 2\nmax_requests_per_second = 50\n")
        .tables(tables)
        .of_projects("objective = { threshold = \"1s\", share = 0.99 }\n")
        .expiring(Timestamp::now() + SignedDuration::from_hours(24))
        .tokens_in(folder)
        .write(folder);
    let (project, apps) = world.projects().swap_remove(0);
    world.faults().set([
        Fault::value("port", "\"12abc\"").on(get_app::RESOURCE).of_app(&apps[0]),
        Fault::status(500).on(list_domains::RESOURCE).times(1),
        Fault::status(429).on(response_time::RESOURCE).of_project(&project).times(4),
    ]);
    let web = folder.join("web.yml");
    std::fs::write(&web, "basic_auth_users: {}\n").unwrap();
    let web = web.display().to_string();
    let state = folder.join("state.log").display().to_string();
    Exporter::start(&["--config.file", &config, "--web.config.file", &web, "--state.path", &state])
}

#[test]
fn no_help_needs_an_escape() {
    let families = pds_telemetry::catalogue::catalogue().into_iter().flat_map(|group| group.families);
    for family in families {
        let help = [family.help, family.source].concat();
        assert!(!help.contains(['"', '\\', '\n']), "{}: {help}", family.name);
    }
}

/// The families that a page declares.
async fn families(exporter: &Exporter, accept: &str) -> BTreeSet<String> {
    let request = http().get(format!("{}/metrics", exporter.url)).header("accept", accept);
    let page = request.send().await.unwrap().text().await.unwrap();
    let declared = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    declared.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_documented_family_is_on_the_page_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let exporter = exporter(folder.path()).await;
    exporter.wait_for("/-/ready").await;
    let absent = [
        // An hour has to be counted from its beginning before it can be counted again.
        "pds_app_rechecked_until_timestamp_seconds",
        // No counter is behind.
        "pds_app_accounting_behind_seconds",
        // No app is gone: the tests of `field` show it.
        "pds_app_gone_timestamp_seconds",
        // An hour is sampled for hours: the tests of `polls` show it.
        "pds_audit_completeness_ratio",
        // Nothing is read back here: the tests of `restore` show it.
        "pds_exporter_state_last_restore_successful",
    ];
    let documented = |name: fn(&Family) -> &'static str| -> [BTreeSet<String>; 2] {
        let all: Vec<Family> =
            pds_telemetry::catalogue::catalogue().into_iter().flat_map(|group| group.families).collect();
        let present = all.iter().filter(|family| !absent.contains(&family.name));
        [
            all.iter().map(|family| name(family).to_owned()).collect(),
            present.map(|family| name(family).to_owned()).collect(),
        ]
    };
    for (accept, [documented, shown]) in [
        ("text/plain;version=0.0.4", documented(|family| family.name)),
        ("application/openmetrics-text;version=1.0.0", documented(Family::base_name)),
    ] {
        let began = Instant::now();
        loop {
            let found = families(&exporter, accept).await;
            let undocumented: Vec<_> = found.difference(&documented).collect();
            assert!(undocumented.is_empty(), "{accept}: not documented: {undocumented:?}");
            let missing: Vec<_> = shown.difference(&found).collect();
            if missing.is_empty() {
                break;
            }
            assert!(began.elapsed() < DEADLINE, "{accept}: never exposed: {missing:?}\n{}", exporter.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
