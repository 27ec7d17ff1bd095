//! What scraping costs: pages that have not changed, and pages while everything changes.

use std::time::{Duration, Instant};

use pds_exposition::Format;

use crate::daemon::{Exporter, FOR_A_CORE, Setting, WITHOUT_PAUSE};
use crate::fixture::store::Filled;
use crate::fixture::{APPS_A_PROJECT, project, rivals};
use crate::process::{Core, Process, role};
use crate::scrape::{self, Scraper};
use crate::table::{Figure, Table, Target};

const QUIET: &str = "[poll]\ninterval = \"1h\"\nsettings_interval = \"1h\"\nstale_after = \"10h\"\n";

/// Pages when nothing has changed, against a server that answers with the same bytes.
pub(crate) fn throughput(daemon: &str, table: &mut Table) {
    for (apps, size) in [(10, "1k"), (1_000, "100k"), (10_000, "1M")] {
        let setting = Setting {
            apps,
            delay: 0,
            concurrency: 32,
            tables: QUIET,
            core: Core::First,
            upstream_core: Core::Last,
        };
        let exporter = Exporter::start(daemon, setting).ready();
        for gzip in [false, true] {
            // A large plain page is kept from the second time on.
            exporter.scraper(gzip).get(|_| ());
            std::thread::sleep(Duration::from_millis(50));
            let body = exporter.scraper(gzip).body();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &body).unwrap();
            let mut constant = role("constant", Core::First);
            constant.arg(file.path());
            let constant = Process::start(constant);
            let rounds = (0..9).map(|_| {
                let ours = scrape::throughput(&exporter.metrics(), gzip, Duration::from_secs(1));
                ours / scrape::throughput(&format!("{}/", constant.url), gzip, Duration::from_secs(1))
            });
            let rounds = Figure::of(rounds.collect());
            let coding = if gzip { "gzip" } else { "plain" };
            let what = format!("unchanged page of {size} series, {coding} / constant body");
            table.row(
                &what,
                rounds,
                2,
                Target::AtLeast(0.9),
                &format!("throughput, {} kB", body.len() / 1000),
            );
        }
    }
}

/// gzip scrapes of a thousand apps while as many are polled as can be, against what each has to make: with nothing else
/// to do, and while the same exporter polls. The second tells what the system's scheduler adds.
pub(crate) fn contention(daemon: &str, table: &mut Table) {
    const SCRAPED: usize = 1_000;
    let (most, any) = (Target::AtMost(1.5), Target::None);
    let cases = [
        (SCRAPED, 20, "polled at 20 ms a request", most, any),
        (FOR_A_CORE, 0, "beside polls of a whole core", any, Target::AtMost(1.5)),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let filled = runtime.block_on(Filled::new(SCRAPED));
    let mut page = Vec::new();
    let mut make = || {
        filled.change();
        filled.render(Format::Text, &mut page);
        drop(rivals::gzip(&page));
    };
    let projects = (0..SCRAPED).step_by(APPS_A_PROJECT).map(|n| format!("project={}&", project(n)));
    let query: String = projects.collect();
    for (apps, delay, what, target, target_beside) in cases {
        let mut rounds: Vec<[f64; 6]> = (0..5)
            .map(|_| {
                let (limit, _) = latencies(21, &mut make);
                let setting = Setting {
                    apps,
                    delay,
                    concurrency: 32,
                    tables: WITHOUT_PAUSE,
                    core: Core::Any,
                    upstream_core: Core::Any,
                };
                let exporter = Exporter::start(daemon, setting).ready();
                let mut scraper = Scraper::new(&format!("{}?{query}", exporter.metrics()), true);
                let (p50, p99) = latencies(200, || {
                    scraper.get(|_| ());
                });
                let (cpu, began) = (exporter.process.cpu(), Instant::now());
                let (_, beside) = latencies(200, &mut make);
                let cores = (exporter.process.cpu() - cpu) / began.elapsed().as_secs_f64();
                [p99 / limit, p50, p99, limit, p99 / beside, cores]
            })
            .collect();
        rounds.sort_by(|one, other| one[0].total_cmp(&other[0]));
        let [_, p50, p99, limit, _, cores] = rounds[rounds.len() / 2];
        let all = |at: usize| Figure::of(rounds.iter().map(|round| round[at]).collect());
        table.row(
            &format!("gzip scrape p99, 100k series {what} / (render + one pass)"),
            all(0),
            2,
            target,
            &format!("p50 {p50:.1} ms, p99 {p99:.1} ms; render + one pass {limit:.1} ms"),
        );
        table.row(
            &format!("gzip scrape p99, 100k series {what} / p99 of render + one pass beside it"),
            all(4),
            2,
            target_beside,
            &format!("polls take {:.0} % of a core beside it", cores * 100.0),
        );
    }
}

/// Half of `times` calls take at most the first so many milliseconds, and all but one in a hundred the second.
fn latencies(times: usize, mut call: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<f64> = (0..times)
        .map(|_| {
            let began = Instant::now();
            call();
            let took = began.elapsed().as_secs_f64() * 1e3;
            std::thread::sleep(Duration::from_millis(10));
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}
