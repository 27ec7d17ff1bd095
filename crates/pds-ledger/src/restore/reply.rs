//! Replies of the HTTP API of Prometheus to an instant query.

use std::collections::BTreeMap;

use serde::Deserialize;

use pds_core::error_chain::shortened;

/// The labels of a series, its name included.
pub(super) type Labels = BTreeMap<String, String>;

/// A time in Unix seconds, and a value as text.
type Point = (f64, String);

/// One series: its value at the time of the query, or all its samples of a range.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    #[serde(rename = "metric")]
    pub labels: Labels,
    #[serde(default)]
    value: Option<Point>,
    #[serde(default)]
    values: Vec<Point>,
}

impl Sample {
    /// The value; `None` if it is not a number.
    pub(super) fn value(&self) -> Option<f64> {
        self.value.as_ref()?.1.parse().ok()
    }

    /// The samples of a range by time, as far as they are numbers. VictoriaMetrics has NaN where a series ended.
    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        let values = self.values.iter().filter_map(|(time, value)| Some((*time, value.parse::<f64>().ok()?)));
        values.filter(|(_, value)| !value.is_nan())
    }
}

/// A reply, in the form of all programs with this API.
#[derive(Debug, Deserialize)]
struct Envelope {
    status: String,
    #[serde(default, rename = "errorType")]
    error_type: Option<String>,
    #[serde(default)]
    error: Option<String>,
    /// What the answer lacks (Thanos, Mimir).
    #[serde(default)]
    warnings: Option<Vec<String>>,
    /// Whether the answer lacks something (VictoriaMetrics).
    #[serde(default, rename = "isPartial")]
    is_partial: Option<bool>,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<Sample>),
    Matrix(Vec<Sample>),
    Scalar(Point),
    /// Strings, which no query here returns.
    #[serde(other)]
    Other,
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
}

/// The samples of a body.
pub(super) fn read(body: &[u8]) -> Result<Vec<Sample>, Bad> {
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|error| Bad::NotPrometheus(error.to_string()))?;
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
    match envelope.data {
        Some(Data::Vector(samples) | Data::Matrix(samples)) => Ok(samples),
        Some(Data::Scalar(value)) => {
            Ok(vec![Sample { labels: Labels::new(), value: Some(value), values: Vec::new() }])
        }
        Some(Data::Other) => Err(Bad::NotPrometheus("its result holds no numbers".to_owned())),
        None => Err(Bad::NotPrometheus("it has no data".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_a_matrix_or_a_scalar_is_an_answer() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"a","x":"1"},"value":[1.5,"7"]},{"metric":{},"value":[1.5,"NaN"]}]},"infos":["x"]}"#;
        let samples = read(vector.as_bytes()).unwrap();
        assert_eq!((samples.len(), samples[0].labels["x"].as_str(), samples[0].value()), (2, "1", Some(7.0)));
        let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[1,"7"],[2.5,"NaNa"],[2.7,"NaN"],[3,"8"]]}]}}"#;
        let values: Vec<_> = read(matrix.as_bytes()).unwrap()[0].values().collect();
        assert_eq!(values, [(1.0, 7.0), (3.0, 8.0)]);
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
