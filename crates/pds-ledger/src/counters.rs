//! The counter families, one row each: its name, and the part of a ledger that it shows.

use pds_exposition::encode::LabelNumber;
use pds_exposition::{Family, Sink};
use pds_interface::{Counted, Resource};

use super::ledger::{Ledger, exact};
use Value::Number;

/// The part of a ledger that a family shows.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// A number, if it is shown; the argument is whether hours are rechecked.
    Number(fn(&Ledger, bool) -> Option<u64>),
    /// The buckets.
    Buckets,
    /// How far the ledger is behind, shown instead of the other rows.
    Behind,
}

/// A counter family: the counter that it belongs to, and what it shows. `None` is any counter, which the label
/// `resource` then identifies.
type Row = (Option<Counted>, Value);

/// The source of all counters.
const SOURCE: &str = "from ranges that have settled, requested every poll.interval or the app's own";

/// Declares [`ROWS`] and [`FAMILIES`].
macro_rules! rows {
    ($($of:ident $value:expr => $kind:ident $name:literal $labels:tt $help:literal;)*) => {
        const ROWS: &[Row] = &[$(($of, $value)),*];

        /// The families of the counters' section, in the order of the page.
        pub const FAMILIES: &[Family] = &[$(Family::$kind($name, &$labels, $help).with_source(SOURCE)),*];
    };
}

const REQUESTS: Option<Counted> = Some(Counted::Requests);
const RUNS: Option<Counted> = Some(Counted::Runs);
const BOTH: Option<Counted> = None;

rows! {
    REQUESTS Number(|of, _| Some(of.total)) => counter "pds_app_requests_total" []
        "Requests answered by the app, every settled second counted once";
    REQUESTS Number(|of, _| Some(of.accounted)) => counter "pds_app_requests_accounted_seconds_total" []
        "Seconds covered by pds_app_requests_total; the quotient of their rates is requests per second";
    REQUESTS Value::Buckets => histogram "pds_app_request_duration_seconds" []
        "Requests by response time: the service's shares times totals; +Inf equals pds_app_requests_total";
    RUNS Number(|of, _| Some(of.total)) => counter "pds_app_runs_total" []
        "Runs of the app, every settled second counted once";
    RUNS Number(|of, _| Some(of.accounted)) => counter "pds_app_runs_accounted_seconds_total" []
        "Seconds covered by pds_app_runs_total; the quotient of their rates is runs per second";
    BOTH Number(|of, _| Some(of.until.cast_unsigned())) => gauge "pds_app_accounted_until_timestamp_seconds" ["resource"]
        "End of the last range added to the counters, Unix time";
    BOTH Number(|of, _| Some(of.unaccounted)) => counter "pds_app_unaccounted_seconds_total" ["resource"]
        "Time never counted: older than max_catch_up when it could be requested, or still missing after the last recheck";
    BOTH Number(|of, rechecked| rechecked.then(|| of.pending())) => gauge "pds_app_pending_seconds" ["resource"]
        "Time given up that will be requested again";
    REQUESTS Number(|of, rechecked| correction(of.late, rechecked)) => counter "pds_app_late_requests_total" []
        "Requests reported after their range was counted; added later or offset against overcounts";
    RUNS Number(|of, rechecked| correction(of.late, rechecked)) => counter "pds_app_late_runs_total" []
        "Runs reported after their range was counted; added later or offset against overcounts";
    REQUESTS Number(|of, rechecked| correction(of.overcounted, rechecked)) => counter "pds_app_overcounted_requests_total" []
        "Requests missing when their hour was counted again; still in pds_app_requests_total";
    RUNS Number(|of, rechecked| correction(of.overcounted, rechecked)) => counter "pds_app_overcounted_runs_total" []
        "Runs missing when their hour was counted again; still in pds_app_runs_total";
    BOTH Number(|of, rechecked| correction(of.disputed, rechecked)) => counter "pds_app_disputed_hours_total" ["resource"]
        "Hours for which the service later reported far fewer requests or runs; the counters keep the first count";
    BOTH Number(rechecked_until) => gauge "pds_app_rechecked_until_timestamp_seconds" ["resource"]
        "End of the last hour counted again, Unix time";
    BOTH Value::Behind => gauge "pds_app_accounting_behind_seconds" ["resource"]
        "Lag of hidden counters behind settled time; absent while they are shown";
}

/// A result of rechecks, which is shown while they are enabled, and after that unless it is 0.
fn correction(value: u64, rechecked: bool) -> Option<u64> {
    (rechecked || value > 0).then_some(value)
}

/// The end of the last hour counted again, once there is one.
fn rechecked_until(ledger: &Ledger, rechecked: bool) -> Option<u64> {
    u64::try_from(ledger.rechecked_until).ok().filter(|until| rechecked && *until > 0)
}

/// The series of a ledger, in the order of [`FAMILIES`]; `rechecked` if its hours are rechecked.
pub fn series(resource: Resource, ledger: &Ledger, rechecked: bool) -> Sink {
    by_row(resource, |sink, value, labels| match value {
        Number(value) => {
            if let Some(value) = value(ledger, rechecked) {
                sink.put_with(labels, exact(value));
            }
        }
        Value::Buckets => {
            for (threshold, count) in ledger.buckets() {
                sink.put_with(&[("le", LabelNumber::default().text(threshold))], exact(count));
            }
            sink.put_with(&[("le", LabelNumber::default().text(f64::INFINITY))], exact(ledger.total));
        }
        Value::Behind => {}
    })
}

/// The series of a hidden ledger: the seconds by which it is behind.
pub fn behind(resource: Resource, seconds: u64) -> Sink {
    by_row(resource, |sink, value, labels| {
        if matches!(value, Value::Behind) {
            sink.put_with(labels, exact(seconds));
        }
    })
}

/// The series of all rows that belong to `resource`. Calls `put` with the row's labels.
fn by_row(resource: Resource, put: impl Fn(&mut Sink, Value, &[(&str, &str)])) -> Sink {
    let by_resource = [("resource", resource.as_str())];
    let counted = resource.polled().counted;
    let mut sink = Sink::default();
    for (of, value) in ROWS {
        sink.next_family();
        match of {
            None => put(&mut sink, *value, &by_resource),
            of if *of == counted => put(&mut sink, *value, &[]),
            Some(_) => {}
        }
    }
    sink
}

#[cfg(test)]
mod tests {
    use pds_exposition::encode::sample;
    use pds_exposition::samples::Layouts;
    use pds_interface::{Tally, TimeRange, response_time, run_execution_time};

    use super::*;

    /// The lines of a page without the target's own labels.
    fn page(sink: Sink) -> String {
        let samples = sink.finish(&Layouts::default());
        let mut page = Vec::new();
        for (index, family) in FAMILIES.iter().enumerate() {
            for (labels, value) in samples.of(index) {
                sample(&mut page, family, "", labels, value);
            }
        }
        String::from_utf8(page).unwrap()
    }

    /// A ledger that has added eight requests or runs in its only hour.
    fn ledger(distributed: bool) -> Ledger {
        let shares = if distributed { vec![(0.5, 0.25), (2.5, 1.0)] } else { Vec::new() };
        let tally = Tally { total: Some(8), shares, ..Tally::default() };
        Ledger::open(3600).add(TimeRange { start: 3600, end: 7200 }, &tally, distributed, 0).unwrap()
    }

    #[test]
    fn a_ledger_of_requests_is_shown_with_its_buckets() {
        let text = page(series(response_time::RESOURCE, &ledger(true), true));
        assert_eq!(
            text,
            r#"pds_app_requests_total 8
pds_app_requests_accounted_seconds_total 3600
pds_app_request_duration_seconds_bucket{le="0.5"} 2
pds_app_request_duration_seconds_bucket{le="2.5"} 8
pds_app_request_duration_seconds_bucket{le="+Inf"} 8
pds_app_accounted_until_timestamp_seconds{resource="response_time"} 7200
pds_app_unaccounted_seconds_total{resource="response_time"} 0
pds_app_pending_seconds{resource="response_time"} 0
pds_app_late_requests_total 0
pds_app_overcounted_requests_total 0
pds_app_disputed_hours_total{resource="response_time"} 0
"#
        );
    }

    #[test]
    fn the_results_of_rechecks_are_shown_while_they_are_enabled_and_their_additions_after_that() {
        let lines = |ledger: &Ledger, rechecked| {
            let text = page(series(run_execution_time::RESOURCE, ledger, rechecked));
            let parts = ["_late_", "_overcounted_", "_rechecked_", "_disputed_"];
            let of_rechecks = |line: &&str| parts.iter().any(|part| line.contains(part));
            text.lines().filter(of_rechecks).map(str::to_owned).collect::<Vec<_>>()
        };
        let none = ledger(false);
        let mut some = none.clone();
        (some.late, some.overcounted, some.rechecked_until, some.disputed) = (2, 1, 7200, 3);
        let disputed = r#"pds_app_disputed_hours_total{resource="run_execution_time"}"#;
        let [none_disputed, some_disputed] = [0, 3].map(|hours| format!("{disputed} {hours}"));
        let late = ["pds_app_late_runs_total 2", "pds_app_overcounted_runs_total 1", &some_disputed];
        let until = r#"pds_app_rechecked_until_timestamp_seconds{resource="run_execution_time"} 7200"#;
        assert_eq!(lines(&none, false), [""; 0]);
        let zeros = ["pds_app_late_runs_total 0", "pds_app_overcounted_runs_total 0", &none_disputed];
        assert_eq!(lines(&none, true), zeros);
        assert_eq!(lines(&some, false), late);
        assert_eq!(lines(&some, true), [late[0], late[1], late[2], until]);
    }

    #[test]
    fn a_hidden_ledger_shows_only_how_far_it_is_behind() {
        let text = page(behind(run_execution_time::RESOURCE, 90));
        assert_eq!(text, "pds_app_accounting_behind_seconds{resource=\"run_execution_time\"} 90\n");
    }
}
