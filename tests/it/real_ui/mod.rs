//! The status pages in a real browser: the whole daemon against the simulated service, looked at by Chromium.
//!
//! `browser.mjs` does the looking and says what is wrong, one complaint a line; the parts run in this process.

use std::future::pending;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use pds_exporter::app::daemon::{Daemon, Handle};
use pds_exporter::app::serve::Served;
use pds_exporter::clock::Clock;
use pds_exporter::simulator::{Settings, World, serve};
use pds_exporter::status::Source;
use pds_exporter::telemetry::Telemetry;
use pds_exporter::web::pages::StatusPages;
use pds_exporter::{app, config, web};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::process::{Exporter, get, http, until};
use crate::rig::Configuration;
use crate::tools::tool;

/// A name that does harm unless it is escaped.
const HOSTILE: &str = "<script>alert(1)</script>\"'&/é 🦀";
/// The pages are behind a proxy.
const PREFIX: &str = "/behind/a/proxy";
/// How long anything may take that should take a moment.
const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon, its service, and where its pages are.
struct Stage {
    service: JoinHandle<()>,
    handle: Handle,
    url: String,
}

/// Starts a service of some apps and a daemon that polls it every second.
async fn stage(hostile: Option<&str>) -> Stage {
    let clock = Clock::system();
    let world = World::new(Settings::default(), clock.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(configuration(&world, &address.to_string(), hostile).as_bytes()).unwrap();
    let loaded = config::load(file.path(), []).unwrap();
    let service = tokio::spawn(serve(world, listener, pending()));

    let telemetry = Telemetry::new(true).unwrap();
    let flags = web::Config {
        listen_addresses: vec!["127.0.0.1:0".to_owned()],
        route_prefix: PREFIX.to_owned(),
        ..web::Config::default()
    };
    let server = flags.bind(&telemetry).unwrap();
    let url = format!("http://{}{PREFIX}/", server.addresses()[0]);
    let daemon = Daemon::build(loaded.config, clock, telemetry).await.unwrap();
    let handle = daemon.handle();
    let source = Source::new(handle.context().clone(), handle.plan().await, loaded.explained);
    let pages = StatusPages::new(source.clone(), app::catalogue(), PREFIX).with_replies(true).routes();
    let served = Arc::new(Served::new(handle.clone(), source, None));
    tokio::spawn(daemon.run(pending()));
    tokio::spawn(server.serve(served, pages, pending()));
    Stage { service, handle, url }
}

/// All apps of the world; with a hostile name also an app of that name, which the world does not have, and labels.
fn configuration(world: &World, address: &str, hostile: Option<&str>) -> String {
    let team = hostile.unwrap_or("search");
    let written = Configuration::new(world, &format!("http://{address}"))
        .api("max_retries = 0\ntimeout = \"5s\"\n")
        .tables("[poll]\ninterval = \"1s\"\nsettings_interval = \"3s\"\nsettle = \"1s\"")
        .of_app(|id| format!("{{ id = {id:?}, labels = {{ team = {team:?} }} }}"));
    match hostile {
        Some(id) => written.and_app(id).text(),
        None => written.text(),
    }
}

impl Stage {
    /// Waits until every target was asked and the trends have `polls` points.
    async fn filled(&self, polls: u32) {
        let began = tokio::time::Instant::now();
        while !self.handle.is_ready() {
            assert!(began.elapsed() < DEADLINE, "the first polls");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_secs(1) * polls).await;
    }

    /// Lets the browser look at it as the part `part` of the script.
    async fn look(&self, part: &str, pictures: Option<&Path>) {
        look(part, &self.url, pictures).await;
    }
}

/// Lets the browser look at the pages at `url` as the part `part` of the script.
async fn look(part: &str, url: &str, pictures: Option<&Path>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new(tool("node"));
    node.arg(folder.join("tests/it/real_ui/browser.mjs")).args([part, url]).args(pictures);
    node.env("CHROMIUM", tool("chromium")).env("HOSTILE", HOSTILE);
    node.env("NODE_MODULES", folder.join("target/tools/node_modules"));
    let output = node.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_has_nothing_to_complain_of() {
    let stage = stage(Some(HOSTILE)).await;
    stage.filled(3).await;
    stage.look("pages", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_left_open_stays_true_and_keeps_what_the_reader_did() {
    let stage = stage(None).await;
    stage.filled(3).await;
    stage.look("live", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_down_is_said_with_since_when() {
    let stage = stage(None).await;
    stage.filled(2).await;
    stage.service.abort();
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.look("down", None).await;
}

#[tokio::test]
async fn the_demo_is_a_pleasure_to_look_at_behind_a_proxy() {
    let external = format!("--web.external-url=https://pds.example.com{PREFIX}/");
    let exporter = Exporter::start(&["--demo", &external]);
    exporter.wait_for(&format!("{PREFIX}/-/ready")).await;
    look("demo", &format!("{}{PREFIX}/", exporter.url), None).await;
}

#[tokio::test]
async fn documented_paths_exist_and_answer_304_when_unchanged() {
    let exporter = Exporter::start(&["--demo"]);
    exporter.wait_for("/-/ready").await;
    let page = std::fs::read_to_string("docs/operations.md").unwrap();
    let status: serde_json::Value = serde_json::from_str(&exporter.get("/api/v1/status").await).unwrap();
    let part = |name: &str| encoded(status["apps"][0][name].as_str().unwrap());
    let rows = page.split("| path | what is there |").nth(1).unwrap().lines().skip(2);
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

#[tokio::test]
async fn every_query_to_copy_is_promql() {
    let exporter = Exporter::start(&["--demo"]);
    exporter.wait_for("/-/ready").await;
    let status: serde_json::Value = serde_json::from_str(&exporter.get("/api/v1/status").await).unwrap();
    let mut rules = "groups:\n- name: queries\n  rules:\n".to_owned();
    let mut add = |page: &str| {
        for (index, part) in page.split("data-copy=\"").skip(1).enumerate() {
            let query = part.split('"').next().unwrap();
            let query =
                query.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            let query = serde_json::Value::from(query);
            rules.push_str(&format!(
                "  - record: r:{index}\n    labels: {{ page: {:?} }}\n    expr: {query}\n",
                page.len()
            ));
        }
    };
    for app in status["apps"].as_array().unwrap() {
        let part = |name: &str| encoded(app[name].as_str().unwrap());
        add(&exporter.get(&format!("/apps/{}/{}", part("project"), part("id"))).await);
    }
    add(&exporter.get("/metrics-catalogue").await);
    let count = rules.matches("expr:").count();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules).unwrap();
    let output =
        Command::new(tool("promtool")).args(["check", "rules"]).arg(file.path()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && count > 300, "{count}: {said}");
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Not a test: `tests/pictures` runs it for the pictures of the README.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "makes the pictures of the README; run by tests/pictures"]
async fn pictures() {
    let stage = stage(None).await;
    stage.filled(35).await;
    stage.look("pictures", Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/pictures"))).await;
}
