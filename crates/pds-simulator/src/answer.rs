//! The simulator's answers: replies, and errors as in section 7.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderName, HeaderValue, header};
use serde::Serialize;

use pds_interface::RuleError;
use pds_interface::reply::Format;

/// An answer before faults are applied.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A successful reply with this body.
    pub(super) fn of(format: Format, body: Vec<u8>) -> Self {
        match format {
            Format::Json => Self::of_type("application/json", body),
            Format::Text => Self::of_type("text/plain; charset=utf-8", body),
            Format::Empty => Self::empty(),
        }
    }

    fn of_type(content_type: &'static str, body: Vec<u8>) -> Self {
        let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        Self { status: 200, headers: vec![content_type], body }
    }

    /// A reply of JSON.
    pub(super) fn json(reply: &impl Serialize) -> Result<Self, ErrorReply> {
        Ok(Self::of(Format::Json, serde_json::to_vec(reply)?))
    }

    /// Compresses the body.
    pub(super) fn compress(&mut self) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory cannot fail.
        if let Ok(body) = encoder.write_all(&self.body).and_then(|()| encoder.finish()) {
            self.body = body;
            self.headers.push((header::CONTENT_ENCODING, HeaderValue::from_static("gzip")));
        }
    }

    /// A reply without a body.
    pub(super) fn empty() -> Self {
        Self { status: 204, headers: Vec::new(), body: Vec::new() }
    }
}

/// An error as section 7 describes it.
#[derive(Debug)]
pub(super) struct ErrorReply {
    pub(super) status: u16,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl ErrorReply {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.header = HeaderValue::from_str(value).ok().map(|value| (name, value));
        self
    }

    pub(super) fn answer(self) -> Answer {
        let body = serde_json::json!({ "message": self.message }).to_string().into_bytes();
        let mut answer = Answer { status: self.status, ..Answer::of(Format::Json, body) };
        answer.headers.extend(self.header);
        answer
    }
}

impl From<RuleError> for ErrorReply {
    fn from(broken: RuleError) -> Self {
        Self::new(400, broken.to_string())
    }
}

impl From<serde_json::Error> for ErrorReply {
    fn from(_: serde_json::Error) -> Self {
        Self::new(500, "the reply cannot be written")
    }
}
