//! The answer of a route, before the server adds the headers of all answers, and its body on the way out.

use std::any::Any;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::connection_state::InFlight;
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

/// Pieces buffered for the client.
const PIECES: usize = 2;

impl ResponseBody {
    /// The pieces that `write` sends from a blocking thread while the client reads them. Sending fails once the client has
    /// disconnected; if `write` panics, the answer breaks off. `source_bytes` is as in [`ResponseBody::Channel`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn streamed(
        source_bytes: u64,
        write: impl FnOnce(&dyn Fn(Bytes) -> io::Result<()>) + Send + 'static,
    ) -> Self {
        let (sender, pieces) = mpsc::channel(PIECES);
        tokio::task::spawn_blocking(move || {
            let send = |piece| sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into());
            // Nothing that a panic may leave incomplete is used again.
            if catch_unwind(AssertUnwindSafe(|| write(&|piece| send(Ok(piece))))).is_err() {
                // Fails if nobody reads any more.
                let _: io::Result<()> = send(Err(io::Error::other("the page could not be rendered")));
            }
        });
        Self::Channel { pieces, source_bytes }
    }

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

/// A body on its way out: in pieces, compressed on request, holding its request slot until the kernel has the last byte.
pub(super) struct Outgoing {
    pub(super) body: ResponseBody,
    pub(super) compressor: Option<Compressor>,
    pub(super) held: Arc<Held>,
}

/// The request and its permit, held until the kernel has the last byte of the answer.
pub(super) type Held = (InFlight, Option<Arc<dyn Any + Send + Sync>>);

/// Bytes that wait in the buffers of the connection.
struct Piece(Bytes, #[expect(dead_code, reason = "dropped with the bytes")] Arc<Held>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Outgoing {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let piece = std::task::ready!(self.body.poll_piece(cx));
            let out = match (piece, &mut self.compressor) {
                (None, None) => return Poll::Ready(None),
                (Some(piece), None) => piece,
                (Some(piece), Some(compressor)) => piece.and_then(|piece| {
                    compressor.write_all(&piece)?;
                    Ok(std::mem::take(compressor.get_mut()).into())
                }),
                (None, Some(_)) => match self.compressor.take() {
                    Some(compressor) => compressor.finish().map(Bytes::from),
                    None => return Poll::Ready(None),
                },
            };
            // A compressor may need more input before it gives any output.
            if !out.as_ref().is_ok_and(Bytes::is_empty) {
                return Poll::Ready(Some(out));
            }
        }
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.held.0.taken();
        let piece = std::task::ready!(self.poll_piece(cx));
        let tracked = |bytes| {
            self.held.0.sending();
            Bytes::from_owner(Piece(bytes, Arc::clone(&self.held)))
        };
        Poll::Ready(piece.map(|piece| piece.map(tracked).map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.compressor, self.body.exact_length()) {
            (None, Some(length)) => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.compressor.is_none() && self.body.exact_length() == Some(0)
    }
}

/// Compresses answers that are not kept compressed.
pub(super) type Compressor = GzEncoder<Vec<u8>>;

/// A compressor at the fastest level, which reduces repetitive metrics pages to a twentieth; `None` for
/// [`Encoding::Identity`].
pub(super) fn compressor(encoding: Encoding) -> Option<Compressor> {
    (encoding == Encoding::Gzip).then(|| GzEncoder::new(Vec::new(), Compression::fast()))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use pds_core::memory::{Holder, MemoryBudget};

    use super::*;
    use crate::Limits;
    use crate::backend::tests::Counted;
    use crate::connection_state::ConnectionState;
    use crate::request_slots::RequestSlots;
    use crate::turns::Peer;

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

    #[tokio::test]
    async fn a_large_body_goes_out_in_pieces_and_keeps_its_slot_until_the_last_is_written() {
        let counted = Counted::default();
        let connection = ConnectionState::new(Peer::Local, Limits::default(), Arc::new(counted.clone()));
        let (request, slots) =
            (connection.open(), RequestSlots::new(1, MemoryBudget::default().share(Holder::Answers)));
        let permit = slots.take(&request).await.unwrap();
        let body = ResponseBody::from(vec![b'x'; MAX_PIECE_BYTES * 2 + 1]);
        let held = Arc::new((request, Some(Arc::new(permit) as _)));
        let mut out = Outgoing { body, compressor: None, held };
        assert_eq!(hyper::body::Body::size_hint(&out).exact(), Some(MAX_PIECE_BYTES as u64 * 2 + 1));
        let mut pieces = Vec::new();
        while let Some(frame) = out.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        drop(out);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [MAX_PIECE_BYTES, MAX_PIECE_BYTES, 1]);
        let last = pieces.pop();
        drop(pieces);
        assert_eq!(counted.connections(), (1, 0));
        assert!(slots.take(&connection.open()).await.is_none());
        drop(last);
        assert_eq!(counted.connections(), (0, 1));
        assert!(slots.take(&connection.open()).await.is_some());
    }

    fn outgoing(body: ResponseBody, compressor: Option<Compressor>) -> Outgoing {
        let connection = ConnectionState::new(Peer::Local, Limits::default(), Arc::new(()));
        Outgoing { body, compressor, held: Arc::new((connection.open(), None)) }
    }

    #[tokio::test]
    async fn pieces_are_encoded_on_the_way() {
        let pieces = || {
            let (sender, pieces) = mpsc::channel(3);
            for letter in *b"abc" {
                sender.try_send(Ok(Bytes::from(vec![letter; 100_000]))).unwrap();
            }
            ResponseBody::Channel { pieces, source_bytes: 0 }
        };
        let plain = outgoing(pieces(), None).collect().await.unwrap().to_bytes();
        let mut read = Vec::new();
        let gzip = outgoing(pieces(), compressor(Encoding::Gzip));
        let gzip = gzip.collect().await.unwrap().to_bytes();
        io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*gzip), &mut read).unwrap();
        assert!(gzip.len() < plain.len() / 10 && read == plain);
    }

    #[tokio::test]
    async fn an_error_breaks_the_body_off() {
        let (sender, pieces) = mpsc::channel(2);
        sender.send(Ok(Bytes::from_static(b"half"))).await.unwrap();
        sender.send(Err(io::Error::other("the rest is lost"))).await.unwrap();
        drop(sender);
        let mut out = outgoing(ResponseBody::Channel { pieces, source_bytes: 0 }, None);
        assert!(out.frame().await.unwrap().is_ok());
        assert_eq!(out.frame().await.unwrap().unwrap_err().to_string(), "the rest is lost");
    }

    #[tokio::test]
    async fn a_writer_that_panics_breaks_the_body_off_and_one_that_nobody_reads_ends() {
        let held = Arc::new(());
        let of_writer = Arc::clone(&held);
        let body = ResponseBody::streamed(0, move |send| {
            let _held = of_writer;
            send(Bytes::from_static(b"half")).unwrap();
            panic!("as the test asks");
        });
        let mut out = outgoing(body, None);
        assert!(out.frame().await.unwrap().is_ok());
        assert!(out.frame().await.unwrap().is_err(), "a part must not pass for the whole");
        let of_writer = Arc::clone(&held);
        let unread = ResponseBody::streamed(0, move |send| {
            let _held = of_writer;
            while send(Bytes::from_static(b"more")).is_ok() {}
        });
        drop(unread);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
