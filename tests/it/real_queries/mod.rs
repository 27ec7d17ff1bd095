//! Every shipped query, evaluated at arbitrary times by three engines that have scraped real pages, and compared with
//! the truth of the simulated service.

mod evaluated;
mod matrix;
mod samples;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use pds_config::{Config, Shard};
use pds_simulator::{Fault, Quirks, Settings};
use serde_json::json;

use crate::deploy::dashboards::{dashboards, expressions, filled};
use crate::deploy::rules;
use crate::golden::{assert_current, between};
use crate::process::Exporter;
use crate::real_lifecycle::life::Life;
use crate::rig::{Configuration, FaultExt as _};
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server, create_blocks};

use matrix::Matrix;
use truth::About;
pub(crate) use truth::Counted;

const MINUTE: i64 = 60;
/// Seconds between two looks: no multiple of any interval, so that looks lie at every place of a minute.
const LOOK: i64 = 97;
const NOON: &str = "2026-03-01T11:30:20Z";

/// A life as it was scraped, and what there was.
struct Recording {
    life: Life,
    /// Between two scrapes, in seconds.
    scrape: i64,
    /// Until when traffic was steady.
    steady: i64,
    /// The share of requests that came late.
    late: f64,
    /// Requests and runs.
    counted: [Vec<Counted>; 2],
    /// The project and app that queries are filled in for.
    project: String,
    app: String,
}

impl Recording {
    fn of(life: Life, scrape: u32, steady: i64, late: f64) -> Self {
        let counted = ["response_time", "run_execution_time"].map(|resource| life.counted(resource));
        let (project, apps) = life.world.projects().remove(0);
        let (project, app) = (project.to_string(), apps[0].to_string());
        Self { life, scrape: scrape.into(), steady, late, counted, project, app }
    }
}

/// All that happens to a counter, recorded.
async fn eventful(scrape: u32) -> Recording {
    let mut life = Life::of(Life::small(), scrape.into(), NOON).await;
    let few = configured(&life).first_apps(1).load();
    life.start("pds", few).await;
    life.pass(30).await;
    life.reload("pds", with_state(&life)).await;
    life.pass(30).await;
    let steady = life.now();
    life.stop("pds").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    life.start("pds", with_state(&life)).await;
    life.pass(20).await;
    for minutes in [3, 40] {
        life.world.faults().set([Fault::status(500)]);
        life.pass(minutes).await;
        life.world.faults().clear();
        life.pass(20).await;
    }
    life.stop("pds").await;
    let forgetful = configured(&life).tables("").load();
    life.start("pds", forgetful).await;
    life.pass(20).await;
    life.stop("pds").await;
    for (index, instance) in (0..).zip(["pds-0", "pds-1"]) {
        let shard = Shard { index, count: 2.try_into().unwrap() };
        let config = configured(&life).tables("").load().shard(shard);
        life.start(instance, config).await;
    }
    life.pass(20).await;
    Recording::of(life, scrape, steady, 0.0)
}

/// Hours in which three of a hundred requests are known up to half an hour late.
async fn with_late_data(scrape: u32) -> Recording {
    let quirks = Quirks { late_share: 0.03, late_within: 1800, ..Quirks::default() };
    let mut life = Life::of(Settings { quirks, ..Life::small() }, scrape.into(), NOON).await;
    life.start("pds", with_state(&life)).await;
    life.pass(240).await;
    let begun = life.begun;
    Recording::of(life, scrape, begun, quirks.late_share)
}

/// With a state file and an objective.
fn configured(life: &Life) -> Configuration<'_> {
    let path = json!(life.folder.path().join("ledgers"));
    life.config()
        .of_projects("objective = { threshold = \"1s\", share = 0.99 }\n")
        .tables(&format!("[state]\npath = {path}"))
}

/// The same for all apps, loaded.
fn with_state(life: &Life) -> Config {
    configured(life).load()
}

/// All queries that ship, filled in for an app; each once.
fn queries(recording: &Recording, pages: &[String]) -> BTreeSet<String> {
    let Recording { project, app, scrape, .. } = recording;
    let mut queries: BTreeSet<String> = crate::docs::queries().into_iter().map(|(_, query)| query).collect();
    for rule in rules() {
        let expression = rule["expr"].as_str().unwrap();
        // A record that another rule reads, as it was scraped.
        let raw = expression
            .replace(
                "pds:slo_requests:total{le=\"+Inf\"}",
                "pds_app_request_duration_seconds_bucket{le=\"+Inf\"}",
            )
            .replace(
                "pds:slo_requests:total{le!=\"+Inf\"}",
                "pds_app_request_duration_seconds_bucket{le=\"1.0\"}",
            )
            .replace("pds:slo_accounted_seconds:total", "pds_app_requests_accounted_seconds_total")
            .replace("on (cluster, namespace, job) group_left () (pds:slo_least_requests:count", "(0");
        queries.insert(raw);
    }
    for (_, dashboard) in dashboards() {
        queries.extend(expressions(&dashboard).into_iter().map(|(_, expression)| expression.to_owned()));
    }
    queries.extend(pages.iter().flat_map(|page| to_copy(page)));
    let interval = format!("{}s", (180 + scrape).max(4 * scrape));
    queries.iter().map(|query| filled(query.trim(), &interval, project, app)).collect()
}

/// The queries that a page of the exporter shows for copying.
fn to_copy(page: &str) -> impl Iterator<Item = String> {
    page.split("data-copy=\"").skip(1).map(|rest| {
        let query = rest.split('"').next().unwrap().replace("&quot;", "\"");
        query.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    })
}

/// The engine of that name over the recording.
async fn engine(name: &str, text: &str, folder: &Path, scrape: i64) -> Server {
    if name == "victoria-metrics" {
        return Server::victoria_metrics(text).await;
    }
    let data = folder.join(format!("data-{scrape}"));
    if !data.exists() {
        let file = folder.join("recording.txt");
        std::fs::write(&file, text).unwrap();
        create_blocks(&file, &data);
    }
    // A series that left is stale at the next scrape.
    Server::over_with(name, &data, &format!("--query.lookback-delta={}s", scrape + 1)).await
}

/// Every answer of an engine, compared with the truth of requests and of runs.
async fn judged<'a>(
    server: &Server,
    recording: &'a Recording,
    queries: &BTreeSet<String>,
) -> [Matrix<'a>; 2] {
    let mut matrices = [0, 1].map(|of| Matrix::of(recording, &recording.counted[of]));
    let first = recording.life.begun + 10 * MINUTE + 7;
    for query in queries {
        let runs = usize::from(About::of(query) == About::Rate { runs: true });
        for row in server.range_of_all(query, (first, recording.life.now(), LOOK)).await {
            matrices[runs].judge(query, &row);
        }
    }
    matrices
}

/// The pages of an app and of the catalogue, as they would be for this app.
async fn shown_pages(project: &str, app: &str) -> [String; 2] {
    let demo = Exporter::demo().await;
    let home = demo.get("/").await;
    let link = home.split("href=\"/apps/").nth(1).unwrap().split('"').next().unwrap();
    let (shown_project, shown_app) = link.split_once('/').unwrap();
    let page =
        demo.get(&format!("/apps/{link}")).await.replace(shown_app, app).replace(shown_project, project);
    [page, demo.get("/metrics-catalogue").await]
}

/// The figures of the engine that is worst, and the wrong answers, one of each kind.
async fn compared(recordings: &[Recording]) -> (String, BTreeMap<String, (usize, String)>) {
    let pages = shown_pages(&recordings[0].project, &recordings[0].app).await;
    let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut table =
        "| scraped every | answers per engine | worst error | recorded values per engine | worst error |\n\
        | --- | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    let folder = tempfile::tempdir().unwrap();
    let readme = std::fs::read_to_string("benches/README.md").unwrap();
    for recording in recordings {
        let text = recording.life.openmetrics();
        let queries = queries(recording, &pages);
        assert!(queries.len() > 100, "{}", queries.len());
        let resampled = evaluated::resampled(recording);
        let mut figures = [(usize::MAX, 0.0); 2];
        for name in [PROMETHEUS_2, PROMETHEUS_3, "victoria-metrics"] {
            let server = engine(name, &text, folder.path(), recording.scrape).await;
            let of_queries = judged(&server, recording, &queries).await;
            let of_rules = evaluated::judged(name, &server, recording, &resampled).await;
            for (matrices, (least, most)) in [Vec::from(of_queries), of_rules].into_iter().zip(&mut figures) {
                let judged: usize = matrices.iter().map(|matrix| matrix.judged).sum();
                assert!(judged > 3000, "{judged}");
                *least = judged.min(*least);
                *most = matrices.iter().map(|matrix| matrix.worst).fold(*most, f64::max);
                for told in matrices.into_iter().flat_map(|matrix| matrix.wrong) {
                    let kind = told.split_once("\n{").map_or(&*told, |(kind, _)| kind).to_owned();
                    kinds.entry(kind).or_insert((0, format!("{name}: {told}"))).0 += 1;
                }
            }
        }
        let begin = format!("| {} s |", recording.scrape);
        let row = between(&readme, "matrix").1.split(&begin).nth(1).unwrap_or_default();
        let mut stated =
            row.split("over ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok());
        table += &begin;
        for (judged, worst) in figures {
            let worst = [0.0001, 0.001, 0.01].into_iter().find(|bound| worst < *bound).unwrap_or(1.0);
            // The moments of polls differ from run to run: the page's figure while it holds, else the first digit of
            // nine tenths.
            let least = judged * 9 / 10;
            let step = 10_usize.pow(least.ilog10());
            let holds = stated.next().filter(|stated| (least / 2..=judged).contains(stated));
            let least = holds.unwrap_or(least / step * step);
            write!(table, " over {least} | under {} % |", worst * 100.0).unwrap();
        }
        table.push('\n');
    }
    (table, kinds)
}

#[tokio::test(start_paused = true)]
async fn every_query_is_right_off_the_grid_in_three_engines() {
    let mut recordings = Vec::new();
    for scrape in [15, 30, 60] {
        recordings.push(eventful(scrape).await);
    }
    tokio::time::resume();
    let (table, wrong) = compared(&recordings).await;
    assert_current("benches/README.md", "matrix", &table);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn late_data_shows_in_no_query_as_more_than_itself() {
    let recording = with_late_data(15).await;
    tokio::time::resume();
    let (_, wrong) = compared(&[recording]).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}
