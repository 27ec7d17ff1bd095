//! Log lines without control characters, in a form that every logfmt parser reads.

use std::borrow::Cow;
use std::io::{self, Write};

use pds_core::printable::plain;

use pds_config::flags::LogFormat;

/// A writer for one line at a time.
#[derive(Debug)]
pub(super) struct LineWriter<W> {
    pub(super) inner: W,
    pub(super) format: LogFormat,
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
        let text = match self.format {
            LogFormat::Logfmt => json_escapes(text),
            LogFormat::Json => Cow::Borrowed(text),
        };
        self.inner.write_all(format!("{}{end}", plain(&text)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Replaces the escapes of Rust (`\u{1b}`, `\0`, `\'`) in quoted values by those of JSON (`\u001b`), which logfmt
/// uses.
fn json_escapes(line: &str) -> Cow<'_, str> {
    if !line.contains('\\') {
        return Cow::Borrowed(line);
    }
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.strip_prefix("u{").and_then(|of| of.split_once('}'));
        let char = code.and_then(|(code, _)| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        if let (Some(char), Some((_, after))) = (char, code) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
            rest = after;
        } else if let Some(after) = after.strip_prefix('0') {
            out.push_str("\\u0000");
            rest = after;
        } else if after.starts_with('\'') {
            rest = after;
        } else {
            // The next character is escaped, even if it is a backslash.
            let mut escaped = after.chars();
            out.push('\\');
            out.extend(escaped.next());
            rest = escaped.as_str();
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str, format: LogFormat) -> String {
        let mut writer = LineWriter { inner: Vec::new(), format };
        writer.write_all(line.as_bytes()).unwrap();
        String::from_utf8(writer.inner).unwrap()
    }

    #[test]
    fn escapes_of_logfmt_are_those_of_json() {
        for (line, expected) in [
            ("a=1 b=\"x y\"\n", "a=1 b=\"x y\"\n"),
            (r#"a="\u{1b}[2J \0 \n it\'s \"q\"""#, r#"a="\u001b[2J \u0000 \n it's \"q\"""#),
            (r#"a="\\u{1b} \\0 \u{e0001}""#, r#"a="\\u{1b} \\0 \udb40\udc01""#),
            ("a=\u{9b}\u{202e}\u{7f}", "a=\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(written(line, LogFormat::Logfmt), expected);
        }
    }

    #[test]
    fn json_keeps_its_escapes_and_has_nothing_that_steers() {
        let line = "{\"a\":\"\\u001b \\\\u{1b} \u{85}\u{2066}\"}\n";
        assert_eq!(written(line, LogFormat::Json), "{\"a\":\"\\u001b \\\\u{1b} \u{fffd}\u{fffd}\"}\n");
    }
}
