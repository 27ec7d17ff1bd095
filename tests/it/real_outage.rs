//! Outages of a service, as a real Prometheus sees them: its rates never read a false zero or a false peak.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use pds_exporter::app::daemon::Handle;
use pds_exporter::catalogue::Format;
use pds_exporter::clock::Clock;
use pds_exporter::interface::TimeRange;
use pds_exporter::simulator::{Fault, Settings, World};

use crate::process::series;
use crate::rig::{self, Configuration};
use crate::server::Server;
use crate::tools::tool;

/// Between two scrapes.
const SCRAPE: u64 = 15;
const MINUTE: i64 = 60;
const HOUR: i64 = 3600;

/// What was scraped of one app, by series: seconds and values.
#[derive(Default)]
struct Recording {
    scrapes: i64,
    series: BTreeMap<String, Vec<(i64, f64)>>,
}

impl Recording {
    fn scrape(&mut self, handle: &Handle, clock: &Clock) {
        let now = clock.unix_seconds();
        let page = rig::page(handle.context(), Format::Text);
        let counted = ["pds_app_requests_total", "pds_app_accounted_until"];
        for (name, value) in series(&page).filter(|(name, _)| counted.iter().any(|c| name.starts_with(c))) {
            self.series.entry(name.to_owned()).or_default().push((now, value));
        }
        self.scrapes += 1;
    }

    /// The recording as Prometheus' backfill reads it.
    fn openmetrics(&self) -> String {
        let mut text = String::new();
        for (name, samples) in &self.series {
            for (second, value) in samples {
                writeln!(text, "{name} {value} {second}").unwrap();
            }
        }
        text + "# EOF\n"
    }

    /// The samples of the app's counter.
    fn requests(&self) -> &[(i64, f64)] {
        let mut counters = self.series.iter().filter(|(name, _)| name.starts_with("pds_app_requests_total"));
        counters.next().unwrap().1
    }
}

/// An exporter of one app and its service, in paused time.
struct Life {
    world: World,
    clock: Clock,
    handle: Handle,
    recording: Recording,
}

impl Life {
    async fn begin() -> Self {
        let clock = Clock::starting_at("2026-03-01T08:00:20Z".parse().unwrap());
        let world = World::new(Settings { projects: 1, apps: 1, ..Settings::default() }, clock.clone());
        let config = Configuration::new(&world, &rig::serve(&world).await).load();
        let handle = rig::daemon(config, &clock).await;
        Self { world, clock, handle, recording: Recording::default() }
    }

    async fn last(&mut self, seconds: i64) {
        let end = self.clock.unix_seconds() + seconds;
        while self.clock.unix_seconds() < end {
            tokio::time::sleep(Duration::from_secs(SCRAPE)).await;
            self.recording.scrape(&self.handle, &self.clock);
        }
    }

    /// The service fails for so long; when that was.
    async fn outage(&mut self, seconds: i64) -> TimeRange {
        let start = self.clock.unix_seconds();
        self.world.faults().set([Fault::status(500)]);
        self.last(seconds).await;
        self.world.faults().clear();
        TimeRange { start, end: self.clock.unix_seconds() }
    }

    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    fn truth(&self, start: i64, end: i64) -> f64 {
        let (project, apps) = self.world.projects().remove(0);
        self.world.truth(&project, &apps[0], TimeRange { start, end }).unwrap().requests as f64
    }
}

/// Several outages, recorded.
async fn recorded() -> (Life, Vec<TimeRange>) {
    let mut life = Life::begin().await;
    life.last(HOUR).await;
    let mut outages = Vec::new();
    for minutes in [3, 40, 7 * 60] {
        outages.push(life.outage(minutes * MINUTE).await);
        life.last(90 * MINUTE).await;
    }
    (life, outages)
}

#[tokio::test(start_paused = true)]
async fn counters_leave_the_page_in_an_outage_and_come_back_with_all_that_happened() {
    let (life, outages) = recorded().await;
    let samples = life.recording.requests();
    for outage in &outages {
        let shown = |from: i64, to: i64| samples.iter().filter(|(at, _)| (from..to).contains(at)).count();
        // The last poll before the outage was up to a minute before it; its counters stay two intervals longer than
        // the next one would have taken.
        if outage.end - outage.start > 5 * MINUTE {
            let stayed =
                samples.iter().filter(|(at, _)| (outage.start..outage.end).contains(at)).map(|(at, _)| at);
            let stayed = stayed.max().unwrap() - outage.start;
            assert!((MINUTE..4 * MINUTE).contains(&stayed), "they stayed for {stayed} s");
        }
        // Seven hours come back in a few requests, one a poll.
        assert!(shown(outage.end + 8 * MINUTE, outage.end + 60 * MINUTE) > 200, "they are back");
    }
    // Beyond the two intervals that a counter may stand still, each step is one of some seconds.
    for pair in samples.windows(2) {
        let ((before, from), (after, to)) = (pair[0], pair[1]);
        assert!(to >= from, "{pair:?}");
        let most = life.truth(before - 5 * MINUTE, after);
        assert!(to - from <= most, "{pair:?}: {most}");
    }
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let until = |at: i64| {
        let mut cursors = life.recording.series.iter().filter(|(name, _)| {
            name.starts_with("pds_app_accounted_until") && name.contains("response_time")
        });
        cursors.next().unwrap().1.iter().find(|(second, _)| *second == at).unwrap().1 as i64
    };
    assert_eq!(
        last.1 - first.1,
        life.truth(until(first.0), until(last.0)),
        "nothing is lost over three outages"
    );
}

#[tokio::test(start_paused = true)]
async fn prometheus_reads_no_zero_and_no_peak_that_there_was_not() {
    let (life, outages) = recorded().await;
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("recording.txt");
    std::fs::write(&text, life.recording.openmetrics()).unwrap();
    let output = Command::new(tool("promtool"))
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&text, &folder.path().join("data")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tokio::time::resume();
    let prometheus = Server::over(&folder.path().join("data")).await;
    let time = |second: i64| Timestamp::from_second(second).unwrap();
    let rates = async |window: &str, start: i64, end: i64| -> Vec<(i64, f64)> {
        let expression = format!("rate(pds_app_requests_total[{window}])");
        prometheus.range(&expression, time(start), time(end), MINUTE).await
    };
    let samples = life.recording.requests();
    let (first, last) = (samples[0].0, samples[samples.len() - 1].0);
    for (window, seconds) in [("5m", 5 * MINUTE), ("10m", 10 * MINUTE), ("1h", HOUR)] {
        for (at, rate) in rates(window, first + HOUR, last).await {
            // A counter moves once a poll. A window that holds less than two and a half intervals of samples, at the
            // end and at the return of the series, may see it stand, or more steps than time.
            let inside: Vec<i64> =
                samples.iter().map(|(at, _)| *at).filter(|s| (at - seconds + 1..=at).contains(s)).collect();
            let held = inside.last().unwrap_or(&0) - inside.first().unwrap_or(&0);
            if held < 5 * MINUTE / 2 {
                continue;
            }
            assert!(rate > 0.0, "{window}: 0 at {at}, and there was traffic");
            // What a window may have counted: its own time, and what the newest sample is behind.
            let (short, long) = (seconds, seconds + 5 * MINUTE);
            let most = life.truth(at - long, at) / long as f64;
            let more = life.truth(at - short - MINUTE, at - MINUTE) / short as f64;
            assert!(
                rate <= 1.5 * most.max(more),
                "{window}: {rate} at {at}, and there were {most} to {more}"
            );
        }
    }
    let long = outages[2];
    let within = rates("5m", long.start + 9 * MINUTE, long.end).await;
    assert_eq!(within, [], "the rate ends in an outage as for any series that leaves");

    let expression = "increase(pds_app_requests_total[10h])";
    for (_, _, increase) in prometheus.by_app(expression, time(last)).await {
        let truth = life.truth(last - 10 * HOUR - MINUTE, last - MINUTE);
        assert!((increase / truth - 1.0).abs() < 0.01, "{increase}, and there were {truth}");
    }
}
