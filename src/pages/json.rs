//! The model as JSON. Characters that control a terminal or the direction of text are escaped.

use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use tokio::sync::mpsc;

use crate::status::{LazyApp, Status};
use pds_core::printable::is_terminal_control;
use pds_web::{Response, ResponseBody};

/// Approximate size of a piece.
const PIECE: usize = 128 * 1024;

/// Pieces buffered for the client.
const PIECES: usize = 2;

/// The document as text.
pub(super) fn text(document: &impl Serialize) -> String {
    let mut text = Vec::new();
    // Plain data always serializes.
    let _ = write(document, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Sends `document` while it is written: each app is read, written and dropped. `held` is kept until that has ended.
pub(super) fn stream(document: Status, held: impl Send + 'static) -> Response {
    let source_bytes = (document.apps.len() * size_of::<LazyApp>()) as u64;
    let pieces = written(document, held);
    Response::json(StatusCode::OK, ResponseBody::Channel { pieces, source_bytes })
}

/// The pieces of `document`, written on a separate thread as they are read.
fn written(
    document: impl Serialize + Send + 'static,
    held: impl Send + 'static,
) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let _held = held;
        let written = catch_unwind(AssertUnwindSafe(|| {
            let mut writer = BufWriter::with_capacity(PIECE, Pieces(&sender));
            // Fails when the client has disconnected.
            let _ = write(&document, &mut writer).and_then(|()| writer.flush());
        }));
        if written.is_err() {
            // Fails if nobody reads any more.
            let _ = sender.blocking_send(Err(io::Error::other("the page could not be rendered")));
        }
    });
    pieces
}

fn write(document: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    Ok(document.serialize(&mut Serializer::with_formatter(out, Printable))?)
}

/// Sends what is written.
struct Pieces<'a>(&'a mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compact JSON, with escapes.
struct Printable;

impl Formatter for Printable {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        for part in fragment.split_inclusive(is_terminal_control) {
            match part.chars().next_back().filter(|last| is_terminal_control(*last)) {
                Some(last) => {
                    out.write_all(part.trim_end_matches(last).as_bytes())?;
                    write!(out, "\\u{:04x}", u32::from(last))?;
                }
                None => out.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::status::tests::fixture;

    #[test]
    fn characters_that_steer_a_terminal_or_turn_text_are_escaped() {
        let written = "a\u{202e}\u{202e}b\u{9b}2J\u{7f} Größe\u{202e}";
        let json = text(&written);
        assert!(!json.contains(is_terminal_control) && json.contains("Größe"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), written);
    }

    #[tokio::test]
    async fn a_document_in_pieces_is_whole() {
        let fixture = fixture::fixture(500).await;
        fixture.answer(1.0);
        let status = fixture.source.status();
        let (mut pieces, mut read) = (written(Status::clone(&status), ()), Vec::new());
        while let Some(piece) = pieces.recv().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE, "{} bytes", piece.len());
            read.extend_from_slice(&piece);
        }
        assert!(read.len() > 2 * PIECE && read == text(&*status).into_bytes(), "{} bytes", read.len());
    }

    /// Panics when it is written.
    struct Panics;

    impl Serialize for Panics {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("as the test asks")
        }
    }

    #[tokio::test]
    async fn a_document_that_panics_breaks_off_and_keeps_what_is_held_until_then() {
        let held = Arc::new(());
        let mut pieces = written(Panics, Arc::clone(&held));
        assert!(pieces.recv().await.unwrap().is_err(), "a part must not pass for the whole");
        assert!(pieces.recv().await.is_none());
        let fixture = fixture::fixture(500).await;
        fixture.answer(1.0);
        let unread = written(Status::clone(&fixture.source.status()), Arc::clone(&held));
        assert!(Arc::strong_count(&held) > 1);
        drop(unread);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
