//! A service whose query parameters have other names: named once, with the key and the remedy, and corrected by the tool.

use std::process::Command;

use pds_interface::TimeRange;
use pds_simulator::{Quirks, Settings, World};
use serde_json::Value;
use tempfile::TempDir;

use crate::deploy::string;
use crate::process::{Exporter, assert_has, edit, pdstool, until, until_page, value};
use crate::rig;
use crate::tool::simulated::Simulated;

/// A service of three apps, and the path of a configuration that knows nothing of its names.
async fn service(names: &[(&str, &str)], quirks: Quirks) -> (World, TempDir, String) {
    let names = names.iter().map(|(name, other)| ((*name).to_owned(), (*other).to_owned())).collect();
    rig::service(Settings { projects: 1, apps: 3, names, quirks, ..Settings::default() }).await
}

/// Runs `pdstool`; exit code and what it printed.
async fn tool(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(pdstool());
    command.env_clear().args(args);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    (output.status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The codes of the reasons on the status page, with their texts.
async fn reasons(exporter: &Exporter) -> String {
    let line = |reason: &Value| format!("{}: {}\n", string(reason, "/code"), string(reason, "/text"));
    exporter.reasons().await.iter().map(line).collect()
}

/// Waits until ten seconds are counted, and fails where the counter grew by anything but the truth.
async fn assert_counts_are_right(exporter: &Exporter, world: &World) {
    let (project, apps) = world.projects()[0].clone();
    let labels = format!("{{project=\"{project}\",app=\"{}\"", apps[0]);
    let until_series =
        format!("pds_app_accounted_until_timestamp_seconds{labels},resource=\"response_time\"}}");
    let total = format!("pds_app_requests_total{labels}}}");
    let mut first = None;
    until_page(exporter, "ten seconds are counted", |page| {
        let (Some(end), Some(counted)) = (value(page, &until_series), value(page, &total)) else {
            return false;
        };
        let (start, before) = *first.get_or_insert((end, counted));
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
        let range = TimeRange { start: start as i64, end: end as i64 };
        let truth = world.truth(&project, &apps[0], range).unwrap();
        assert_eq!(counted - before, truth.requests as f64, "{range}");
        end - start >= 10.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_with_other_names_is_reported_once_and_counted_with_the_lines_of_check_service() {
    let (world, _folder, config) = service(&[("start", "from"), ("end", "to")], Quirks::default()).await;
    let exporter = Exporter::ready(&["--config.file", &config]).await;
    let shows = |page: &str, honoured: &str| {
        page.lines().any(|line| line.starts_with("pds_api_range_honoured{") && line.ends_with(honoured))
    };
    until_page(&exporter, "the metric says so", |page| shows(page, " 0")).await;
    until("the log says so", async || exporter.log().contains("the service ignores")).await;
    let log = exporter.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("the service ignores")).collect();
    let [line] = &*told else { panic!("{log}") };
    let remedy = "set api.query_names.start and .end to the names that `pdstool check service` prints";
    assert_has(line, &["`start` and `end`: it returned ", remedy]);
    assert!(!log.contains("polling began to fail"), "no line for single apps:\n{log}");
    let all = reasons(&exporter).await;
    assert_has(&all, &["range_ignored: The service ignores"]);
    assert!(!all.contains("resource_stale: "), "a consequence is no reason: {all}");
    let (code, said) = tool(&["doctor", "--config.file", &config]).await;
    assert_eq!(code, Some(1));
    assert_has(&said, &["the service ignores", "pdstool check service"]);

    let (code, said) = tool(&["check", "service", "--config.file", &config]).await;
    let lines = "[api.query_names]\nstart = \"from\"\nend = \"to\"\n";
    assert!(code == Some(1) && said.contains(lines.replace('\n', " ").trim_end()), "{said}");
    edit(&config, |text| text + "\n" + lines);
    exporter.signal("HUP");
    until_page(&exporter, "the service honours ranges", |page| shows(page, " 1")).await;
    assert_counts_are_right(&exporter, &world).await;
    let (code, said) = tool(&["doctor", "--config.file", &config]).await;
    assert!(!said.contains("the service ignores"), "{code:?} {said}");
    assert!(exporter.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_ignores_every_range_is_reported_without_a_suggestion() {
    let quirks = Quirks { ignores_range: true, ..Quirks::default() };
    let (_world, _folder, config) = service(&[], quirks).await;
    let exporter = Exporter::start(&["--config.file", &config]);
    until("the log says so", async || exporter.log().contains("the service ignores")).await;
    let (code, said) = tool(&["check", "service", "--config.file", &config]).await;
    assert!(code == Some(1) && said.contains("Ask the owner of the service for the names"), "{said}");
    let polls = "pds_api_requests_total{code=\"200\",resource=\"response_time\"}";
    let behind = |line: &&str| {
        line.starts_with("pds_app_accounting_behind_seconds{") && line.contains("resource=\"response_time\"")
    };
    until_page(&exporter, "each app was polled a few times, and its counter is behind", |page| {
        // A new total is served at 0 until then.
        let mut totals = page.lines().filter(|line| line.starts_with("pds_app_requests_total{"));
        assert!(totals.all(|line| line.ends_with(" 0")), "nothing wrong is counted:\n{page}");
        value(page, polls) > Some(20.0) && page.lines().filter(behind).count() == 3
    })
    .await;
}

#[test]
fn init_queries_the_service_and_writes_a_file_that_works() {
    let names = vec![("start".to_owned(), "from".to_owned()), ("end".to_owned(), "to".to_owned())];
    let service = Simulated::with(Settings { names, ..Settings::default() });
    let (project, apps) = service.world.projects()[0].clone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), service.world.token(&project).unwrap().expose()).unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(pdstool()).env_clear().args(args).current_dir(&folder).output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code(), text)
    };
    let init = ["init", "--base-url", &service.url, "--token-file", "token", "--app", &apps[0]];
    let (code, said) = run(&init);
    assert_has(&said, &["The service needs api.query_names.start = \"from\"."]);
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(folder.path().join("pds-exporter.toml")).unwrap();
    assert!(text.contains("[api.query_names]\nstart = \"from\"\nend = \"to\"\n"), "{text}");
    let (code, said) = run(&["check", "service"]);
    assert!(code == Some(0) && said.contains("from and to are honoured"), "{said}");
}
