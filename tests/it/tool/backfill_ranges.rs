//! Backfills from services that ignore ranges, or do not state them.

use std::process::Output;

use pds_interface::TimeRange;
use pds_simulator::{Quirks, Settings};

use super::backfill::{NEW_YEAR, backfill, succeeded};
use super::simulated::Simulated;
use super::{Service, TOKEN, ended, pdstool, stderr};
use crate::client::server::ok;

/// The service of these habits, and the file and the output of a backfill of an hour in steps of 30 minutes.
fn history_of(quirks: Quirks, range_end: &str) -> (Option<String>, Output) {
    let service = Simulated::with(Settings { quirks, ..Settings::default() });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.om");
    let mut command = backfill(&service, 1, &file, &["--step", "30m", "--window", "5m", "--window", "10m"]);
    let output = command.env("PDS_EXPORTER__ACCOUNTING__RANGE_END", range_end).output().unwrap();
    (std::fs::read_to_string(&file).ok(), output)
}

#[test]
fn an_ignored_range_is_an_error() {
    let ignoring = Quirks { ignores_range: true, ..Quirks::default() };
    for quirks in [
        ignoring,
        Quirks { round_to: 3600, ..Quirks::default() },
        Quirks { unnamed_ranges: true, ..ignoring },
    ] {
        let (text, output) = history_of(quirks, "exclusive");
        assert_eq!((output.status.code(), text), (Some(1), None), "{}", ended(&output));
        assert!(stderr(&output).contains("the service ignores `"), "{}", stderr(&output));
    }
}

#[test]
fn ranges_that_replies_do_not_state_are_believed_if_their_counts_differ() {
    let unnamed = Quirks { unnamed_ranges: true, ..Quirks::default() };
    // One refuses the range of two steps.
    for quirks in [unnamed, Quirks { longest_range: 1800, ..unnamed }] {
        let (text, output) = history_of(quirks, "exclusive");
        succeeded(&output);
        assert!(text.unwrap().contains("window=\"5m\""));
    }
}

#[test]
fn a_window_about_another_range_has_no_gauge() {
    let quirks = Quirks { whole_seconds: true, ..Quirks::default() };
    let (text, output) = history_of(quirks, "inclusive-second");
    succeeded(&output);
    let text = text.unwrap();
    assert!(text.contains("window=\"5m\"") && !stderr(&output).contains("no usable count"), "{text}");
    // The service states a range that ends a second before the requested one.
    let (text, output) = history_of(quirks, "inclusive");
    succeeded(&output);
    let text = text.unwrap();
    assert!(!text.contains("window=\"") && stderr(&output).contains("no usable count"), "{text}");
}

/// A backfill of these apps and three hours, from a service that states no range; the requests are at those `times` of
/// the app `busy`, and each range is `read` before they are counted.
fn unnamed(apps: &[&str], times: fn(i64) -> bool, read: fn(TimeRange) -> TimeRange) -> (Service, Output) {
    let service = Service::start(move |seen| {
        let TimeRange { start, end } = read(seen.range());
        let is_busy = seen.target.contains("/busy/");
        let count = (start..end).filter(|second| is_busy && times(*second)).count();
        let distribution = if count > 0 { r#"{"1hr":100}"# } else { "{}" };
        ok(format!(
            r#"{{"status":"success","data":{{"total_requests":{count},"distribution":{distribution},"total_runs":{count},"time_series":[]}}}}"#
        ))
    });
    let folder = tempfile::tempdir().unwrap();
    let mut command = pdstool(&["backfill", "--start", "2025-01-01", "--end", "2025-01-01T03:00:00Z"]);
    command.args(["--step", "1h", "--window", "1h", "--project", "p-1", "--base-url", &service.url()]);
    command.args(apps.iter().flat_map(|app| ["--app", app])).arg(folder.path().join("history.om"));
    let output = command.env("PDS_EXPORTER__API__TOKEN", TOKEN).output().unwrap();
    (service, output)
}

#[test]
fn few_requests_suffice_to_believe_ranges_that_replies_do_not_state() {
    let twice_an_hour = |second: i64| [7 * 60 + 30, 53 * 60 + 30].contains(&second.rem_euclid(3600));
    let (service, output) = unnamed(&["idle", "busy"], twice_an_hour, |range| range);
    succeeded(&output);
    assert_eq!(
        service.requests().len(),
        2 * 2 * 3 + 2 * 2,
        "decided once for each call: {:?}",
        service.requests()
    );
}

#[test]
fn a_service_that_ignores_one_end_of_ranges_is_refused_whatever_its_first_apps_do() {
    let [idle, busy] = [&["a", "b", "c", "d", "e", "busy"][..], &["busy"]];
    let times = |second: i64| match second - NEW_YEAR {
        0..3600 => second % 10 == 0,
        after => after == 9000,
    };
    for (apps, read) in [
        (idle, (|range| TimeRange { end: NEW_YEAR + 14_400, ..range }) as fn(TimeRange) -> TimeRange),
        (busy, |range| TimeRange { end: NEW_YEAR + 14_400, ..range }),
        (busy, |range| TimeRange { start: NEW_YEAR - 7200, ..range }),
    ] {
        let (_, output) = unnamed(apps, times, read);
        assert_eq!(output.status.code(), Some(1), "{}", ended(&output));
        assert!(stderr(&output).contains("the service ignores `start` or `end`"), "{}", stderr(&output));
    }
}

#[test]
fn a_history_of_idle_apps_says_that_nothing_shows_whether_ranges_are_honoured() {
    let (_, output) = unnamed(&["idle"], |_| false, |range| range);
    succeeded(&output);
    for call in ["response_time", "run_execution_time"] {
        assert!(
            stderr(&output).contains(&format!("Replies of {call} state no range")),
            "{}",
            stderr(&output)
        );
    }
    let (_, output) = unnamed(&["busy"], |_| true, |range| range);
    succeeded(&output);
    assert!(!stderr(&output).contains("state no range"), "{}", stderr(&output));
}
