//! Gauges show the requested windows and complete datapoints only, also those of an unusual service.

use std::collections::BTreeMap;
use std::time::Duration;

use pds_exporter::poll::Context;
use pds_exposition::Format;
use pds_interface::{Cadence, Resource, TimeRange};
use pds_simulator::{Fault, Kind, Quirks, Settings, World};
use tracing::Level;

use crate::poller::{Polling, rig_of};
use crate::process::series;
use crate::rig::{FaultExt as _, Log};

/// A service with one app and these quirks, polled with these tables of the configuration.
async fn polled(quirks: Quirks, tables: &str) -> (World, Context, Polling) {
    let settings = Settings { projects: 1, apps: 1, quirks, ..Settings::default() };
    let (world, context, plan) = rig_of(settings, tables).await;
    let polling = Polling::start(context.clone(), plan);
    (world, context, polling)
}

/// The series of a family, by their names.
fn shown(context: &Context, family: &str) -> BTreeMap<String, f64> {
    let page = crate::rig::page(context, Format::Text);
    let of_family = series(&page).filter(|(name, _)| name.split('{').next() == Some(family));
    of_family.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The only series of a family.
fn only(context: &Context, family: &str) -> Option<f64> {
    shown(context, family).into_values().next()
}

#[tokio::test(start_paused = true)]
async fn a_window_reply_about_another_range_is_refused() {
    let (_world, context, _polling) = polled(Quirks { ignores_range: true, ..Quirks::default() }, "").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    for family in ["pds_app_window_requests", "pds_app_window_runs", "pds_app_response_time_seconds"] {
        assert_eq!(shown(&context, family), BTreeMap::new(), "the last hour is no window of five minutes");
    }
    let up = shown(&context, "pds_up");
    let down: Vec<_> = up.iter().filter(|(_, up)| **up == 0.0).map(|(name, _)| name).collect();
    assert_eq!(down.len(), 2, "{up:?}");
    assert!(down.iter().all(|name| name.contains("time\"")), "{up:?}");
}

#[tokio::test(start_paused = true)]
async fn a_window_rounded_outwards_by_less_than_a_bucket_is_shown() {
    let (world, context, _polling) = polled(Quirks { round_to: 60, ..Quirks::default() }, "").await;
    tokio::time::sleep(Duration::from_secs(95)).await;
    let requests = only(&context, "pds_app_window_requests").unwrap();
    let (project, apps) = world.projects().remove(0);
    let now = context.clock.unix_seconds();
    let truth = |seconds: i64| {
        let range = TimeRange { start: now - 30 - seconds, end: now };
        world.truth(&project, &apps[0], range).unwrap().requests as f64
    };
    let (less, most) = (truth(200), truth(480));
    assert!(less < requests && requests <= most, "{requests}, not {less} to {most}");
}

#[tokio::test(start_paused = true)]
async fn old_dates_of_settings_move_no_window() {
    let tables = "[poll]\ninterval = \"15s\"\nsettings_interval = \"20s\"\n";
    let (world, _context, _polling) = polled(Quirks::default(), tables).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let settings = Resource::all().filter(|resource| resource.polled().cadence == Cadence::Settings);
    let cached = settings.map(|resource| Fault::from(Kind::ClockSkew { seconds: -3000 }).on(resource));
    world.faults().set(cached);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let journal = world.requests();
    let windows = journal.entries.iter().filter_map(|entry| Some((entry.at.as_second(), entry.range?)));
    let ages: Vec<i64> =
        windows.filter(|(_, range)| range.seconds() == 300).map(|(at, range)| at - range.end).collect();
    assert!(ages.len() > 60 && ages.iter().all(|age| *age <= 60), "{ages:?}");
}

#[tokio::test(start_paused = true)]
async fn only_whole_datapoints_are_shown_and_none_is_skipped() {
    for tables in [
        "[poll]\ninterval = \"60s\"\n",
        "[poll]\ninterval = \"15s\"\n",
        "[poll]\ninterval = \"25s\"\nwindows = [\"1m\", \"10m\"]\n",
        "[poll]\ninterval = \"10s\"\nresolution = \"high\"\nsettle = \"17s\"\n",
    ] {
        let (_world, context, _polling) = polled(Quirks::default(), tables).await;
        let mut seen: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for _ in 0..900 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let Some(time) = only(&context, "pds_app_run_execution_time_timestamp_seconds") else { continue };
            let values: Vec<f64> =
                shown(&context, "pds_app_run_execution_time_seconds").into_values().collect();
            assert_eq!(values.len(), 3);
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
            let first = seen.entry(time as i64).or_insert_with(|| values.clone());
            // The simulator's percentiles depend on how much of a bucket a reply covers.
            assert_eq!(*first, values, "a part of the bucket at {time} was shown: {tables}");
        }
        let times: Vec<i64> = seen.into_keys().collect();
        let width = if tables.contains("high") { 10 } else { 60 };
        assert!(times.len() > 12, "{times:?}");
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == width), "{tables}: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_of_one_datapoint_shows_each_whole_one_however_the_grid_falls_into_it() {
    for interval in [15, 60, 90, 300] {
        let (log, _guard) = Log::start(Level::INFO);
        let tables = format!("[poll]\ninterval = \"{interval}s\"\nwindows = [\"1m\"]\n");
        let (_world, context, _polling) = polled(Quirks::default(), &tables).await;
        tokio::time::sleep(Duration::from_secs(2 * interval.max(60))).await;
        let mut seen: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for second in 0..1800 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let time = only(&context, "pds_app_run_execution_time_timestamp_seconds");
            let time = time.unwrap_or_else(|| panic!("no datapoint after {second} s: {interval}"));
            let age = context.clock.unix_seconds() as f64 - time;
            assert!(age <= (interval + 60 + 30 + 60) as f64, "{age} s old: {interval}");
            let values = shown(&context, "pds_app_run_execution_time_seconds").into_values().collect();
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
            let first = seen.entry(time as i64).or_insert_with(|| Vec::clone(&values));
            assert_eq!((values.len(), &*first), (3, &values), "a part of the bucket at {time}: {interval}");
        }
        let told = log.lines_with("shorter than two datapoints");
        assert!(told.len() == 1 && told[0].contains("window=\"1m\""), "{interval}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_whole_datapoint_stays_until_it_is_stale() {
    let tables = "[poll]\nstale_after = \"10m\"\n";
    let (world, context, _polling) = polled(Quirks::default(), tables).await;
    let time = || only(&context, "pds_app_run_execution_time_timestamp_seconds");
    tokio::time::sleep(Duration::from_secs(200)).await;
    let newest = time().unwrap();
    world.faults().set([Fault::value("time_series", "[]")]);
    tokio::time::sleep(Duration::from_secs(520)).await;
    assert!(time() >= Some(newest), "a reply without datapoints takes none away");
    tokio::time::sleep(Duration::from_secs(160)).await;
    assert_eq!(time(), None);
    assert!(only(&context, "pds_app_window_runs").is_some());
}

#[tokio::test(start_paused = true)]
async fn run_times_come_from_the_first_window_that_can_hold_a_datapoint() {
    let runs = |world: &World, context: &Context, minutes_ago: i64| {
        let time = context.clock.unix_seconds() - minutes_ago * 60;
        let point = |time: i64| format!("{{\"timestamp\":{time},\"p50\":1,\"p90\":2,\"p99\":3}}");
        let series = format!("[{},{}]", point(time), point(time + 60));
        world.faults().set([
            Fault::value("time_series", "[]"),
            Fault::value("time_series", &series).of_ranges_longer_than(600),
        ]);
    };
    let time = |context: &Context| only(context, "pds_app_run_execution_time_timestamp_seconds");
    let (world, context, _polling) = polled(Quirks::default(), "[poll]\nwindows = [\"5m\", \"1h\"]\n").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(time(&context).is_some());
    runs(&world, &context, 30);
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(time(&context), None, "the last run was half an hour ago");
    // No poll falls on the moment at which an earlier one is stale.
    let tables = "[poll]\ninterval = \"70s\"\nwindows = [\"1m\", \"1h\"]\n";
    let (world, context, _polling) = polled(Quirks::default(), tables).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    runs(&world, &context, 30);
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert!(time(&context).is_some(), "a window of a minute may hold no datapoint");
    for second in 0..900 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(time(&context).is_some(), "the newest datapoint stays beyond stale_after: {second} s");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_whole_datapoint_there_is_no_gauge() {
    // No window holds a whole bucket, and nothing is counted.
    let tables = "[poll]\ninterval = \"20s\"\nwindows = [\"50s\"]\n[accounting]\nenabled = false\n";
    let (_world, context, _polling) = polled(Quirks::default(), tables).await;
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(only(&context, "pds_app_run_execution_time_timestamp_seconds"), None);
    }
    assert!(only(&context, "pds_app_window_runs").is_some());
}
