//! The parts of a poll and of a scrape, each beside another way to do it: `cargo bench --bench parts`.
#![allow(clippy::unwrap_used, reason = "a bench that can't go on ends")]

#[path = "fixture/mod.rs"]
mod fixture;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fixture::rivals::{self, App, Envelope, ResponseTime, Runs};
use fixture::store::{Filled, reply};
use pds_exporter::store::{Filter, Pages};
use pds_exposition::Format;
use pds_interface::{Resource, get_app, response_time, run_execution_time};
use pds_web::Encoding;

fn main() {
    divan::main();
}

fn filled(apps: usize) -> Filled {
    runtime().block_on(Filled::new(apps))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Decoding a reply, reading its series, and putting them in their place; counters included.
#[divan::bench(args = [get_app::RESOURCE, response_time::RESOURCE, run_execution_time::RESOURCE])]
fn poll(bencher: Bencher<'_, '_>, resource: Resource) {
    let filled = filled(2);
    let target = filled.plan.targets.iter().find(|target| target.key.resource == resource).unwrap();
    let reply = reply(target, 2);
    bencher.bench_local(|| filled.poll(target, black_box(&reply)));
}

/// Decoding alone, into the types of a program that trusts the service.
#[divan::bench(args = [get_app::RESOURCE, response_time::RESOURCE, run_execution_time::RESOURCE])]
fn bare_decode(bencher: Bencher<'_, '_>, resource: Resource) {
    let filled = filled(2);
    let target = filled.plan.targets.iter().find(|target| target.key.resource == resource).unwrap();
    let reply = reply(target, 2);
    let body = reply.as_bytes();
    match resource {
        get_app::RESOURCE => bencher.bench_local(|| serde_json::from_slice::<App>(black_box(body)).unwrap()),
        response_time::RESOURCE => {
            bencher
                .bench_local(|| serde_json::from_slice::<Envelope<ResponseTime>>(black_box(body)).unwrap());
        }
        _ => bencher.bench_local(|| serde_json::from_slice::<Envelope<Runs>>(black_box(body)).unwrap()),
    }
}

const SIZES: [usize; 3] = [100, 1_000, 10_000];

#[divan::bench(args = SIZES, sample_count = 20)]
fn snapshot(bencher: Bencher<'_, '_>, apps: usize) {
    let filled = filled(apps);
    bencher.bench_local(|| filled.store.snapshot(tokio::time::Instant::now(), &Filter::default()));
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn render(bencher: Bencher<'_, '_>, apps: usize) {
    let (filled, mut page) = (filled(apps), Vec::new());
    filled.render(Format::Text, &mut page);
    let series = rivals::series(&page).len();
    bencher.counter(ItemsCount::new(series)).bench_local(|| filled.render(Format::Text, &mut page));
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn memcpy(bencher: Bencher<'_, '_>, apps: usize) {
    let (filled, mut page, mut copy) = (filled(apps), Vec::new(), Vec::new());
    filled.render(Format::Text, &mut page);
    let series = rivals::series(&page).len();
    bencher.counter(ItemsCount::new(series)).bench_local(|| {
        copy.clear();
        copy.extend_from_slice(black_box(&page));
    });
}

#[divan::bench(args = [1_000], sample_count = 10)]
fn std_write(bencher: Bencher<'_, '_>, apps: usize) {
    let (filled, mut page) = (filled(apps), Vec::new());
    filled.render(Format::Text, &mut page);
    let series = rivals::series(&page);
    bencher.counter(ItemsCount::new(series.len())).bench_local(|| rivals::std_write(&series, &mut page));
}

#[divan::bench(args = [1_000], sample_count = 10)]
fn prometheus_crate(bencher: Bencher<'_, '_>, apps: usize) {
    let (filled, mut page) = (filled(apps), Vec::new());
    filled.render(Format::Text, &mut page);
    let series = rivals::series(&page);
    let registry = rivals::registry(&series);
    bencher
        .counter(ItemsCount::new(series.len()))
        .bench_local(|| rivals::registry_page(&registry, &mut page));
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn gzip_pass(bencher: Bencher<'_, '_>, apps: usize) {
    let (filled, mut page) = (filled(apps), Vec::new());
    filled.render(Format::Text, &mut page);
    bencher.bench_local(|| rivals::gzip(black_box(&page)));
}

/// The whole page as a scraper gets it, after a change.
#[divan::bench(args = SIZES, sample_count = 10)]
fn gzip_page(bencher: Bencher<'_, '_>, apps: usize) {
    let (filled, runtime) = (filled(apps), runtime());
    let pages = Pages::new(filled.store.clone(), filled.telemetry.clone());
    bencher.bench_local(|| runtime.block_on(filled.page(&pages, Encoding::Gzip)));
}
