//! Outages of a service, as a real Prometheus sees them: its rates never read a false zero or a false peak.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use pds_core::clock::Clock;
use pds_exporter::app::daemon::Handle;
use pds_exposition::Format;
use pds_interface::TimeRange;
use pds_simulator::{Fault, Settings, World};

use crate::process::series;
use crate::rig::{self, Configuration, FaultExt as _};
use crate::server::{Server, create_blocks};

/// Between two scrapes.
const SCRAPE: u64 = 15;
const MINUTE: i64 = 60;
const HOUR: i64 = 3600;

/// The scraped samples of one app by series: seconds and values.
#[derive(Default)]
struct Recording {
    scrapes: i64,
    series: BTreeMap<String, Vec<(i64, f64)>>,
}

impl Recording {
    fn scrape(&mut self, handle: &Handle, clock: &Clock) {
        let now = clock.unix_seconds();
        let page = rig::page(&handle.context, Format::Text);
        let counted = ["pds_app_requests_total", "pds_app_requests_accounted", "pds_app_accounted_until"];
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
        let samples_in =
            |from: i64, to: i64| samples.iter().filter(|(at, _)| (from..to).contains(at)).count();
        // The last poll before the outage was up to a minute before it; its counters stay two intervals longer than
        // the next one would have taken.
        if outage.end - outage.start > 5 * MINUTE {
            let stayed =
                samples.iter().filter(|(at, _)| (outage.start..outage.end).contains(at)).map(|(at, _)| at);
            let stayed = stayed.max().unwrap() - outage.start;
            assert!((MINUTE..4 * MINUTE).contains(&stayed), "they stayed for {stayed} s");
        }
        // Seven hours come back in a few requests, one a poll.
        assert!(samples_in(outage.end + 8 * MINUTE, outage.end + 60 * MINUTE) > 200, "they are back");
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

/// A Prometheus that has scraped `recording`.
async fn prometheus_of(recording: &Recording, folder: &Path) -> Server {
    let text = folder.join("recording.txt");
    std::fs::write(&text, recording.openmetrics()).unwrap();
    create_blocks(&text, &folder.join("data"));
    tokio::time::resume();
    Server::over(&folder.join("data")).await
}

/// The greatest and the least rate of requests over `seconds` that end up to five minutes before `at`: a counter ends a
/// step, a poll and `poll.settle` ago.
fn rates_near(life: &Life, at: i64, seconds: i64) -> (f64, f64) {
    let near = (0..=5 * MINUTE).step_by(15);
    let rates = near.map(|ago| life.truth(at - ago - seconds, at - ago) / seconds as f64);
    rates.fold((f64::MAX, 0.0), |(least, most), rate| (least.min(rate), most.max(rate)))
}

/// Whether a window holds samples of one stand of the counter only. It moves once a poll and is scraped four times
/// as often, so any series that leaves ends in some equal samples; once a window has passed everything before them, its
/// rate is 0 by arithmetic until it has passed them, too. Samples carry no timestamps, so no exporter can avoid it.
fn is_one_stand(samples: &[(i64, f64)], at: i64, seconds: i64) -> bool {
    let mut inside = samples.iter().filter(|(second, _)| (at - seconds + 1..=at).contains(second));
    let first = inside.next();
    inside.all(|(_, value)| first.is_some_and(|(_, first)| first == value))
}

#[tokio::test(start_paused = true)]
async fn prometheus_reads_no_zero_and_no_peak_that_there_was_not() {
    let (life, outages) = recorded().await;
    let folder = tempfile::tempdir().unwrap();
    let prometheus = prometheus_of(&life.recording, folder.path()).await;
    let time = |second: i64| Timestamp::from_second(second).unwrap();
    let query = async |expression: &str, start: i64, end: i64| -> Vec<(i64, f64)> {
        prometheus.range(expression, time(start), time(end), MINUTE).await
    };
    let samples = life.recording.requests();
    let ((first, from), (last, to)) = (samples[0], samples[samples.len() - 1]);
    for (window, seconds) in [("5m", 5 * MINUTE), ("10m", 10 * MINUTE), ("1h", HOUR)] {
        let mut stands = 0;
        let expression = format!("rate(pds_app_requests_total[{window}])");
        for (at, rate) in query(&expression, first + HOUR, last).await {
            let (_, most) = rates_near(&life, at, seconds);
            assert!(rate <= 1.5 * most, "{window}: {rate} at {at}, and there were {most} at most");
            if is_one_stand(samples, at, seconds) {
                stands += 1;
                let ends = |outage: &TimeRange| {
                    outage.start + seconds - MINUTE..=outage.start + seconds + 4 * MINUTE
                };
                // The first stand after the return.
                let begins = |outage: &TimeRange| {
                    let back = samples.iter().map(|(second, _)| *second).find(|second| *second > outage.end);
                    back.is_some_and(|back| (back..=back + 2 * MINUTE).contains(&at))
                };
                let known = outages.iter().any(|outage| ends(outage).contains(&at) || begins(outage));
                assert!(known, "{window}: a stand at {at}");
            } else {
                assert!(rate > 0.0, "{window}: 0 at {at}, and there was traffic");
            }
        }
        // As the recording rules have it: no value where the time that was counted has not moved.
        let known = format!(
            "{expression} and ignoring (resource) (increase((\
            pds_app_accounted_until_timestamp_seconds{{resource=\"response_time\"}} and ignoring (resource) \
            pds_app_requests_total)[{window}:15s]) > 0)"
        );
        let rates = query(&known, first + HOUR, last).await;
        assert!(rates.len() > 4 * 60, "{window}: {}", rates.len());
        for (at, rate) in rates {
            assert!(rate > 0.0, "{window}: 0 at {at}, and there was traffic");
        }
        // At most five minutes of it at the end, and two at the return, of each of the two long outages.
        assert!(stands <= 14, "{window}: {stands}");
    }
    for long in &outages[1..] {
        // The counters stay for three minutes and a half at most, and then their window has to pass.
        let rates = query("rate(pds_app_requests_total[5m])", long.start + 9 * MINUTE, long.end).await;
        assert_eq!(rates, [], "the rate ends in an outage as for any series that leaves");
    }

    // Prometheus extends what it saw by half the distance of two samples at each end where more is missing.
    let longest = (last - first) as f64;
    let extended = 1.0 + 2.2 * longest / (samples.len() - 1) as f64 / longest;
    for (_, _, increase) in prometheus.by_app("increase(pds_app_requests_total[1d])", time(last)).await {
        let counted = to - from;
        assert!((counted - 1e-6..=counted * extended).contains(&increase), "{increase} of {counted}");
    }
}

#[tokio::test(start_paused = true)]
async fn rates_of_accounted_time_are_right_as_soon_as_counters_return() {
    const ACCOUNTED: &str =
        "rate(pds_app_requests_total[5m]) / (rate(pds_app_requests_accounted_seconds_total[5m]) > 0)";
    let mut life = Life::begin().await;
    life.last(30 * MINUTE).await;
    let outage = life.outage(40 * MINUTE).await;
    life.last(30 * MINUTE).await;
    let folder = tempfile::tempdir().unwrap();
    let prometheus = prometheus_of(&life.recording, folder.path()).await;
    let time = |second: i64| Timestamp::from_second(second).unwrap();
    let end = life.recording.requests().last().unwrap().0;
    let rates = prometheus.range(ACCOUNTED, time(outage.start - 15 * MINUTE), time(end), 15).await;
    assert!(rates.iter().filter(|(at, _)| *at > outage.end).count() > 80);
    for (at, rate) in rates {
        let (least, most) = rates_near(&life, at, 5 * MINUTE);
        assert!((0.67 * least..=1.5 * most).contains(&rate), "{rate} at {at}, not {least} to {most}");
    }
}
