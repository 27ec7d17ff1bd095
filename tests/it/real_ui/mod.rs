//! The status pages in a real browser: the whole daemon against the simulated service, looked at by Chromium.
//!
//! `browser.mjs` does the looking and says what is wrong, one complaint a line.
//!
//! - `stage`: a daemon and its service in this process.
//! - `goldens`: what the pages look like.

mod goldens;
mod stage;

use std::path::Path;
use std::process::Stdio;

use jiff::{SignedDuration, Timestamp};
use pds_client::{Observer as _, TokenFacts};
use pds_core::clock::Clock;
use pds_exporter::pages::encode;
use pds_interface::{list_domains, list_projects, response_time, volume_alerts};
use pds_simulator::{Fault, Kind};
use tokio::process::Command;

use crate::process::{Exporter, get, http, until};
use crate::rig::{self, Configuration, FaultExt as _};
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server};
use crate::tools::tool;

use stage::{PREFIX, Stage};

/// A name that does harm unless it is escaped.
const HOSTILE: &str = "<script>alert(1)</script>\"'&/é 🦀";

/// Lets the browser look at the pages at `url` as the part `part` of the script, which gets the `environment`.
async fn look(part: &str, url: &str, folder: Option<&Path>, environment: &[(&str, &str)]) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new(tool("node"));
    node.arg(project.join("tests/it/real_ui/browser.mjs")).args([part, url]).args(folder);
    node.env("CHROMIUM", tool("chromium")).env("HOSTILE", HOSTILE);
    node.env("NODE_MODULES", project.join("target/tools/node_modules"));
    node.envs(environment.iter().copied());
    let output = node.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_passes_the_checks_of_a_browser() {
    let stage = Stage::of(|usual| {
        let team = serde_json::Value::from(HOSTILE);
        let of_app = move |id: &str| format!("{{ id = {id:?}, labels = {{ team = {team} }} }}");
        usual.of_app(of_app).and_app(HOSTILE).and_app(&"long-".repeat(120))
    })
    .await;
    stage.filled(3).await;
    stage.look("pages", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_left_open_stays_true_and_keeps_the_readers_state() {
    let stage = Stage::of(|usual| usual).await;
    stage.filled(3).await;
    stage.look("live", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_service_is_shown_with_its_beginning() {
    let stage = Stage::of(|usual| usual).await;
    stage.filled(2).await;
    stage.service.abort();
    until("every target finds it gone", async || {
        let status = get(&format!("{}api/v1/status", stage.url)).await.unwrap().text().await.unwrap();
        status.contains("Nothing listens") && status.contains(": 8 apps and 3 projects")
    })
    .await;
    stage.look("down", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_verdict_counts_all_that_it_claims() {
    let delay = Fault::from(Kind::Latency { millis: 500 });
    let slow =
        Stage::with(Clock::system(), [delay], |usual| usual.api("max_concurrent_requests = 1\n")).await;
    let empty = Stage::of(|usual| usual.first_apps(0)).await;
    let silence = Fault::from(Kind::Latency { millis: 600_000 });
    let mute = Stage::with(Clock::system(), [silence], |usual| {
        usual.api("timeout = \"5m\"\n").tables("[poll]\nstale_after = \"1h\"")
    })
    .await;
    let clock = Clock::starting_at(Timestamp::now());
    // Windows are shorter than the ranges of the counters, so that faults can tell them apart.
    let tables = "[poll]\ninterval = \"1s\"\nsettings_interval = \"1s\"\nsettle = \"1s\"\nwindows = [\"1m\"]\n\
                  [accounting]\nstep = \"5m\"";
    let stage = Stage::with(clock.clone(), [], |usual| usual.tables(tables)).await;
    stage.filled(1).await;
    let fails = || Fault::status(500);
    stage.world.faults().set([
        fails().on(list_projects::RESOURCE),
        fails().on(list_domains::RESOURCE),
        fails().on(volume_alerts::RESOURCE),
        fails().on(response_time::RESOURCE).of_ranges_longer_than(60),
        Fault::value("p95", "\"soon\"").on(response_time::RESOURCE),
    ]);
    clock.jump(SignedDuration::from_mins(11));
    let telemetry = &stage.handle.context.telemetry;
    telemetry.config_loaded(None);
    pds_web::Observer::web_config_read(telemetry, false);
    telemetry.panicked();
    pds_ledger::Observer::committed(telemetry, Err("No space left on device (os error 28)"));
    let expired = Timestamp::now().checked_sub(SignedDuration::from_hours(3 * 24)).unwrap();
    let token = &*stage.world.projects()[0].0;
    let (expires, accepted) = (Some(expired), Some(false));
    telemetry.token(token, Some(TokenFacts { expires, accepted, ..TokenFacts::default() }));
    let others = [&slow, &empty, &mute].map(|stage| stage.url.as_str()).join(" ");
    look("truth", &stage.url, None, &[("OTHERS", &others)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plots_have_axes_lines_and_marks_that_are_read_with_and_without_scripts() {
    let stage = Stage::of(|usual| usual).await;
    stage.filled(5).await;
    stage.look("plots", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_an_app_leads_from_the_problem_to_the_remedy() {
    let links = "[web]\nprometheus_url = \"http://prometheus.example.com/in/\"\n\
                 grafana_url = \"https://grafana.example.com\"\n\
                 service_url = \"https://service.example.com/{project}/apps/{app}\"";
    let stage = Stage::of(|usual| usual.tables(&format!("{}\n{links}", stage::RHYTHM))).await;
    stage.filled(2).await;
    stage.look("onward", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_neither_widen_the_page_nor_hide_a_link_nor_reorder_what_follows() {
    let stage = Stage::of(|usual| usual).await;
    stage.filled(2).await;
    stage.look("names", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_show_a_reload_a_kill_and_a_restart() {
    let (world, service) = rig::world(1, 2).await;
    let folder = tempfile::tempdir().unwrap();
    let usual = || Configuration::new(&world, &service).api("max_retries = 0\n").tables(stage::RHYTHM);
    let expired = Timestamp::now().checked_sub(SignedDuration::from_hours(3 * 24 + 1)).unwrap();
    for (name, text) in [
        ("good", usual().text()),
        ("bad", usual().tables("[poll]\nintervall = \"1s\"").text()),
        ("fewer", usual().first_apps(1).text()),
        ("expired", usual().expiring(expired).text()),
    ] {
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    let exporter = env!("CARGO_BIN_EXE_pds-exporter");
    let environment = [("SERVICE", &*service), ("EXPORTER", exporter)];
    look("process", "", Some(folder.path()), &environment).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_and_queries_of_an_app_open_in_prometheus() {
    links_open_in(PROMETHEUS_2, "yes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_and_queries_of_an_app_open_in_prometheus_3() {
    links_open_in(PROMETHEUS_3, "no").await;
}

async fn links_open_in(program: &str, pages: &str) {
    let (world, service) = rig::world(1, 2).await;
    let folder = tempfile::tempdir().unwrap();
    let usual = || Configuration::new(&world, &service);
    let file = usual().tables(stage::RHYTHM).write(folder.path());
    let exporter = Exporter::ready(&["--config.file", &file]).await;

    let target = exporter.url.trim_start_matches("http://");
    let scraping = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\n\
         scrape_configs:\n- {{job_name: pds, static_configs: [{{targets: ['{target}']}}]}}\n"
    );
    let rule = "groups:\n- name: a\n  rules:\n  - {alert: AnAppIsPolled, expr: 'pds_up{app!=\"\"} == 1'}\n";
    let files = [("prometheus.yml", &*scraping), ("rules.yml", rule)];
    let prometheus = Server::prometheus(program, &files, "--storage.tsdb.retention.time=1d").await;
    until("alerts of both apps fire", async || {
        prometheus.query("count by (app) (ALERTS{alertstate=\"firing\"})").await.len() == 2
    })
    .await;

    let web = format!("[web]\nprometheus_url = \"http://{}\"", prometheus.address);
    usual().tables(&format!("{}\n{web}", stage::RHYTHM)).write(folder.path());
    exporter.signal("HUP");
    look("prometheus", &format!("{}/", exporter.url), None, &[("PAGES", pages)]).await;
}

#[tokio::test]
async fn the_demo_renders_well_behind_a_proxy() {
    let external = format!("--web.external-url=https://pds.example.com{PREFIX}/");
    let exporter = Exporter::start(&["--demo", &external]);
    exporter.wait_for(&format!("{PREFIX}/-/ready")).await;
    look("demo", &format!("{}{PREFIX}/", exporter.url), None, &[]).await;
}

#[tokio::test]
async fn documented_paths_exist_and_answer_304_when_unchanged() {
    let exporter = Exporter::demo().await;
    let page = std::fs::read_to_string("docs/operate.md").unwrap();
    let status = exporter.status().await;
    let part = |name: &str| encode(status["apps"][0][name].as_str().unwrap());
    let rows = page.split("| path | content |").nth(1).unwrap().lines().skip(2);
    let paths: Vec<&str> = rows
        .take_while(|row| row.starts_with('|'))
        .flat_map(|row| row.split('|').nth(1).unwrap().split('`').filter(|text| text.starts_with('/')))
        .collect();
    assert_eq!(paths.len(), 9, "{paths:?}");
    for path in paths {
        let address = path.replace("{project}", &part("project")).replace("{app}", &part("id"));
        exporter.get(&address).await;
        if path.starts_with("/-/") || path == "/metrics" {
            continue;
        }
        // A poll may come in between; then the next attempt finds nothing new.
        until(&format!("{path} is answered 304"), async || {
            let url = format!("{}{address}", exporter.url);
            let tag = get(&url).await.unwrap().headers()["etag"].clone();
            let again = http().get(&url).header("if-none-match", tag).send().await.unwrap();
            again.status() == 304 && again.bytes().await.unwrap().is_empty()
        })
        .await;
    }
}
