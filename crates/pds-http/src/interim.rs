//! The limit of interim (1xx) replies. A client skips them, so a server that sends them without end would occupy a
//! processor until the request's time is over.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use pds_core::framing::{Framing, Headers};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Interim replies to one request.
pub const MAX_INTERIM: u32 = 100;
/// Bytes of the interim replies to one request.
pub const MAX_INTERIM_BYTES: usize = 64 * 1024;
/// Streams of an HTTP/2 connection whose interim replies are counted.
const MAX_STREAMS: usize = 4096;

/// A connection as `reqwest` makes it.
pub(super) trait Stream: Connection + Read + Write + Send + Unpin {}

impl<S: Connection + Read + Write + Send + Unpin> Stream for S {}

pub(super) type BoxStream = Box<dyn Stream>;

/// A connection that fails with [`io::ErrorKind::QuotaExceeded`] at too many interim replies.
pub struct Watched {
    stream: TokioIo<BoxStream>,
    replies: Replies,
}

/// The replies of a connection.
enum Replies {
    Http1(Heads),
    Http2(Frames),
}

impl Watched {
    pub(super) fn new(stream: BoxStream) -> Self {
        let replies = match stream.connected().is_negotiated_h2() {
            true => Replies::Http2(Frames::default()),
            false => Replies::Http1(Heads::default()),
        };
        Self { stream: TokioIo::new(stream), replies }
    }
}

impl Connection for Watched {
    fn connected(&self) -> Connected {
        self.stream.inner().connected()
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let arrived = buf.filled().get(before..).unwrap_or_default();
        let within = match &mut self.replies {
            Replies::Http1(heads) => heads.count(arrived),
            Replies::Http2(frames) => frames.count(arrived),
        };
        let error = || {
            io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("more than {MAX_INTERIM} interim replies, or {MAX_INTERIM_BYTES} bytes of them"),
            )
        };
        Poll::Ready(within.then_some(()).ok_or_else(error))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        // A request, or a part of it: with HTTP/1, whatever comes next is the head of a reply.
        if let Replies::Http1(heads) = &mut self.replies {
            *heads = Heads::default();
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The heads that follow a request of HTTP/1, up to that of its reply.
#[derive(Default)]
struct Heads {
    interim: Interim,
    at: At,
}

/// Interim replies to a request so far.
#[derive(Default)]
struct Interim {
    replies: u32,
    bytes: usize,
}

impl Interim {
    fn are_within(&self, replies: u32) -> bool {
        self.replies <= replies && self.bytes <= MAX_INTERIM_BYTES
    }
}

/// The position in a head.
enum At {
    /// In `HTTP/1.1 103`, after so many bytes.
    Status(usize),
    /// Further on in an interim reply, and whether the line is empty so far.
    Interim { empty: bool },
    /// In the reply.
    Reply,
}

impl Default for At {
    fn default() -> Self {
        Self::Status(0)
    }
}

impl Heads {
    /// Counts the interim replies in what `arrived`; false if they are too many.
    fn count(&mut self, arrived: &[u8]) -> bool {
        for byte in arrived {
            self.at = match (&self.at, byte) {
                (At::Reply, _) => break,
                // The client skips empty lines before a head.
                (At::Status(0), b'\r' | b'\n') => At::Status(0),
                (At::Status(9), b'1') => At::Interim { empty: false },
                (At::Status(9), _) => At::Reply,
                (At::Status(at), _) => At::Status(at + 1),
                (At::Interim { empty: true }, b'\n') => {
                    self.interim.replies += 1;
                    At::Status(0)
                }
                (At::Interim { .. }, b'\n') => At::Interim { empty: true },
                (At::Interim { empty }, b'\r') => At::Interim { empty: *empty },
                (At::Interim { .. }, _) => At::Interim { empty: false },
            };
            self.interim.bytes += 1;
            if !self.interim.are_within(MAX_INTERIM) {
                return false;
            }
        }
        true
    }
}

/// The frames of an HTTP/2 connection.
struct Frames {
    headers: Headers,
    /// Heads of each stream whose reply has begun and not ended.
    heads: BTreeMap<[u8; 4], Interim>,
}

impl Default for Frames {
    fn default() -> Self {
        Self { headers: Headers::new(Framing::HTTP2), heads: BTreeMap::new() }
    }
}

impl Frames {
    /// Counts the heads in what `arrived`; false if a stream has too many.
    fn count(&mut self, mut arrived: &[u8]) -> bool {
        while let Some(([_, _, _, kind, flags, stream @ ..], length)) = self.headers.next(&mut arrived) {
            match (kind, flags & 1) {
                // DATA or HEADERS that end the stream, or RST_STREAM.
                (0 | 1, 1) | (3, _) => {
                    self.heads.remove(&stream);
                }
                // HEADERS, and CONTINUATION: the heads of interim replies, and of the reply itself.
                (1 | 9, _) => {
                    let heads = self.heads.entry(stream).or_default();
                    heads.replies += u32::from(kind == 1);
                    heads.bytes += length;
                    if !heads.are_within(MAX_INTERIM + 1) {
                        return false;
                    }
                }
                _ => {}
            }
            if self.heads.len() > MAX_STREAMS {
                // The oldest belongs to a request that was given up.
                self.heads.pop_first();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many interim replies come through, however they are cut.
    fn passed(interim: &[u8], within: impl Fn() -> Box<dyn FnMut(&[u8]) -> bool>) -> u32 {
        let counts: Vec<u32> = [1, 7, interim.len()]
            .into_iter()
            .map(|piece| {
                let mut within = within();
                let passes = |_: &u32| interim.chunks(piece).all(&mut within);
                (0..1000).take_while(passes).count().try_into().unwrap()
            })
            .collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        counts[0]
    }

    #[test]
    fn interim_replies_are_counted_however_they_are_written_and_cut() {
        let long = format!("HTTP/1.1 103\nx: {}\n\n", "x".repeat(1000));
        for (head, passes) in [
            ("HTTP/1.1 100 Continue\r\n\r\n", MAX_INTERIM),
            ("HTTP/1.0 103 Early\nlink: </a>\r\nx: HTTP/1.1 200\n\n", MAX_INTERIM),
            ("\r\n\nHTTP/1.1 199\r\n\n", MAX_INTERIM),
            (&long, 64),
        ] {
            let heads = || {
                let mut heads = Heads::default();
                Box::new(move |bytes: &[u8]| heads.count(bytes)) as Box<dyn FnMut(&[u8]) -> bool>
            };
            assert_eq!(passed(head.as_bytes(), heads), passes, "{head}");
        }
        let head = b"\0\0\x05\x01\x04\0\0\0\x01\x08\x03103";
        let frames = || {
            let mut frames = Frames::default();
            Box::new(move |bytes: &[u8]| frames.count(bytes)) as Box<dyn FnMut(&[u8]) -> bool>
        };
        assert_eq!(passed(head, frames), MAX_INTERIM + 1, "the last may be the reply's");
    }

    #[test]
    fn a_body_counts_for_nothing() {
        let mut heads = Heads::default();
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        assert!(heads.count(format!("{interim}HTTP/1.1 200 OK\r\n\r\n{interim}").as_bytes()));
        let mut frames = Frames::default();
        for stream in 0..10_000_u32 {
            let stream = stream.to_be_bytes();
            let head = [&b"\0\0\x01\x01\x04"[..], &stream, b"\x88"].concat();
            assert!((0..101).all(|_| frames.count(&head)));
            if stream[3].is_multiple_of(2) {
                assert!(frames.count(&[&b"\0\0\0\0\x01"[..], &stream].concat()));
                assert!(!frames.heads.contains_key(&stream));
            }
        }
        assert_eq!(frames.heads.len(), MAX_STREAMS);
    }
}
