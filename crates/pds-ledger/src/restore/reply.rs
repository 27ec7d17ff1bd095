//! Replies of the HTTP API of Prometheus to an instant query.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use pds_core::error_chain::shortened;

/// The labels of a series, its name included.
pub(super) type Labels = BTreeMap<String, String>;

/// The most samples of one reply, a series without any counting as one. A query with more is divided.
pub(super) const MAX_SAMPLES: usize = 200_000;

/// A time in Unix seconds, and a value.
type Point = (f64, Value);

/// A value, which is sent as text; `None` if it is not a number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(from = "String")]
struct Value(Option<f64>);

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(text.parse().ok())
    }
}

/// One series: its value at the time of the query, or all its samples of a range.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    #[serde(rename = "metric")]
    pub labels: Labels,
    value: Option<Point>,
    #[serde(default)]
    values: Vec<Point>,
}

impl Sample {
    /// The value; `None` if it is not a number.
    pub(super) fn value(&self) -> Option<f64> {
        self.value?.1.0
    }

    /// Whether it has the samples of a range.
    pub(super) fn is_range(&self) -> bool {
        self.value.is_none()
    }

    /// The samples of a range by time, as far as they are numbers. VictoriaMetrics has NaN where a series ended.
    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        let values = self.values.iter().filter_map(|(time, value)| Some((*time, value.0?)));
        values.filter(|(_, value)| !value.is_nan())
    }
}

/// A reply, in the form of all programs with this API.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    status: String,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    /// What the answer lacks (Thanos, Mimir).
    warnings: Option<Vec<String>>,
    /// Whether the answer lacks something (VictoriaMetrics).
    #[serde(rename = "isPartial")]
    is_partial: Option<bool>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Debug, Deserialize)]
struct Data<'a> {
    #[serde(rename = "resultType")]
    kind: String,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Passes samples on, one by one. The value of the visit is their number; `None` if there are more than
/// [`MAX_SAMPLES`].
struct Each<'a>(&'a mut dyn FnMut(Sample));

impl<'de> Visitor<'de> for Each<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("series")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<usize>, A::Error> {
        let (mut series, mut samples) = (0, 0);
        while let Some(sample) = seq.next_element::<Sample>()? {
            samples += sample.values.len().max(1);
            if samples > MAX_SAMPLES {
                // Reads the rest without keeping it: an error would not tell this one from others.
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            series += 1;
            (self.0)(sample);
        }
        Ok(Some(series))
    }
}

/// Why a body cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// It is not of this API, and this is wrong with it.
    NotPrometheus(String),
    /// The query failed.
    Failed(String),
    /// Something is missing.
    Incomplete(String),
    /// It holds more than [`MAX_SAMPLES`].
    TooMany,
}

/// Passes the series of a body on and returns their number. They are decoded one by one, as their labels take many times
/// the memory of the text.
pub(super) fn read(body: &[u8], each: &mut dyn FnMut(Sample)) -> Result<usize, Bad> {
    let not_ours = |error: serde_json::Error| Bad::NotPrometheus(error.to_string());
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(not_ours)?;
    if envelope.status != "success" {
        let what = [envelope.error_type, envelope.error].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let what = if what.is_empty() { envelope.status } else { what };
        return Err(Bad::Failed(shortened(&what)));
    }
    if let Some(warning) = envelope.warnings.unwrap_or_default().first() {
        return Err(Bad::Incomplete(shortened(warning)));
    }
    if envelope.is_partial == Some(true) {
        return Err(Bad::Incomplete("it says that it is partial".to_owned()));
    }
    let Some(data) = envelope.data else { return Err(Bad::NotPrometheus("it has no data".to_owned())) };
    match &*data.kind {
        "vector" | "matrix" => {
            let mut json = serde_json::Deserializer::from_str(data.result.get());
            json.deserialize_seq(Each(each)).map_err(not_ours)?.ok_or(Bad::TooMany)
        }
        "scalar" => {
            let value = serde_json::from_str(data.result.get()).map_err(not_ours)?;
            each(Sample { labels: Labels::new(), value: Some(value), values: Vec::new() });
            Ok(1)
        }
        _ => Err(Bad::NotPrometheus("its result holds no numbers".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Vec<Sample>, Bad> {
        let mut samples = Vec::new();
        super::read(body, &mut |sample| samples.push(sample)).map(|count| {
            assert_eq!(count, samples.len());
            samples
        })
    }

    #[test]
    fn a_reply_has_so_many_samples_at_most() {
        let body = |series: usize, values: usize| {
            let values = vec![r#"[1,"1"]"#; values].join(",");
            let series = vec![format!(r#"{{"metric":{{}},"values":[{values}]}}"#); series].join(",");
            format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#)
        };
        assert_eq!(read(body(100, MAX_SAMPLES / 100).as_bytes()).unwrap().len(), 100);
        for (series, values) in [(101, MAX_SAMPLES / 100), (MAX_SAMPLES + 1, 0), (1, MAX_SAMPLES + 1)] {
            assert_eq!(read(body(series, values).as_bytes()).unwrap_err(), Bad::TooMany);
        }
    }

    #[test]
    fn a_vector_a_matrix_or_a_scalar_is_an_answer() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"a","x":"1"},"value":[1.5,"7"]},{"metric":{},"value":[1.5,"NaN"]}]},"infos":["x"]}"#;
        let samples = read(vector.as_bytes()).unwrap();
        assert_eq!((samples.len(), samples[0].labels["x"].as_str(), samples[0].value()), (2, "1", Some(7.0)));
        assert!(!samples[0].is_range());
        let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[1,"7"],[2.5,"NaNa"],[2.7,"NaN"],[3,"8"]]}]}}"#;
        let samples = read(matrix.as_bytes()).unwrap();
        assert_eq!(samples[0].values().collect::<Vec<_>>(), [(1.0, 7.0), (3.0, 8.0)]);
        assert!(samples[0].is_range());
        let scalar = r#"{"status":"success","data":{"result":[9,"9.5"],"resultType":"scalar"}}"#;
        assert_eq!(read(scalar.as_bytes()).unwrap()[0].value(), Some(9.5));
    }

    #[test]
    fn anything_else_is_none() {
        let of = |body: &str| read(body.as_bytes()).unwrap_err();
        let failed = r#"{"status":"error","errorType":"execution","error":"too many samples"}"#;
        assert_eq!(of(failed), Bad::Failed("execution: too many samples".to_owned()));
        let empty = r#""data":{"resultType":"vector","result":[]}"#;
        let warned = format!(r#"{{"status":"success","warnings":["store a is gone"],{empty}}}"#);
        assert_eq!(of(&warned), Bad::Incomplete("store a is gone".to_owned()));
        let partial = format!(r#"{{"status":"success","isPartial":true,{empty}}}"#);
        assert_eq!(of(&partial), Bad::Incomplete("it says that it is partial".to_owned()));
        let text = r#"{"status":"success","data":{"resultType":"string","result":[1,"a"]}}"#;
        for body in ["<html>", "", "[]", text, r#"{"status":"success"}"#, &warned[..warned.len() - 1]] {
            assert!(matches!(of(body), Bad::NotPrometheus(_)), "{body}");
        }
    }
}
