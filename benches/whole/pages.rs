//! What scraping costs: pages that have not changed, and pages while everything changes.

use std::time::{Duration, Instant};

use crate::daemon::{Exporter, Setting, WITHOUT_PAUSE};
use crate::process::{Core, Process, role};
use crate::scrape;
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
            let rounds = (0..5).map(|_| {
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

/// gzip scrapes while a thousand apps are polled without pause.
pub(crate) fn contention(daemon: &str, table: &mut Table) {
    for (delay, what) in [(20, "polled without pause, 20 ms each"), (0, "polled without pause, CPU-bound")] {
        let setting = Setting {
            apps: 1_000,
            delay,
            concurrency: 32,
            tables: WITHOUT_PAUSE,
            core: Core::Any,
            upstream_core: Core::Any,
        };
        let exporter = Exporter::start(daemon, setting).ready();
        let mut scraper = exporter.scraper(true);
        stop_for(&exporter, || ());
        let mut times: Vec<f64> = (0..200)
            .map(|_| {
                let began = Instant::now();
                scraper.get(|_| ());
                let took = began.elapsed().as_secs_f64() * 1e3;
                std::thread::sleep(Duration::from_millis(10));
                took
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        table.row(
            &format!("gzip scrape p99 in ms, 100k series {what}"),
            at(0.99),
            1,
            Target::None,
            &format!("p50 {:.1} ms, min {:.1} ms", at(0.5), times[0]),
        );
    }
}

fn stop_for(_: &Exporter, run: impl FnOnce()) {
    run();
}
