//! Applies faults to replies.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderName, HeaderValue, header};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::answer::{Answer, ErrorReply};
use super::body::Chunks;
use super::faults::{Kind, RetryAfter};

/// A reply, and how it is sent.
#[derive(Debug)]
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
                self.answer = ErrorReply::new(*status, format!("a fault was asked for: {status}")).answer();
                if let Some(value) = retry_after.as_ref().and_then(|after| retry_after_value(after, now)) {
                    self.answer.headers.push((header::RETRY_AFTER, value));
                }
            }
            Kind::RawError { status, text } => self.replace(*status, "text/plain", text.clone()),
            Kind::Html { status } => {
                let page = format!(
                    "<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n"
                );
                self.replace(*status, "text/html", page);
            }
            Kind::Redirect { location } => {
                self.replace(307, "text/plain", String::new());
                self.answer.headers.extend(value(header::LOCATION, location));
            }
            Kind::EmptyBody => self.answer.body.clear(),
            Kind::MalformedJson => self.answer.body.truncate(self.answer.body.len() / 2),
            Kind::CutBody | Kind::SlowBody { .. } | Kind::EndlessBody | Kind::HugeBody { .. } => {
                self.send(kind);
            }
            Kind::GzipBomb { bytes } => {
                self.answer.body = bomb(*bytes, &self.answer.body);
                self.answer.headers.push((header::CONTENT_ENCODING, HeaderValue::from_static("gzip")));
            }
            Kind::ManyDatapoints { count } => self.chunks = Some(datapoints(*count, now.as_second())),
            Kind::DuplicateKeys => self.edit_text(|inner| format!("{{{inner},{inner}}}")),
            Kind::DeepNesting { depth } => {
                let nest = format!("{}{}", "[".repeat(*depth), "]".repeat(*depth));
                self.edit_text(|inner| format!("{{\"deep\":{nest},{inner}}}"));
            }
            Kind::WrongTypes => self.edit(&mut |_, value| *value = other_type(value)),
            Kind::Nulls => self.edit(&mut |_, value| *value = Value::Null),
            Kind::EnvelopeStatus { status } => self.edit_envelope(status),
            Kind::Value { field, json } => self.edit_field(field, json),
        }
    }

    fn replace(&mut self, status: u16, content_type: &str, body: String) {
        let headers = value(header::CONTENT_TYPE, content_type).into_iter().collect();
        self.answer = Answer { status, headers, body: body.into_bytes() };
    }

    /// Changes how the body is sent.
    fn send(&mut self, kind: &Kind) {
        let body = std::mem::take(&mut self.answer.body);
        self.chunks = Some(match kind {
            Kind::CutBody => {
                let length = body.len() as u64;
                let half = body.get(..body.len() / 2).unwrap_or_default().to_vec();
                Chunks { length: Some(length), cut: true, ..Chunks::from(half) }
            }
            Kind::SlowBody { millis } => {
                let pause = Duration::from_millis(*millis);
                let length = Some(body.len() as u64);
                let bytes = body.into_iter().map(|byte| Bytes::copy_from_slice(&[byte]));
                Chunks { chunks: Box::new(bytes), length, pause, cut: false }
            }
            Kind::HugeBody { bytes } => {
                let length = Some(bytes + body.len() as u64);
                let chunks = blanks(*bytes).chain([Bytes::from(body)]);
                Chunks { chunks: Box::new(chunks), length, ..Chunks::from(Vec::new()) }
            }
            _ => Chunks { chunks: Box::new(blanks(u64::MAX)), length: None, ..Chunks::from(Vec::new()) },
        });
    }

    /// Changes the text inside the outermost object; other bodies are unchanged.
    fn edit_text(&mut self, edit: impl FnOnce(&str) -> String) {
        let text = String::from_utf8_lossy(&self.answer.body);
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(inner) = inner {
            self.answer.body = edit(inner).into_bytes();
        }
    }

    /// Changes every value, but not inside of changed values, and neither the envelope nor the elements of an
    /// outermost list.
    fn edit(&mut self, edit: &mut dyn FnMut(&str, &mut Value)) {
        let Ok(mut reply) = serde_json::from_slice::<Value>(&self.answer.body) else { return };
        match &mut reply {
            Value::Array(items) => items.iter_mut().for_each(|item| edit_fields(item, edit)),
            reply => match reply.get_mut("data") {
                Some(data) => edit_fields(data, edit),
                None => edit_fields(reply, edit),
            },
        }
        self.answer.body = reply.to_string().into_bytes();
    }

    fn edit_envelope(&mut self, status: &str) {
        let Ok(mut reply) = serde_json::from_slice::<Value>(&self.answer.body) else { return };
        if let (Some(envelope), true) = (reply.as_object_mut(), reply_has_data(&self.answer.body)) {
            envelope.insert("status".to_owned(), status.into());
            self.answer.body = reply.to_string().into_bytes();
        }
    }

    /// Replaces the value of one field with any text.
    fn edit_field(&mut self, field: &str, json: &str) {
        const MARK: &str = "\u{1}here\u{1}";
        let Ok(mut reply) = serde_json::from_slice::<Value>(&self.answer.body) else { return };
        set_everywhere(&mut reply, field, &Value::from(MARK));
        let text = reply.to_string().replace(&Value::from(MARK).to_string(), json);
        self.answer.body = text.into_bytes();
    }
}

fn value(name: HeaderName, text: &str) -> Option<(HeaderName, HeaderValue)> {
    HeaderValue::from_str(text).ok().map(|value| (name, value))
}

fn retry_after_value(after: &RetryAfter, now: Timestamp) -> Option<HeaderValue> {
    let text = match after {
        RetryAfter::Seconds(seconds) => seconds.to_string(),
        RetryAfter::DateIn(seconds) => {
            http_date(now.checked_add(SignedDuration::from_secs(*seconds)).unwrap_or(now))
        }
        RetryAfter::Text(text) => text.clone(),
    };
    HeaderValue::from_str(&text).ok()
}

/// A time in the format of HTTP headers.
pub(super) fn http_date(time: Timestamp) -> String {
    httpdate::fmt_http_date(time.into())
}

fn reply_has_data(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|reply| reply.get("data").is_some())
}

fn edit_fields(reply: &mut Value, edit: &mut dyn FnMut(&str, &mut Value)) {
    if let Some(fields) = reply.as_object_mut() {
        for (name, value) in fields {
            edit(name, value);
        }
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
                match name == field {
                    true => *value = to.clone(),
                    false => set_everywhere(value, field, to),
                }
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

/// The compressed body after that many blanks; the plain body if compression fails.
fn bomb(bytes: u64, body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = blanks(bytes).try_for_each(|chunk| encoder.write_all(&chunk));
    let written = written.and_then(|()| encoder.write_all(body)).and_then(|()| encoder.finish());
    written.unwrap_or_default()
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
    let chunks = [start].into_iter().chain(points).chain([end]);
    Chunks { chunks: Box::new(chunks), length: None, ..Chunks::from(Vec::new()) }
}
