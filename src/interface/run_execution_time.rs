//! Call 5, section 4.5: run execution time metrics of an app.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Family;

use super::call::{Call, Command, Method, ReplyFormat};
use super::metrics::{self, Envelope};
use super::number::{Number, lenient_text};
use super::polled::{Cadence, Counted, MetricSource, Polled, Row, Scope, Tally};
use super::range::TimeRange;
use super::reader::{Reader, Unexpected};
use super::resource::Resource;
use super::template::Template;

/// The reply.
pub type Reply = Envelope<RunExecutionTime>;

/// The call.
pub static CALL: Call = Call {
    number: 5,
    id: "run_execution_time",
    method: Method::Get,
    path: Template("/v2/projects/{project_id}/apps/{app_id}/metrics/run-execution-time"),
    purpose: "run execution time percentiles",
    query: metrics::QUERY,
    body: &[],
    reply: ReplyFormat::of::<Reply>(),
    polled: Some(Polled::of::<Reply>("run_execution_time", Scope::App, Cadence::Metrics)),
    command: Command::safe(
        &["metrics", "run-execution-time"],
        "p-abc12345-ranker --start 2026-01-31 --end 2026-02-01 --resolution high",
    ),
};

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(&CALL);

/// Run execution times within a range (section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunExecutionTime {
    /// The datapoints, in the order sent; of a very long series only the newest (see [`MAX_DATAPOINTS`]).
    #[serde(deserialize_with = "newest_datapoints")]
    pub time_series: Vec<Datapoint>,
    /// How many runs there were.
    pub total_runs: Number,
    /// Start of the range, RFC 3339.
    #[serde(deserialize_with = "lenient_text")]
    pub start_date: String,
    /// End of the range, RFC 3339.
    #[serde(deserialize_with = "lenient_text")]
    pub end_date: String,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// One point of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Datapoint {
    /// Unix seconds.
    pub timestamp: Number,
    /// Median, seconds.
    pub p50: Number,
    /// 90th percentile, seconds.
    pub p90: Number,
    /// 99th percentile, seconds.
    pub p99: Number,
}

/// So many datapoints of one reply are kept: a week of one a minute. A reply may be as large as
/// `max_response_bytes` allows, the memory it takes may not.
pub const MAX_DATAPOINTS: usize = 10_080;

/// How far a datapoint may lie after the end of the range asked for: a service that labels a bucket by its end
/// rounds up to whole buckets. Later ones are from a broken clock.
const BUCKET_SECONDS: f64 = 3600.0;

fn newest_datapoints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Datapoint>, D::Error> {
    struct Series;
    impl<'de> Visitor<'de> for Series {
        type Value = Vec<Datapoint>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of datapoints, or null")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut points = Vec::new();
            while let Some(point) = seq.next_element::<Option<Datapoint>>()? {
                if points.len() == 2 * MAX_DATAPOINTS {
                    keep_newest(&mut points);
                }
                points.extend(point);
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            if points.len() > MAX_DATAPOINTS {
                keep_newest(&mut points);
            }
            Ok(points)
        }
    }
    deserializer.deserialize_any(Series)
}

fn keep_newest(points: &mut Vec<Datapoint>) {
    let time = |point: &Datapoint| point.timestamp.value().unwrap_or(f64::NEG_INFINITY);
    points.sort_by(|a, b| time(a).total_cmp(&time(b)));
    points.drain(..points.len() - MAX_DATAPOINTS);
}

impl RunExecutionTime {
    /// The newest datapoint that has a time and at least one value; of several with one time the last sent.
    fn newest(&self, asked: Option<TimeRange>, unexpected: &mut Unexpected) -> Option<(f64, Datapoint)> {
        #[expect(clippy::cast_precision_loss, reason = "Unix seconds are far below 2^53")]
        let latest = asked.map_or(f64::MAX, |range| range.end as f64 + BUCKET_SECONDS);
        let mut newest: Option<(f64, Datapoint)> = None;
        for point in &self.time_series {
            let Some(time) = unexpected.check("timestamp", point.timestamp, 0.0, latest) else { continue };
            let mut sound = *point;
            for (field, value) in [("p50", &mut sound.p50), ("p90", &mut sound.p90), ("p99", &mut sound.p99)]
            {
                *value =
                    unexpected.check(field, *value, 0.0, f64::MAX).map_or(Number::Missing, Number::Value);
            }
            let valued = [sound.p50, sound.p90, sound.p99].iter().any(|p| p.value().is_some());
            if valued && newest.is_none_or(|(before, _)| before <= time) {
                newest = Some((time, sound));
            }
        }
        newest
    }
}

/// A reply's checked values.
#[derive(Debug)]
pub struct Facts {
    newest: Option<(f64, Datapoint)>,
    tally: Tally,
}

impl Facts {
    /// The newest datapoint, if the reply is of the window that the gauges come from.
    fn newest(&self, reader: &Reader<'_>) -> Option<(f64, Datapoint)> {
        self.newest.filter(|_| reader.subject.window.is_none_or(|window| window.first))
    }
}

impl MetricSource for Reply {
    type Facts = Facts;

    const ROWS: &'static [Row<Facts>] = ROWS;

    const COUNTED: Option<Counted> = Some(Counted::Runs);

    fn facts(self, asked: Option<TimeRange>, unexpected: &mut Unexpected) -> Facts {
        let reply = self.data;
        Facts {
            newest: reply.newest(asked, unexpected),
            tally: Tally {
                total: metrics::count(unexpected, "total_runs", reply.total_runs),
                shares: Vec::new(),
                range: TimeRange::parse(&reply.start_date, &reply.end_date),
            },
        }
    }

    fn tally(facts: Facts) -> Option<Tally> {
        Some(facts.tally)
    }
}

static ROWS: &[Row<Facts>] = &[
    Row {
        family: Family::gauge(
            "pds_app_run_execution_time_seconds",
            &["container_id", "percentile"],
            "Run execution time percentile at the newest datapoint that has a value, of the first configured window",
        ),
        read: |facts, reader| {
            if let Some((_, point)) = facts.newest(reader) {
                for (percentile, value) in [("p50", point.p50), ("p90", point.p90), ("p99", point.p99)] {
                    if let Some(seconds) = value.value() {
                        reader.put_container(&[("percentile", percentile)], seconds);
                    }
                }
            }
        },
    },
    Row {
        family: Family::gauge(
            "pds_app_run_execution_time_timestamp_seconds",
            &["container_id"],
            "Time of the datapoint behind pds_app_run_execution_time_seconds, Unix time",
        ),
        read: |facts, reader| {
            if let Some((time, _)) = facts.newest(reader) {
                reader.put_container(&[], time);
            }
        },
    },
    Row {
        family: Family::gauge(
            "pds_app_window_runs",
            &["window", "container_id"],
            "Runs in the trailing window",
        ),
        read: |facts, reader| {
            if let Some(total) = facts.tally.total {
                #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
                reader.put_window(&[], total as f64);
            }
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::recorded::{END, exposed, exposed_for, unreadable};
    use crate::interface::{DecodeError, ReplyBody as _};

    /// A reply with this series.
    fn reply(series: &str) -> String {
        format!(r#"{{"data":{{"time_series":{series},"total_runs":12}},"status":"success"}}"#)
    }

    /// The page for the newest datapoint, given as percentiles and time.
    fn page(percentiles: &[(&str, &str)], time: i64) -> String {
        let app = r#"project="p-1",app="p-1-ranker""#;
        let series = percentiles.iter().map(|(percentile, value)| {
            format!("pds_app_run_execution_time_seconds{{{app},percentile=\"{percentile}\"}} {value}\n")
        });
        let rest = format!(
            "pds_app_run_execution_time_timestamp_seconds{{{app}}} {time}\npds_app_window_runs{{{app},window=\"5m\"}} 12\n"
        );
        series.chain([rest]).collect()
    }

    const ONLY_RUNS: &str = "pds_app_window_runs{project=\"p-1\",app=\"p-1-ranker\",window=\"5m\"} 12\n";

    #[test]
    fn the_newest_datapoint_with_a_value_is_shown() {
        let body = reply(
            r#"[{"timestamp":1767225540,"p50":"1.5","p90":2,"p99":null,"count":3},{"timestamp":1767225480,"p50":9},{"timestamp":1767225600,"p50":null,"p90":"","p99":"NaN"}]"#,
        );
        assert_eq!(exposed(&CALL, &body), (page(&[("p50", "1.5"), ("p90", "2")], END - 60), vec![]));
    }

    #[test]
    fn of_datapoints_with_one_time_the_last_counts_and_nulls_between_them_do_not() {
        let body = reply(r#"[{"timestamp":"1767225540","p50":1},null,{"timestamp":1767225540,"p50":2}]"#);
        assert_eq!(exposed(&CALL, &body), (page(&[("p50", "2")], END - 60), vec![]));
    }

    #[test]
    fn a_datapoint_of_the_future_or_with_a_bad_value_is_unexpected() {
        let body = reply(
            r#"[{"timestamp":1767225300,"p50":1,"p90":-2,"p99":"12abc"},{"timestamp":1767235600,"p50":7},{"timestamp":1e400,"p50":7},{"timestamp":-5,"p50":7},{"p50":7}]"#,
        );
        let unexpected = vec!["p90", "p99", "timestamp", "timestamp", "timestamp"];
        assert_eq!(exposed(&CALL, &body), (page(&[("p50", "1")], END - 300), unexpected));
    }

    #[test]
    fn a_series_without_values_has_only_its_count() {
        for series in ["null", "[]", "[null]", r#"[{"timestamp":1767225540,"p50":null}]"#, r#"[{}]"#] {
            assert_eq!(exposed(&CALL, &reply(series)), (ONLY_RUNS.to_owned(), vec![]), "{series}");
        }
    }

    #[test]
    fn gauges_without_window_come_from_the_first_window_and_containers_are_told_apart() {
        let body = reply(r#"[{"timestamp":1767225540,"p99":3}]"#);
        assert_eq!(exposed_for(&CALL, &body, None, false).0, ONLY_RUNS);
        let (page, _) = exposed_for(&CALL, &body, Some("c-1"), true);
        let labels = r#"project="p-1",app="p-1-ranker",container_id="c-1""#;
        let first = format!("pds_app_run_execution_time_seconds{{{labels},percentile=\"p99\"}} 3\n");
        assert!(page.starts_with(&first), "{page}");
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
        assert!(matches!(read, Err(DecodeError::Status(status)) if status == "error"));
        for body in ["", "[]", r#"{"data":{"time_series":{}},"status":"success"}"#] {
            unreadable(&CALL, body);
        }
    }
}
