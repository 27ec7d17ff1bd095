//! Call 4, section 4.4: response time metrics of an app.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::Family;
use crate::catalogue::encode::LabelNumber;
use crate::config::{QueryNames, Resolution};

use super::endpoint::{Ask, Cadence, Polled, Resource, Row, Scope, Tally, Unexpected};
use super::lenient;
use super::number::{Number, NumberMap, decimal, lenient_text, or_default};
use super::range::{TimeRange, rfc3339};
use super::spec::{Call, DecodeError, Method, Param, ParamKind, ReplyKind, Request, RuleError, Spec};

/// The query parameters of the two metrics calls (sections 4.4 and 4.5), by their default names.
pub static METRICS_QUERY: &[Param] = &[
    Param { name: "start", kind: ParamKind::DateTime, purpose: "start of the time range" },
    Param {
        name: "end",
        kind: ParamKind::DateTime,
        purpose: "end of the time range; must not be before the start",
    },
    Param {
        name: "container_id",
        kind: ParamKind::Text { max_chars: None },
        purpose: "restricts metrics to one container",
    },
    Param {
        name: "resolution",
        kind: ParamKind::Word(&["medium", "high"]),
        purpose: "more data points than the default",
    },
];

/// The call's description.
pub static SPEC: Spec = Spec {
    number: 4,
    id: "response_time",
    method: Method::Get,
    path: "/v2/projects/{project_id}/apps/{app_id}/metrics/response-time",
    purpose: "response time percentiles",
    query: METRICS_QUERY,
    body: None,
    reply: ReplyKind::Json(|generator| generator.subschema_for::<ResponseTimeReply>()),
};

/// The arguments of either metrics call.
#[derive(Clone, Copy, Debug)]
pub struct MetricsQuery<'a> {
    /// The project's id.
    pub project_id: &'a str,
    /// The app's id.
    pub app_id: &'a str,
    /// The range; the service chooses one where there is none.
    pub range: Option<TimeRange>,
    /// The container to restrict to.
    pub container: Option<&'a str>,
    /// The data resolution.
    pub resolution: Resolution,
    /// The names of the query parameters.
    pub names: &'a QueryNames,
}

impl<'a> From<&Ask<'a>> for MetricsQuery<'a> {
    fn from(ask: &Ask<'a>) -> Self {
        let Ask { project, app, range, container, resolution, names } = *ask;
        Self { project_id: project, app_id: app, range, container, resolution, names }
    }
}

impl MetricsQuery<'_> {
    /// The request of `spec`, one of the two metrics calls.
    pub(super) fn request(&self, spec: &Spec) -> Result<Request, RuleError> {
        let mut request = Request::new(spec, &[("project_id", self.project_id), ("app_id", self.app_id)])?;
        if let Some(range) = self.range {
            let (start, end) = (rfc3339(range.start), rfc3339(range.end));
            if range.end < range.start {
                return Err(RuleError::EndBeforeStart { start, end });
            }
            request = request.with(&self.names.start, start).with(&self.names.end, end);
        }
        if let Some(container) = self.container {
            request = request.with(&self.names.container, container);
        }
        if let Some(resolution) = self.resolution.as_sent() {
            request = request.with(&self.names.resolution, resolution);
        }
        Ok(request)
    }
}

/// The call with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct ResponseTimes<'a>(pub MetricsQuery<'a>);

impl Call for ResponseTimes<'_> {
    type Reply = ResponseTime;

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn request(&self) -> Result<Request, RuleError> {
        self.0.request(&SPEC)
    }

    fn reply(body: &[u8]) -> Result<ResponseTime, DecodeError> {
        let reply: ResponseTimeReply = lenient::from_slice(body)?;
        check_status(&reply.status)?;
        Ok(reply.data)
    }
}

/// The envelope must say `success` (section 2).
pub(super) fn check_status(status: &str) -> Result<(), DecodeError> {
    if status == "success" { Ok(()) } else { Err(DecodeError::Status(status.to_owned())) }
}

/// The reply with its envelope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseTimeReply {
    /// The payload; empty where there is none, as with a status other than `success`.
    #[serde(default, deserialize_with = "or_default")]
    pub data: ResponseTime,
    /// `success` when data was retrieved.
    #[serde(default, deserialize_with = "lenient_text")]
    pub status: String,
}

/// Response times within a range (section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResponseTime {
    /// `p50`, `p90`, `p95`, `p99` in milliseconds.
    pub percentiles: NumberMap,
    /// Latency threshold (`1ms` through `1hr`) to the cumulative percentage of requests within it.
    pub distribution: NumberMap,
    /// How many requests there were.
    pub total_requests: Number,
    /// Start of the range, RFC 3339.
    #[serde(deserialize_with = "lenient_text")]
    pub start_date: String,
    /// End of the range, RFC 3339.
    #[serde(deserialize_with = "lenient_text")]
    pub end_date: String,
    /// Fields that the interface does not show.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
    /// What [`ResponseTime::shares`] made of the distribution.
    #[serde(skip)]
    pub shares: OnceCell<Shares>,
}

impl ResponseTime {
    /// The distribution as (threshold in seconds, share 0..=1), by rising threshold, each threshold once (the
    /// first of its entries counts). Entries that make no sense are noted and left out.
    pub fn shares(&self, unexpected: &mut Unexpected) -> &[(f64, f64)] {
        let Shares { good, bad } = self.shares.get_or_init(|| Shares::of(&self.distribution));
        unexpected.0.extend(std::iter::repeat_n("distribution", *bad));
        good
    }

    /// Whether the reply says that the range had no request at all; percentiles and shares mean nothing then.
    fn is_idle(&self) -> bool {
        self.total_requests == Number::Value(0.0)
    }
}

/// A distribution as it was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// (threshold in seconds, share within it), by rising threshold, each once.
    good: Vec<(f64, f64)>,
    /// How many entries are not what the interface says.
    bad: usize,
}

impl Shares {
    fn of(distribution: &NumberMap) -> Self {
        let (mut good, mut unexpected) = (Vec::with_capacity(distribution.0.len()), Unexpected::default());
        for (label, percentage) in &distribution.0 {
            let Some(threshold) = threshold_seconds(label) else {
                unexpected.0.push("distribution");
                continue;
            };
            if let Some(percentage) = unexpected.check("distribution", *percentage, -NOISE, 100.0 + NOISE) {
                good.push((threshold, (percentage / 100.0).clamp(0.0, 1.0)));
            }
        }
        good.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
        good.dedup_by(|later, earlier| later.0.total_cmp(&earlier.0).is_eq());
        Self { good, bad: unexpected.0.len() }
    }
}

/// How far beyond 0..100 a percentage may lie and still be taken for rounding: sums of a few hundred f64 shares
/// are off by less than 1e-11, and a service that rounds to single precision by less than 1e-5.
const NOISE: f64 = 1e-5;

/// A whole count that f64 holds exactly.
pub(super) const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

/// A count of requests or runs, where it is a whole number.
pub(super) fn count(unexpected: &mut Unexpected, field: &'static str, number: Number) -> Option<u64> {
    let value = unexpected.check(field, number, 0.0, MAX_COUNT)?;
    if value.trunc() != value {
        unexpected.0.push(field);
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and within 0..=2^53"
    )]
    Some(value as u64)
}

/// A label of the distribution as seconds. Reads any decimal number with one of the units us, ms, s, sec, m,
/// min, h, hr in either case, and an optional leading `<` or `<=`.
#[must_use]
pub fn threshold_seconds(label: &str) -> Option<f64> {
    let label = label.trim_ascii_start();
    let label = label
        .strip_prefix('<')
        .map_or(label, |rest| rest.strip_prefix('=').unwrap_or(rest))
        .trim_ascii_start();
    let unit_at = label.bytes().position(|byte| !(byte.is_ascii_digit() || byte == b'.'))?;
    let (digits, unit) = label.split_at_checked(unit_at)?;
    let number = decimal(digits)?;
    // Divided, not multiplied by a fraction: 35 / 1000 is the f64 nearest to 0.035, 35 * 0.001 is not.
    let unit = unit.as_bytes().trim_ascii();
    let seconds = match (unit.first()?.to_ascii_lowercase(), unit.get(1..)?) {
        (b'u', rest) if rest.eq_ignore_ascii_case(b"s") => number / 1e6,
        (b'm', rest) if rest.eq_ignore_ascii_case(b"s") => number / 1e3,
        (b's', rest) if rest.is_empty() || rest.eq_ignore_ascii_case(b"ec") => number,
        (b'm', rest) if rest.is_empty() || rest.eq_ignore_ascii_case(b"in") => number * 60.0,
        (b'h', rest) if rest.is_empty() || rest.eq_ignore_ascii_case(b"r") => number * 3600.0,
        _ => return None,
    };
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}

/// The call as a polled endpoint.
pub static ENDPOINT: Polled<ResponseTime> = Polled {
    resource: Resource::ResponseTime,
    spec: &SPEC,
    scope: Scope::App,
    cadence: Cadence::Metrics,
    request: |ask: &Ask<'_>| ResponseTimes(ask.into()).request(),
    decode: <ResponseTimes<'_> as Call>::reply,
    rows: ROWS,
    tally: Some(|reply, unexpected| Tally {
        total: count(unexpected, "total_requests", reply.total_requests),
        shares: reply.shares(unexpected).to_vec(),
        range: TimeRange::parse(&reply.start_date, &reply.end_date),
    }),
};

static ROWS: &[Row<ResponseTime>] = &[
    Row {
        family: Family::gauge(
            "pds_app_response_time_seconds",
            &["window", "container_id", "percentile"],
            "Response time percentile over the trailing window; absent while the window has no request",
        ),
        read: |reply, reader| {
            // A key that comes twice would be a series that stands twice.
            let mut seen = HashSet::new();
            for (percentile, millis) in &reply.percentiles.0 {
                if !seen.insert(percentile) {
                    continue;
                }
                let millis = reader.unexpected.check("percentiles", *millis, 0.0, f64::MAX);
                if let (Some(millis), false) = (millis, reply.is_idle()) {
                    reader.put_window(&[("percentile", percentile)], millis / 1e3);
                }
            }
        },
    },
    Row {
        family: Family::gauge(
            "pds_app_response_time_within_ratio",
            &["window", "container_id", "threshold"],
            "Estimated share of the window's requests done within the threshold in seconds; absent while the window has no request",
        ),
        read: |reply, reader| {
            let shares = reply.shares(reader.unexpected);
            if !reply.is_idle() {
                for (threshold, share) in shares {
                    reader.put_window(&[("threshold", LabelNumber::default().text(*threshold))], *share);
                }
            }
        },
    },
    Row {
        family: Family::gauge(
            "pds_app_window_requests",
            &["window", "container_id"],
            "Requests in the trailing window",
        ),
        read: |reply, reader| {
            if let Some(total) = count(reader.unexpected, "total_requests", reply.total_requests) {
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

    /// A reply with this payload.
    fn reply(data: &str) -> String {
        format!(r#"{{"data":{data},"status":"success"}}"#)
    }

    const APP: &str = r#"project="p-1",app="p-1-ranker",window="5m""#;

    #[test]
    fn a_reply_becomes_percentiles_shares_and_a_count() {
        let body = reply(
            r#"{"percentiles":{"p50":120,"p90":"480.5","p99":900},"distribution":{"1s":100,"250ms":"62.5","1hr":100},"total_requests":"1600","start_date":"2025-12-31T23:55:00Z","end_date":"2026-01-01T00:00:00Z","unit":{"x":1}}"#,
        );
        let page = format!(
            "pds_app_response_time_seconds{{{APP},percentile=\"p50\"}} 0.12
pds_app_response_time_seconds{{{APP},percentile=\"p90\"}} 0.4805
pds_app_response_time_seconds{{{APP},percentile=\"p99\"}} 0.9
pds_app_response_time_within_ratio{{{APP},threshold=\"0.25\"}} 0.625
pds_app_response_time_within_ratio{{{APP},threshold=\"1.0\"}} 1
pds_app_response_time_within_ratio{{{APP},threshold=\"3600.0\"}} 1
pds_app_window_requests{{{APP}}} 1600
"
        );
        assert_eq!(exposed(&ENDPOINT, &body), (page, vec![]));
        let reading = ENDPOINT_OBJECT.read(body.as_bytes(), &[]).unwrap();
        let tally = reading.tally.unwrap();
        assert_eq!((tally.total, tally.range), (Some(1600), Some(TimeRange { start: END - 300, end: END })));
        assert_eq!(tally.shares, [(0.25, 0.625), (1.0, 1.0), (3600.0, 1.0)]);
    }

    static ENDPOINT_OBJECT: &dyn super::super::Endpoint = &ENDPOINT;

    #[test]
    fn a_container_has_series_of_its_own() {
        let (page, _) = exposed_for(&ENDPOINT, &reply(r#"{"total_requests":3}"#), Some("c-\"1\n"), false);
        assert_eq!(page, format!("pds_app_window_requests{{{APP},container_id=\"c-\\\"1\\n\"}} 3\n"));
    }

    #[test]
    fn an_idle_window_has_a_count_and_nothing_else() {
        let idle = r#"{"percentiles":{"p50":0,"p99":null},"distribution":{"1s":0},"total_requests":0}"#;
        assert_eq!(
            exposed(&ENDPOINT, &reply(idle)),
            (format!("pds_app_window_requests{{{APP}}} 0\n"), vec![])
        );
    }

    #[test]
    fn what_has_no_value_is_missing_and_not_unexpected() {
        for data in [
            "null",
            "{}",
            r#"{"percentiles":null,"distribution":null,"total_requests":null}"#,
            r#"{"percentiles":{"p50":"","p90":"NaN","p99":null},"distribution":{"1s":"","2s":null},"total_requests":"NaN"}"#,
        ] {
            assert_eq!(exposed(&ENDPOINT, &reply(data)), (String::new(), vec![]), "{data}");
        }
    }

    #[test]
    fn one_bad_value_is_one_series_less() {
        let data = r#"{"percentiles":{"p50":"12abc","p90":-1,"p95":1e400,"p99":500},"distribution":{"1s":100.0000001,"2s":101,"5s":[],"soon":50,"1day":50,"-1s":1,"<=10s":"100"},"total_requests":7}"#;
        let page = format!(
            "pds_app_response_time_seconds{{{APP},percentile=\"p99\"}} 0.5
pds_app_response_time_within_ratio{{{APP},threshold=\"1.0\"}} 1
pds_app_response_time_within_ratio{{{APP},threshold=\"10.0\"}} 1
pds_app_window_requests{{{APP}}} 7
"
        );
        let unexpected = [vec!["percentiles"; 3], vec!["distribution"; 5]].concat();
        assert_eq!(exposed(&ENDPOINT, &reply(data)), (page, unexpected));
        for total in ["-3", "2.5", "1e400", "\"many\"", "{}", "1e17"] {
            let data = format!(r#"{{"total_requests":{total}}}"#);
            assert_eq!(exposed(&ENDPOINT, &reply(&data)), (String::new(), vec!["total_requests"]), "{total}");
        }
    }

    #[test]
    fn a_key_that_comes_twice_counts_once() {
        let data = r#"{"percentiles":{"p50":1000,"p50":2000},"distribution":{"60s":50,"1min":70}}"#;
        let page = format!(
            "pds_app_response_time_seconds{{{APP},percentile=\"p50\"}} 1
pds_app_response_time_within_ratio{{{APP},threshold=\"60.0\"}} 0.5
"
        );
        assert_eq!(exposed(&ENDPOINT, &reply(data)), (page, vec![]));
    }

    #[test]
    fn a_reply_without_success_is_no_reply() {
        for body in
            [r#"{"data":{},"status":"error"}"#, r#"{"data":null,"status":"no_data"}"#, r#"{"data":{}}"#]
        {
            let read = ENDPOINT_OBJECT.read(body.as_bytes(), &[]);
            assert!(matches!(read, Err(DecodeError::Status(_))), "{body}: {read:?}");
        }
        for body in [
            "",
            "null",
            "[]",
            r#"{"data":[1],"status":"success"}"#,
            r#"{"data":{"percentiles":5},"status":"success"}"#,
        ] {
            unreadable(&ENDPOINT, body);
        }
    }

    #[test]
    fn labels_of_the_distribution_are_read_in_any_unit() {
        for (label, seconds) in [
            ("1ms", 0.001),
            ("1hr", 3600.0),
            ("<= 2.5 S", 2.5),
            ("<35MS", 0.035),
            ("500us", 0.0005),
            ("15min", 900.0),
            ("2m", 120.0),
            ("1h", 3600.0),
            ("30sec", 30.0),
        ] {
            assert_eq!(threshold_seconds(label), Some(seconds), "{label}");
        }
        for label in ["", "1", "ms", "1.2.3s", "0s", "1d", "+Inf", ">1s", "1 s s", "∞"] {
            assert_eq!(threshold_seconds(label), None, "{label}");
        }
    }

    #[test]
    fn only_what_differs_from_the_default_is_sent() {
        let names = QueryNames { container: "pod".into(), ..QueryNames::default() };
        let query = MetricsQuery {
            project_id: "p-1",
            app_id: "p-1-a",
            range: None,
            container: None,
            resolution: Resolution::Standard,
            names: &names,
        };
        let path = "/v2/projects/p-1/apps/p-1-a/metrics/response-time";
        assert_eq!(ResponseTimes(query).request().unwrap().target(), path);
        let range = Some(TimeRange { start: END, end: END });
        let full = MetricsQuery { range, container: Some("c 1"), resolution: Resolution::High, ..query };
        let time = "2026-01-01T00%3A00%3A00Z";
        assert_eq!(
            ResponseTimes(full).request().unwrap().target(),
            format!("{path}?start={time}&end={time}&pod=c%201&resolution=high")
        );
        let backwards = MetricsQuery { range: Some(TimeRange { start: END, end: END - 1 }), ..query };
        assert!(matches!(ResponseTimes(backwards).request(), Err(RuleError::EndBeforeStart { .. })));
    }
}
