//! The last six hours of an app as its polls record them.

use super::*;

/// Response times of an app in a store.
fn response_times() -> Arc<TargetState> {
    let (store, key) = (Store::new(COUNTERS), key("p", "a", response_time::RESOURCE));
    reconcile(&store, vec![(key.clone(), Section::Endpoint)]);
    store.cell(&key, Section::Endpoint).unwrap()
}

/// A window of so many seconds.
fn window(window: u64) -> Variant {
    Variant { window, container: None }
}

/// A successful poll that ended then, while this window is shown.
fn end_with(cell: &TargetState, second: i64, shown: &Variant) {
    let (at, took) = (Timestamp::from_second(second).unwrap(), Duration::from_secs(1));
    cell.record(PollRecord { at, took, behind: false, failure: None }, shown);
}

#[tokio::test(start_paused = true)]
async fn rates_stay_when_a_reload_changes_the_window() {
    let cell = response_times();
    for (second, seconds, requests) in [(1000, 300, 500.0), (1060, 3600, 6000.0)] {
        let mut sink = Sink::default();
        for family in response_time::RESOURCE.polled().families() {
            sink.next_family();
            if family.name == response_time::WINDOW_REQUESTS.name {
                sink.put(requests);
            }
        }
        cell.replace(&window(seconds), sink);
        end_with(&cell, second, &window(seconds));
    }
    let rates = cell.history(History::trend).into_iter().map(|point| point.requests_per_minute.unwrap());
    let rates: Vec<f64> = rates.collect();
    assert!(rates.len() == 2 && rates.iter().all(|rate| (rate - 100.0).abs() < 0.1), "{rates:?}");
}

#[tokio::test(start_paused = true)]
async fn a_poll_without_samples_of_the_shown_window_has_not_failed() {
    let cell = response_times();
    end_with(&cell, 1000, &window(300));
    let slots = cell.history(History::six_hours);
    assert_eq!((slots.len(), slots[0].polls, slots[0].failures), (1, 1, 0));
    assert_eq!(slots[0].point, Point::default());
}
