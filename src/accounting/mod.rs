//! Exact counters out of an interface that only answers "how many, and how slow, between start and end".
//!
//! For each app and each of the two metrics calls there is a [`Ledger`]: a cursor in time, and what was counted up
//! to it. Each poll asks for the range from the cursor to the last whole step that has settled, and adds the
//! answer. So every second is in exactly one range that is added.
//!
//! ```text
//! first reply           cursor (accounted_until)      now - settle      now
//!     |---- added, once ----|---- due: one request ----|-- unsettled --|
//! ```
//!
//! A failed request moves nothing: the next poll asks for the same range, which has grown by then, in one request of
//! up to [`MAX_MERGED`]. A ledger is on disk before it is shown, so a crash at most repeats a request.
//!
//! - [`watermark`]: which time has settled, by our clock and the service's; [`settled`]: that at one moment.
//! - [`ledger`]: the arithmetic; no clock, no I/O.
//! - [`recheck`]: counting an [`hour`] again, and late data.
//! - [`ledger_store`]: all ledgers, and their grouped commits.
//! - [`state`]: the state file; [`error`]: why it cannot be used; [`tables`]: the database in it; `record`: a ledger as
//!   bytes; `disk`: the storage below the database.

mod disk;
pub mod error;
pub mod hour;
pub mod ledger;
pub mod ledger_store;
pub mod recheck;
mod record;
pub mod settled;
pub mod state;
pub mod tables;
pub mod watermark;

use std::time::Duration;

use crate::catalogue::encode::LabelNumber;
use crate::catalogue::{Family, Sink};
use crate::interface::{Counted, Resource};

pub use error::StateError;
pub use ledger::{Ledger, Refusal};
pub use ledger_store::LedgerStore;
pub use settled::Settled;
pub use watermark::Watermark;

/// The longest range of one request after an outage. Longer ones would be cheaper still, but the distribution comes as
/// percentages: the more requests a range holds, the coarser the counts made of them.
pub const MAX_MERGED: Duration = Duration::from_secs(6 * 3600);

/// The most thresholds of a ledger. The service has about 25; without a limit, labels that drift would fill the disk.
pub const MAX_THRESHOLDS: usize = 256;

/// The ledgers of a removed app are kept this long after the last range added (or `max_catch_up`, if that is longer),
/// so that an app that is removed and added again continues where it stood.
pub const KEPT_AFTER_REMOVAL: Duration = Duration::from_secs(7 * 86_400);

/// The families of the counters' section, in the order of the page.
pub const FAMILIES: &[Family] = &[
    Family::counter(
        "pds_app_requests_total",
        &[],
        "Requests answered by the app, each stretch of time asked for once after it settled",
    ),
    Family::histogram(
        "pds_app_request_duration_seconds",
        &[],
        "Requests by response time: the service's share within each threshold times the total, per range; +Inf equals pds_app_requests_total",
    ),
    Family::counter(
        "pds_app_runs_total",
        &[],
        "Runs of the app, each stretch of time asked for once after it settled",
    ),
    Family::gauge(
        "pds_app_accounted_until_timestamp_seconds",
        &["resource"],
        "End of the last range added to the counters, Unix time",
    ),
    Family::counter(
        "pds_app_unaccounted_seconds_total",
        &["resource"],
        "Time given up on because it was older than max_catch_up when it could have been asked for",
    ),
    Family::counter(
        "pds_app_late_requests_total",
        &[],
        "Requests that came after their range was counted; added to pds_app_requests_total when their hour was counted again",
    ),
    Family::counter(
        "pds_app_late_runs_total",
        &[],
        "Runs that came after their range was counted; added to pds_app_runs_total when their hour was counted again",
    ),
    Family::counter(
        "pds_app_overcounted_requests_total",
        &[],
        "Requests that were no longer there when their hour was counted again; still in pds_app_requests_total",
    ),
    Family::counter(
        "pds_app_overcounted_runs_total",
        &[],
        "Runs that were no longer there when their hour was counted again; still in pds_app_runs_total",
    ),
    Family::gauge(
        "pds_app_rechecked_until_timestamp_seconds",
        &["resource"],
        "End of the last hour counted again, Unix time",
    ),
];

/// The series of a ledger, in the order of [`FAMILIES`]; `rechecked` says whether its hours are counted again.
#[must_use]
pub fn series(resource: Resource, ledger: &Ledger, rechecked: bool) -> Sink {
    #[expect(clippy::cast_precision_loss, reason = "counts and Unix seconds stay below 2^53")]
    let (number, seconds) = (|count: u64| count as f64, |second: i64| second as f64);
    let by_resource = [("resource", resource.as_str())];
    let counted = resource.polled().counted;
    let mut sink = Sink::default();
    // A family of one series without labels, if it belongs to this resource.
    let put = |sink: &mut Sink, of: Counted, known: bool, count: u64| {
        sink.next_family();
        if counted == Some(of) && known {
            sink.put(number(count));
        }
    };
    put(&mut sink, Counted::Requests, true, ledger.total);
    sink.next_family();
    if counted == Some(Counted::Requests) {
        for (threshold, count) in ledger.buckets() {
            sink.put_with(&[("le", LabelNumber::default().text(threshold))], number(count));
        }
        sink.put_with(&[("le", LabelNumber::default().text(f64::INFINITY))], number(ledger.total));
    }
    put(&mut sink, Counted::Runs, true, ledger.total);
    sink.next_family();
    sink.put_with(&by_resource, seconds(ledger.until));
    sink.next_family();
    sink.put_with(&by_resource, number(ledger.unaccounted));
    for count in [ledger.late, ledger.overcounted] {
        for of in [Counted::Requests, Counted::Runs] {
            put(&mut sink, of, rechecked || count > 0, count);
        }
    }
    sink.next_family();
    if rechecked && ledger.rechecked_until > 0 {
        sink.put_with(&by_resource, seconds(ledger.rechecked_until));
    }
    sink
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::COUNTED_FAMILIES;

    #[test]
    fn the_families_that_leave_the_page_are_the_counters_themselves() {
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        let counters = ["pds_app_requests_total", "pds_app_request_duration_seconds", "pds_app_runs_total"];
        assert_eq!(names[..COUNTED_FAMILIES], counters);
    }
}
