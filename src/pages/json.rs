//! The model as JSON. Characters that control a terminal or the direction of text are escaped.

use std::io::{self, BufWriter, Write};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::status::{LazyApp, Status};
use pds_core::printable::is_terminal_control;
use pds_web::ResponseBody;

/// Approximate size of a piece.
const PIECE: usize = 128 * 1024;

/// The document as text.
pub(super) fn text(document: &impl Serialize) -> String {
    let mut text = Vec::new();
    // Plain data always serializes.
    let _ = write(document, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// The document in pieces, sent while it is written: each app is read, written and dropped. `held` is kept until that has
/// ended.
pub(super) fn pieces(document: Status, held: impl Send + 'static) -> ResponseBody {
    let source_bytes = (document.apps.len() * size_of::<LazyApp>()) as u64;
    ResponseBody::streamed(source_bytes, move |send| {
        let _held = held;
        let mut writer = BufWriter::with_capacity(PIECE, Pieces(send));
        // Fails when the client has disconnected.
        let _ = write(&document, &mut writer).and_then(|()| writer.flush());
    })
}

fn write(document: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    Ok(document.serialize(&mut Serializer::with_formatter(out, Printable))?)
}

/// Sends each write as a piece.
struct Pieces<'a>(&'a dyn Fn(Bytes) -> io::Result<()>);

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(Bytes::copy_from_slice(bytes)).map(|()| bytes.len())
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
        let ResponseBody::Channel { mut pieces, .. } = pieces(Status::clone(&status), ()) else {
            panic!("it is sent whole")
        };
        let mut read = Vec::new();
        while let Some(piece) = pieces.recv().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE, "{} bytes", piece.len());
            read.extend_from_slice(&piece);
        }
        assert!(read.len() > 2 * PIECE && read == text(&*status).into_bytes(), "{} bytes", read.len());
    }
}
