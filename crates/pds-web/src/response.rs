//! The answer of a route, before the server adds the headers of all answers.

use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;

use super::negotiate::{Encoding, Negotiated};

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: ResponseBody,
    /// The coding of the body. An uncompressed body is compressed on the way out if the client accepts it.
    pub(super) encoding: Encoding,
}

/// A page loads nothing from other hosts and nothing inline, and cannot be framed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The headers of every HTML page.
const PAGE_HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-cache"),
];

impl Response {
    /// An answer of any type.
    pub fn new(status: StatusCode, content_type: &'static str, body: impl Into<ResponseBody>) -> Self {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ]);
        Self { status, headers, body: body.into(), encoding: Encoding::Identity }
    }

    /// A metrics page in this format and coding.
    pub fn metrics(format: Negotiated, encoding: Encoding, page: impl Into<ResponseBody>) -> Self {
        Self { encoding, ..Self::new(StatusCode::OK, format.content_type(), page) }
    }

    /// A sentence for people and scripts, with a newline at its end.
    pub fn text(status: StatusCode, sentence: impl Into<String>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", sentence.into())
    }

    /// An HTML page, with the headers that keep it harmless.
    pub fn html(status: StatusCode, page: impl Into<ResponseBody>) -> Self {
        let mut response = Self::new(status, "text/html; charset=utf-8", page);
        for (name, value) in PAGE_HEADERS {
            response.headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// A JSON document; caches revalidate it each time.
    pub fn json(status: StatusCode, document: impl Into<ResponseBody>) -> Self {
        Self::new(status, "application/json; charset=utf-8", document)
            .header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
    }

    /// Sets a header; replaces any of that name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets an entity tag (visible ASCII without `"`, given without quotes): a client that already has it gets 304. The
    /// tag is weak, as one page is sent in several codings.
    #[must_use]
    pub fn etag(mut self, tag: &str) -> Self {
        if let Ok(value) = HeaderValue::try_from(format!("W/\"{tag}\"")) {
            self.headers.insert(header::ETAG, value);
        }
        self
    }

    /// Turns the answer into 304 if the client's `If-None-Match` names its tag.
    pub(super) fn unless_known(mut self, if_none_match: Option<&str>) -> Self {
        let tag = self.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(opaque);
        let (Some(tag), Some(known), StatusCode::OK) = (tag, if_none_match, self.status) else { return self };
        if known.trim() == "*" || known.split(',').any(|candidate| opaque(candidate) == tag) {
            self.status = StatusCode::NOT_MODIFIED;
            self.body = Bytes::new().into();
            self.encoding = Encoding::Identity;
            self.headers.remove(header::CONTENT_TYPE);
        }
        self
    }
}

/// A tag without the mark of weakness, which the comparison for 304 ignores.
fn opaque(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// The largest piece of a body sent at once. A piece that stays unread reveals a slow reader, and compressing it blocks
/// the thread only briefly.
pub const MAX_PIECE_BYTES: usize = 256 * 1024;

/// The body of an answer.
#[derive(Debug)]
pub enum ResponseBody {
    /// Bytes in parts, which may be shared with other bodies; nothing is copied.
    Parts(VecDeque<Bytes>),
    /// Pieces made elsewhere while the client reads. An error aborts the answer, so that no client mistakes a part for
    /// the whole.
    Channel {
        /// The pieces.
        pieces: mpsc::Receiver<io::Result<Bytes>>,
        /// The memory of their source, in bytes, held until the client has read them.
        source_bytes: u64,
    },
}

impl ResponseBody {
    /// Its length, if it is known in advance.
    pub(super) fn exact_length(&self) -> Option<u64> {
        match self {
            Self::Parts(parts) => Some(parts.iter().map(|bytes| bytes.len() as u64).sum()),
            Self::Channel { .. } => None,
        }
    }

    /// The next piece; `None` at the end.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Parts(parts) => {
                while parts.front().is_some_and(Bytes::is_empty) {
                    parts.pop_front();
                }
                let piece = parts.front_mut().map(|bytes| bytes.split_to(bytes.len().min(MAX_PIECE_BYTES)));
                Poll::Ready(piece.map(Ok))
            }
            Self::Channel { pieces, .. } => pieces.poll_recv(cx),
        }
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Self::Parts(VecDeque::from([bytes.into()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_the_page_gets_304() {
        let page = || Response::html(StatusCode::OK, "<p>").etag("v7");
        for known in ["W/\"v7\"", "\"v7\"", "\"v6\", W/\"v7\"", "*"] {
            assert_eq!(page().unless_known(Some(known)).status, StatusCode::NOT_MODIFIED, "{known}");
        }
        for other in [None, Some("\"v8\""), Some("v7"), Some("")] {
            assert_eq!(page().unless_known(other).status, StatusCode::OK, "{other:?}");
        }
        let refused = Response::text(StatusCode::NOT_FOUND, "no\n").etag("v7").unless_known(Some("*"));
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
    }

    #[test]
    fn no_page_runs_scripts_inside_it() {
        let headers = Response::html(StatusCode::OK, "").headers;
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}
