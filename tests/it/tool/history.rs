//! A service with a history that is known to the last request.

use pds_interface::TimeRange;

use super::Service;
use crate::client::server::{Reply, Seen, ok, status};

/// 2025-01-01T00:00:00Z
pub(crate) const NEW_YEAR: i64 = 1_735_689_600;

/// How many requests of `p-1-a` there were between two whole minutes.
pub(crate) fn requests(start: i64, end: i64) -> i64 {
    (start / 60..end / 60).map(|minute| minute % 7 * 10).sum()
}

/// How many of them within 100 ms; the rest are within 1 s.
pub(crate) fn fast_requests(start: i64, end: i64) -> i64 {
    requests(start, end) / 2
}

/// How many runs there were.
pub(crate) fn runs(start: i64, end: i64) -> i64 {
    (start / 60..end / 60).map(|minute| minute % 3).sum()
}

/// The service's answer.
pub(crate) fn answer(seen: &Seen) -> Reply {
    let TimeRange { start, end } = seen.range();
    let time = |second: i64| jiff::Timestamp::from_second(second).unwrap();
    let (from, to) = (time(start), time(end));
    let path = seen.target.split('?').next().unwrap();
    let text = match path.rsplit('/').next() {
        Some("response-time") => {
            let total = requests(start, end);
            let fast = if total == 0 { 0.0 } else { 100.0 * fast_requests(start, end) as f64 / total as f64 };
            format!(
                r#"{{"data":{{"percentiles":{{"p50":100,"p99":{}}},"distribution":{{"100ms":{fast},"1s":100}},"total_requests":{total},"start_date":"{from}","end_date":"{to}"}},"status":"success"}}"#,
                end / 60 % 1000,
            )
        }
        Some("run-execution-time") => format!(
            r#"{{"data":{{"time_series":[{{"timestamp":{},"p50":1,"p90":2,"p99":null}},{{"timestamp":{},"p50":1.5,"p90":2,"p99":null}}],"total_runs":{},"start_date":"{from}","end_date":"{to}"}},"status":"success"}}"#,
            end - 120,
            end - 60,
            runs(start, end),
        ),
        _ => return status(404, ""),
    };
    ok(text)
}

/// The service.
pub(crate) fn service() -> Service {
    Service::start(answer)
}
