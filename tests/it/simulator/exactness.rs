//! The truth: exact, additive, and what the metrics calls say.

use jiff::{SignedDuration, Timestamp};
use pds_core::clock::Clock;
use pds_interface::TimeRange;
use pds_interface::range::rfc3339;
use pds_interface::response_time::threshold_seconds;
use pds_simulator::{Settings, THRESHOLDS, Truth, World};
use proptest::prelude::*;
use reqwest::Method;
use serde_json::Value;

use super::{NOON, Service, json};

fn range(start: i64, end: i64) -> TimeRange {
    TimeRange { start, end }
}

/// A reply to response time as a truth without runs.
fn counted(data: &Value) -> (u64, Vec<u64>) {
    let total = data["total_requests"].as_u64().unwrap();
    let within = THRESHOLDS.map(|label| {
        let share = data["distribution"][label].as_f64().unwrap() / 100.0;
        (share * total as f64).round() as u64
    });
    (total, within.to_vec())
}

async fn asked(service: &Service, call: &str, range: TimeRange, more: &str) -> Value {
    let (start, end) = (rfc3339(range.start), rfc3339(range.end));
    let path = format!("/metrics/{call}?start={start}&end={end}{more}");
    let reply = service.get_of_app(&path).await;
    assert_eq!(reply["status"], "success");
    assert_eq!(
        (reply["data"]["start_date"].as_str(), reply["data"]["end_date"].as_str()),
        (Some(&*start), Some(&*end))
    );
    reply["data"].clone()
}

#[tokio::test]
async fn the_metrics_calls_return_the_true_counts() {
    let service = Service::start().await;
    for asked_range in [range(NOON - 300, NOON), range(NOON - 61, NOON - 60), range(NOON - 86_400, NOON)] {
        let Truth { requests, runs, within } =
            service.world.truth(&service.project, &service.app, asked_range).unwrap();
        assert!(requests > 0);
        let reply = asked(&service, "response-time", asked_range, "").await;
        assert_eq!(counted(&reply), (requests, within.to_vec()));
        let reply = asked(&service, "run-execution-time", asked_range, "").await;
        assert_eq!(reply["total_runs"], runs);

        let path = format!(
            "{}/simulator/truth?project={}&app={}&start={}&end={}",
            service.url,
            service.project,
            service.app,
            asked_range.start,
            rfc3339(asked_range.end)
        );
        let truth = json(service.client.get(path).send().await.unwrap()).await;
        assert_eq!((&truth["requests"], &truth["runs"]), (&requests.into(), &runs.into()));
        assert_eq!(truth["within"]["100ms"], within[6]);
    }
}

#[tokio::test]
async fn percentiles_agree_with_the_distribution() {
    let service = Service::start().await;
    let data = asked(&service, "response-time", range(NOON - 3600, NOON), "").await;
    for (name, share) in [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0)] {
        let millis = data["percentiles"][name].as_f64().unwrap();
        let at =
            THRESHOLDS.iter().position(|label| threshold_seconds(label).unwrap() * 1000.0 >= millis).unwrap();
        let within = |index: usize| data["distribution"][THRESHOLDS[index]].as_f64().unwrap();
        assert!(within(at) >= share && within(at - 1) <= share, "{name} {millis} {data}");
    }
}

#[tokio::test]
async fn containers_are_parts_of_the_whole() {
    let service = Service::start().await;
    let hour = range(NOON - 3600, NOON);
    let whole = counted(&asked(&service, "response-time", hour, "").await);
    let mut sum = (0, vec![0; THRESHOLDS.len()]);
    for container in ["c-1", "c-2", "c-3"] {
        let data = asked(&service, "response-time", hour, &format!("&container_id={container}")).await;
        let part = counted(&data);
        assert_eq!(part.0 == 0, container == "c-3");
        assert_eq!(data["percentiles"]["p50"].is_null(), container == "c-3");
        sum.0 += part.0;
        sum.1.iter_mut().zip(part.1).for_each(|(sum, part)| *sum += part);
    }
    assert_eq!(sum, whole);
}

#[tokio::test]
async fn a_higher_resolution_gives_more_datapoints_and_idle_ones_are_null() {
    let mut service = Service::start().await;
    let hour = range(NOON - 3600, NOON);
    for (more, count) in [("", 60), ("&resolution=medium", 120), ("&resolution=high", 360)] {
        let data = asked(&service, "run-execution-time", hour, more).await;
        let series = data["time_series"].as_array().unwrap();
        assert_eq!(series.len(), count);
        assert!(series.iter().all(|point| point["p50"].as_f64() <= point["p99"].as_f64()));
    }
    let (project, apps) = service.world.projects().remove(2);
    service.token = service.world.token(&project).unwrap();
    (service.project, service.app) = (project, apps[0].clone());
    let data = asked(&service, "run-execution-time", hour, "").await;
    let series = data["time_series"].as_array().unwrap();
    assert!(series.iter().any(|point| point["p50"].is_null()), "{data}");
    assert!(series.iter().any(|point| point["p50"].is_number()), "{data}");
}

#[tokio::test]
async fn percentiles_of_a_bucket_that_is_cut_or_still_filling_differ_from_the_complete_ones() {
    let service = Service::start().await;
    let of_bucket = async |range, at: i64| -> Value {
        let data = asked(&service, "run-execution-time", range, "").await;
        let series = data["time_series"].as_array().unwrap();
        let point = series.iter().find(|point| point["timestamp"].as_f64() == Some(at as f64));
        point.unwrap_or_else(|| panic!("{at} in {data}"))["p99"].clone()
    };
    let (first, last) = (NOON - 600, NOON - 60);
    let complete = range(first - 60, last + 60);
    assert!(of_bucket(complete, first).await.is_number());
    assert_ne!(
        of_bucket(complete, first).await,
        of_bucket(range(first + 30, last), first).await,
        "cut at its start"
    );
    assert_ne!(
        of_bucket(complete, last).await,
        of_bucket(range(first, last + 30), last).await,
        "cut at its end"
    );
    // The newest one is still filling.
    service.clock.jump(SignedDuration::from_secs(40));
    let now = service.clock.unix_seconds();
    let newest = now - now.rem_euclid(60);
    let filling = of_bucket(range(now - 600, newest + 60), newest).await;
    service.clock.jump(SignedDuration::from_secs(120));
    assert_ne!(filling, of_bucket(range(now - 600, newest + 60), newest).await, "filled by then");
}

#[tokio::test]
async fn requests_of_the_future_do_not_count() {
    let service = Service::start().await;
    let truth = |range| service.world.truth(&service.project, &service.app, range).unwrap();
    let now = service.clock.unix_seconds();
    assert_eq!(truth(range(now + 3600, now + 7200)).requests, 0);
    let seen = asked(&service, "response-time", range(now - 60, now + 60), "").await;
    assert_eq!(counted(&seen).0, truth(range(now - 60, now)).requests);
}

#[tokio::test]
async fn without_bounds_it_is_the_last_hour() {
    let service = Service::start().await;
    let data = service.get_of_app("/metrics/response-time").await["data"].clone();
    let bound = |name: &str| data[name].as_str().unwrap().parse::<Timestamp>().unwrap().as_second();
    assert_eq!(bound("end_date") - bound("start_date"), 3600);
    assert!(counted(&data).0 > 0);
}

#[tokio::test]
async fn the_journal_records_each_requested_range() {
    let service = Service::start().await;
    let hour = range(NOON - 3600, NOON);
    asked(&service, "response-time", hour, "").await;
    asked(&service, "response-time", hour, "&container_id=c-1").await;
    asked(&service, "run-execution-time", hour, "").await;
    let journal = service.world.requests();
    let asked: Vec<_> = journal.of("response_time").map(|entry| (entry.app.clone(), entry.range)).collect();
    assert_eq!(asked, vec![(Some(service.app.clone()), Some(hour)); 2]);
    assert_eq!((journal.total, journal.by_call["run_execution_time"], journal.by_status[&200]), (3, 1, 3));
    assert_eq!(journal.connections, 1, "keep-alive");
    let over_http = service.request(Method::GET, "/simulator/requests").send().await.unwrap();
    let over_http = json(over_http).await;
    assert_eq!(over_http["by_call"]["response_time"], 2);
    assert_eq!(over_http["entries"][1]["container"], "c-1");
}

proptest! {
    #[test]
    fn adjacent_ranges_add_up(
        seed in 0..4_u64, app in 0..8_usize,
        start in 0..400_000_000_i64, first in 0..3_000_000_i64, second in 0..100_000_i64,
    ) {
        let world = World::new(Settings { seed, projects: 1, ..Settings::default() }, Clock::system());
        let (project, apps) = world.projects().remove(0);
        let truth = |start, end| world.truth(&project, &apps[app], range(start, end)).unwrap();
        let start = 1_300_000_000 + start;
        let (middle, end) = (start + first, start + first + second);
        let (one, other, whole) = (truth(start, middle), truth(middle, end), truth(start, end));
        prop_assert_eq!(one.requests + other.requests, whole.requests);
        prop_assert_eq!(one.runs + other.runs, whole.runs);
        for ((one, other), whole) in one.within.iter().zip(other.within).zip(whole.within) {
            prop_assert_eq!(one + other, whole);
        }
        prop_assert!(whole.within.is_sorted());
        prop_assert!(whole.within.iter().all(|within| *within <= whole.requests));
    }
}
