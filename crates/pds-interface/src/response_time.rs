//! Section 4.4: response time metrics of an app.

use compact_str::CompactString;
use pds_exposition::encode::LabelNumber;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, json};

use super::metrics::{self, Envelope};
use super::number::{NumberMap, decimal, scaled};
use super::prelude::*;

/// The reply.
pub type Reply = Envelope<ResponseTime>;

/// The call.
pub static CALL: Call = Call::new::<Reply>(
    "response_time",
    Method::GET,
    "/v2/projects/{project_id}/apps/{app_id}/metrics/response-time",
    "response time percentiles",
    Command::safe(&["metrics", "response-time"], "p-abc12345-ranker --start 24h"),
)
.with_query(metrics::QUERY)
.polled_as(Polled::of::<Facts>("response_time", Scope::App, Cadence::Metrics, EXAMPLE));

const EXAMPLE: &str = r#"{"status":"success","data":{"percentiles":{"p50":40,"p90":120,"p95":210,"p99":800},"distribution":{"1ms":0,
"10ms":4,"50ms":58,"100ms":84,"250ms":96,"500ms":98.2,"1s":99.3,"2.5s":99.9,"10s":100,"1hr":100},
"total_requests":1520,"start_date":"2025-12-31T23:55:00Z","end_date":"2026-01-01T00:00:00Z"}}"#;

/// The call as a resource.
pub const RESOURCE: Resource = Resource::of(Place::response_time);

/// Response times within a range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResponseTime {
    /// Response time percentiles in milliseconds.
    #[schemars(schema_with = "stated_percentiles")]
    pub percentiles: NumberMap,
    /// Latency thresholds (labels from 1ms through 1hr), each with the estimated cumulative percentage of requests
    /// completing within it.
    pub distribution: NumberMap,
    /// Total request count in the range.
    #[schemars(extend("type" = "integer"))]
    pub total_requests: Number,
    /// RFC 3339 start of the range.
    #[schemars(extend("format" = "date-time"))]
    pub start_date: Text,
    /// RFC 3339 end of the range.
    #[schemars(extend("format" = "date-time"))]
    pub end_date: Text,
}

/// The percentiles that the interface states.
fn stated_percentiles(_: &mut SchemaGenerator) -> Schema {
    const NAMES: [(&str, &str); 4] = [("p50", "50th"), ("p90", "90th"), ("p95", "95th"), ("p99", "99th")];
    let property = |(name, nth): (&str, &str)| {
        let description = format!("{nth} percentile in milliseconds; null if there were no requests.");
        (name.to_owned(), json!({ "type": ["number", "null"], "description": description }))
    };
    json_schema!({ "type": "object", "properties": Map::from_iter(NAMES.map(property)) })
}

/// The most characters shown of a label that is no threshold.
const MAX_LABEL: usize = 40;

impl ResponseTime {
    /// The distribution as (threshold in seconds, share 0..=1), by rising threshold, each threshold once (the first
    /// of its entries counts). Bad entries are noted and left out.
    pub fn shares(&self, unexpected: &mut Unexpected) -> Vec<(f64, f64)> {
        let mut shares = Vec::with_capacity(self.distribution.0.len());
        for (label, percentage) in &self.distribution.0 {
            let Some(threshold) = threshold_seconds(label) else {
                unexpected.fields.push("distribution");
                unexpected.label.get_or_insert_with(|| label.chars().take(MAX_LABEL).collect());
                continue;
            };
            if let Some(percentage) = unexpected.check("distribution", *percentage, -NOISE, 100.0 + NOISE) {
                shares.push((threshold, (percentage / 100.0).clamp(0.0, 1.0)));
            }
        }
        shares.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
        shares.dedup_by(|later, earlier| later.0.total_cmp(&earlier.0).is_eq());
        if shares.len() > MAX_THRESHOLDS {
            shares.truncate(MAX_THRESHOLDS);
            unexpected.fields.push("distribution");
        }
        shares
    }

    /// The percentiles in seconds, each once (the first of a name counts). Bad values, values without a name and those
    /// beyond 32 are noted and left out.
    pub fn seconds(&self, unexpected: &mut Unexpected) -> Vec<(CompactString, f64)> {
        let mut percentiles: Vec<(&CompactString, Option<f64>)> = Vec::new();
        for (name, millis) in &self.percentiles.0 {
            let is_known = percentiles.iter().any(|(known, _)| *known == name);
            let fits = is_known || percentiles.len() < MAX_PERCENTILES;
            if !fits || name.is_empty() {
                unexpected.fields.push("percentiles");
            } else if !is_known {
                percentiles.push((name, unexpected.check("percentiles", *millis, 0.0, f64::MAX)));
            }
            if !fits {
                break;
            }
        }
        let valid = |(name, millis): (&CompactString, Option<f64>)| Some((name.clone(), scaled(millis?, -3)));
        percentiles.into_iter().filter_map(valid).collect()
    }
}

/// A reply's checked values.
#[derive(Debug)]
pub struct Facts {
    /// Percentiles in seconds.
    percentiles: Vec<(CompactString, f64)>,
    /// Whether the range had no request: percentiles and shares mean nothing then.
    idle: bool,
    /// Whether shares have no series.
    without_ratio: bool,
    tally: Tally,
}

impl MetricSource for Facts {
    const ROWS: &'static [Row<Self>] = ROWS;

    const COUNTED: Option<Counted> = Some(Counted::Requests);

    fn read(body: &[u8], terms: &Terms, unexpected: &mut Unexpected) -> Result<Self, DecodeError> {
        let reply = Reply::decode(body)?.data;
        let idle = reply.total_requests == Number::Value(0.0);
        let (mut percentiles, mut shares) = (reply.seconds(unexpected), reply.shares(unexpected));
        if !idle {
            leave_out_falling(&mut percentiles, &mut shares, unexpected);
            if refutes(&percentiles, &shares) {
                shares.clear();
                unexpected.fields.push("distribution");
            }
        }
        let reported = shares.len();
        if !terms.thresholds.is_empty() {
            shares.retain(|(threshold, _)| terms.thresholds.contains(threshold));
        }
        let has_hidden_shares = shares.len() < reported;
        let (total, bounds) = (reply.total_requests, (&reply.start_date, &reply.end_date));
        let tally = metrics::tally(unexpected, ("total_requests", total), shares, bounds);
        let tally = Tally { has_hidden_shares, ..tally };
        Ok(Self { percentiles, idle, without_ratio: terms.without_ratio, tally })
    }

    fn add_to(self, reading: &mut Reading) {
        reading.tally = Some(self.tally);
    }
}

/// The most percentiles of a reply that are shown; the interface has four.
const MAX_PERCENTILES: usize = 32;

/// The most thresholds of a reply that are shown and counted: `1ms` through `1hr` are some twenty.
const MAX_THRESHOLDS: usize = 256;

/// The rank in the name of a percentile, 0..=1.
fn rank(name: &str) -> Option<f64> {
    Some((name.strip_prefix(['p', 'P'])?.parse::<f64>().ok()? / 100.0).clamp(0.0, 1.0))
}

/// Leaves out, and notes, percentiles below a lower-ranked percentile, and shares below that of a smaller threshold. If
/// a percentile refutes the larger share, that one is left out instead.
fn leave_out_falling(
    percentiles: &mut Vec<(CompactString, f64)>,
    shares: &mut Vec<(f64, f64)>,
    unexpected: &mut Unexpected,
) {
    let ranked: Vec<(f64, f64)> =
        percentiles.iter().filter_map(|(name, seconds)| Some((rank(name)?, *seconds))).collect();
    percentiles.retain(|(name, seconds)| {
        let smaller = |rank: f64| ranked.iter().filter(move |(other, _)| *other < rank);
        let out = rank(name).is_some_and(|rank| smaller(rank).any(|of| metrics::falls(*seconds, of.1)));
        unexpected.fields.extend(out.then_some("percentiles"));
        !out
    });
    if shares.is_sorted_by(|(_, smaller), (_, share)| smaller <= share) {
        return;
    }
    let is_lower = |share: f64, smaller: f64| share < smaller - NOISE / 100.0;
    let is_too_high = |(threshold, share): &&(f64, f64)| {
        ranked.iter().any(|(rank, seconds)| seconds > threshold && *share > (1.0 + rank) / 2.0)
            && shares.iter().any(|(other, later)| other > threshold && is_lower(*later, *share))
    };
    let too_high: Vec<f64> = shares.iter().filter(is_too_high).map(|(threshold, _)| *threshold).collect();
    let mut highest = 0.0f64;
    shares.retain(|(threshold, share)| {
        let out = too_high.contains(threshold) || is_lower(*share, highest);
        unexpected.fields.extend(out.then_some("distribution"));
        highest = if out { highest } else { highest.max(*share) };
        !out
    });
}

/// How many times a percentile the largest threshold must be to refute its share. Services that measure up to 10 s state
/// 10 s as the percentile of requests that take more than an hour.
const FAR: f64 = 400.0;

/// Whether the largest threshold is far above a percentile, but its share is less than half of the rank, as in an empty
/// distribution, or in one of fractions instead of percentages. No definition of percentiles, rounding or estimate
/// differs by as much.
fn refutes(percentiles: &[(CompactString, f64)], shares: &[(f64, f64)]) -> bool {
    let Some((threshold, share)) = shares.last() else { return false };
    // 0 is no response time.
    let is_far_below = |seconds: f64| seconds > 0.0 && seconds * FAR <= *threshold;
    let refutes = |name: &str| rank(name).is_some_and(|rank| *share < rank / 2.0);
    percentiles.iter().any(|(name, seconds)| is_far_below(*seconds) && refutes(name))
}

/// How far beyond 0..100 a percentage may lie and still count as rounded: sums of a few hundred f64 shares are off by
/// less than 1e-11, and a service that rounds to single precision by less than 1e-5.
const NOISE: f64 = 1e-5;

/// A label of the distribution as seconds. Reads any decimal number with one of the units us, ms, s, sec, m,
/// min, h, hr in either case, and an optional leading `<` or `<=`.
pub fn threshold_seconds(label: &str) -> Option<f64> {
    let label = label.trim_ascii_start();
    let label = label
        .strip_prefix('<')
        .map_or(label, |rest| rest.strip_prefix('=').unwrap_or(rest))
        .trim_ascii_start();
    let unit_at = label.bytes().position(|byte| !(byte.is_ascii_digit() || byte == b'.'))?;
    let (digits, unit) = label.split_at_checked(unit_at)?;
    let number = decimal(digits)?;
    // Divided, not multiplied: 35 / 1000 is the f64 nearest to 0.035, 35 * 0.001 is not.
    let nanoseconds = |number: f64| number.round() / 1e9;
    let unit = unit.as_bytes().trim_ascii();
    let seconds = match (unit.first()?.to_ascii_lowercase(), unit.get(1..)?) {
        (b'u', rest) if rest.eq_ignore_ascii_case(b"s") => number / 1e6,
        (b'm', rest) if rest.eq_ignore_ascii_case(b"s") => number / 1e3,
        (b's', rest) if rest.is_empty() || rest.eq_ignore_ascii_case(b"ec") => number,
        (b'm', rest) if rest.is_empty() || rest.eq_ignore_ascii_case(b"in") => nanoseconds(number * 60e9),
        (b'h', rest) if rest.is_empty() || rest.eq_ignore_ascii_case(b"r") => nanoseconds(number * 3600e9),
        _ => return None,
    };
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}

rows! { Facts, "from the app's response times, polled every poll.interval or the app's own":
    SECONDS: gauge(
        "pds_app_response_time_seconds",
        ["window", "container_id", "percentile"],
        "Response time percentile over the trailing window; absent without requests"
    ) => |facts, reader| {
        for (percentile, seconds) in facts.percentiles.iter().filter(|_| !facts.idle) {
            reader.put_window(&[("percentile", percentile)], *seconds);
        }
    };
    WITHIN_RATIO: gauge(
        "pds_app_response_time_within_ratio",
        ["window", "container_id", "threshold"],
        "Estimated share of the window's requests within the threshold in seconds; absent without requests"
    ) => |facts, reader| {
        for (threshold, share) in facts.tally.shares.iter().filter(|_| !facts.idle && !facts.without_ratio) {
            reader.put_window(&[("threshold", LabelNumber::default().text(*threshold))], *share);
        }
    };
    WINDOW_REQUESTS: gauge(
        "pds_app_window_requests", ["window", "container_id"], "Requests in the trailing window"
    ) => |facts, reader| reader.put_window_count(facts.tally.count());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimeRange;
    use crate::tests::{END, exposed, exposed_for, unreadable};

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
        assert_eq!(exposed(&CALL, &body), (page, vec![]));
        let reading = RESOURCE.polled().read(body.as_bytes(), &[]).unwrap();
        let tally = reading.tally.unwrap();
        assert_eq!((tally.total, tally.range), (Some(1600), Some(TimeRange { start: END - 300, end: END })));
        assert_eq!(tally.shares, [(0.25, 0.625), (1.0, 1.0), (3600.0, 1.0)]);
    }

    #[test]
    fn shares_that_are_not_exposed_are_known_to_exist() {
        let tally = |distribution: &str, thresholds: &[f64]| {
            let terms = Terms { thresholds: thresholds.to_vec(), ..Terms::default() };
            let body = reply(&format!(r#"{{"distribution":{distribution},"total_requests":3}}"#));
            let facts = Facts::read(body.as_bytes(), &terms, &mut Unexpected::default()).unwrap();
            (facts.tally.shares, facts.tally.has_hidden_shares)
        };
        let slow = r#"{"250ms":50,"1s":100}"#;
        assert_eq!(tally(slow, &[]), (vec![(0.25, 0.5), (1.0, 1.0)], false));
        assert_eq!(tally(slow, &[0.05, 1.0]), (vec![(1.0, 1.0)], true));
        assert_eq!(tally(slow, &[0.05]), (vec![], true));
        assert_eq!(tally(r#"{"soon":50}"#, &[0.05]), (vec![], false), "no share is valid");
    }

    #[test]
    fn a_container_has_series_of_its_own() {
        let (page, _) = exposed_for(&CALL, &reply(r#"{"total_requests":3}"#), Some("c-\"1\n"));
        assert_eq!(page, format!("pds_app_window_requests{{{APP},container_id=\"c-\\\"1\\n\"}} 3\n"));
    }

    #[test]
    fn an_idle_window_has_a_count_and_nothing_else() {
        let idle = r#"{"percentiles":{"p50":0,"p99":null},"distribution":{"1s":0},"total_requests":0}"#;
        assert_eq!(exposed(&CALL, &reply(idle)), (format!("pds_app_window_requests{{{APP}}} 0\n"), vec![]));
    }

    #[test]
    fn an_absent_value_is_missing_and_not_unexpected() {
        for data in [
            "{}",
            r#"{"percentiles":null,"distribution":null,"total_requests":null}"#,
            r#"{"percentiles":{"p50":"","p90":"NaN","p99":null},"distribution":{"1s":"","2s":null},"total_requests":"NaN"}"#,
        ] {
            assert_eq!(exposed(&CALL, &reply(data)), (String::new(), vec![]), "{data}");
        }
    }

    #[test]
    fn a_bad_value_is_one_missing_series() {
        let data = r#"{"percentiles":{"p50":"12abc","p90":-1,"p95":1e400,"p99":500},"distribution":{"1s":100.0000001,"2s":101,"5s":[],"soon":50,"1day":50,"-1s":1,"<=10s":"100"},"total_requests":7}"#;
        let page = format!(
            "pds_app_response_time_seconds{{{APP},percentile=\"p99\"}} 0.5
pds_app_response_time_within_ratio{{{APP},threshold=\"1.0\"}} 1
pds_app_response_time_within_ratio{{{APP},threshold=\"10.0\"}} 1
pds_app_window_requests{{{APP}}} 7
"
        );
        let unexpected = [vec!["percentiles"; 3], vec!["distribution"; 5]].concat();
        assert_eq!(exposed(&CALL, &reply(data)), (page, unexpected));
        for total in ["-3", "1e400", "\"many\"", "{}", "1e17"] {
            let data = format!(r#"{{"total_requests":{total}}}"#);
            assert_eq!(exposed(&CALL, &reply(&data)), (String::new(), vec!["total_requests"]), "{total}");
        }
    }

    #[test]
    fn percentiles_and_shares_that_fall_are_missing() {
        let data = r#"{"percentiles":{"p99":100,"p50":900,"p90":900,"max":1},"distribution":{"10s":70,"1s":50,"2s":49,"5s":49.999999},"total_requests":7}"#;
        let page = format!(
            "pds_app_response_time_seconds{{{APP},percentile=\"p50\"}} 0.9
pds_app_response_time_seconds{{{APP},percentile=\"p90\"}} 0.9
pds_app_response_time_seconds{{{APP},percentile=\"max\"}} 0.001
pds_app_response_time_within_ratio{{{APP},threshold=\"1.0\"}} 0.5
pds_app_response_time_within_ratio{{{APP},threshold=\"5.0\"}} 0.49999999
pds_app_response_time_within_ratio{{{APP},threshold=\"10.0\"}} 0.7
pds_app_window_requests{{{APP}}} 7
"
        );
        assert_eq!(exposed(&CALL, &reply(data)), (page, vec!["percentiles", "distribution"]));
        let idle = r#"{"percentiles":{"p50":1,"p90":0},"distribution":{"1s":1,"2s":0},"total_requests":0}"#;
        assert_eq!(exposed(&CALL, &reply(idle)).1, Vec::<&str>::new(), "nothing is meant by them");
    }

    /// The valid shares of a distribution beside these percentiles, and the number of unexpected values.
    fn shares_beside(percentiles: &str, distribution: &str) -> (Vec<(f64, f64)>, usize) {
        let data =
            format!(r#"{{"percentiles":{percentiles},"distribution":{distribution},"total_requests":500}}"#);
        let (mut unexpected, terms) =
            (Unexpected::default(), Terms { thresholds: vec![7.0], ..Terms::default() });
        let mut tally =
            |terms: &Terms| Facts::read(reply(&data).as_bytes(), terms, &mut unexpected).unwrap().tally;
        let shares = tally(&Terms::default()).shares;
        assert_eq!(tally(&terms).has_hidden_shares, !shares.is_empty());
        assert!(unexpected.fields.iter().all(|field| *field == "distribution"), "{unexpected:?}");
        (shares, unexpected.fields.len() / 2)
    }

    #[test]
    fn a_distribution_that_percentiles_refute_is_missing() {
        let usual = r#"{"p50":40,"p99":800}"#;
        for (distribution, left) in [
            (r#"{"1ms":0,"1s":0,"1hr":0}"#, (vec![], 1)),
            (r#"{"1ms":0,"1s":0.98,"1hr":1}"#, (vec![], 1)),
            (r#"{"1ms":100,"1s":0,"1hr":0}"#, (vec![], 2)),
            (r#"{"1ms":100,"50ms":58,"1s":99}"#, (vec![(0.05, 0.58), (1.0, 0.99)], 1)),
            // Estimates may differ by as much, so either share may be wrong.
            (r#"{"10ms":60,"50ms":58,"1s":99}"#, (vec![(0.01, 0.6), (1.0, 0.99)], 1)),
            (r#"{"1ms":0,"1s":99,"1hr":0}"#, (vec![(0.001, 0.0), (1.0, 0.99)], 1)),
        ] {
            assert_eq!(shares_beside(usual, distribution), left, "{distribution}");
        }
    }

    #[test]
    fn a_distribution_that_may_be_right_is_kept() {
        for (percentiles, distribution) in [
            ("{}", r#"{"1s":0,"1hr":0}"#),
            (r#"{"p50":0,"p99":0}"#, r#"{"1s":0,"1hr":0}"#),
            // No bucket is above 10 s.
            (r#"{"p50":10000,"p99":10000}"#, r#"{"10s":0,"1hr":0}"#),
            (r#"{"p50":6000,"p99":10000}"#, r#"{"5s":48,"1hr":60}"#),
            // Seconds.
            (r#"{"p50":0.04,"p99":0.8}"#, r#"{"10ms":4,"1s":99,"1hr":100}"#),
            // A fast request and a slow one.
            (r#"{"p50":1,"p99":1,"p999":1}"#, r#"{"1ms":50,"1hr":50}"#),
            (r#"{"p50":40,"p99":800}"#, r#"{"1ms":0,"10ms":0}"#),
            // The mean of the percentiles of each minute.
            (r#"{"p50":9000,"p99":60000}"#, r#"{"1s":99,"1hr":100}"#),
        ] {
            let (shares, unexpected) = shares_beside(percentiles, distribution);
            assert_eq!((shares.len(), unexpected), (distribution.matches(':').count(), 0), "{percentiles}");
        }
    }

    /// The percentile at `index` of sorted response times: the one before, an interpolated one, the one after.
    #[expect(clippy::cast_possible_truncation, reason = "an index")]
    fn percentiles_at(index: f64, millis: &[f64]) -> [f64; 3] {
        let (low, high) = (millis[index.floor() as usize], millis[index.ceil() as usize]);
        [low, low + (high - low) * index.fract(), high]
    }

    proptest::proptest! {
        #[test]
        fn percentiles_never_refute_the_distribution_of_an_honest_service(
            magnitudes in proptest::collection::vec(0.0f64..7.0, 1..200), definition in 0..4_usize,
            between in 0..3_usize, rounding in 0..3_usize, decimals in 0..=6_i32, estimate in -2.0f64..2.0,
        ) {
            let mut millis: Vec<f64> = magnitudes.iter().map(|magnitude| 10f64.powf(*magnitude)).collect();
            millis.sort_by(f64::total_cmp);
            let count = millis.len() as f64;
            let percentile = |rank: f64| {
                let all = count * rank;
                let index = [all - rank, all + rank - 1.0, all - 1.0, all - 0.5][definition];
                percentiles_at(index.clamp(0.0, count - 1.0), &millis)[between] * 10f64.powf(estimate)
            };
            let percent = |threshold: f64| {
                let within = millis.iter().filter(|millis| **millis <= threshold).count() as f64;
                let scale = 10f64.powi(decimals);
                [f64::round, f64::floor, f64::ceil][rounding](within / count * 100.0 * scale) / scale
            };
            let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(percentile);
            let percentiles = format!(r#"{{"p50":{p50},"p90":{p90},"p95":{p95},"p99":{p99}}}"#);
            let entry = |label| format!("\"{label}\":{}", percent(1e3 * threshold_seconds(label).unwrap()));
            let labels = ["1ms", "10ms", "50ms", "100ms", "250ms", "1s", "10s", "1min", "15min", "1hr"];
            let distribution = format!("{{{}}}", labels.map(entry).join(","));
            let (shares, unexpected) = shares_beside(&percentiles, &distribution);
            proptest::prop_assert_eq!((shares.len(), unexpected), (labels.len(), 0));
        }
    }

    #[test]
    fn the_first_invalid_threshold_label_is_kept_for_the_log() {
        let long =
            format!(r#"{{"distribution":{{"1s":50,"{}":50,"soon":50}},"total_requests":1}}"#, "x".repeat(99));
        let reading = RESOURCE.polled().read(reply(&long).as_bytes(), &[]).unwrap();
        assert_eq!(
            (reading.unexpected, reading.unexpected_label),
            (vec!["distribution"; 2], Some("x".repeat(40)))
        );
    }

    #[test]
    fn a_bound_of_the_range_in_an_unknown_form_is_unexpected_and_an_absent_one_is_not() {
        let data = |start: &str, end: &str| {
            format!(r#"{{"total_requests":1,"start_date":{start},"end_date":{end}}}"#)
        };
        let range = |data: &str| {
            let reading = RESOURCE.polled().read(reply(data).as_bytes(), &[]).unwrap();
            (reading.tally.unwrap().range, reading.unexpected)
        };
        let asked = Some(TimeRange { start: END - 300, end: END });
        assert_eq!(range(&data("\"2025-12-31T23:55:00\"", "1767225600")), (asked, vec![]));
        assert_eq!(range(&data("null", "\"\"")), (None, vec![]));
        assert_eq!(range(&data("\"noon\"", "1767225600000")), (None, vec!["start_date", "end_date"]));
    }

    #[test]
    fn a_total_with_the_noise_of_a_sum_is_whole() {
        for (total, whole) in [("5.0001", 5), ("\"4.9999999\"", 5), ("-0.0", 0)] {
            let page = format!("pds_app_window_requests{{{APP}}} {whole}\n");
            let data = format!(r#"{{"total_requests":{total}}}"#);
            assert_eq!(exposed(&CALL, &reply(&data)), (page, vec![]), "{total}");
        }
    }

    #[test]
    fn a_reply_has_a_bounded_number_of_series() {
        let many = |range: std::ops::Range<u32>, unit: &str| {
            range.map(|index| format!("\"{index}{unit}\":50")).collect::<Vec<_>>().join(",")
        };
        let data = format!(
            r#"{{"percentiles":{{"":5,"0p":60,{}}},"distribution":{{{}}},"total_requests":7}}"#,
            many(0..1000, "p"),
            many(1..1001, "ms")
        );
        let (page, unexpected) = exposed(&CALL, &reply(&data));
        assert_eq!(page.lines().count(), MAX_PERCENTILES + MAX_THRESHOLDS + 1);
        assert_eq!(unexpected, ["percentiles", "percentiles", "distribution"], "no name, and too many");
    }

    #[test]
    fn a_bare_nan_costs_its_percentile_and_no_other_value() {
        let data =
            r#"{"percentiles":{"p50":40,"p95":NaN,"p99":800},"distribution":{"1s":100},"total_requests":7}"#;
        let (page, unexpected) = exposed(&CALL, &reply(data));
        for expected in ["percentile=\"p50\"} 0.04", "percentile=\"p99\"} 0.8", "threshold=\"1.0\"} 1", "} 7"]
        {
            assert!(page.contains(expected), "{expected} in {page}");
        }
        assert!(!page.contains("p95"), "{page}");
        assert_eq!(unexpected, ["percentiles"]);
    }

    #[test]
    fn percentiles_keep_their_digits() {
        let (page, _) = exposed(&CALL, &reply(r#"{"percentiles":{"p50":715384.615},"total_requests":7}"#));
        assert!(page.contains("percentile=\"p50\"} 715.384615\n"), "{page}");
    }

    #[test]
    fn a_key_that_comes_twice_counts_once() {
        let data = r#"{"percentiles":{"p50":1000,"p50":2000},"distribution":{"60s":50,"1min":70}}"#;
        let page = format!(
            "pds_app_response_time_seconds{{{APP},percentile=\"p50\"}} 1
pds_app_response_time_within_ratio{{{APP},threshold=\"60.0\"}} 0.5
"
        );
        assert_eq!(exposed(&CALL, &reply(data)), (page, vec![]));
    }

    #[test]
    fn percentiles_too_long_for_a_label_are_left_out() {
        let [one, other] = ["1", "2"].map(|end| "p".repeat(1024) + end);
        let data = format!(r#"{{"percentiles":{{"p50":1000,"{one}":1,"{other}":2}}}}"#);
        let page = format!("pds_app_response_time_seconds{{{APP},percentile=\"p50\"}} 1\n");
        assert_eq!(exposed(&CALL, &reply(&data)), (page, vec!["percentile"; 2]));
    }

    #[test]
    fn a_reply_without_success_is_no_reply() {
        for (body, error) in [
            (r#"{"data":{},"status":"error","message":"later"}"#, "the service reports: later"),
            (r#"{"data":null,"status":"no_data"}"#, "the service reports: status 'no_data'"),
            (r#"{"data":{}}"#, "the reply has no status"),
        ] {
            let read = RESOURCE.polled().read(body.as_bytes(), &[]);
            assert_eq!(read.unwrap_err().to_string(), error, "{body}");
        }
        for body in [
            "",
            "null",
            "[]",
            r#"{"data":[1],"status":"success"}"#,
            r#"{"data":null,"status":"success"}"#,
            r#"{"status":"success"}"#,
            r#"{"data":{"percentiles":5},"status":"success"}"#,
        ] {
            unreadable(&CALL, body);
        }
    }

    #[test]
    fn labels_of_the_distribution_are_read_in_any_unit() {
        for (label, seconds) in [
            ("1ms", 0.001),
            ("1000ms", 1.0),
            ("1hr", 3600.0),
            ("<= 2.5 S", 2.5),
            ("<35MS", 0.035),
            ("500us", 0.0005),
            ("15min", 900.0),
            ("2m", 120.0),
            ("1h", 3600.0),
            ("30sec", 30.0),
            ("4.1min", 246.0),
            ("0.07h", 252.0),
        ] {
            assert_eq!(threshold_seconds(label), Some(seconds), "{label}");
        }
        for label in ["", "1", "ms", "1.2.3s", "0s", "1d", "+Inf", ">1s", "1 s s", "∞"] {
            assert_eq!(threshold_seconds(label), None, "{label}");
        }
    }
}
