//! The simulator's answers: replies, and refusals as in section 7.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderName, HeaderValue, header};
use serde::Serialize;
use serde_json::json;

use pds_interface::RuleError;
use pds_interface::reply::Format;

/// The requested object, or the reason of the refusal.
pub(super) type Answered<T> = Result<T, Answer>;

/// An answer before faults are applied. As an error it is a refusal.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// An answer whose body is of this media type.
    pub(super) fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }.with(header::CONTENT_TYPE, media_type)
    }

    /// A successful reply with this body.
    pub(super) fn of(format: Format, body: Vec<u8>) -> Self {
        match format {
            Format::Json => Self::new(200, "application/json", body),
            Format::Text => Self::new(200, "text/plain; charset=utf-8", body),
            Format::Empty => Self::empty(),
        }
    }

    /// A reply of JSON.
    pub(super) fn json(reply: &impl Serialize) -> Result<Self, Self> {
        Ok(Self::of(Format::Json, serde_json::to_vec(reply)?))
    }

    /// A reply without a body.
    pub(super) fn empty() -> Self {
        Self { status: 204, headers: Vec::new(), body: Vec::new() }
    }

    /// A refusal.
    pub(super) fn refusal(status: u16, message: impl Into<String>) -> Self {
        Self::new(status, "application/json", json!({ "message": message.into() }).to_string())
    }

    /// The refusal of a request for something that does not exist.
    pub(super) fn no_such(what: &str) -> Self {
        Self::refusal(404, format!("there is no such {what}"))
    }

    /// With this header, unless its value cannot be sent.
    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// Compresses the body, with `before` in front of it.
    pub(super) fn compress(&mut self, mut before: impl Iterator<Item = Bytes>) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = before.try_for_each(|chunk| encoder.write_all(&chunk));
        let written = written.and_then(|()| encoder.write_all(&self.body));
        // Writing to memory cannot fail.
        if let Ok(body) = written.and_then(|()| encoder.finish()) {
            self.body = body;
            self.headers.push((header::CONTENT_ENCODING, HeaderValue::from_static("gzip")));
        }
    }
}

impl From<RuleError> for Answer {
    fn from(broken: RuleError) -> Self {
        Self::refusal(400, broken.to_string())
    }
}

impl From<serde_json::Error> for Answer {
    fn from(_: serde_json::Error) -> Self {
        Self::refusal(500, "the reply cannot be written")
    }
}
