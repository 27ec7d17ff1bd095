//! Outages of a service, as a real Prometheus sees them: its rates never read a false zero or a false peak.

use pds_interface::TimeRange;
use pds_simulator::{Fault, Settings};

use crate::real_lifecycle::life::Life;
use crate::rig::FaultExt as _;
use crate::server::{Server, create_blocks};

/// Between two scrapes.
const SCRAPE: u64 = 15;
const MINUTE: i64 = 60;
const HOUR: i64 = 3600;

/// An exporter of one app and several outages, recorded.
struct Recording {
    life: Life,
    outages: Vec<TimeRange>,
    /// The samples of the app's counter.
    requests: Vec<(i64, f64)>,
}

impl Recording {
    async fn new() -> Self {
        let settings = Settings { projects: 1, apps: 1, ..Settings::default() };
        let mut life = Life::of(settings, SCRAPE, "2026-03-01T08:00:20Z").await;
        life.start("pds", life.defaults()).await;
        life.pass(60).await;
        let mut outages = Vec::new();
        for minutes in [3, 40, 7 * 60] {
            let start = life.now();
            life.world.faults().set([Fault::status(500)]);
            life.pass(minutes).await;
            life.world.faults().clear();
            outages.push(TimeRange { start, end: life.now() });
            life.pass(90).await;
        }
        let requests = life.samples("pds_app_requests_total", "");
        Self { life, outages, requests }
    }

    fn truth(&self, start: i64, end: i64) -> f64 {
        let (project, apps) = self.life.world.projects().remove(0);
        self.life.world.truth(&project, &apps[0], TimeRange { start, end }).unwrap().requests as f64
    }
}

#[tokio::test(start_paused = true)]
async fn counters_leave_the_page_in_an_outage_and_come_back_with_all_that_happened() {
    let recording = Recording::new().await;
    let samples = &recording.requests;
    for outage in &recording.outages {
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
        let most = recording.truth(before - 5 * MINUTE, after);
        assert!(to - from <= most, "{pair:?}: {most}");
    }
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let cursors = recording.life.samples("pds_app_accounted_until_timestamp_seconds", "response_time");
    let until = |at: i64| cursors.iter().find(|(second, _)| *second == at).unwrap().1 as i64;
    let truth = recording.truth(until(first.0), until(last.0));
    assert_eq!(last.1 - first.1, truth, "nothing is lost over three outages");
}

/// The greatest rate of requests over `seconds` that end up to five minutes before `at`: a counter ends a
/// step, a poll and `poll.settle` ago.
fn rate_near(recording: &Recording, at: i64, seconds: i64) -> f64 {
    let near = (0..=5 * MINUTE).step_by(15);
    let rates = near.map(|ago| recording.truth(at - ago - seconds, at - ago) / seconds as f64);
    rates.fold(0.0, f64::max)
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
    let recording = Recording::new().await;
    let (samples, outages) = (&recording.requests, &recording.outages);
    let folder = tempfile::tempdir().unwrap();
    let (text, data) = (folder.path().join("recording.txt"), folder.path().join("data"));
    std::fs::write(&text, recording.life.openmetrics()).unwrap();
    create_blocks(&text, &data);
    tokio::time::resume();
    let prometheus = Server::over(&data).await;
    let query = async |expression: &str, start: i64, end: i64| -> Vec<(i64, f64)> {
        prometheus.range(expression, (start, end, MINUTE)).await
    };
    let ((first, from), (last, to)) = (samples[0], samples[samples.len() - 1]);
    for (window, seconds) in [("5m", 5 * MINUTE), ("10m", 10 * MINUTE), ("1h", HOUR)] {
        let mut stands = 0;
        let expression = format!("rate(pds_app_requests_total[{window}])");
        for (at, rate) in query(&expression, first + HOUR, last).await {
            let most = rate_near(&recording, at, seconds);
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
    let end = jiff::Timestamp::from_second(last).unwrap();
    for (_, _, increase) in prometheus.by_app("increase(pds_app_requests_total[1d])", end).await {
        let counted = to - from;
        assert!((counted - 1e-6..=counted * extended).contains(&increase), "{increase} of {counted}");
    }
}
