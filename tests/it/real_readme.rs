//! The commands that the pages give a newcomer: from an unknown service to counters in Prometheus.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use pds_interface::TimeRange;
use pds_simulator::Settings;

use crate::docs::blocks;
use crate::process::{Exporter, until};
use crate::server::{PROMETHEUS_2, Server};
use crate::tool::simulated::Simulated;
use crate::tools::tool;

/// The folder of the programs.
fn programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pds-exporter")).parent().unwrap()
}

/// Runs a block in `folder`, with our programs; whether it succeeded, and what it printed.
fn shell(block: &str, folder: &Path) -> (bool, String) {
    let path = format!("{}:/usr/bin:/bin", programs().display());
    let output =
        Command::new("bash").args(["-ec", block]).env("PATH", path).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    (output.status.success(), text)
}

/// A minute of the defaults is a second here.
const FASTER: &[(&str, &str)] = &[
    ("PDS_EXPORTER__POLL__INTERVAL", "1s"),
    ("PDS_EXPORTER__POLL__SETTLE", "1s"),
    ("PDS_EXPORTER__ACCOUNTING__STEP", "1s"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_of_the_readme_lead_from_nothing_to_right_counters_in_prometheus() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let (_, steps) = readme.split_once("## Point it at the service").unwrap();
    let (steps, _) = steps.split_once("## What you get").unwrap();
    let commands = blocks(steps, "sh");
    let [_install, init, doctor, run] = &commands[..] else { panic!("{commands:#?}") };
    let [scrape] = &blocks(steps, "yaml")[..] else { panic!("one scrape configuration") };

    let names = [("start", "from"), ("end", "to")].map(|(name, other)| (name.to_owned(), other.to_owned()));
    let settings = Settings { projects: 1, names: names.into(), ..Settings::default() };
    let service = tokio::task::spawn_blocking(|| Simulated::with(settings)).await.unwrap();
    let (project, apps) = service.world.projects()[0].clone();
    let folder = tempfile::tempdir().unwrap();
    let token = service.world.token(&project).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(folder.path().join("token"));
    file.unwrap().write_all(token.expose().as_bytes()).unwrap();
    let (done, said) = shell(&init.replace("https://api.example.com", &service.url), folder.path());
    assert!(done, "{said}");
    let (_, said) = shell(doctor, folder.path());
    // A daemon on the usual port, if there is one, is not ours.
    let (ours, _) = said.split_once("Daemon").unwrap();
    assert!(!ours.contains("problem ") && !ours.contains("warning "), "{said}");

    let mut command = Command::new(programs().join("pds-exporter"));
    command.args(run.split_whitespace().skip(1)).args(["--web.listen-address", "127.0.0.1:0"]);
    command.current_dir(&folder).envs(FASTER.iter().copied());
    let exporter = Exporter::of(command);
    let scrape = scrape.replace("localhost:10090", exporter.url.trim_start_matches("http://"));
    let config = format!("global: {{scrape_interval: 1s}}\n{scrape}");
    let prometheus =
        Server::prometheus(PROMETHEUS_2, &[("prometheus.yml", &config)], "--storage.tsdb.retention.time=1d")
            .await;

    let app = apps.iter().find(|app| app.ends_with("-ranker")).unwrap();
    let selector = |name: &str, more: &str| format!("{name}{{app=\"{app}\"{more}}}");
    let total = selector("pds_app_requests_total", "");
    let cursor = selector("pds_app_accounted_until_timestamp_seconds", ",resource=\"response_time\"");
    let mut first = None;
    until("Prometheus has right counters over twenty seconds", async || {
        // Samples of one scrape, the cursor last, as it is the larger number.
        let both = prometheus.by_app(&format!("sort({total} or {cursor})"), Timestamp::now()).await;
        let [(.., counted), (.., end)] = &both[..] else { return false };
        let (start, before) = *first.get_or_insert((*end, *counted));
        let range = TimeRange { start: start as i64, end: *end as i64 };
        let truth = service.world.truth(&project, app, range).unwrap();
        assert_eq!(counted - before, truth.requests as f64, "{range}");
        end - start >= 20.0
    })
    .await;
    let [query] = &blocks(&readme, "promql")[..] else { panic!("one query") };
    assert_eq!(prometheus.query(query).await.len(), 2, "{query}");
    // The runtime of the service may not end within ours.
    tokio::task::spawn_blocking(|| drop(service)).await.unwrap();
}

#[test]
fn a_hash_of_htpasswd_makes_a_web_configuration() {
    let page = std::fs::read_to_string("docs/run.md").unwrap();
    let block = blocks(&page, "sh").into_iter().find(|block| block.starts_with("htpasswd")).unwrap();
    let (hash, check) = block.split_once('\n').unwrap();
    let mut htpasswd = Command::new(tool("htpasswd"));
    // The password from a pipe instead of the terminal.
    htpasswd.arg("-i").args(hash.split_whitespace().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut htpasswd = htpasswd.spawn().unwrap();
    htpasswd.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    let line = String::from_utf8(htpasswd.wait_with_output().unwrap().stdout).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let users = format!("basic_auth_users:\n  {}\n", line.trim().replacen(':', ": ", 1));
    std::fs::write(folder.path().join("web-config.yml"), &users).unwrap();
    let (valid, said) = shell(check, folder.path());
    assert!(valid, "{said}");
}
