//! The cost of scrapes while everything changes.

use std::time::{Duration, Instant};

use pds_exporter::store::Filter;
use pds_exposition::Format;
use tokio::runtime::Runtime;

use crate::daemon::{FOR_A_CORE, WITHOUT_PAUSE};
use crate::fixture::store::Filled;
use crate::fixture::{APPS_A_PROJECT, app, project, rivals};
use crate::table::{self, Figure, Target};
use crate::web::{Http, Polling, Web};

/// One app in this many is selected.
const PART: usize = 20;

/// An exporter that polls as often as it can, and the page that one like it has.
struct Busy {
    polling: Polling,
    filled: Filled,
}

impl Busy {
    /// Polls so many apps, which take `delay` milliseconds to answer.
    fn start(daemon: &str, runtime: &Runtime, web: Web, apps: usize, delay: usize) -> Self {
        let polling = runtime.block_on(Polling::start(daemon, web, apps, delay, WITHOUT_PAUSE));
        Self { polling, filled: runtime.block_on(Filled::new(apps)) }
    }

    /// Scrapes, and then makes the same page here beside the same polls: what it takes longer is the exporter's.
    fn measure(&self, runtime: &Runtime, http: Http, query: &str, times: usize) -> Figures {
        let exporter = &self.polling.exporter;
        let client = self.polling.scraper(http, true);
        let url = format!("{}/metrics?{query}", self.polling.url());
        let (p50, p99) = latencies(times, || {
            let scrape = async { client.get(&url).send().await?.error_for_status()?.bytes().await };
            assert!(runtime.block_on(scrape).unwrap().len() > 1000);
        });
        let (cpu, began) = (exporter.cpu(), Instant::now());
        let (filter, mut page) = (Filter::parse(Some(query)), Vec::new());
        let (_, beside) = latencies(times, || self.make(&filter, &mut page));
        let cores = (exporter.cpu() - cpu) / began.elapsed().as_secs_f64();
        Figures { p50, p99, beside, cores }
    }

    fn make(&self, filter: &Filter, page: &mut Vec<u8>) {
        self.filled.change();
        self.filled.render_part(Format::Text, filter, page);
        drop(rivals::gzip(page));
    }
}

/// The measurements of one selection.
struct Figures {
    /// Milliseconds that half of the scrapes took, and all but one in a hundred.
    p50: f64,
    p99: f64,
    /// The same 99th percentile of making the page here.
    beside: f64,
    /// Processor time of the exporter meanwhile.
    cores: f64,
}

/// gzip scrapes of each selection, over each kind of connection, while as many apps are polled as can be; and of all while
/// they are polled at an ordinary pace.
pub(crate) fn cost(daemon: &str) {
    let runtime = Runtime::new().unwrap();
    paced(daemon, &runtime);
    // The exporter offers HTTP/2 over TLS only.
    for (web, versions) in [(Web::Plain, &[Http::One][..]), (Web::Tls, &[Http::One, Http::Two])] {
        let busy = Busy::start(daemon, &runtime, web, FOR_A_CORE, 0);
        for (selection, query, times) in selections() {
            for &http in versions {
                let mut rounds: Vec<_> =
                    (0..3).map(|_| busy.measure(&runtime, http, &query, times)).collect();
                rounds.sort_by(|one, other| one.p99.total_cmp(&other.p99));
                let tls = if web == Web::Tls { ", TLS" } else { "" };
                let what = format!(
                    "gzip scrape p99, {selection} of {FOR_A_CORE} apps, HTTP/{http}{tls} / making it beside the same polls"
                );
                let ratios = Figure::of(rounds.iter().map(|round| round.p99 / round.beside).collect());
                let Figures { p50, p99, cores, .. } = &rounds[1];
                let polls = cores * 100.0;
                let note = format!("p50 {p50:.1} ms, p99 {p99:.1} ms; polls take {polls:.0} % of a core");
                table::row(&what, ratios, 2, Target::AtMost(1.3), &note);
            }
        }
    }
}

/// Name and query of each selection, and how often it is scraped.
fn selections() -> [(&'static str, String, usize); 4] {
    let projects = (0..FOR_A_CORE).step_by(PART * APPS_A_PROJECT).map(|n| format!("project={}&", project(n)));
    let apps = (0..FOR_A_CORE).step_by(PART).map(|n| format!("app={}&", app(n)));
    [
        ("one in twenty by `project`", projects.collect(), 100),
        ("one in twenty by `app`", apps.collect(), 100),
        // Not a counter: those of an exporter that is late are hidden.
        ("one family", "name[]=pds_app_window_requests".to_owned(), 100),
        ("all", String::new(), 25),
    ]
}

/// A thousand apps polled at 20 ms a request, against making their page with nothing else to do.
fn paced(daemon: &str, runtime: &Runtime) {
    let busy = Busy::start(daemon, runtime, Web::Plain, 1_000, 20);
    let mut page = Vec::new();
    let mut rounds: Vec<_> = (0..5)
        .map(|_| {
            let (limit, _) = latencies(21, || busy.make(&Filter::default(), &mut page));
            (busy.measure(runtime, Http::One, "", 200), limit)
        })
        .collect();
    rounds.sort_by(|(one, _), (other, _)| one.p99.total_cmp(&other.p99));
    let (Figures { p50, p99, .. }, limit) = &rounds[2];
    table::row(
        "gzip scrape p99, 100k series polled at 20 ms a request / (render + one pass)",
        Figure::of(rounds.iter().map(|(round, limit)| round.p99 / limit).collect()),
        2,
        Target::AtMost(1.5),
        &format!("p50 {p50:.1} ms, p99 {p99:.1} ms; render + one pass {limit:.1} ms"),
    );
}

/// Half of `times` calls take at most the first so many milliseconds, and all but one in a hundred the second.
pub(crate) fn latencies(times: usize, mut call: impl FnMut()) -> (f64, f64) {
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
