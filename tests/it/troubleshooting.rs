//! `docs/troubleshooting.md`: tests show each row of its table, and these tests exist. Those about log and page are here.

mod causes;
mod shown_by;

use std::collections::BTreeSet;

use pds_interface::response_time;
use pds_simulator::{Fault, Kind, World};

use crate::docs::assert_exist;
use crate::logging::service;
use crate::process::{Exporter, until, value};

use shown_by::SHOWN_BY;

/// The page.
const PAGE: &str = "docs/troubleshooting.md";

/// What tries the same things at random.
const AT_RANDOM: &[&str] = &[
    "fuzz::what_is_exposed_of_the_corpus_a_strict_parser_reads_back",
    "fuzz::replies_of_the_corpus_are_read_without_nonsense",
    "real_soak::faults_at_random_leave_memory_flat_and_counters_exact",
];

/// The rows of the page's table, as cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let (_, table) = text.split_once("<!-- faults: begin -->\n").expect("the table has a beginning");
    let (table, _) = table.split_once("<!-- faults: end -->").expect("the table has an end");
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

#[test]
fn every_row_is_shown_by_tests() {
    let text = std::fs::read_to_string(PAGE).unwrap();
    let rows = rows(&text);
    for row in &rows {
        assert!(row.len() == 3 && row.iter().all(|cell| !cell.is_empty()), "three cells: {row:?}");
    }
    let faults: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    let shown: BTreeSet<&str> = SHOWN_BY.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(faults, shown, "rows of {PAGE} and of SHOWN_BY");
    assert_eq!(rows.len(), faults.len(), "duplicate rows in {PAGE}");
}

#[test]
fn every_test_named_here_exists() {
    for (fault, tests) in SHOWN_BY.iter().chain([&("at random", AT_RANDOM)]) {
        assert_exist(fault, tests);
    }
}

/// `kind` for the response times of the first app.
fn of_first_app(world: &World, kind: Kind) -> Fault {
    Fault::from(kind).on(response_time::RESOURCE).of_app(&world.projects()[0].1[0])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn log_and_page_quote_the_reply_at_the_error() {
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
        // A page that readers share may be as old as a second.
        until(&format!("the page says {told}"), async || {
            exporter.get(&page).await.replace("&lt;", "<").replace("&gt;", ">").contains(told)
        })
        .await;
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
