//! The README's table of what goes wrong: each of its rows names tests that show it, and there are such. Those of what
//! people read then, in the log and on the page, are here.

use pds_exporter::interface::Resource;
use pds_exporter::simulator::{Fault, Kind, World};

use crate::logging::service;
use crate::process::{Exporter, until, value};

/// The rows of the section's table, as cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let (_, section) = text.split_once("\n## When something goes wrong\n").expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The source that a test's path leads to: `client::load::a_test` is in `tests/it/client/load.rs`.
fn source(path: &[&str]) -> Option<String> {
    let folder = path.join("/");
    let files = [format!("tests/it/{folder}.rs"), format!("tests/it/{folder}/mod.rs")];
    files.iter().find_map(|file| std::fs::read_to_string(file).ok())
}

#[test]
fn every_row_of_what_goes_wrong_names_tests_that_exist() {
    let text = std::fs::read_to_string("README.md").unwrap();
    let rows = rows(&text);
    assert!(rows.len() >= 15, "{rows:#?}");
    for row in &rows {
        let [fault, seen, todo, shown] = &**row else { panic!("four cells: {row:?}") };
        assert!(![fault, seen, todo].iter().any(|cell| cell.is_empty()), "{row:?}");
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{fault}: names no test");
        for test in tests {
            let path: Vec<&str> = test.split("::").collect();
            let (name, modules) = path.split_last().unwrap();
            let source = source(modules).unwrap_or_else(|| panic!("{test}: no such module"));
            assert!(source.contains(&format!("fn {name}(")), "{fault}: there is no test {test}");
        }
    }
}

/// `kind` for the response times of the first app.
fn of_first_app(world: &World, kind: Kind) -> Fault {
    Fault::from(kind).on(Resource::ResponseTime).of_app(&world.projects()[0].1[0])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn log_and_page_quote_the_reply_and_say_where_it_went_wrong() {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::start(&["--config.file", &config]);
    exporter.wait_for("/-/ready").await;
    let (project, apps) = world.projects().remove(0);
    let page = format!("/apps/{project}/{}", apps[0]);
    let raw = Kind::RawError { status: 503, text: "upstream fell over".to_owned() };
    let wrong_shape = Kind::RawError { status: 200, text: "{\"status\": 7}".to_owned() };
    for (kind, class, told) in [
        (Kind::Status { status: 500, retry_after: None }, "500", "answered 500: a fault was asked for"),
        (Kind::MalformedJson, "decode", "at line 1 column"),
        (raw, "503", "answered 503: upstream fell over"),
        (wrong_shape, "decode", "status is "),
        (Kind::Html { status: 502 }, "502", "answered 502: <html><head><title>502</title>"),
    ] {
        let before = exporter.log().lines().count();
        world.faults().set([of_first_app(&world, kind)]);
        let line = format!("class={class} ");
        until(&format!("the log says {told}"), async || {
            exporter.log().lines().skip(before).any(|logged| logged.contains(&line) && logged.contains(told))
        })
        .await;
        let page = exporter.get(&page).await.replace("&lt;", "<").replace("&gt;", ">");
        assert!(page.contains(told), "{told}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_field_whose_values_are_nonsense_is_in_the_log_once() {
    let (world, _folder, config) = service(2).await;
    let exporter = Exporter::start(&["--config.file", &config]);
    exporter.wait_for("/-/ready").await;
    world
        .faults()
        .set([of_first_app(&world, Kind::Value { field: "1s".to_owned(), json: "1e400".to_owned() })]);
    let mut field = String::new();
    until("it is counted again and again", async || {
        let page = exporter.get("/metrics").await;
        let Some(line) = page.lines().find(|line| line.starts_with("pds_api_unexpected_values_total{"))
        else {
            return false;
        };
        field = line.split("field=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 4.0
    })
    .await;
    let log = exporter.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("a value is not what the interface says")).collect();
    let [line] = &*lines else { panic!("{log}") };
    assert!(line.contains(&format!("field={field} ")) && line.contains("resource=response_time"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_that_is_too_long_is_one_warning_and_then_a_counter() {
    let (world, _folder, config) = service(2).await;
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[accounting]\n", "[accounting]\nmax_catch_up = \"2s\"\n")).unwrap();
    let exporter = Exporter::start(&["--config.file", &config]);
    exporter.wait_for("/-/ready").await;
    world.faults().set([of_first_app(&world, Kind::Status { status: 500, retry_after: None })]);
    let (project, apps) = world.projects().remove(0);
    let unaccounted = format!(
        "pds_app_unaccounted_seconds_total{{project=\"{project}\",app=\"{}\",resource=\"response_time\"}}",
        apps[0]
    );
    until("seconds are given up again and again", async || {
        value(&exporter.get("/metrics").await, &unaccounted).is_some_and(|seconds| seconds >= 4.0)
    })
    .await;
    let log = exporter.log();
    let warnings = log.lines().filter(|line| line.contains("is given up")).count();
    assert_eq!(warnings, 1, "{log}");
}
