//! The status pages of many apps, the model behind them read anew each time: `cargo bench --bench pages`.
//!
//! A refresh has 50 ms for the overview of 2,000 apps.
#![allow(clippy::unwrap_used, reason = "a bench that can't go on ends")]

#[path = "fixture/mod.rs"]
mod fixture;

use divan::Bencher;
use fixture::site::Site;
use pds_exporter::pages::Rendered;

fn main() {
    divan::main();
}

#[divan::bench(
    args = ["/", "/?sort=p95", "/?name=service-00042", "/?page=5", "/api/v1/status", "/metrics-catalogue"],
    sample_count = 20
)]
fn page_of_2_000_apps(bencher: Bencher<'_, '_>, address: &str) {
    let site = Site::new(2_000);
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    bencher.bench_local(|| {
        site.forget();
        let reply = site.pages.respond(path, query);
        assert!(matches!(reply, Some(Rendered::Page(_) | Rendered::Json(_))));
        reply
    });
}

#[divan::bench(args = [100, 2_000, 10_000, 100_000], sample_count = 20)]
fn overview(bencher: Bencher<'_, '_>, apps: usize) {
    let site = Site::new(apps);
    bencher.bench_local(|| {
        site.forget();
        site.pages.respond("/", "")
    });
}
