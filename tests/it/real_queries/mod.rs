//! Every query that ships, answered off every grid by three engines that have scraped real pages, and compared with
//! what the simulated service knows to be true.

mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use pds_exporter::config::Shard;
use pds_simulator::Fault;
use serde_json::{Value, json};

use crate::deploy::dashboards::{dashboards, expressions};
use crate::deploy::{command, rules, succeed};
use crate::golden::assert_current;
use crate::process::Exporter;
use crate::real_lifecycle::life::Life;
use crate::server::{PROMETHEUS_2, PROMETHEUS_3, Server, result_of};

pub(crate) use truth::Counted;
use truth::{About, Bounds, figure, window};

const MINUTE: i64 = 60;
/// Seconds between two looks: no multiple of any interval, so that looks lie at every place of a minute.
const LOOK: i64 = 97;
/// How far a rate or ratio may be off in steady traffic.
const STEADY: f64 = 0.01;
/// Rounding of floats.
const ROUNDING: f64 = 1e-6;

/// All that happens to a counter, recorded; and the end of the steady part.
async fn recorded(scrape: u64) -> (Life, i64) {
    let mut life = Life::of(Life::small(), scrape, "2026-03-01T11:30:20Z").await;
    let with_state = |life: &Life| {
        let path = json!(life.folder.path().join("ledgers"));
        life.config().tables(&format!("[state]\npath = {path}")).load()
    };
    let path = json!(life.folder.path().join("ledgers"));
    let few = life.config().first_apps(1).tables(&format!("[state]\npath = {path}")).load();
    life.start("pds", few).await;
    life.pass(30).await;
    let all = with_state(&life);
    life.reload("pds", all).await;
    life.pass(30).await;
    let steady = life.now();
    life.stop("pds").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let config = with_state(&life);
    life.start("pds", config).await;
    life.pass(20).await;
    for minutes in [3, 40] {
        life.world.faults().set([Fault::status(500)]);
        life.pass(minutes).await;
        life.world.faults().clear();
        life.pass(20).await;
    }
    life.stop("pds").await;
    let forgetful = life.config().load();
    life.start("pds", forgetful).await;
    life.pass(20).await;
    life.stop("pds").await;
    for (index, instance) in ["pds-0", "pds-1"].into_iter().enumerate() {
        let shard = Shard::new(index.try_into().unwrap(), 2.try_into().unwrap()).unwrap();
        let config = life.config().load().shard(shard);
        life.start(instance, config).await;
    }
    life.pass(20).await;
    (life, steady)
}

/// All queries that ship, filled in for an app scraped every `scrape` seconds; each once.
fn queries(project: &str, app: &str, pages: &[String], scrape: i64) -> BTreeSet<String> {
    let mut queries: BTreeSet<String> = crate::docs::queries().into_iter().map(|(_, query)| query).collect();
    for rule in rules() {
        let expression = rule["expr"].as_str().unwrap();
        // What a rule records and another reads, as it was scraped.
        let raw = expression
            .replace(
                "pds:slo_requests:total{le=\"+Inf\"}",
                "pds_app_request_duration_seconds_bucket{le=\"+Inf\"}",
            )
            .replace(
                "pds:slo_requests:total{le!=\"+Inf\"}",
                "pds_app_request_duration_seconds_bucket{le=\"1.0\"}",
            )
            .replace("on () group_left () (pds:slo_least_requests:count / 3600)", "0");
        queries.insert(raw);
    }
    for (_, dashboard) in dashboards() {
        queries.extend(expressions(&dashboard).into_iter().map(|(_, expression)| expression.to_owned()));
    }
    // As the exporter's own pages show them for copying.
    for page in pages {
        let shown = page.split("data-copy=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        queries.extend(
            shown.map(|query| query.replace("&quot;", "\"").replace("&gt;", ">").replace("&amp;", "&")),
        );
    }
    let interval = format!("{}s", (180 + scrape).max(4 * scrape));
    let filled = |query: String| {
        let all = [
            ("$__rate_interval", &*interval),
            ("$project", project),
            ("$app", app),
            ("$cluster", ".*"),
            ("$instance", ".*"),
        ];
        all.iter().fold(query, |query, (variable, value)| query.replace(variable, value))
    };
    queries.into_iter().map(filled).map(|query| query.trim().to_owned()).collect()
}

/// One engine over the scrapes of one interval, with the worst error of rates and ratios in steady traffic.
struct Matrix<'a> {
    counted: &'a [Counted],
    steady: i64,
    scrape: i64,
    project: &'a str,
    worst: f64,
    judged: usize,
    wrong: Vec<String>,
}

impl<'a> Matrix<'a> {
    /// Compares one answer of a query with the truth.
    fn judge(&mut self, query: &str, row: &Value) {
        let about = About::of(query);
        if about == About::Else {
            return;
        }
        let window = window(query);
        let meant = self.meant(query, row);
        for point in row["values"].as_array().unwrap() {
            let (at, value) =
                (point[0].as_f64().unwrap() as i64, point[1].as_str().unwrap().parse::<f64>().unwrap());
            let of_each =
                meant.iter().map(|counted| counted.bounds(at, window, |minutes| figure(about, minutes)));
            // A sum is that of all or not to be compared.
            let of_each: Option<Vec<Bounds>> = of_each.collect();
            let Some(of_each) = of_each.filter(|each| each.len() == 1 || each.iter().all(|one| one.within))
            else {
                if meant.len() == 1 {
                    self.wrong.push(format!("{query}: {value} at {at}, where nothing was counted"));
                }
                continue;
            };
            let sum = |part: fn(&Bounds) -> f64| of_each.iter().map(part).sum::<f64>();
            let (least, most) = (sum(|b| b.least), sum(|b| b.most));
            let (whole, wider) = (sum(|b| b.whole), sum(|b| b.wider));
            // Buckets hold whole requests, and an increase is that of one counted range more or less.
            let slack = match about {
                About::Slow => 2.0 / sum(|b| b.requests),
                About::Increase => f64::INFINITY,
                _ => ROUNDING * most,
            };
            let told = format!(
                "{query}\n{row_of} at {at}, scraped every {} s: {value}, not {least} to {most}",
                self.scrape,
                row_of = row["metric"]
            );
            if !(least - slack..=most + slack).contains(&value) {
                self.wrong.push(told);
                continue;
            }
            if at < self.steady {
                let away = (value - whole).abs().min((value - wider).abs());
                let off = match about {
                    About::Increase => (away - self.extended(&meant)).max(0.0) / whole.max(1.0),
                    About::Slow => (away - slack).max(0.0),
                    _ => away / whole.max(ROUNDING),
                };
                if off > STEADY {
                    self.wrong.push(format!("{told}: {off} off {whole}"));
                }
                self.worst = self.worst.max(off);
            }
            self.judged += 1;
        }
    }

    /// The counters that an answer of a query speaks of.
    fn meant(&self, query: &str, row: &Value) -> Vec<&'a Counted> {
        let label = |name: &str| row["metric"][name].as_str();
        let is_meant = |counted: &&Counted| {
            let here = |given: Option<&str>, of: &str| given.is_none_or(|given| given == of);
            here(label("app"), &counted.app)
                && here(label("project"), &counted.project)
                && (!query.contains(self.project) || counted.project == self.project)
        };
        self.counted.iter().filter(is_meant).collect()
    }

    /// The most requests of a counted range, and of a scrape at each end, to which `increase` extends what it saw.
    fn extended(&self, meant: &[&Counted]) -> f64 {
        let most = |counted: &&Counted| counted.truth.values().map(|truth| truth.requests).max().unwrap();
        let minutes = 1.0 + 2.2 * self.scrape as f64 / MINUTE as f64;
        meant.iter().map(most).sum::<u64>() as f64 * minutes
    }
}

fn engine_name(program: &str) -> &str {
    match program {
        PROMETHEUS_2 => "Prometheus 2.42",
        PROMETHEUS_3 => "Prometheus 3.5",
        _ => "VictoriaMetrics",
    }
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
        let mut promtool = command("promtool", ["tsdb", "create-blocks-from", "openmetrics"]);
        promtool.args([&file, &data]);
        succeed(promtool);
    }
    // A series that left is stale at the next scrape.
    Server::over_with(name, &data, &format!("--query.lookback-delta={}s", scrape + 1)).await
}

/// Every answer of an engine, compared with the truth of requests and of runs: the figures, and what is wrong.
async fn judged(
    server: &Server,
    life: &Life,
    queries: &BTreeSet<String>,
    (steady, scrape, project): (i64, i64, &str),
) -> [Verdict; 2] {
    let (requests, runs) = (life.counted("response_time"), life.counted("run_execution_time"));
    let of = |counted| Matrix { counted, steady, scrape, project, worst: 0.0, judged: 0, wrong: Vec::new() };
    let mut matrices = [of(&*requests), of(&*runs)];
    let (start, end) = (life.begun + 10 * MINUTE + 7, life.now());
    for query in queries {
        let (start, end, step) = (start.to_string(), end.to_string(), LOOK.to_string());
        let asked = [("query", query.as_str()), ("start", &*start), ("end", &*end), ("step", &*step)];
        let runs = usize::from(About::of(query) == About::Rate { runs: true });
        for row in result_of(&format!("http://{}", server.address), "/api/v1/query_range", &asked).await {
            matrices[runs].judge(query, &row);
        }
    }
    matrices.map(|matrix| (matrix.judged, matrix.worst, matrix.wrong))
}

/// How many answers were judged, the worst error in steady traffic, and what is wrong.
type Verdict = (usize, f64, Vec<String>);

/// The pages of an app and of the catalogue, as they would be for this app.
async fn shown_pages(project: &str, app: &str) -> [String; 2] {
    let demo = Exporter::start(&["--demo"]);
    demo.wait_for("/-/ready").await;
    let home = demo.get("/").await;
    let link = home.split("href=\"/apps/").nth(1).unwrap().split('"').next().unwrap();
    let (shown_project, shown_app) = link.split_once('/').unwrap();
    let page =
        demo.get(&format!("/apps/{link}")).await.replace(shown_app, app).replace(shown_project, project);
    [page, demo.get("/metrics-catalogue").await]
}

#[tokio::test(start_paused = true)]
async fn every_query_is_right_off_the_grid_in_three_engines() {
    let mut lives = Vec::new();
    for scrape in [15_u32, 30, 60] {
        lives.push((i64::from(scrape), recorded(u64::from(scrape)).await));
    }
    let folder = tempfile::tempdir().unwrap();
    tokio::time::resume();
    let projects = lives[0].1.0.world.projects();
    let (project, app) = (projects[0].0.to_string(), projects[0].1[0].to_string());
    let pages = shown_pages(&project, &app).await;

    let mut wrong = Vec::new();
    let mut table =
        "| scraped every | engine | answers | worst error in steady traffic |\n| --- | --- | ---: | ---: |\n"
            .to_owned();
    for (scrape, (life, steady)) in lives {
        let text = life.openmetrics();
        let queries = queries(&project, &app, &pages, scrape);
        assert!(queries.len() > 100, "{}", queries.len());
        for name in [PROMETHEUS_2, PROMETHEUS_3, "victoria-metrics"] {
            let server = engine(name, &text, folder.path(), scrape).await;
            let matrices = judged(&server, &life, &queries, (steady, scrape, &project)).await;
            let judged: usize = matrices.iter().map(|(judged, ..)| judged).sum();
            assert!(judged > 3000, "{judged}");
            let worst = matrices.iter().map(|(_, worst, _)| *worst).fold(0.0, f64::max);
            let worst = [0.0001, 0.001, 0.01].into_iter().find(|bound| worst < *bound).unwrap_or(1.0);
            // To hundreds, as moments of polls differ by milliseconds.
            let judged = judged / 1000 * 1000;
            writeln!(
                table,
                "| {scrape} s | {} | over {judged} | under {} % |",
                engine_name(name),
                worst * 100.0
            )
            .unwrap();
            wrong.extend(
                matrices.into_iter().flat_map(|(.., wrong)| wrong).map(|told| format!("{name}: {told}")),
            );
        }
    }
    assert_current("docs/counters.md", "matrix", &table);
    // One of each kind.
    let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for told in wrong {
        let (kind, _) = told.split_once("\n{").unwrap_or((&told, ""));
        kinds.entry(kind.to_owned()).or_insert((0, told.clone())).0 += 1;
    }
    assert!(kinds.is_empty(), "{kinds:#?}");
}
