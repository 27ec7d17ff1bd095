//! Section 4.5: run execution time metrics of an app.

use pds_exposition::Sink;
use serde::Deserializer;

use super::metrics::{self, Envelope};
use super::polled;
use super::prelude::*;
use super::range::TimeRange;
use super::reader::Subject;
use super::wire::{Object, array};

/// The reply.
pub type Reply = Envelope<RunExecutionTime>;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "run_execution_time",
    Method::GET,
    "/v2/projects/{project_id}/apps/{app_id}/metrics/run-execution-time",
    "run execution time percentiles",
    Command::safe(
        &["metrics", "run-execution-time"],
        "p-abc12345-ranker --start 2026-01-31 --end 2026-02-01 --resolution high",
    ),
)
.with_query(metrics::QUERY)
.polled_as(Polled::of::<Facts>("run_execution_time", Scope::App, Cadence::Metrics, EXAMPLE));

const EXAMPLE: &str = r#"{"status":"success","data":{"time_series":[{"timestamp":1767225300,"p50":0.03,"p90":0.1,"p99":0.6},
{"timestamp":1767225360,"p50":0.04,"p90":0.2,"p99":0.7}],"total_runs":1498,
"start_date":"2025-12-31T23:55:00Z","end_date":"2026-01-01T00:00:00Z"}}"#;

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(Place::run_execution_time);

/// Run execution times within a range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunExecutionTime {
    /// Datapoints.
    #[serde(deserialize_with = "newest_datapoints")]
    pub time_series: Vec<Datapoint>,
    /// Total run count in the range.
    #[schemars(extend("type" = "integer"))]
    pub total_runs: Number,
    /// RFC 3339 start of the range.
    #[schemars(extend("format" = "date-time"))]
    pub start_date: Text,
    /// RFC 3339 end of the range.
    #[schemars(extend("format" = "date-time"))]
    pub end_date: Text,
}

/// A datapoint of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Datapoint {
    /// Timestamp in Unix seconds.
    pub timestamp: Number,
    /// 50th percentile in seconds.
    pub p50: Number,
    /// 90th percentile in seconds.
    pub p90: Number,
    /// 99th percentile in seconds.
    pub p99: Number,
}

/// Datapoints kept of one reply: a week at one per minute. A reply may be as large as
/// `max_response_bytes` allows, the memory it takes may not.
pub const MAX_DATAPOINTS: usize = 10_080;

/// How far a datapoint may lie after the end of the requested range: a service that labels a bucket by its end
/// rounds up to whole buckets. Later ones are from a broken clock.
const BUCKET_SECONDS: f64 = 3600.0;

fn newest_datapoints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Datapoint>, D::Error> {
    let mut points = Vec::new();
    array(deserializer, |point: Option<Object<Datapoint>>| {
        if points.len() == 2 * MAX_DATAPOINTS {
            keep_newest(&mut points);
        }
        points.extend(point.map(|Object(point)| point));
        Ok(())
    })?;
    if points.len() > MAX_DATAPOINTS {
        keep_newest(&mut points);
    }
    Ok(points)
}

fn keep_newest(points: &mut Vec<Datapoint>) {
    let time = |point: &Datapoint| point.timestamp.value().unwrap_or(f64::NEG_INFINITY);
    points.sort_by(|a, b| time(a).total_cmp(&time(b)));
    points.drain(..points.len() - MAX_DATAPOINTS);
}

impl RunExecutionTime {
    /// The datapoints that have a time, by rising time; if times are equal, the datapoint sent last. Bad values, and
    /// times long after the range that was `asked` for, are noted and left out.
    pub fn points(&self, asked: Option<TimeRange>, unexpected: &mut Unexpected) -> Vec<Point> {
        let latest = asked.map_or(f64::MAX, |range| range.end as f64 + BUCKET_SECONDS);
        let mut points = Vec::with_capacity(self.time_series.len());
        for point in &self.time_series {
            let Some(time) = unexpected.check("timestamp", point.timestamp, 0.0, latest) else { continue };
            let fields = [("p50", point.p50), ("p90", point.p90), ("p99", point.p99)];
            let mut highest = 0.0;
            let values = fields.map(|(field, value)| {
                let value = unexpected.check(field, value, 0.0, f64::MAX)?;
                if metrics::falls(value, highest) {
                    unexpected.fields.push(field);
                    return None;
                }
                highest = value.max(highest);
                Some(value)
            });
            points.push(Point { time, values });
        }
        points.sort_by(|a: &Point, b| a.time.total_cmp(&b.time));
        let same = |later: &Point, earlier: &Point| later.time.total_cmp(&earlier.time).is_eq();
        points.dedup_by(|later, earlier| same(later, earlier).then(|| *earlier = *later).is_some());
        points
    }
}

/// A reply's checked values.
#[derive(Debug)]
pub struct Facts {
    points: Vec<Point>,
    /// The datapoint that the gauges show. A single reply does not determine it.
    shown: Option<Point>,
    tally: Tally,
}

impl MetricSource for Facts {
    const ROWS: &'static [Row<Self>] = ROWS;

    const COUNTED: Option<Counted> = Some(Counted::Runs);

    const HAS_SERIES: bool = true;

    fn read(body: &[u8], terms: &Terms, unexpected: &mut Unexpected) -> Result<Self, DecodeError> {
        let reply = Reply::decode(body)?.data;
        let points = reply.points(terms.range, unexpected);
        let (total, bounds) = (reply.total_runs, (&reply.start_date, &reply.end_date));
        let tally = metrics::tally(unexpected, ("total_runs", total), Vec::new(), bounds);
        Ok(Self { points, shown: None, tally })
    }

    fn add_to(self, reading: &mut Reading) {
        (reading.points, reading.tally) = (self.points, Some(self.tally));
    }
}

/// The samples that show `point` of `subject`.
pub fn show(point: Point, subject: Subject<'_>) -> Sink {
    let facts = Facts { points: Vec::new(), shown: Some(point), tally: Tally::default() };
    polled::sink(&facts, subject, &mut Unexpected::default())
}

rows! { Facts, "from the app's run execution times, polled every poll.interval or the app's own":
    SECONDS: gauge(
        "pds_app_run_execution_time_seconds",
        ["container_id", "percentile"],
        "Run execution time percentile at the newest complete datapoint with a value"
    ) => |facts, reader| {
        let values = facts.shown.iter().flat_map(|point| point.values);
        for (percentile, seconds) in ["p50", "p90", "p99"].into_iter().zip(values) {
            if let Some(seconds) = seconds {
                reader.put_container(&[("percentile", percentile)], seconds);
            }
        }
    };
    TIMESTAMP: gauge(
        "pds_app_run_execution_time_timestamp_seconds",
        ["container_id"],
        "Unix time of the datapoint of pds_app_run_execution_time_seconds"
    ) => |facts, reader| {
        if let Some(point) = facts.shown {
            reader.put_container(&[], point.time);
        }
    };
    WINDOW_RUNS: gauge(
        "pds_app_window_runs", ["window", "container_id"], "Runs in the trailing window"
    ) => |facts, reader| reader.put_window_count(facts.tally.count());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{END, exposed, shown_for, unreadable};

    /// A reply with this series.
    fn reply(series: &str) -> String {
        format!(r#"{{"data":{{"time_series":{series},"total_runs":12}},"status":"success"}}"#)
    }

    const ONLY_RUNS: &str = "pds_app_window_runs{project=\"p-1\",app=\"p-1-ranker\",window=\"5m\"} 12\n";

    /// Seconds before the end, and values.
    type Read = (i64, [Option<f64>; 3]);

    /// The datapoints of this series, and the fields with unexpected values.
    fn points(series: &str) -> (Vec<Read>, Vec<&'static str>) {
        let body = reply(series);
        let (page, unexpected) = exposed(&CALL, &body);
        assert_eq!(page, ONLY_RUNS, "which datapoint is shown one reply does not tell");
        let reading = CALL.polled.unwrap().read(body.as_bytes(), &[]).unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
        let points = reading.points.into_iter().map(|point| (END - point.time as i64, point.values));
        (points.collect(), unexpected)
    }

    #[test]
    fn datapoints_are_read_by_rising_time_those_without_a_value_included() {
        let series = r#"[{"timestamp":1767225540,"p50":"1.5","p90":2,"p99":null,"count":3},null,{"timestamp":"1767225480","p50":9},{"timestamp":1767225600,"p50":null,"p90":"","p99":"NaN"}]"#;
        let expected =
            vec![(120, [Some(9.0), None, None]), (60, [Some(1.5), Some(2.0), None]), (0, [None; 3])];
        assert_eq!(points(series), (expected, vec![]));
    }

    #[test]
    fn the_last_of_datapoints_with_the_same_time_counts() {
        let series = r#"[{"timestamp":"1767225540","p50":1},{"timestamp":1767225540,"p50":2}]"#;
        assert_eq!(points(series), (vec![(60, [Some(2.0), None, None])], vec![]));
    }

    #[test]
    fn a_datapoint_of_the_future_or_with_a_bad_value_is_unexpected() {
        let series = r#"[{"timestamp":1767225300,"p50":1,"p90":-2,"p99":"12abc"},{"timestamp":1767235600,"p50":7},{"timestamp":1e400,"p50":7},{"timestamp":-5,"p50":7},{"p50":7}]"#;
        let (_, unexpected) = points(series);
        assert_eq!(unexpected, ["p90", "p99", "timestamp", "timestamp", "timestamp"]);
    }

    #[test]
    fn a_percentile_below_a_smaller_one_is_missing() {
        let series = r#"[{"timestamp":1767225540,"p50":3,"p90":2,"p99":3.5},{"timestamp":1767225600,"p90":2,"p99":1}]"#;
        let read = vec![(60, [Some(3.0), None, Some(3.5)]), (0, [None, Some(2.0), None])];
        assert_eq!(points(series), (read, vec!["p90", "p99"]));
    }

    #[test]
    fn a_series_without_values_has_only_its_count() {
        for series in ["null", "[]", "[null]", r#"[{"timestamp":1767225540,"p50":null}]"#, "[{}]"] {
            assert_eq!(exposed(&CALL, &reply(series)), (ONLY_RUNS.to_owned(), vec![]), "{series}");
        }
    }

    #[test]
    fn a_datapoint_is_shown_with_its_time_and_its_container() {
        let page = |container| {
            let point = Point { time: 1_767_225_540.0, values: [Some(1.5), None, Some(3.0)] };
            shown_for(&CALL, point, container)
        };
        let name = "pds_app_run_execution_time";
        let app = r#"project="p-1",app="p-1-ranker""#;
        assert_eq!(
            page(None),
            format!(
                "{name}_seconds{{{app},percentile=\"p50\"}} 1.5\n{name}_seconds{{{app},percentile=\"p99\"}} 3\n{name}_timestamp_seconds{{{app}}} 1767225540\n"
            )
        );
        assert!(page(Some("c-1")).contains(&format!("{{{app},container_id=\"c-1\"}} 1767225540")));
    }

    #[test]
    fn of_a_very_long_series_the_newest_are_kept() {
        let points: Vec<_> =
            (0..30_000).map(|second| format!(r#"{{"timestamp":{second},"p50":1}}"#)).collect();
        let read = Reply::decode(reply(&format!("[{}]", points.join(","))).as_bytes()).unwrap();
        assert_eq!(read.data.time_series.len(), MAX_DATAPOINTS);
        assert!(read.data.time_series.iter().any(|point| point.timestamp == Number::Value(29_999.0)));
    }

    #[test]
    fn a_reply_without_success_is_no_reply() {
        let read = RESOURCE.polled().read(br#"{"data":null,"status":"error"}"#, &[]);
        assert!(matches!(read, Err(DecodeError::Reported(words)) if words == "status 'error'"));
        for body in ["", "[]", r#"{"data":{"time_series":{}},"status":"success"}"#] {
            unreadable(&CALL, body);
        }
    }
}
