//! Bounds of ranges: services that state them, or refuse those of one app, are not blamed for something else.

use pds_interface::TimeRange;

use super::service::{Exporter, IDEAL, Service, at};
use super::services::{audits, difference};

/// Counts one second less of a whole hour than of its parts.
fn without_a_second(now: i64, range: TimeRange) -> TimeRange {
    TimeRange { start: range.start + i64::from(now >= at(11, 30) && range.seconds() == 3600), ..range }
}

/// Knows requests of the first minute of an hour and of one later second.
fn knows_a_minute(_: i64, second: i64, _: bool) -> bool {
    let of_hour = second.rem_euclid(3600);
    of_hour < 60 || of_hour == 3000
}

#[tokio::test(start_paused = true)]
async fn traffic_in_one_minute_of_an_hour_is_not_blamed_on_the_names_of_bounds() {
    let stating = Service { knows: |_, second, _| second.rem_euclid(3600) < 60, ..IDEAL };
    let silent = Service { knows: knows_a_minute, states: |_| None, ..IDEAL };
    for service in [stating, silent] {
        let exporter = Exporter::start(Service { counts: without_a_second, ..service }, "").await;
        exporter.poll_until(at(11, 30), |_| ()).await;
        assert_eq!(audits(&exporter).different, 0);
        exporter.poll_until(at(14, 0), |_| ()).await;
        let (what, _) = difference(&exporter);
        assert!(what.ends_with("; the cause is unknown"), "{what}");
        assert!(exporter.ledger().total > 0, "{:?}", exporter.ledger());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stated_end_that_is_a_second_off_is_not_blamed_on_names_or_rounding() {
    let later: fn(TimeRange) -> Option<TimeRange> = |of| Some(TimeRange { end: of.end + 1, ..of });
    for states in [later, |of| Some(TimeRange { end: of.end - 1, ..of })] {
        let exporter = Exporter::start(Service { states, ..IDEAL }, "").await;
        exporter.poll_until(at(11, 30), |_| ()).await;
        let (what, remedy) = difference(&exporter);
        assert!(what.starts_with("a reply is about another range than requested: "), "{what}");
        assert!(!remedy.contains("set "), "{remedy}");
        assert_eq!(exporter.ledger().total, 0, "a counted range is exact");
        assert_eq!(exporter.plan.targets[0].account.ignored_range(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn time_before_a_recreated_app_does_not_dispute_corrections_of_other_apps() {
    const OTHER: &str = "-embed";
    let service = Service {
        // Another app fails for forty minutes. Then it is new, and time before it is refused.
        status: |now, range, app| match app.ends_with(OTHER) {
            true if (at(11, 0)..at(11, 40)).contains(&now) => 500,
            true if now >= at(11, 40) && range.start < at(11, 40) => 400,
            _ => 200,
        },
        // Hours have two requests less than their minutes.
        counts: |_, range| TimeRange { start: range.start + i64::from(range.seconds() == 3600), ..range },
        ..IDEAL
    };
    let exporter = Exporter::start(service, "audit = false").await;
    exporter.poll_until(at(15, 30), |_| ()).await;
    let other = exporter.plan.targets.iter().find(|target| target.key.owner.app.ends_with(OTHER)).unwrap();
    let other = exporter.context.ledgers.ledger(&other.key).unwrap();
    assert_eq!(other.until, exporter.ledger().until, "it is counted again: {other:?}");
    let ledger = exporter.ledger();
    assert!(ledger.overcounted >= 4 && ledger.disputed == 0, "{ledger:?}");
}
