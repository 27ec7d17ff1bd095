//! Applies faults to replies.

use std::time::Duration;

use bytes::Bytes;
use http::header;
use httpdate::fmt_http_date;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::answer::Answer;
use super::body::Chunks;
use super::faults::{Kind, RetryAfter};

/// A reply, and how it is sent.
pub(super) struct Disturbed {
    pub(super) answer: Answer,
    /// Replaces the answer's body.
    pub(super) chunks: Option<Chunks>,
    /// Delay before the reply.
    pub(super) delay: Duration,
    /// Offset of the Date header.
    pub(super) skew: SignedDuration,
    /// Whether the connection is reset instead.
    pub(super) reset: bool,
}

/// Whether the fault replaces the call, which then has no effect.
pub(super) fn replaces_the_call(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Status { .. } | Kind::RawError { .. } | Kind::Html { .. } | Kind::Redirect { .. } | Kind::Reset
    )
}

/// Size of the pieces that a long body is made in.
const CHUNK: usize = 64 * 1024;

impl Disturbed {
    pub(super) fn new(answer: Answer) -> Self {
        Self { answer, chunks: None, delay: Duration::ZERO, skew: SignedDuration::ZERO, reset: false }
    }

    /// Applies a fault.
    pub(super) fn apply(&mut self, kind: &Kind, now: Timestamp) {
        match kind {
            Kind::Latency { millis } => self.delay += Duration::from_millis(*millis),
            Kind::ClockSkew { seconds } => self.skew = SignedDuration::from_secs(*seconds),
            Kind::Reset => self.reset = true,
            Kind::Status { status, retry_after } => {
                let refusal = Answer::refusal(*status, format!("an injected fault: {status}"));
                self.answer = match retry_after {
                    Some(after) => refusal.with(header::RETRY_AFTER, &retry_after_value(after, now)),
                    None => refusal,
                };
            }
            Kind::RawError { status, text } => self.answer = Answer::new(*status, "text/plain", &**text),
            Kind::Html { status } => {
                let page = format!(
                    "<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n"
                );
                self.answer = Answer::new(*status, "text/html", page);
            }
            Kind::Redirect { location } => {
                self.answer = Answer::new(307, "text/plain", "").with(header::LOCATION, location);
            }
            Kind::EmptyBody => self.answer.body.clear(),
            Kind::MalformedJson => self.answer.body.truncate(self.answer.body.len() / 2),
            Kind::CutBody | Kind::SlowBody { .. } | Kind::EndlessBody | Kind::HugeBody { .. } => {
                self.chunks = Some(chunks(kind, std::mem::take(&mut self.answer.body)));
            }
            Kind::GzipBomb { bytes } => self.answer.compress(blanks(*bytes)),
            Kind::ManyDatapoints { count } => self.chunks = Some(datapoints(*count, now.as_second())),
            Kind::DuplicateKeys => self.edit_text(|inner| format!("{{{inner},{inner}}}")),
            Kind::DeepNesting { depth } => {
                let nest = format!("{}{}", "[".repeat(*depth), "]".repeat(*depth));
                self.edit_text(|inner| format!("{{\"deep\":{nest},{inner}}}"));
            }
            Kind::WrongTypes => self.edit_values(|value| *value = other_type(value)),
            Kind::Nulls => self.edit_values(|value| *value = Value::Null),
            Kind::EnvelopeStatus { status } => self.edit(|reply| {
                if reply.get("data").is_some() {
                    reply["status"] = status.as_str().into();
                }
            }),
            Kind::Value { field, json } => {
                let mark = Value::from("\u{1}here\u{1}");
                self.edit(|reply| set_everywhere(reply, field, &mark));
                // The text in its place need not be valid JSON.
                let text = String::from_utf8_lossy(&self.answer.body).replace(&mark.to_string(), json);
                self.answer.body = text.into_bytes();
            }
        }
    }

    /// Changes the text inside the outermost object; other bodies are unchanged.
    fn edit_text(&mut self, edit: impl FnOnce(&str) -> String) {
        let text = String::from_utf8_lossy(&self.answer.body);
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(inner) = inner {
            self.answer.body = edit(inner).into_bytes();
        }
    }

    /// Changes the body, if it is JSON.
    fn edit(&mut self, edit: impl FnOnce(&mut Value)) {
        if let Ok(mut reply) = serde_json::from_slice(&self.answer.body) {
            edit(&mut reply);
            self.answer.body = reply.to_string().into_bytes();
        }
    }

    /// Changes every value, but not inside of changed values, and neither the envelope nor the elements of an
    /// outermost list.
    fn edit_values(&mut self, edit: fn(&mut Value)) {
        let edit_fields = |object: &mut Value| {
            object.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()).for_each(edit);
        };
        self.edit(|reply| match reply {
            Value::Array(items) => items.iter_mut().for_each(edit_fields),
            Value::Object(fields) if fields.contains_key("data") => edit_fields(&mut reply["data"]),
            reply => edit_fields(reply),
        });
    }
}

/// The body, sent as the fault says.
fn chunks(kind: &Kind, mut body: Vec<u8>) -> Chunks {
    let length = body.len() as u64;
    match kind {
        Kind::CutBody => {
            body.truncate(body.len() / 2);
            Chunks { length: Some(length), cut: true, ..Chunks::from(body) }
        }
        Kind::SlowBody { millis } => {
            let bytes = body.into_iter().map(|byte| Bytes::copy_from_slice(&[byte]));
            Chunks { pause: Duration::from_millis(*millis), ..Chunks::new(bytes, Some(length)) }
        }
        Kind::HugeBody { bytes } => {
            Chunks::new(blanks(*bytes).chain([Bytes::from(body)]), Some(bytes + length))
        }
        _ => Chunks::new(blanks(u64::MAX), None),
    }
}

fn retry_after_value(after: &RetryAfter, now: Timestamp) -> String {
    match after {
        RetryAfter::Seconds(seconds) => seconds.to_string(),
        RetryAfter::DateIn(seconds) => {
            fmt_http_date(now.checked_add(SignedDuration::from_secs(*seconds)).unwrap_or(now).into())
        }
        RetryAfter::Text(text) => text.clone(),
    }
}

fn other_type(value: &Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) => Value::from("not this type"),
        other => Value::Array(vec![other.clone()]),
    }
}

fn set_everywhere(value: &mut Value, field: &str, to: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == field { *value = to.clone() } else { set_everywhere(value, field, to) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| set_everywhere(item, field, to)),
        _ => {}
    }
}

/// A body of that many blanks.
fn blanks(bytes: u64) -> impl Iterator<Item = Bytes> + Send {
    let chunk = Bytes::from(vec![b' '; CHUNK]);
    let mut left = bytes;
    std::iter::from_fn(move || {
        let len = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        left -= len as u64;
        (len > 0).then(|| chunk.slice(..len))
    })
}

/// A reply of call 5 with `count` datapoints, one per second, the newest last.
fn datapoints(count: u64, now: i64) -> Chunks {
    const AT_ONCE: u64 = 1000;
    let points = (0..count).step_by(usize::try_from(AT_ONCE).unwrap_or(1)).map(move |first| {
        let mut text = String::new();
        for index in first..(first + AT_ONCE).min(count) {
            let second = now - i64::try_from(count - index).unwrap_or(0);
            let comma = if index == 0 { "" } else { "," };
            text += &format!("{comma}{{\"timestamp\":{second},\"p50\":0.5,\"p90\":0.9,\"p99\":1.5}}");
        }
        Bytes::from(text)
    });
    let start = Bytes::from_static(b"{\"data\":{\"time_series\":[");
    let end = Bytes::from(format!("],\"total_runs\":{count}}},\"status\":\"success\"}}"));
    Chunks::new([start].into_iter().chain(points).chain([end]), None)
}
