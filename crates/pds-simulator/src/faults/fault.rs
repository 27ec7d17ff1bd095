//! A fault: what goes wrong, and for which requests.

use serde::{Deserialize, Serialize};

use pds_interface::{CALLS, Call, Resource};

use crate::journal::Entry;

/// A fault. It applies to all requests unless it is limited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub kind: Kind,
    /// Only for this call: its id (`get_app`), or the resource it is polled as (`app`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Only for this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only for this app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Only for this container of a metrics call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Only for ranges of a metrics call that are longer than this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than: Option<u32>,
    /// Only for this share of the requests, 0..=1, chosen reproducibly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Only this many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What goes wrong. As JSON `"reset"` or `{"latency": {"millis": 100}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "each kind says what its fields are")]
pub enum Kind {
    /// The reply is delayed.
    Latency { millis: u64 },
    /// An error as in section 7 instead of the reply, with a Retry-After header if one is given; the call has no effect.
    Status {
        status: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<RetryAfter>,
    },
    /// An error whose body is this plain text, as proxies send it.
    RawError { status: u16, text: String },
    /// An error or reply whose body is an HTML page.
    Html { status: u16 },
    /// A redirection to this place.
    Redirect { location: String },
    /// The connection is reset (RST) instead of a reply.
    Reset,
    /// The connection ends in the middle of the body.
    CutBody,
    /// The body is sent byte by byte, with a pause before each.
    SlowBody { millis: u64 },
    /// The body never ends.
    EndlessBody,
    /// The body has this many additional bytes: blanks, which JSON allows.
    HugeBody { bytes: u64 },
    /// The body is compressed even if the client does not accept it, and has this many additional bytes when decompressed.
    GzipBomb { bytes: u64 },
    /// The body is cut off in the middle of the JSON.
    MalformedJson,
    /// Success, without a body.
    EmptyBody,
    /// Every value has another type: numbers and text become arrays, lists and objects become text.
    WrongTypes,
    /// Every value is null.
    Nulls,
    /// The field of this name has this value, wherever it occurs: JSON text that need not be valid (`"12abc"`, `1e400`,
    /// `NaN`).
    Value { field: String, json: String },
    /// An additional field, nested this deeply.
    DeepNesting { depth: usize },
    /// Every field of the outermost object comes twice.
    DuplicateKeys,
    /// A series of run execution times with this many datapoints.
    ManyDatapoints { count: u64 },
    /// The envelope of a metrics reply has this status.
    EnvelopeStatus { status: String },
    /// The Date header is ahead, or behind if negative.
    ClockSkew { seconds: i64 },
}

/// A Retry-After header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RetryAfter {
    /// The number of seconds.
    Seconds(u64),
    /// The HTTP date this many seconds from now.
    DateIn(i64),
    /// This text.
    Text(String),
}

impl From<Kind> for Fault {
    /// Applies to every request.
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            call: None,
            project: None,
            app: None,
            container: None,
            longer_than: None,
            probability: None,
            count: None,
        }
    }
}

impl Fault {
    /// Every request fails with this status.
    pub fn status(status: u16) -> Self {
        Kind::Status { status, retry_after: None }.into()
    }

    /// Limited to the call that polls `resource`.
    #[must_use]
    pub fn on(self, resource: Resource) -> Self {
        Self { call: Some(resource.as_str().to_owned()), ..self }
    }

    /// Limited to this project.
    #[must_use]
    pub fn of_project(self, project: &str) -> Self {
        Self { project: Some(project.to_owned()), ..self }
    }

    /// Limited to this app.
    #[must_use]
    pub fn of_app(self, app: &str) -> Self {
        Self { app: Some(app.to_owned()), ..self }
    }

    /// Limited to this container of a metrics call.
    #[must_use]
    pub fn of_container(self, container: &str) -> Self {
        Self { container: Some(container.to_owned()), ..self }
    }

    /// Limited to ranges of a metrics call that are longer than this many seconds.
    #[must_use]
    pub fn of_ranges_longer_than(self, seconds: u32) -> Self {
        Self { longer_than: Some(seconds), ..self }
    }

    /// Limited to this share of the requests.
    #[must_use]
    pub fn with_probability(self, probability: f64) -> Self {
        Self { probability: Some(probability), ..self }
    }

    /// Limited to the first `count` requests.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }

    /// Checks the fault itself.
    ///
    /// # Errors
    /// If there is no such call, or the status or probability is out of range.
    pub fn check(&self) -> Result<(), FaultError> {
        if let Some(name) = &self.call
            && !CALLS.iter().any(|call| is_named(call, name))
        {
            return Err(FaultError::Call(name.clone()));
        }
        if self.probability.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(FaultError::Probability);
        }
        if let Kind::Status { status, .. } | Kind::RawError { status, .. } | Kind::Html { status } =
            &self.kind
            && !(200..=599).contains(status)
        {
            return Err(FaultError::Status(*status));
        }
        Ok(())
    }

    /// Whether the fault applies to this request.
    pub(super) fn concerns(&self, call: &Call, asked: &Entry) -> bool {
        let is = |wanted: &Option<String>, given: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| wanted == given.unwrap_or_default())
        };
        let is_longer = |most| asked.range.is_some_and(|range| range.seconds() > u64::from(most));
        self.call.as_deref().is_none_or(|name| is_named(call, name))
            && is(&self.project, asked.project.as_deref())
            && is(&self.app, asked.app.as_deref())
            && is(&self.container, asked.container.as_deref())
            && self.longer_than.is_none_or(is_longer)
    }
}

/// Whether `name` is the call's id, or the resource it is polled as.
fn is_named(call: &Call, name: &str) -> bool {
    call.id == name || call.polled.is_some_and(|polled| polled.resource == name)
}

/// Why faults are refused.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// They are not valid JSON.
    #[error("faults cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// No call or resource has this name.
    #[error("no call is named '{0}'")]
    Call(String),
    /// The probability is out of range.
    #[error("probability must be within 0..=1")]
    Probability,
    /// The status is out of range.
    #[error("status {0} is out of range; must be from 200 to 599")]
    Status(u16),
}

/// Reads faults as JSON: a list of them, or one.
///
/// # Errors
/// If they cannot be parsed, or one of them is not valid.
pub fn parse(json: &[u8]) -> Result<Vec<Fault>, FaultError> {
    let faults: Vec<Fault> = match json.trim_ascii_start().first() {
        Some(b'{') => vec![serde_json::from_slice(json)?],
        _ => serde_json::from_slice(json)?,
    };
    faults.iter().try_for_each(Fault::check)?;
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_written_as_json() {
        for json in [
            r#"{"kind":"reset"}"#,
            r#"{"kind":{"latency":{"millis":5}},"call":"app","probability":0.5}"#,
            r#"{"kind":{"status":{"status":429,"retry_after":{"seconds":3}}},"count":2}"#,
        ] {
            let fault: Fault = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&fault).unwrap(), json);
            assert!(fault.check().is_ok());
        }
        assert!(serde_json::from_str::<Fault>(r#"{"kind":"reset","apps":"x"}"#).is_err());
        assert!(Fault::status(99).check().is_err());
        assert!(Fault { call: Some("nothing".into()), ..Kind::Reset.into() }.check().is_err());
        assert!(Fault::from(Kind::Reset).with_probability(2.0).check().is_err());
    }
}
