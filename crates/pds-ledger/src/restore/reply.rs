//! Replies of the HTTP API of Prometheus to an instant query.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use pds_core::printable::excerpt;

/// The labels of a series, its name included.
pub(crate) type Labels = BTreeMap<String, String>;

/// A time in Unix seconds, and a value as text.
type Point = (f64, String);

/// A series: its value at the time of the query, or all its samples of a range.
#[derive(Debug, Deserialize)]
pub(super) struct Series {
    #[serde(rename = "metric")]
    pub labels: Labels,
    value: Option<Point>,
    #[serde(default)]
    values: Vec<Point>,
}

impl Series {
    /// The values that are numbers. VictoriaMetrics returns NaN where a series ended.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        let values = self.value.iter().chain(&self.values);
        values.filter_map(|(_, value)| value.parse().ok().filter(|value: &f64| !value.is_nan()))
    }
}

/// A reply, in the form of all programs with this API.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    status: String,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    /// Missing parts of the response (Thanos, Mimir).
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

/// Passes series on, one by one.
struct Each<'a>(&'a mut dyn FnMut(Series));

impl<'de> Visitor<'de> for Each<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("series")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(series) = seq.next_element()? {
            (self.0)(series);
        }
        Ok(())
    }
}

/// Why a body cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// It does not follow this API, for this reason.
    NotPrometheus(String),
    /// The query failed.
    Failed(String),
    /// Something is missing.
    Incomplete(String),
}

/// Passes on the series of a body. Decodes them one by one, as their labels take many times the memory of the text.
pub(super) fn read(body: &[u8], each: &mut dyn FnMut(Series)) -> Result<(), Bad> {
    let not_ours = |error: serde_json::Error| Bad::NotPrometheus(error.to_string());
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(not_ours)?;
    if envelope.status != "success" {
        let what = [envelope.error_type, envelope.error].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let what = if what.is_empty() { envelope.status } else { what };
        return Err(Bad::Failed(excerpt(&what)));
    }
    if let Some(warning) = envelope.warnings.unwrap_or_default().first() {
        return Err(Bad::Incomplete(excerpt(warning)));
    }
    if envelope.is_partial == Some(true) {
        return Err(Bad::Incomplete("it is marked as partial".to_owned()));
    }
    let Some(data) = envelope.data else { return Err(Bad::NotPrometheus("it has no data".to_owned())) };
    if !matches!(&*data.kind, "vector" | "matrix") {
        return Err(Bad::NotPrometheus("its result holds no series".to_owned()));
    }
    let mut json = serde_json::Deserializer::from_str(data.result.get());
    json.deserialize_seq(Each(each)).map_err(not_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Vec<Series>, Bad> {
        let mut all = Vec::new();
        super::read(body, &mut |series| all.push(series)).map(|()| all)
    }

    #[test]
    fn a_vector_or_a_matrix_is_an_answer() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"a","x":"1"},"value":[1.5,"7"]},{"metric":{},"value":[1.5,"NaN"]}]},"infos":["x"]}"#;
        let series = read(vector.as_bytes()).unwrap();
        let values = |series: &Series| series.values().collect::<Vec<_>>();
        assert_eq!((series[0].labels["x"].as_str(), values(&series[0])), ("1", vec![7.0]));
        assert_eq!(values(&series[1]), [0.0; 0]);
        let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[1,"7"],[2.5,"NaNa"],[2.7,"NaN"],[3,"8"]]}]}}"#;
        assert_eq!(values(&read(matrix.as_bytes()).unwrap()[0]), [7.0, 8.0]);
    }

    #[test]
    fn anything_else_is_missing() {
        let error_of = |body: &str| read(body.as_bytes()).unwrap_err();
        let failed = r#"{"status":"error","errorType":"execution","error":"too many samples"}"#;
        assert_eq!(error_of(failed), Bad::Failed("execution: too many samples".to_owned()));
        let empty = r#""data":{"resultType":"vector","result":[]}"#;
        let warned = format!(r#"{{"status":"success","warnings":["store a is gone"],{empty}}}"#);
        assert_eq!(error_of(&warned), Bad::Incomplete("store a is gone".to_owned()));
        let partial = format!(r#"{{"status":"success","isPartial":true,{empty}}}"#);
        assert_eq!(error_of(&partial), Bad::Incomplete("it is marked as partial".to_owned()));
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#;
        for body in ["<html>", "", "[]", scalar, r#"{"status":"success"}"#, &warned[..warned.len() - 1]] {
            assert!(matches!(error_of(body), Bad::NotPrometheus(_)), "{body}");
        }
    }
}
