//! Applies faults to replies, and to how they are sent.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::header;
use jiff::SignedDuration;
use serde_json::Value;

use super::answer::Answer;
use super::faults::Kind;

/// A body as it is sent.
pub(super) struct Sent {
    pub(super) pieces: BoxStream<'static, Result<Bytes, Cut>>,
    /// The value of Content-Length, if it is sent.
    pub(super) length: Option<u64>,
}

/// The connection must be closed.
#[derive(Debug, thiserror::Error)]
#[error("the body is cut here")]
pub(super) struct Cut;

impl Sent {
    fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static, length: Option<u64>) -> Self {
        Self { pieces: stream::iter(pieces.map(Ok)).boxed(), length }
    }

    /// The body at once.
    pub(super) fn whole(body: Vec<u8>) -> Self {
        let length = Some(body.len() as u64);
        Self::pieces([Bytes::from(body)].into_iter(), length)
    }
}

/// A reply, and how it is sent.
pub(super) struct Disturbed {
    pub(super) answer: Answer,
    /// Replaces the answer's body.
    pub(super) sent: Option<Sent>,
    /// Delay before the reply.
    pub(super) delay: Duration,
    /// Offset of the Date header.
    pub(super) skew: SignedDuration,
    /// Whether the connection is reset instead.
    pub(super) reset: bool,
}

/// Whether the fault replaces the call, which then has no effect.
pub(super) fn replaces_the_call(kind: &Kind) -> bool {
    matches!(kind, Kind::Status { .. } | Kind::RawError { .. } | Kind::Redirect { .. } | Kind::Reset)
}

/// Size of the pieces that a long body is made in.
const CHUNK: usize = 64 * 1024;

impl Disturbed {
    pub(super) fn new(answer: Answer) -> Self {
        Self { answer, sent: None, delay: Duration::ZERO, skew: SignedDuration::ZERO, reset: false }
    }

    /// Applies a fault.
    pub(super) fn apply(&mut self, kind: &Kind) {
        match kind {
            Kind::Latency { millis } => self.delay += Duration::from_millis(*millis),
            Kind::ClockSkew { seconds } => self.skew = SignedDuration::from_secs(*seconds),
            Kind::Reset => self.reset = true,
            Kind::Status { status, retry_after } => {
                let refusal = Answer::refusal(*status, format!("an injected fault: {status}"));
                self.answer = match retry_after {
                    Some(after) => refusal.with(header::RETRY_AFTER, after),
                    None => refusal,
                };
            }
            Kind::RawError { status, text } => {
                let media = if text.starts_with('<') { "text/html" } else { "text/plain" };
                self.answer = Answer::new(*status, media, &**text);
            }
            Kind::Redirect { location } => {
                self.answer = Answer::new(307, "text/plain", "").with(header::LOCATION, location);
            }
            Kind::MalformedJson => self.answer.body.truncate(self.answer.body.len() / 2),
            Kind::CutBody | Kind::SlowBody { .. } | Kind::EndlessBody | Kind::HugeBody { .. } => {
                self.sent = Some(sent(kind, std::mem::take(&mut self.answer.body)));
            }
            Kind::GzipBomb { bytes } => self.answer.compress(blanks(*bytes)),
            Kind::WrongTypes => self.edit_values(|value| *value = other_type(value)),
            Kind::Nulls => self.edit_values(|value| *value = Value::Null),
            Kind::Insert { text } => {
                let body = String::from_utf8_lossy(&self.answer.body).replacen('{', &format!("{{{text}"), 1);
                self.answer.body = body.into_bytes();
            }
            Kind::Value { field, json } => {
                let mark = Value::from("\u{1}here\u{1}");
                self.edit(|reply| set_everywhere(reply, field, &mark));
                // The text in its place need not be valid JSON.
                let text = String::from_utf8_lossy(&self.answer.body).replace(&mark.to_string(), json);
                self.answer.body = text.into_bytes();
            }
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
fn sent(kind: &Kind, mut body: Vec<u8>) -> Sent {
    let length = body.len() as u64;
    match kind {
        Kind::CutBody => {
            body.truncate(body.len() / 2);
            let cut = stream::once(async {
                // The half must arrive, so it is flushed before the connection is closed.
                tokio::task::yield_now().await;
                Err(Cut)
            });
            Sent { pieces: stream::iter([Ok(Bytes::from(body))]).chain(cut).boxed(), length: Some(length) }
        }
        Kind::SlowBody { millis } => {
            let pause = Duration::from_millis(*millis);
            let bytes = stream::iter(body).then(move |byte| async move {
                tokio::time::sleep(pause).await;
                Ok(Bytes::from(vec![byte]))
            });
            Sent { pieces: bytes.boxed(), length: Some(length) }
        }
        Kind::HugeBody { bytes } => {
            Sent::pieces(blanks(*bytes).chain([Bytes::from(body)]), Some(bytes + length))
        }
        _ => Sent::pieces(blanks(u64::MAX), None),
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
