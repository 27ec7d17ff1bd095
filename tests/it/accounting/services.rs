//! Services that a ledger has to survive, most of those in the table of `docs/counters.md`: what each does, what is seen,
//! and what is lost.

use pds_interface::TimeRange;
use pds_telemetry::AuditSnapshot;
use tracing::Level;

use super::service::{DONE, END, Exporter, IDEAL, START, Service, at, counted, is_slow, survived, truth};
use crate::rig::Log;

/// Nothing is audited.
const UNAUDITED: &str = "audit = false";

/// Whether it is one of the twentieth part of requests that a service knows of only a quarter of an hour later.
fn is_late(second: i64) -> bool {
    second % 20 == 3
}

#[tokio::test(start_paused = true)]
async fn requests_that_arrive_once_they_are_finished_are_counted_in_their_buckets() {
    let service = Service { knows: |now, second, slow| !slow || now >= second + 1200, ..IDEAL };
    let exporter = survived(service, UNAUDITED).await;
    assert_eq!(exporter.counts(), truth(END));
    let ledger = exporter.ledger();
    assert!(ledger.late > 0 && (ledger.overcounted, ledger.disputed) == (0, 0), "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn hours_of_zeros_instead_of_errors_lose_nothing() {
    let half: fn(i64, i64, bool) -> bool = |now, _, _| !(at(13, 20)..at(13, 50)).contains(&now);
    for knows in [half, |now, _, _| !(at(13, 20)..at(15, 20)).contains(&now)] {
        let exporter = survived(Service { knows, ..IDEAL }, UNAUDITED).await;
        assert_eq!(exporter.counts(), truth(END));
        let ledger = exporter.ledger();
        assert!(ledger.late > 0 && (ledger.overcounted, ledger.debt()) == (0, 0), "{ledger:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn zeros_of_all_busy_apps_are_requested_again_for_ten_minutes() {
    let service = Service { knows: |now, _, _| !(at(13, 20)..at(13, 28)).contains(&now), ..IDEAL };
    let exporter = Exporter::polled(service, UNAUDITED, at(13, 20)).await;
    let before = exporter.ledger().until;
    exporter
        .poll_until(at(13, 28), |exporter| {
            assert_eq!(exporter.ledger().until, before, "nothing is counted");
            assert!(exporter.page().contains("pds_app_requests_total{"), "{}", exporter.page());
        })
        .await;
    exporter.poll_until(at(13, 30), |_| ()).await;
    let ledger = exporter.ledger();
    assert!(ledger.until >= at(13, 27) && ledger.total == truth(ledger.until).0, "{ledger:?}");
}

/// Lets an exporter poll a service that no longer knows all requests before 12:10 from then on.
async fn survives_other_data(knows: fn(i64, i64, bool) -> bool) {
    let exporter = survived(Service { knows, ..IDEAL }, UNAUDITED).await;
    let ledger = exporter.ledger();
    let late = |start, end| counted(TimeRange { start, end }, is_late).0;
    let lost = truth(END).0 - ledger.total;
    // The last two minutes were not counted yet.
    let gone = late(START, at(13, 0)) + counted(TimeRange { start: at(12, 8), end: at(12, 10) }, |_| true).0;
    assert!(lost <= gone, "{lost} of {gone}");
    assert!(ledger.late >= late(at(13, 0), END), "{ledger:?}");
    assert!(ledger.disputed > 0 && (ledger.overcounted, ledger.debt()) == (0, 0), "{ledger:?}");
    assert!(exporter.page().contains("pds_app_disputed_hours_total{"));
}

#[tokio::test(start_paused = true)]
async fn a_recreated_app_keeps_its_counts_and_gets_its_late_data() {
    survives_other_data(|now, second, _| {
        (now < at(12, 10) || second >= at(12, 10)) && (!is_late(second) || now >= second + 900)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_account_keeps_the_counts_and_gets_the_late_data_of_that_account() {
    // The other account has a tenth of the earlier requests.
    survives_other_data(|now, second, _| {
        let is_there = now < at(12, 10) || second >= at(12, 10) || second % 10 == 1;
        is_there && (!is_late(second) || now >= second + 900)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_history_shorter_than_the_rechecks_is_disputed_and_late_data_is_added() {
    // It knows some requests only once the first recheck is over, and forgets them before the second.
    fn is_later(second: i64) -> bool {
        second % 20 == 13
    }
    let service = Service {
        knows: |now, second, _| {
            let after = if is_later(second) { 10_000 } else { 900 * i64::from(is_late(second)) };
            (second + after..second + 3 * 3600).contains(&now)
        },
        ..IDEAL
    };
    let exporter = survived(service, "audit = false\nrecheck_after = [\"30m\", \"3h\"]").await;
    let ledger = exporter.ledger();
    let known = counted(TimeRange { start: START, end: END }, |second| !is_later(second));
    assert_eq!(exporter.counts(), known, "{ledger:?}");
    assert!(ledger.disputed >= 5 && ledger.disputes().is_some(), "{ledger:?}");
    assert!(exporter.page().contains("pds_app_disputed_hours_total{"));
}

#[tokio::test(start_paused = true)]
async fn a_renamed_threshold_leaves_the_page_within_three_polls() {
    let service = Service { label: |now| if now < at(12, 0) { "1s" } else { "1200ms" }, ..IDEAL };
    let exporter = Exporter::polled(service, UNAUDITED, at(12, 0)).await;
    assert!(exporter.page().contains("le=\"1.0\""));
    exporter.poll_until(at(12, 4), |_| ()).await;
    let page = exporter.page();
    assert!(!page.contains("le=\"1.0\"") && page.contains("le=\"1.2\""), "{page}");
    exporter.poll_until(DONE, |_| ()).await;
    let ledger = exporter.ledger();
    let fast = ledger.buckets().find(|(threshold, _)| *threshold == 1.2).map(|(_, count)| count);
    assert_eq!((ledger.total, fast), (truth(END).0, Some(truth(END).1)));
}

/// A service that refuses a minute for an hour.
const REFUSING: Service = Service {
    status: |now, range, _| {
        let touches = range.start < at(12, 31) && range.end > at(12, 30);
        if touches && now < at(13, 40) { 500 } else { 200 }
    },
    ..IDEAL
};

#[tokio::test(start_paused = true)]
async fn a_stretch_that_is_refused_for_an_hour_is_counted_later() {
    let exporter = Exporter::polled(REFUSING, UNAUDITED, at(12, 58)).await;
    let stands = exporter.ledger();
    assert_eq!((stands.until, stands.pending()), (at(12, 30), 0), "a server error may be over in a while");
    assert!(exporter.page().contains("pds_app_accounting_behind_seconds{"));
    exporter.poll_until(at(13, 10), |_| ()).await;
    let pending = exporter.ledger();
    assert_eq!((pending.pending(), pending.unaccounted), (60, 0), "{pending:?}");
    exporter.poll_until(DONE, |_| ()).await;
    let ledger = exporter.ledger();
    assert_eq!(exporter.counts(), truth(END), "{ledger:?}");
    assert_eq!((ledger.pending(), ledger.unaccounted), (0, 0));
    assert_eq!(ledger.accounted, u64::try_from(ledger.until - START).unwrap());
}

#[tokio::test(start_paused = true)]
async fn zeros_about_pending_time_are_not_believed() {
    let knows: fn(i64, i64, bool) -> bool = |now, _, _| !(at(13, 45)..at(15, 15)).contains(&now);
    let exporter = survived(Service { knows, ..REFUSING }, UNAUDITED).await;
    let ledger = exporter.ledger();
    assert_eq!((exporter.counts(), ledger.pending()), (truth(END), 0), "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn pending_time_whose_history_is_gone_is_never_accounted() {
    let service = Service { knows: |now, second, _| now < second + 2 * 3600, ..REFUSING };
    let exporter = Exporter::polled(service, "audit = false\nrecheck_after = [\"3h\"]", DONE).await;
    let ledger = exporter.ledger();
    let passed = u64::try_from(ledger.until - START).unwrap();
    assert_eq!((ledger.accounted, ledger.pending()), (passed - 60, 60), "{ledger:?}");
}

/// Everything that the other services do, in one afternoon: late slow requests in whole percent, zeros, a refused stretch,
/// an app that is made anew, and a renamed threshold.
#[tokio::test(start_paused = true)]
async fn all_at_once_lose_no_more_than_each_alone() {
    let service = Service {
        knows: |now, second, slow| {
            let is_zero = (at(13, 20)..at(13, 30)).contains(&now);
            let is_gone = now >= at(14, 10) && second < at(14, 10);
            !is_zero && !is_gone && (!slow || now >= second + 1200)
        },
        status: |now, range, _| {
            let touches = range.start < at(11, 31) && range.end > at(11, 30);
            if touches && now < at(12, 40) { 500 } else { 200 }
        },
        label: |now| if now < at(15, 0) { "1s" } else { "1200ms" },
        decimals: 0,
        ..IDEAL
    };
    let exporter = Exporter::start(service, "").await;
    let mut before = 0;
    exporter
        .poll_until(DONE, |exporter| {
            let Some(ledger) = exporter.context.ledgers.ledger(&exporter.key) else { return };
            assert!(ledger.total >= before && ledger.buckets().all(|(_, count)| count <= ledger.total));
            before = ledger.total;
        })
        .await;
    let ledger = exporter.ledger();
    let passed = u64::try_from(ledger.until - START).unwrap();
    assert_eq!((ledger.accounted, ledger.pending(), ledger.unaccounted), (passed, 0, 0), "{ledger:?}");
    // The service forgot these before they were counted: slow requests of hours that were to be rechecked, and all of the
    // newest two minutes.
    let hours = TimeRange { start: at(12, 0), end: at(15, 0) };
    let newest = at(14, 8)..at(14, 10);
    let (gone, _) = counted(hours, |second| is_slow(second) || newest.contains(&second));
    let (all, fast) = truth(END);
    assert!((all - gone..=all).contains(&ledger.total), "{} of {all}: {ledger:?}", ledger.total);
    let within = ledger.buckets().find(|(threshold, _)| *threshold == 1.2).map(|(_, count)| count).unwrap();
    assert!(within.abs_diff(fast) <= all / 200 + gone, "{within} of {fast}: {ledger:?}");
    assert!(ledger.late > 0 && ledger.disputed > 0 && ledger.overcounted == 0, "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn shares_in_whole_percent_are_counted_within_their_resolution() {
    let exporter = survived(Service { decimals: 0, ..IDEAL }, UNAUDITED).await;
    let ((total, fast), (all, of_truth)) = (exporter.counts(), truth(END));
    assert_eq!(total, all);
    let percent = (fast as f64 - of_truth as f64).abs() / all as f64 * 100.0;
    assert!(percent <= 0.5, "{percent} %");
}

pub(super) fn audits(exporter: &Exporter) -> AuditSnapshot {
    exporter.context.telemetry.snapshot().audit
}

/// The only difference, and its remedy.
pub(super) fn difference(exporter: &Exporter) -> (String, String) {
    let audit = audits(exporter);
    let [difference] = *audit.differences.values().collect::<Vec<_>>() else { panic!("{audit:?}") };
    (difference.what.to_string(), difference.remedy.to_string())
}

#[tokio::test(start_paused = true)]
async fn honest_services_are_never_different() {
    for decimals in [0, 12] {
        let steady = Service { decimals, knows: |_, second, _| second % 50 != 7, ..IDEAL };
        let late =
            Service { decimals, knows: |now, second, _| !is_late(second) || now >= second + 900, ..IDEAL };
        for service in [Service { decimals, ..IDEAL }, steady, late] {
            let exporter = Exporter::polled(service, "", at(14, 0)).await;
            let audit = audits(&exporter);
            assert!(audit.equal >= 12 && (audit.different, audit.differences.len()) == (0, 0), "{audit:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_distribution_of_the_last_day_is_different_after_three_audits() {
    // Made anew every ten minutes.
    let day = |now: i64, _| {
        let end = now.div_euclid(600) * 600;
        TimeRange { start: end - 86_413, end }
    };
    let exporter = Exporter::polled(Service { distributes: day, ..IDEAL }, "", at(13, 0)).await;
    assert!(audits(&exporter).different > 0, "{:?}", audits(&exporter));
    assert_eq!(difference(&exporter).0, "the distributions do not belong to the ranges");
    let (counts, truth) = (exporter.counts(), truth(exporter.ledger().until));
    assert!(
        counts.0 == truth.0 && counts.1 != truth.1,
        "totals are exact, buckets are not: {counts:?} {truth:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_distribution_that_ignores_the_start_of_ranges_is_different() {
    let since_the_start = |_, range: TimeRange| TimeRange { start: START - 3600, ..range };
    // All are fast before twelve, and all are slow after it.
    let knows = |_, second, slow: bool| slow == (second >= at(12, 20));
    let exporter =
        Exporter::polled(Service { distributes: since_the_start, knows, ..IDEAL }, "", at(14, 0)).await;
    assert!(audits(&exporter).different > 0, "{:?}", audits(&exporter));
}

#[tokio::test(start_paused = true)]
async fn ranges_whose_ends_are_both_rounded_up_are_different() {
    fn rounded(_: i64, TimeRange { start, end }: TimeRange) -> TimeRange {
        let [start, end] = [start, end].map(|second: i64| (second + 299).div_euclid(300) * 300);
        TimeRange { start, end }
    }
    fn later(now: i64, range: TimeRange) -> TimeRange {
        if now < at(12, 0) { range } else { rounded(now, range) }
    }
    for (counts, from) in [(rounded as fn(i64, TimeRange) -> TimeRange, START), (later, at(12, 0))] {
        let exporter = Exporter::polled(Service { counts, ..IDEAL }, "", from).await;
        let audit = audits(&exporter);
        assert_eq!((audit.equal > 0, audit.differences.len()), (from > START, 0), "{audit:?}");
        exporter.poll_until(from + 5 * 3600, |_| ()).await;
        assert_eq!(difference(&exporter).1, "set accounting.step to the length that the service rounds to");
        exporter.poll_until(DONE, |_| ()).await;
        assert_eq!(exporter.counts(), truth(END), "each hour is complete once it was counted again");
        assert!(exporter.ledger().late > 0);
    }
    let exporter = Exporter::polled(Service { counts: rounded, ..IDEAL }, "step = \"5m\"", at(13, 0)).await;
    assert_eq!(audits(&exporter).different, 0);
}

#[tokio::test(start_paused = true)]
async fn missing_history_is_not_blamed_on_the_end_of_ranges() {
    let service = Service { knows: |now, second, _| now < second + 4000, ..IDEAL };
    let exporter = Exporter::polled(service, "", at(15, 0)).await;
    let (what, remedy) = difference(&exporter);
    assert!(
        what.starts_with("parts of a range have 10,800, the whole range has ")
            && what.ends_with("; the cause is unknown")
    );
    assert!(!remedy.contains("range_end"), "{remedy}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_difference_is_reported() {
    let (log, _guard) = Log::start(Level::INFO);
    // Ends are counted twice until one.
    let counts = |now, range: TimeRange| TimeRange { end: range.end + i64::from(now < at(13, 0)), ..range };
    let exporter = Exporter::polled(Service { counts, ..IDEAL }, "", at(13, 0)).await;
    assert_eq!(difference(&exporter).1, "set accounting.range_end = \"inclusive\"");
    assert_eq!(exporter.ledger().total, 0);
    exporter.poll_until(at(13, 5), |_| ()).await;
    assert!(audits(&exporter).differences.is_empty());
    assert_eq!(log.lines_with("audits no longer find a difference").len(), 1);
    assert!(exporter.ledger().total > 0);
    // One that is found while counting is over after three audits, and two hours after the last that differed.
    let counts = |now, range: TimeRange| {
        let twice = (at(12, 0)..at(13, 0)).contains(&now);
        TimeRange { end: range.end + i64::from(twice), ..range }
    };
    let exporter = Exporter::polled(Service { counts, ..IDEAL }, "", at(13, 0)).await;
    assert_eq!(difference(&exporter).1, "set accounting.range_end = \"inclusive\"");
    exporter.poll_until(at(17, 0), |_| ()).await;
    assert!(audits(&exporter).differences.is_empty());
}
