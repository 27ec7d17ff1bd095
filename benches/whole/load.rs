//! The cost of the exporter over time: memory, processor, disk.

use std::time::{Duration, Instant};

use crate::daemon::{Exporter, Setting};
use crate::growth::{self, Load};
use crate::polls;
use crate::process::{Core, number_of, role};
use crate::scrape::{Scraper, value};
use crate::table::{self, Figure, Target};

/// How many minutes are measured of which the middle one counts.
const MINUTES: usize = 3;
const STEADY: &str = "[state]\npath = \"FOLDER/state.log\"\n";

fn on_any_core(apps: usize, tables: &str) -> Setting<'_> {
    Setting { core: Core::Any, upstream_core: Core::Any, ..Setting::new(apps, tables) }
}

/// Memory at a million series, and at ten apps; time to the first scrape; size of the program.
pub(crate) fn memory(daemon: &str) {
    let exporter = Exporter::start(daemon, on_any_core(10_000, "")).ready();
    // The second round begins half an interval after the first; what follows is scraped while polls go on.
    std::thread::sleep(Duration::from_secs(35));
    let before_scrapes = exporter.process.memory();
    for _ in 0..15 {
        exporter.scraper(true).get(|_| ());
        std::thread::sleep(Duration::from_secs(2));
    }
    let (now, most) = exporter.process.memory();
    let page = exporter.page();
    let series = page.lines().filter(|line| !line.starts_with('#') && line.contains('{')).count() as f64;
    let note = format!(
        "{:.0} MB at peak, {:.0} MB after, {:.0} MB before the first scrape; {series} series",
        most as f64 / 1e6,
        now as f64 / 1e6,
        before_scrapes.0 as f64 / 1e6
    );
    table::row(
        "bytes a series, 10,000 apps, polled and scraped with gzip",
        most as f64 / series,
        1,
        Target::AtMost(60.0),
        &note,
    );
    drop(exporter);

    // An hour at a poll a minute and a scrape each 15 seconds, in one minute.
    let fast = "[poll]\ninterval = \"1s\"\nsettings_interval = \"5s\"\n[accounting]\nstep = \"1s\"\n";
    let exporter = Exporter::start(daemon, on_any_core(10, fast));
    let first = exporter.first_scrape();
    let exporter = exporter.ready();
    for _ in 0..240 {
        exporter.scraper(true).get(|_| ());
        std::thread::sleep(Duration::from_millis(250));
    }
    let (now, most) = exporter.process.memory();
    let note = format!("after 60 polls and 240 scrapes; {:.1} MB at peak", most as f64 / 1e6);
    table::row("RSS in MB, 10 apps", now as f64 / 1e6, 1, Target::AtMost(11.0), &note);
    table::row(
        "start to first answered scrape, ms",
        first.as_secs_f64() * 1e3,
        0,
        Target::AtMost(50.0),
        "10 apps",
    );
    let size = std::fs::metadata(daemon).unwrap().len() as f64 / 1e6;
    table::row("stripped binary, MB", size, 1, Target::AtMost(11.0), "");
}

/// Processor time, memory and disk by the number of apps at one poll and two scrapes a minute. The service is on a core
/// of its own: on the exporter's it would run between its lines.
pub(crate) fn steady(daemon: &str) {
    let loads = [10, 100, 1_000, 10_000].map(|apps| steady_load(daemon, apps));
    // The difference between 100 and 1,000 apps foretells 10,000.
    let [_, few, more, most] = &loads;
    let grown = |at: fn(&Load) -> f64| {
        let slope = (at(more) - at(few)) / (more.apps - few.apps);
        at(most) / (at(few) + slope * (most.apps - few.apps))
    };
    for (what, at) in [("CPU", (|of| of.cpu) as fn(&Load) -> f64), ("memory", |of| of.memory)] {
        let what = format!("{what} at 10,000 apps / straight line through 100 and 1,000");
        table::row(&what, grown(at), 2, Target::AtMost(1.15), "");
    }
    growth::draw(&loads);
}

/// Processor time of polling 10,000 apps once a minute, against a loop that makes as many requests in the same groups
/// and only decodes the replies: waking up and cold caches cost both the same. Nothing is scraped.
pub(crate) fn paced(daemon: &str) {
    const APPS: usize = 10_000;
    let exporter = Exporter::start(daemon, Setting::new(APPS, STEADY)).ready();
    std::thread::sleep(Duration::from_secs(60));
    let mut requests = 0.0;
    let of_exporter: Vec<f64> = (0..MINUTES)
        .map(|_| {
            let (cpu, served, began) = (exporter.process.cpu(), exporter.served(), Instant::now());
            std::thread::sleep(Duration::from_secs(60));
            let seconds = began.elapsed().as_secs_f64();
            requests = (exporter.served() - served) / seconds;
            (exporter.process.cpu() - cpu) / seconds * 100.0
        })
        .collect();
    polls::stop(&exporter.process);
    let of_bare: Vec<f64> = (0..MINUTES)
        .map(|_| {
            let mut command = role("bare", Core::First);
            command.args([&exporter.upstream.url, &APPS.to_string(), &(requests * 60.0).round().to_string()]);
            command.args(["32", "h1", &requests.to_string()]);
            number_of(command, "cpu ") / 60.0 * 100.0
        })
        .collect();
    let ratio = of_exporter.iter().zip(&of_bare).map(|(exporter, bare)| exporter / bare).collect();
    let note = format!("{requests:.0} requests/s in groups of 100 ms");
    table::row("10000 apps, polling / paced bare loop", Figure::of(ratio), 2, Target::AtMost(1.3), &note);
    table::row("10000 apps, polling: % of a core", Figure::of(of_exporter), 2, Target::None, "not scraped");
    table::row("paced bare loop: % of a core", Figure::of(of_bare), 2, Target::None, &note);
}

/// Percent of a core in a minute with two scrapes; `lag` becomes the latest poll's seconds where they are more.
fn minute(exporter: &Exporter, lag: &mut f64) -> f64 {
    let (cpu, began) = (exporter.process.cpu(), Instant::now());
    let lag_page = format!("{}?name[]=pds_exporter_poll_lag_seconds", exporter.metrics());
    for second in 0..60 {
        std::thread::sleep(
            (began + Duration::from_secs(second + 1)).saturating_duration_since(Instant::now()),
        );
        if second % 30 == 15 {
            exporter.scraper(true).get(|_| ());
        }
        let page = String::from_utf8_lossy(&Scraper::new(&lag_page, false).body()).into_owned();
        *lag = lag.max(value(&page, "pds_exporter_poll_lag_seconds").unwrap_or(0.0));
    }
    (exporter.process.cpu() - cpu) / began.elapsed().as_secs_f64() * 100.0
}

fn steady_load(daemon: &str, apps: usize) -> Load {
    // A fifth more than the polls need, or the default. Without a limit, the first round would be
    // the most there is to do.
    let rate = (apps * 85 / 1_000).max(50);
    let setting = Setting { rate, ..Setting::new(apps, STEADY) };
    let exporter = Exporter::start(daemon, setting).ready();
    // The first round comes out of turn.
    std::thread::sleep(Duration::from_secs(60));
    exporter.scraper(true).get(|_| ());
    let (served, written) = (exporter.served(), exporter.process.written());
    let began = Instant::now();
    let mut lag: f64 = 0.0;
    let cpu = Figure::of((0..MINUTES).map(|_| minute(&exporter, &mut lag)).collect());
    let seconds = began.elapsed().as_secs_f64();
    let load =
        Load { apps: apps as f64, cpu: cpu.median(), memory: exporter.process.memory().1 as f64 / 1e6 };
    let requests = (exporter.served() - served) / seconds;
    let written = (exporter.process.written() - written) as f64 / seconds / 1e3;
    let large = |target| if apps == 10_000 { target } else { Target::None };
    let note = format!("{requests:.0} requests/s, 2 scrapes a minute");
    let what = format!("{apps} apps each minute: % of a core");
    table::row(&what, cpu, 2, large(Target::AtMost(5.0)), &note);
    table::row(&format!("{apps} apps: RSS in MB"), load.memory, 1, large(Target::AtMost(70.0)), "at peak");
    let what = format!("{apps} apps: latest poll, s late");
    table::row(&what, lag, 2, large(Target::AtMost(6.0)), "of an interval of 60 s");
    let note = format!("state file {:.1} MB", exporter.state_size() as f64 / 1e6);
    table::row(&format!("{apps} apps: state written, kB/s"), written, 0, Target::None, &note);
    if let Some(flushes) = exporter.process.flushes(Duration::from_secs(10)) {
        let what = format!("{apps} apps: fsyncs a second");
        table::row(&what, flushes, 1, large(Target::AtMost(5.0)), "counted by strace");
    }
    load
}
