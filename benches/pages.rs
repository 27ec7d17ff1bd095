//! The status pages of many apps, the model behind them read anew each time: `cargo bench --bench pages`.
//!
//! A refresh has 50 ms for the overview of 2,000 apps.
#![allow(clippy::unwrap_used, reason = "a bench that can't go on ends")]

#[path = "fixture/mod.rs"]
mod fixture;

use std::sync::Arc;

use divan::Bencher;
use fixture::store::{Filled, RANGE};
use jiff::Timestamp;
use pds_exporter::app;
use pds_exporter::status::Source;
use pds_exporter::store::Polled;
use pds_exporter::web::pages::{Reply, Site};
use tokio::time::Duration;

fn main() {
    divan::main();
}

/// Apps that were asked for half an hour, and their pages.
fn site(apps: usize) -> (impl Fn(), Site) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let filled = runtime.block_on(Filled::new(apps));
    for minute in 0..30 {
        let at = Timestamp::from_second(RANGE.end + 60 * minute).unwrap();
        let subjects = filled.plan.targets.iter().flat_map(|target| &target.subjects);
        for subject in subjects {
            let poll = Polled { at, took: Duration::from_millis(120), failure: None };
            subject.cell.note(poll, &filled.plan.shown());
        }
    }
    let source = Source::new(filled.surroundings.clone(), Arc::clone(&filled.plan), Vec::new());
    let site = Site::new(source.clone(), app::catalogue(), "");
    // The model is kept for a second; following a plan, even the same, forgets it.
    let forget = move || source.follow(Arc::clone(&filled.plan), Vec::new());
    (forget, site)
}

#[divan::bench(
    args = ["/", "/?sort=p95", "/?name=service-00042", "/?page=5", "/api/v1/status", "/metrics-catalogue"],
    sample_count = 20
)]
fn page_of_2_000_apps(bencher: Bencher<'_, '_>, address: &str) {
    let (forget, site) = site(2_000);
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    bencher.bench_local(|| {
        forget();
        let reply = site.respond(path, query);
        assert!(matches!(reply, Reply::Page(_) | Reply::Json(_)));
        reply
    });
}

#[divan::bench(args = [100, 2_000, 10_000], sample_count = 20)]
fn overview(bencher: Bencher<'_, '_>, apps: usize) {
    let (forget, site) = site(apps);
    bencher.bench_local(|| {
        forget();
        site.respond("/", "")
    });
}
