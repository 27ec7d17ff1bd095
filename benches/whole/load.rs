//! What the exporter takes over time: memory, processor, disk.

use std::time::{Duration, Instant};

use crate::daemon::{Exporter, Setting};
use crate::process::Core;
use crate::scrape::value;
use crate::table::{Table, Target};

const STEADY: &str = "[state]\npath = \"FOLDER/state.redb\"\n";

fn setting(apps: usize, tables: &str) -> Setting<'_> {
    Setting { apps, delay: 0, concurrency: 32, tables, core: Core::Any, upstream_core: Core::Any }
}

/// Memory at a million series, and at ten apps; time to the first scrape; size of the program.
pub(crate) fn memory(daemon: &str, table: &mut Table) {
    let exporter = Exporter::start(daemon, setting(10_000, "")).ready();
    let before_scrapes = exporter.process.memory();
    for _ in 0..10 {
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
    table.row(
        "bytes a series, 10,000 apps, polled and scraped with gzip",
        most as f64 / series,
        1,
        Target::AtMost(64.0),
        &note,
    );
    drop(exporter);

    // An hour at a poll a minute and a scrape each 15 seconds, in one minute.
    let fast = "[poll]\ninterval = \"1s\"\nsettings_interval = \"5s\"\n[accounting]\nstep = \"1s\"\n";
    let exporter = Exporter::start(daemon, setting(10, fast));
    let first = exporter.first_scrape();
    let exporter = exporter.ready();
    for _ in 0..240 {
        exporter.scraper(true).get(|_| ());
        std::thread::sleep(Duration::from_millis(250));
    }
    let (now, most) = exporter.process.memory();
    let note = format!("after 60 polls and 240 scrapes; {:.1} MB at peak", most as f64 / 1e6);
    table.row("RSS in MB, 10 apps", now as f64 / 1e6, 1, Target::AtMost(12.0), &note);
    table.row(
        "start to first answered scrape, ms",
        first.as_secs_f64() * 1e3,
        0,
        Target::AtMost(50.0),
        "10 apps",
    );
    let size = std::fs::metadata(daemon).unwrap().len() as f64 / 1e6;
    table.row("stripped binary, MB", size, 1, Target::AtMost(12.0), "");
}

/// Processor time and memory by the number of apps at one poll a minute, with counters and state.
pub(crate) fn steady(daemon: &str, table: &mut Table) {
    let mut of_apps = Vec::new();
    for apps in [100, 1_000, 10_000] {
        let exporter = Exporter::start(daemon, setting(apps, STEADY)).ready();
        // The first round comes out of turn.
        std::thread::sleep(Duration::from_secs(60));
        let (cpu, served, written) = (exporter.process.cpu(), exporter.served(), exporter.process.written());
        let began = Instant::now();
        let mut lag: f64 = 0.0;
        while began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_secs(1));
            let mut small = crate::scrape::Scraper::new(
                &format!("{}?name[]=pds_exporter_poll_lag_seconds", exporter.metrics()),
                false,
            );
            let page = String::from_utf8_lossy(&small.body()).into_owned();
            lag = lag.max(value(&page, "pds_exporter_poll_lag_seconds").unwrap_or(0.0));
        }
        let seconds = began.elapsed().as_secs_f64();
        let share = (exporter.process.cpu() - cpu) / seconds * 100.0;
        let requests = (exporter.served() - served) / seconds;
        let written = (exporter.process.written() - written) as f64 / seconds / 1e3;
        let memory = exporter.process.memory().0 as f64 / 1e6;
        of_apps.push((apps as f64, share, memory));
        let target = if apps == 10_000 { Target::AtMost(5.0) } else { Target::None };
        table.row(
            &format!("{apps} apps each minute: % of a core"),
            share,
            2,
            target,
            &format!("{requests:.0} requests/s"),
        );
        let target = if apps == 10_000 { Target::AtMost(6.0) } else { Target::None };
        table.row(&format!("{apps} apps: latest poll, s late"), lag, 2, target, "of an interval of 60 s");
        let note = format!("state file {:.1} MB; RSS {memory:.1} MB", exporter.state_size() as f64 / 1e6);
        table.row(&format!("{apps} apps: state written, kB/s"), written, 0, Target::None, &note);
    }
    // What lies between 100 and 1,000 apps foretells 10,000.
    let [few, more, most] = of_apps[..] else { return };
    let grown = |at: fn(&(f64, f64, f64)) -> f64| {
        let slope = (at(&more) - at(&few)) / (more.0 - few.0);
        at(&most) / (at(&few) + slope * (most.0 - few.0))
    };
    table.row(
        "CPU at 10,000 apps / straight line through 100 and 1,000",
        grown(|of| of.1),
        2,
        Target::AtMost(1.15),
        "",
    );
    table.row(
        "memory at 10,000 apps / straight line through 100 and 1,000",
        grown(|of| of.2),
        2,
        Target::AtMost(1.15),
        "",
    );
}
