//! Shared by the two metrics calls (sections 2, 4.4 and 4.5): parameters, envelope and counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::Number;
use super::param::{Param, ParamKind, Resolution};
use super::polled::Tally;
use super::range::{TimeRange, parse_time};
use super::reader::Unexpected;
use super::reply::{DecodeError, ReplyBody, SUCCESS, object};
use super::wire::{Text, an_object};

/// The query parameters of both calls.
pub const QUERY: &[Param] = &[
    Param {
        name: "start",
        configured: Some(|names| &names.start),
        kind: ParamKind::RangeStart,
        purpose: "start of the time range",
    },
    Param {
        name: "end",
        configured: Some(|names| &names.end),
        kind: ParamKind::RangeEnd,
        purpose: "end of the time range; must not be before the start",
    },
    Param {
        name: "container_id",
        configured: Some(|names| &names.container),
        kind: ParamKind::Text { max_chars: None, default: None },
        purpose: "restricts metrics to one container",
    },
    Param {
        name: "resolution",
        configured: Some(|names| &names.resolution),
        kind: ParamKind::Word { words: &Resolution::WORDS, default: Some("standard") },
        purpose: "data resolution; medium or high gives more datapoints",
    },
];

/// Metrics in their envelope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound = "T: Default + Serialize + serde::de::DeserializeOwned")]
#[schemars(rename = "{T}Reply", bound = "T: Default + Serialize + JsonSchema")]
pub struct Envelope<T> {
    /// The metrics.
    #[serde(deserialize_with = "an_object")]
    pub data: T,
    /// Success when data was retrieved.
    #[serde(default)]
    pub status: Text,
}

impl<T> Envelope<T> {
    /// A payload that was retrieved.
    pub fn success(data: T) -> Self {
        Self { data, status: SUCCESS.into() }
    }
}

impl<T: Default + Serialize + serde::de::DeserializeOwned + JsonSchema> ReplyBody for Envelope<T> {
    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let reply: Self = object(body)?;
        if *reply.status == *SUCCESS { Ok(reply) } else { Err(DecodeError::Lacks("status").explained(body)) }
    }
}

/// The input of accounting: the count `total` in `field`, these shares, and the range that the reply names.
pub(super) fn tally(
    unexpected: &mut Unexpected,
    (field, total): (&'static str, Number),
    shares: Vec<(f64, f64)>,
    (start, end): (&Text, &Text),
) -> Tally {
    let total = count(unexpected, field, total);
    let range = TimeRange::parse(start, end);
    // A bound in a form that nobody reads is noted; an absent one is not.
    for (field, text) in [("start_date", start), ("end_date", end)] {
        if range.is_none() && text.stated().is_some_and(|text| parse_time(text).is_none()) {
            unexpected.fields.push(field);
        }
    }
    Tally::of(total, shares, range)
}

/// Part of a percentile by which it may lie below a lower-ranked percentile and still count as rounded.
const PERCENTILE_NOISE: f64 = 1e-6;

/// Whether a percentile is lower than a lower-ranked percentile, `smaller`.
pub(super) fn falls(value: f64, smaller: f64) -> bool {
    value * (1.0 + PERCENTILE_NOISE) < smaller
}

/// The largest whole count that f64 holds exactly.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

/// How far from a whole number a count may lie and still count as rounded.
const NOISE: f64 = 0.01;

/// A count of requests or runs. Services that estimate them send fractions.
fn count(unexpected: &mut Unexpected, field: &'static str, number: Number) -> Option<f64> {
    let value = unexpected.check(field, number, 0.0, MAX_COUNT)?;
    let whole = value.round();
    Some(if (whole - value).abs() > NOISE { value } else { whole })
}
